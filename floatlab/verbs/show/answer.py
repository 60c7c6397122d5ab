"""`show`: one value in one or more formats."""

from __future__ import annotations

from floatlab.errors import FormatError, quoted
from floatlab.formats import CATALOG, Format, parse_format
from floatlab.numbers import Context, Direction, Literal, convert, decode
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.verbs.question import Answer, answer_for, as_code, read_operand, reversed_code, rules_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from floatlab.page.model import Page
    from floatlab.verbs.question import Question, Started

DEFAULT_FORMATS = ("fp16", "fp32")
# The format of a code without a named format, by its width. At other widths, the user must name it.
_BY_WIDTH = {16: "binary16", 32: "binary32", 64: "binary64", 80: "x87", 128: "binary128"}
_CODE_LENGTH = 40  # up to this many characters, a hint says that a hexadecimal number may be meant as a code
_P3109_DIALECTS = ("p3109_k{k}p3se", "p3109_k{k}p4se")


def show(
    text: str,
    formats: tuple[Format, ...] = (),
    context: Context | None = None,
    *,
    bits: bool = False,
    little_endian: bool = False,
    interval: bool = False,
    directions: bool = False,
    dialects: bool = False,
    like: tuple[str, ...] = (),
    dialect: str = "",
) -> Answer:
    """Return the answer of `floatlab show`: a value in each format.

    If `text` has the form VALUE@FORMAT, VALUE is rounded to FORMAT first, and the result is converted to each of
    `formats`. With `directions`, `dialects` or `like`, FORMAT replaces `formats`.

    >>> print(*show("1.12156456132", (parse_format("fp16"),)).codes())
    0x3c7c
    """
    context = context or Context()
    rules = rules_of(dialect, context)
    literal, own = read_operand(text, bits)
    hints: list[str] = []
    if literal.is_bare_hexadecimal and len(literal.text) <= _CODE_LENGTH:
        hints.append(f"{literal.text} is the number {int(literal.text, 16)}; for the code, type bits:{literal.text}")
    if little_endian:
        literal = reversed_code(literal)
    if dialects:
        return _dialects(literal, (own,) if own else formats)
    if own:
        if directions or like:
            formats = (own,)
        else:
            reading = read_literal(literal, own, rules(own))
            others = [convert(reading.result, format, rules(format)) for format in formats if format != own]
            return answer_for([reading, *others], interval, tuple(hints))
    if not formats:
        formats = _formats_for(literal, hints)
    if directions:
        return _directions(literal, formats, rules, tuple(hints))
    if like:
        from floatlab.verbs.show.libraries import compare_libraries

        return compare_libraries(literal, formats, context, like)
    found = [read_literal(literal, format, rules(format)) for format in formats]
    return answer_for(found, interval, tuple(hints))


def _formats_for(literal: Literal, hints: list[str]) -> tuple[Format, ...]:
    if not isinstance(literal.value, Code):
        return tuple(parse_format(name) for name in DEFAULT_FORMATS)
    width = literal.value.width
    if width not in _BY_WIDTH:
        raise FormatError(
            f"{quoted(literal.text)}: {width} bits of which format? Name it, as in --e4m3, or use --dialects"
        )
    hints.append(f"{literal.text} has {width} bits: read as {_BY_WIDTH[width]}; choose another format with -f")
    return (parse_format(_BY_WIDTH[width]),)


def _directions(
    literal: Literal, formats: tuple[Format, ...], rules: Callable[[Format], Context], hints: tuple[str, ...]
) -> Answer:
    found = [
        [
            read_literal(literal, format, rules(format).replace(rounding=direction))
            for direction in Direction
            if not direction.has_few_bits
        ]
        for format in formats
    ]

    def page() -> Page:
        from floatlab.page.model import joined
        from floatlab.verbs.show.page import directions_table

        return joined([directions_table(group) for group in found])

    return answer_for([each for group in found for each in group], hints=hints).replace(page=page, parts=list)


def _dialects(literal: Literal, formats: tuple[Format, ...]) -> Answer:
    typed = as_code(literal, "--dialects")
    if not formats:
        from floatlab.formats.table_catalog import TABLES

        named = [row.format for row in (*CATALOG, *TABLES) if row.format.width == typed.width]
        p3109 = [parse_format(name.format(k=typed.width)) for name in _P3109_DIALECTS if 6 <= typed.width <= 16]
        formats = (*named, *p3109)
        title = f"every {typed.width}-bit format"
    else:
        title = "the formats named"
    data = [decode(typed.code, format) for format in formats]
    if not data:
        raise FormatError(f"{quoted(literal.text)}: no built-in format has {typed.width} bits; give formats with -f")

    def page() -> Page:
        from floatlab.verbs.show.page import dialects_table

        return dialects_table(data, literal.text, title)

    found = [read_literal(Literal(literal.text, typed.replace(binary=False)), format) for format in formats]
    return answer_for(found).replace(page=page, parts=list)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question, one value after another."""
    options = dict(question.options)
    return [show(value, question.formats, question.context, **options) for value in question.values]
