"""Recognise results that are a function of the product, such as GELU or softmax."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import erf, sqrt

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.explain.estimates import shortest_between
from floatlab.reduce.explain.problem import View

_ERROR = 32.0  # the functions of libraries err by less than this many units in the last place
_LEAST = 8  # a function is named if it explains at least this many wrong elements
_LEFT = 0.25  # a function may leave at most this share of the median error, or else it fits by chance
_SAMPLE = 256  # functions are tried on about this many elements first
_CONSTANT = 1e-5  # programs may have rounded the constants of a function, with this relative error
_ERF = 2e-7  # largest error of the approximations of erf that programs use
_CLEAR = 4.0  # a number is evidence of a function if it is larger than this multiple of its allowed error
_MOST_OFF = 0.5  # the numbers of a softmax add up to 1, with at most this error
_erf = np.frompyfunc(erf, 1, 1)


class _Function(Record):
    """A function of one number. `slack` returns the largest error due to rounded constants and approximations."""

    name: str
    of: Callable[[Array], Array]
    slack: Callable[[Array], Array] = np.zeros_like

    __hash__ = object.__hash__


def _gelu(x: Array) -> Array:
    return np.asarray(0.5 * x * (1 + np.asarray(_erf(x / sqrt(2)), np.float64)))


def _gelu_by_tanh(x: Array, constant: float = sqrt(2 / np.pi)) -> Array:
    return np.asarray(0.5 * x * (1 + np.tanh(constant * (x + 0.044715 * x**3))))


def _sigmoid(x: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-x)))


def _softplus(x: Array) -> Array:
    return np.asarray(np.logaddexp(0.0, x))


def _elu(x: Array) -> Array:
    return np.where(x > 0, x, np.expm1(np.minimum(x, 0.0)))


def _selu(x: Array) -> Array:
    return 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * _elu(x))


def _hard_sigmoid(x: Array) -> Array:
    return np.asarray(np.clip(x + 3, 0, 6) / 6)


def _cap(most: float) -> _Function:
    return _Function(f"the soft cap {most:g}·tanh(x/{most:g})", lambda x: most * np.tanh(x / most))


_ELEMENTWISE = (
    _Function("GELU", _gelu, lambda x: 0.5 * _ERF * np.abs(x)),
    _Function(
        "GELU (by tanh)",
        _gelu_by_tanh,
        lambda x: np.abs(_gelu_by_tanh(x, sqrt(2 / np.pi) * (1 + _CONSTANT)) - _gelu_by_tanh(x)),
    ),
    _Function("GELU (by the sigmoid function)", lambda x: np.asarray(x * _sigmoid(1.702 * x))),
    _Function("the sigmoid function", _sigmoid),
    _Function("tanh", np.tanh),
    _Function("SiLU", lambda x: np.asarray(x * _sigmoid(x))),
    _Function("softplus", _softplus),
    _Function("ELU", _elu),
    _Function("SELU", _selu, lambda x: np.abs(_selu(x)) * 2 * _CONSTANT),
    _Function("Mish", lambda x: np.asarray(x * np.tanh(_softplus(x)))),
    _Function("hard-swish", lambda x: np.asarray(x * _hard_sigmoid(x))),
    _Function("the hard sigmoid function", _hard_sigmoid),
    _Function("the logarithm of the sigmoid function", lambda x: -_softplus(-x)),
    _Function("softsign", lambda x: np.asarray(x / (1 + np.abs(x)))),
    _Function("the square of the ReLU", lambda x: np.square(np.maximum(x, 0.0))),
    _cap(30.0),
    _cap(50.0),
    _Function("exp", np.exp),
    _Function("the square", np.square),
    _Function("the integer part", np.trunc),
    _Function("the nearest integer", np.rint),
    _Function("the largest integer up to it", np.floor),
    _Function("the absolute value", np.abs),
)


def function_of(view: View, output: Format, wrong: Array) -> str:
    """Return the function of the product that gives all elements of a result within rounding, or else "".

    `output` is the format of the result. If several functions fit, the one with the smallest mean error is returned.
    Softmax is tried only if no other function fits. If fewer than eight elements are wrong, or if some elements are not
    usable, the result is "".
    """
    if int(wrong.sum()) < _LEAST or not view.usable.all() or not view.values.any():
        return ""
    # Compare in the format `output`: a function that gives integers makes the format of the result seem narrower.
    view = View(view.totals, view.values, view.usable, view.noise, output)
    exact = view.totals.product
    with np.errstate(all="ignore"):
        room, roundings = view.noise.limit(view.totals), 2 * np.broadcast_to(view.half, exact.shape)[wrong]
        some = np.s_[:: max(1, exact.size // _SAMPLE)]
        found = []
        for function in (*_ELEMENTWISE, *_leaky(view, exact, room)):
            if all(_is_explained(view, exact, room, function, part) for part in (some, np.s_[:])):
                made = function.of(exact)
                # The function itself, not its inaccuracy, must explain most of each error, apart from two roundings.
                change, error, left = (
                    np.abs(one - other)[wrong]
                    for one, other in ((made, exact), (view.values, exact), (view.values, made))
                )
                is_better = np.median(left) <= _LEFT * np.median(error) and _is_shown(view, exact, room, function)
                if is_better and (change > error / 2 - roundings).all() and (change > error / 2).sum() >= _LEAST:
                    found.append((float(np.abs(view.values - made).mean()), function.name))
        if found:
            return min(found)[1]
        for axis, words in ((1, "row"), (0, "column")):
            for scale, before in ((1.0, ""), (sqrt(view.totals.terms), f" / √{view.totals.terms}")):
                if exact.shape[axis] > 1 and _is_softmax(view, exact / scale, room / scale, axis):
                    return f"softmax (of each {words}{before})"
    return ""


def _leaky(view: View, exact: Array, room: Array) -> Iterator[_Function]:
    """Yield the leaky ReLU whose slope explains all elements with a negative product, if there is such a slope."""
    below = exact < -room
    if int(below.sum()) < _LEAST:
        return
    values, product = view.values[below], exact[below]
    width = (room + np.broadcast_to(view.half, room.shape))[below] + _ERROR * 2.0**-view.format.precision * abs(values)
    low, high = float(((values + width) / product).max()), float(((values - width) / product).min())
    if low <= high and 0 < (slope := shortest_between(low, high)) < 1:
        yield _Function(f"leaky ReLU (slope {slope:.6g})", lambda x: np.where(x > 0, x, slope * x))


def _own_errors(view: View, made: Array, argument: Array | float = 0.0) -> Array:
    """Return the largest error that a library may make in each element when it computes the function.

    The error includes a part that is relative to `argument` (see `_largest_argument`), because most digits may cancel
    in functions like 1 + tanh(x). If an element should be far smaller than the largest one, 0 and all other small
    numbers are accepted.
    """
    least = 2.0**view.format.qmin + 4.0**-view.format.precision * np.abs(made).max()
    most: Array = 2.0**-view.format.precision * (_ERROR * np.abs(made) + np.abs(argument)) + _ERROR * least
    return most


def _largest_argument(function: _Function, exact: Array) -> Array:
    """Return the magnitudes of the arguments, but at most the largest number in the computation of the function.

    A function that grows with its argument, such as x·(1 + tanh(x)), multiplies rounding errors by the argument. A
    bounded function, such as the hard sigmoid function, does not.
    """
    most = np.abs(exact).max(initial=0.0)
    largest: Array = np.minimum(np.abs(exact), np.abs(function.of(np.array([-most, most]))).max(initial=1.0))
    return largest


def _allowed(view: View, exact: Array, room: Array, function: _Function, made: Array) -> Array:
    """Return the largest error of each element, apart from its final rounding, if it is `function` of the product."""
    change = np.maximum(np.abs(function.of(exact + room) - made), np.abs(function.of(exact - room) - made))
    allowed: Array = change + function.slack(exact) + _own_errors(view, made, _largest_argument(function, exact))
    return allowed


def _is_explained(view: View, exact: Array, room: Array, function: _Function, part: slice) -> bool:
    exact, room, values = (each.reshape(-1)[part] for each in (exact, room, view.values))
    made = function.of(exact)
    most = _allowed(view, exact, room, function, made)
    half = np.broadcast_to(view.half, view.values.shape).reshape(-1)[part]
    return bool((np.abs(values - made) <= most + half).all())


def _is_shown(view: View, exact: Array, room: Array, function: _Function) -> bool:
    """Return whether enough numbers are clearly larger than their allowed errors. Other numbers are no evidence."""
    most = _allowed(view, exact, room, function, function.of(exact))
    return int((np.abs(view.values) > _CLEAR * most).sum()) >= _LEAST


def _is_softmax(view: View, exact: Array, room: Array, axis: int) -> bool:
    powers = np.exp(exact - exact.max(axis=axis, keepdims=True))
    made = powers / powers.sum(axis=axis, keepdims=True)
    # A library may compute exp in the format of the result, where differences of large numbers are rounded.
    unit = 2.0**-view.format.precision
    change = 2 * room.max(axis=axis, keepdims=True) + 4 * unit * np.abs(exact).max(axis=axis, keepdims=True)
    own = _own_errors(view, made) + view.half
    are_near = (view.values >= made * np.exp(-change) - own) & (view.values <= made * np.exp(change) + own)
    # Whatever the errors of its powers, a softmax has no negative numbers, and its numbers add up to 1.
    off = np.abs(view.values.sum(axis=axis) - 1)
    is_one = off <= min(_MOST_OFF, unit * (_ERROR + exact.shape[axis]))
    return bool(are_near.all() and (view.values >= 0).all() and is_one.all())
