"""Operands for which fma and multiply-then-add differ, as text to go on with."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.arith.operands import reading_context
from floatlab.arith.witness import find_witness, is_searched_through
from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, encode
from floatlab.numbers.rounding import DEFAULT
from floatlab.verbs.arithmetic.operands import operands
from floatlab.verbs.edits import literal_of


def witness(
    format: Format,
    context: Context = DEFAULT,
    near: tuple[str, ...] = (),
    progress: Callable[[int, int], bool] | None = None,
    seed: int = 0,
    tries: int = 100_000,
) -> tuple[str, str, str] | None:
    """Return texts of a, b and c that read back as operands whose fma and multiply-then-add differ, or None.

    `near` are three texts to start from; what cannot be read is passed over. `progress` and None are
    `find_witness`'s.

    >>> from floatlab import parse_format
    >>> witness(parse_format("fp16")), witness(parse_format("fp16"), near=("0.1", "10", "5"))
    (('45', '47', '-2116'), ('0.0999755859375', '10', '-1'))
    """
    rules = reading_context(context)
    found = find_witness(format, context, seed, _data(near, format, rules), tries, progress)
    if found is None:
        return None
    a, b, c = (literal_of(datum, rules) for datum in found)
    return a, b, c


def no_witness(format: Format) -> str:
    """Say that none was found, and whether that proves that there is none.

    >>> from floatlab import parse_format
    >>> print(no_witness(parse_format("e2m1")))
    e2m1fn: fma and multiply-then-add differ for no numbers of this format; all of them were tried
    >>> print(no_witness(parse_format("fp16")))
    binary16: no numbers were found for which fma and multiply-then-add differ; there may be some that were not tried
    """
    if is_searched_through(format):
        said = "fma and multiply-then-add differ for no numbers of this format; all of them were tried"
    else:
        said = "no numbers were found for which fma and multiply-then-add differ; there may be some that were not tried"
    return f"{format.name}: {said}"


def _data(texts: tuple[str, ...], format: Format, rules: Context) -> tuple[Datum, Datum, Datum] | None:
    """Return what these texts are in the format, to nearest; None where they are not three numbers."""
    try:
        values = operands(texts, format, context=rules)
        data = [encode(value.result if isinstance(value, Derivation) else value, format, rules) for value in values]
        a, b, c = data
    except (FloatlabError, ValueError):
        return None
    return a, b, c
