"""What the words of a question about training name: numbers, arrays, formats, setups."""

from __future__ import annotations

from typing import Any

from floatlab.errors import FloatlabError
from floatlab.files import open_array
from floatlab.fpmode import in_default_mode
from floatlab.numbers import encode, parse_literal
from floatlab.training.setup import Setup
from floatlab.verbs.question import Question

_FORMATS = ("grads", "accumulator", "state", "master", "update_format")


@in_default_mode
def numbers_named(word: str) -> Any:
    """Return what a word names: a number as text, so that nothing rounds it before its format does, or an array.

    A list of numbers stays text, VALUE@FORMAT is read into that format, and a file or `random:…` is read as it is.
    Raises FloatlabError.

    >>> numbers_named("1/3"), numbers_named("0.1,2^-24"), numbers_named("0.1@fp16")
    ('1/3', ['0.1', '2^-24'], Datum(binary16 0x2e66 = 0.1))
    """
    if _is_number(word):
        return word
    text, at, format = word.rpartition("@")
    if at and _is_number(text):
        return encode(text, format)
    parts = [each.strip() for each in word.split(",")]
    if len(parts) > 1 and all(_is_number(each) for each in parts):
        return parts
    with open_array(word, "binary64") as source:
        return source.whole()


def _is_number(text: str) -> bool:
    try:
        parse_literal(text)
    except FloatlabError:
        return False
    return True


@in_default_mode
def setup_of(question: Question) -> Setup:
    """Return the setup of a question, before any remedy."""
    formats = formats_of(question)
    formats["update"] = formats.pop("update_format", None)  # its name where there is no update beside it
    return Setup(**formats, context=question.context)


def formats_of(question: Question) -> dict[str, Any]:
    """Return the formats of a setup as the question has them."""
    options = {name: question.option(name) for name in _FORMATS if question.option(name) is not None}
    return {"weights": question.option("weights") or next(iter(question.formats), "binary16"), **options}
