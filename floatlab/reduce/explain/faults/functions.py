"""Recognise results that are a function of the product, such as GELU or softmax."""

from __future__ import annotations

from collections.abc import Callable
from math import erf, sqrt

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.problem import View

Function = Callable[[Array], Array]

_ERROR = 32.0  # the functions of libraries err by less than this many units in the last place
_LEAST = 8  # a function is named if it explains at least this many wrong elements
_SAMPLE = 256  # functions are tried on about this many elements first
_erf = np.frompyfunc(erf, 1, 1)


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.asarray(_erf(x / sqrt(2)), np.float64)))


def _gelu_by_tanh(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(sqrt(2 / np.pi) * (x + 0.044715 * x**3))))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


_ELEMENTWISE: dict[str, Function] = {
    "GELU": _gelu,
    "GELU (by tanh)": _gelu_by_tanh,
    "the sigmoid function": _sigmoid,
    "tanh": np.tanh,
    "SiLU": lambda x: np.asarray(x * _sigmoid(x)),
    "softplus": lambda x: np.asarray(np.logaddexp(0.0, x)),
    "exp": np.exp,
    "the square": np.square,
    "the integer part": np.trunc,
    "the nearest integer": np.rint,
    "the largest integer up to it": np.floor,
    "the absolute value": np.abs,
}


def function_of(view: View, output: Format, wrong: Array) -> str:
    """Return the function of the product that gives all elements of a result within rounding, or else "".

    `output` is the format of the result.
    """
    if int(wrong.sum()) < _LEAST or not view.usable.all() or not view.values.any():
        return ""
    view = View(view.totals, view.values, view.usable, view.noise, output)  # integers also fit narrower formats
    exact = view.totals.product
    with np.errstate(all="ignore"):
        room = view.noise.limit(view.totals)
        some = np.s_[:: max(1, exact.size // _SAMPLE)]
        for name, function in _ELEMENTWISE.items():
            if all(_is_explained(view, exact, room, function, part) for part in (some, np.s_[:])):
                # The function itself, not its inaccuracy, must explain most of each error.
                change, error = np.abs(function(exact[wrong]) - exact[wrong]), np.abs(view.values - exact)[wrong]
                return name if (change > error / 2).all() else ""
        for axis, words in ((1, "row"), (0, "column")):
            for scale, before in ((1.0, ""), (sqrt(view.totals.terms), f" / √{view.totals.terms}")):
                if exact.shape[axis] > 1 and _is_softmax(view, exact / scale, room / scale, axis):
                    return f"softmax (of each {words}{before})"
    return ""


def _own_errors(view: View, made: Array, exact: Array | float = 0.0) -> Array:
    """Return the largest error of each element that a library may make when it computes the function.

    It includes an error relative to the argument `exact`: in 1 + tanh(x), for example, most digits may cancel.
    """
    most: Array = 2.0**-view.format.precision * (_ERROR * np.abs(made) + np.abs(exact)) + _ERROR * 2.0**view.format.qmin
    return most


def _is_explained(view: View, exact: Array, room: Array, function: Function, part: slice) -> bool:
    exact, room, values = (each.reshape(-1)[part] for each in (exact, room, view.values))
    made = function(exact)
    change = np.maximum(np.abs(function(exact + room) - made), np.abs(function(exact - room) - made))
    half = np.broadcast_to(view.half, view.values.shape).reshape(-1)[part]
    return bool((np.abs(values - made) <= change + _own_errors(view, made, exact) + half).all())


def _is_softmax(view: View, exact: Array, room: Array, axis: int) -> bool:
    powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
    made = powers / powers.sum(axis=axis, keepdims=True)
    change = made * np.expm1(2 * room.max(axis=axis, keepdims=True))
    # A library may compute exp in the format of the result, where differences of large numbers are rounded.
    rounded = made * 2.0**-view.format.precision * 4 * np.abs(exact).max(axis=axis, keepdims=True)
    return bool((np.abs(view.values - made) <= change + rounded + _own_errors(view, made) + view.half).all())
