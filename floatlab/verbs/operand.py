"""What a user types for an operand: a value or a code, and after @ the format that it comes in."""

from __future__ import annotations

from floatlab.errors import LiteralError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.literals import Code, Literal, parse_literal


def read_operand(text: str, bits: bool = False) -> tuple[Literal, Format | None]:
    """Return what VALUE, or VALUE@FORMAT, means; raises LiteralError and FormatError.

    >>> literal, format = read_operand("0.1@fp16")
    >>> literal.text, format and format.name, read_operand("0x3c00", bits=True)[0].text
    ('0.1', 'binary16', 'bits:0x3c00')
    """
    value, at, name = text.rpartition("@")
    if not at:
        return parse_literal(text, bits), None
    for what, side, part in (("value", "before", value), ("format", "after", name)):
        if not part.strip():
            raise LiteralError(f"{quoted(text)}: VALUE@FORMAT needs a {what} {side} the @")
    return parse_literal(value, bits), parse_format(name)


def as_code(literal: Literal, option: str) -> Code:
    """Return a literal's code; raises LiteralError, naming the option that asks for one, where it is a number."""
    if not isinstance(literal.value, Code):
        raise LiteralError(f"{quoted(literal.text)}: {option} takes a code, such as bits:0x38")
    return literal.value


def reversed_code(literal: Literal) -> Literal:
    """Read a code's bytes from the other end.

    >>> reversed_code(parse_literal("bits:0x007c")).text
    'bits:0x7c00'
    """
    typed = as_code(literal, "--little-endian")
    if typed.width % 8:
        raise LiteralError(f"{quoted(literal.text)}: --little-endian takes whole bytes, and this is {typed.width} bits")
    flipped = int.from_bytes(typed.code.to_bytes(typed.width // 8, "big"), "little")
    return Literal(f"bits:0x{flipped:0{typed.width // 4}x}", typed.replace(code=flipped))
