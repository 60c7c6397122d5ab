"""Interprets text in the value box: operations such as 0.1+0.2 or sqrt 2, and codes without a format."""

from __future__ import annotations

import re
from collections.abc import Iterable

from floatlab.errors import FloatlabError
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import short_name
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question

_SIGNS = {"+": "add", "-": "sub", "−": "sub", "*": "mul", "×": "mul", "/": "div", "÷": "div"}
_MOST = 200  # texts longer than this are not examined
_DEFAULT = "fp64"  # the format of Python's floats, and of most calculators


def operation_in(text: str) -> Question | None:
    """Return the operation that a text asks for, or None if the text is not an operation on numbers.

    Examples
    --------
    >>> question = operation_in("0.1 + 0.2")
    >>> question.verb, question.values, question.formats[0].name
    ('add', ('0.1', '0.2'), 'binary64')
    >>> operation_in("2*3 - 1").verb, operation_in("2*3 - 1").values
    ('fma', ('2', '3', '-1'))
    >>> operation_in("sqrt(2)").verb
    'sqrt'
    >>> operation_in("0.1 plus 0.2") is None
    True
    """
    if len(text) > _MOST:
        return None
    found = _called(text) or _infix(text)
    if found is None:
        return None
    verb, values = found
    if not all(map(_is_number, values)):
        return None
    formats = () if any("@" in value for value in values) else (parse_format(_DEFAULT),)
    return Question(verb, values, formats)


def number_in(text: str) -> Question | None:
    """Return the question that shows a number as a binary64 (Python's float); None if the text is not a number.

    >>> number_in("nan").values, number_in("bf16") is None
    (('nan',), True)
    """
    return Question("show", (text,), (parse_format(_DEFAULT),)) if len(text) <= _MOST and _is_number(text) else None


def code_in(text: str) -> Question | None:
    """Return the question that shows a code in all formats of its width; None if the text is no such code.

    >>> code_in("0x38").values, code_in("0x38").option("dialects"), code_in("fp16") is None
    (('bits:0x38',), True, True)
    """
    match = re.fullmatch(r"\s*(?:bits:)?(0x[0-9a-f]+)\s*", text.lower())
    if match is None or len(text) > _MOST:
        return None
    question = Question("show", (f"bits:{match[1]}",)).having(dialects=True)
    try:
        answer_question(question)
    except FloatlabError:  # no format has this width
        return None
    return question


def format_of_code(typed: str, active: Format, others: Iterable[Format]) -> Format:
    """Return the format in which to read a code that was typed without a format: it is as wide as the code.

    The active format is tried first, then the other formats in order. If no format is as wide as the code, the active
    format is returned.

    >>> format_of_code("bits:0x38", parse_format("fp16"), [parse_format("e5m2")]).name
    'e5m2'
    """
    match = re.fullmatch("bits:0x([0-9a-f]+)", typed)
    bits = 4 * len(match[1]) if match else active.width
    return next((format for format in (active, *others) if format.width == bits), active)


def hint_on_code(value: str, format: Format) -> str:
    """Return a hint on how to read a code of another format in this format; empty unless both have the same width.

    >>> hint_on_code("bits:0x38@e4m3", parse_format("e5m2"))
    'e5m2 has the value, converted; type bits:0x38@e5m2 to read this code in e5m2'
    >>> hint_on_code("1.5", parse_format("e5m2"))
    ''
    """
    code, at, name = value.partition("@")
    if not at or not code.strip().lower().startswith("bits:"):
        return ""
    own, short = parse_format(name), short_name(format)
    if own == format or own.width != format.width:
        return ""
    return f"{short} has the value, converted; type {code}@{short} to read this code in {short}"


def hint_on_hexadecimal(typed: str) -> str:
    """Return a hint that a hexadecimal integer may be meant as a code; empty for other texts.

    >>> hint_on_hexadecimal("0x38")
    '0x38 is read as a number; bits:0x38 is the code (Dialects: in all formats)'
    """
    if not re.fullmatch("[+-]?0x[0-9a-f]+", typed):
        return ""
    return f"{typed} is read as a number; bits:{typed.lstrip('+-')} is the code (Dialects: in all formats)"


def _called(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the verb and the operands of text such as sqrt(2) or sqrt 2; None for other text."""
    from floatlab.verbs.arithmetic.answer import ARITIES  # not needed for the first frame

    match = re.fullmatch(r"\s*([a-z]+)(?:\s*\((.*)\)|\s+(.*?))\s*", text)
    if match is None or match[1] not in ARITIES:
        return None
    values = tuple(value.strip() for value in match[2].split(",")) if match[2] else tuple((match[3] or "").split())
    return (match[1], values) if len(values) == ARITIES[match[1]] else None


def _infix(text: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the verb and operands of text such as 0.1 + 0.2; None for other text.

    A product plus or minus a number is an FMA.
    """
    for place in range(len(text) - 1, 0, -1):
        left, sign, right = text[:place].strip(), text[place], text[place + 1 :].strip()
        if sign not in _SIGNS or not _is_number(right):
            continue
        if _is_number(left):
            return _SIGNS[sign], (left, right)
        product = re.fullmatch(r"(.+?)\s*[*×]\s*(.+)", left)
        if product and sign in "+-−" and _is_number(product[1]) and _is_number(product[2]):
            minus = sign != "+"
            addend = right if not minus else right[1:] if right.startswith("-") else f"-{right}"
            return "fma", (product[1], product[2], addend)
    return None


def _is_number(text: str) -> bool:
    try:
        answer_question(Question("show", (text,), (parse_format(_DEFAULT),) if "@" not in text else ()))
    except FloatlabError:
        return False
    return bool(text)
