"""Evaluates the formulas of scale rules on arrays, with the same bits as `arith.blocks.formulas`.

The operations of a rule are rounded to its working format, such as binary32 or bfloat16. Arrays are float64 if the
working format is binary64, and otherwise float32. In a format narrower than binary32, each operation is computed in
float64, and its result is rounded to the working format. Rounding twice is harmless for sums, differences, products and
quotients, since 53 ≥ 2p + 2 for the working precision p (Figueroa, When is double rounding innocuous?, 1995).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

import numpy as np

from floatlab.arrays.codec import round_array
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE
from floatlab.arrays.types import Array, DType
from floatlab.formats import parse_format
from floatlab.formats.format import Format
from floatlab.formats.formulas import WORKING, Formula
from floatlab.numbers import encode

Operation = Callable[..., Array]
_SINGLES, _DOUBLES = np.dtype(np.float32), np.dtype(np.float64)
_BEYOND = 128.0  # the exponent of ∞, as `arith.blocks.formulas` defines it


@lru_cache(maxsize=64)
def word_of(working: Format) -> DType:
    """Return the dtype of the arrays in which formulas with the working format `working` are computed.

    >>> from floatlab import parse_format
    >>> word_of(parse_format("bf16"))
    dtype('float32')
    """
    return np.dtype(np.float64 if working == DOUBLE else np.float32)


def evaluate(formula: Formula, known: Mapping[str, Array], working: Format) -> Array:
    """Return the values of a formula; each operation is rounded to `working`.

    `known` has the values of the variables. Operations inside `fp32(…)` or `fp64(…)` are rounded to fp32 or fp64
    instead. Functions that choose between their arguments (min, max, less …) do not round.

    >>> from floatlab import parse_format
    >>> from floatlab.formats.formulas import parse_formula
    >>> evaluate(parse_formula("amax / 6"), {"amax": np.float32([3, 1])}, parse_format("fp32")).tolist()
    [0.5, 0.1666666716337204]
    """
    if formula.number is not None:
        return _constant(formula, working)
    if not formula.arguments:
        return known[formula.name]
    if formula.name in _WIDTHS:
        wide = parse_format(formula.name)
        return round_to(evaluate(formula.arguments[0], known, wide), wide)
    if formula.name == WORKING:
        return round_to(evaluate(formula.arguments[0], known, working), working)
    values = [evaluate(each, known, working) for each in formula.arguments]
    if formula.name in _CHOICES:
        return _CHOICES[formula.name](*values)
    word = _SINGLES if _is_single(working) and formula.name not in _WIDE else _DOUBLES
    return round_to(_OPERATIONS[formula.name](*(np.asarray(each, word) for each in values)), working)


def round_to(values: Array, working: Format) -> Array:
    """Round values to nearest in a working format; the result is float64 for binary64, otherwise float32."""
    if _is_single(working) or working == DOUBLE:
        return np.asarray(values, word_of(working))
    rounded: Array = round_array(np.asarray(values, np.float64), working, threads=1)
    return np.asarray(rounded, np.float32)


@lru_cache(maxsize=64)
def _is_single(working: Format) -> bool:
    return working == SINGLE


@lru_cache(maxsize=256)
def _constant(formula: Formula, working: Format) -> Array:
    return np.asarray(float(encode(formula.number, working)), word_of(working))


def _log2(x: Array) -> Array:
    return np.log2(x)


def _exp2(x: Array) -> Array:
    known = np.isfinite(x)
    return np.where(known, np.ldexp(1.0, np.where(known, x, 0).astype(np.int32)), np.where(x < 0, 0.0, x))


def _exponent(x: Array) -> Array:
    e = np.frexp(x)[1] - 1.0
    return np.where(np.isnan(x), np.nan, np.where(np.isinf(x), _BEYOND, np.where(x == 0, -np.inf, e)))


def _rounded(x: Array, count: Array) -> Array:
    m, e = np.frexp(x)
    return np.ldexp(np.floor(np.ldexp(m, int(count)) + 0.5), e - int(count))


def _nonzero(x: Array, otherwise: Array) -> Array:
    return np.where(x == 0, otherwise, x)


def _finite(x: Array, otherwise: Array) -> Array:
    return np.where(np.isfinite(x), x, otherwise)


def _less(a: Array, b: Array, then: Array, otherwise: Array) -> Array:
    return np.where(a < b, then, otherwise)


def _at_most(a: Array, b: Array, then: Array, otherwise: Array) -> Array:
    return np.where(a <= b, then, otherwise)


_WIDTHS = ("fp32", "fp64")
# These are computed in float64, because their exact results can have more than 24 digits.
_WIDE = ("log2", "exp2", "rounded", "mod")
_OPERATIONS: dict[str, Operation] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "log2": _log2,
    "exp2": _exp2,
    "floor": np.floor,
    "ceil": np.ceil,
    "exponent": _exponent,
    "rounded": _rounded,
    "mod": np.mod,
}
_CHOICES: dict[str, Operation] = {
    "min": np.minimum,
    "max": np.maximum,
    "nonzero": _nonzero,
    "finite": _finite,
    "less": _less,
    "at_most": _at_most,
}
