"""The operands of an operation: what words mean, and the derivation that a verb makes of them."""

from __future__ import annotations

from floatlab.arith.operands import reading_context
from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.verbs.question import read_operand

# How many operands each operation takes.
ARITIES = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rem": 2, "sqrt": 1, "fma": 3, "cmp": 2, "toint": 1, "rint": 1}

Operand = str | Datum | Derivation  # text, a code's datum, or what was read into a format of its own
_EXAMPLE = 40  # characters of a code that is repeated as an example


def operands(
    texts: tuple[str, ...], format: Format | None, bits: bool = False, context: Context | None = None
) -> tuple[Operand, ...]:
    """Return what an operation takes: readings of VALUE@FORMAT, data for codes, text for the rest.

    A code without a format belongs to `format`, which must then be given.

    >>> reading, text = operands(("0.1@fp16", "2"), None)
    >>> reading.result, text
    (Datum(binary16 0x2e66 = 0.1), '2')
    """
    rules = reading_context(context or Context())
    found: list[Operand] = []
    for text in texts:
        literal, own = read_operand(text, bits)
        home = own or format
        if isinstance(literal.value, Code) and home:
            found.append(read_literal(literal, home).result)
        elif own:
            found.append(read_literal(literal, own, rules))
        elif not isinstance(literal.value, Code):
            found.append(text)
        else:
            example = text.strip() if len(text) <= _EXAMPLE else "bits:0x3c00"
            raise FloatlabError(f"{quoted(text)}: a code of which format? Name it with -f, or as {example}@fp16")
    return tuple(found)


def compute(
    verb: str, values: tuple[Operand, ...], format: Format | None, context: Context, exact: bool = True
) -> Derivation:
    """Return the derivation of a verb that has one.

    >>> from floatlab import parse_format
    >>> compute("mul", ("3", "0.5"), parse_format("fp16"), Context()).result
    Datum(binary16 0x3e00 = 1.5)
    """
    from floatlab import arith

    if verb == "fma":
        a, b, c = values
        return arith.fma(a, b, c, format, context)
    if verb == "sqrt":
        return arith.sqrt(values[0], format, context)
    if verb == "rint":
        return arith.round_to_integral(values[0], format, context, exact)
    binary = {
        "add": arith.add,
        "sub": arith.subtract,
        "mul": arith.multiply,
        "div": arith.divide,
        "rem": arith.remainder,
    }
    return binary[verb](values[0], values[1], format, context)
