"""Should I worry? How far a product is from another, in units of rounding, and what makes as much of a difference.

The number is q = |d| / (u·(|A|·|B|)), element by element: d is the difference, u half the format's ulp of 1, and
|A|·|B| the product of magnitudes, which the rounding errors of any order are proportional to (Higham, *Accuracy and
Stability of Numerical Algorithms*, section 3.5: no result of n terms is further than n from the exact one, to first
order). How large q is for a cause depends on n and on the data, so every cause is tried on the very inputs, or a part
of them.
"""

from __future__ import annotations

from enum import Enum
from functools import cached_property

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.sources import format_of
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.exact import matrix_totals
from floatlab.reduce.totals import matmul

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

_SIDE = 48  # rows and columns that causes are tried on
_ORDERS = (("serial", False), ("serial", True), ("pairwise", False), ("lanes(8)", True), ("reversed", False))
_NARROWER = ("tf32", "fp16", "bf16")
_DROPPED = 16  # terms that are left out, one at a time
_ALIKE = 4.0  # causes whose q are within this ratio of each other cannot be told apart
_NEAR = 3.0  # and a difference is explained by those that are within this ratio of it


class Cause(Enum):
    """Why two products differ."""

    ORDER = "order"  # of the additions, fused or not: rounding
    TF32 = "tf32"  # inputs that were rounded to so few digits
    FP16 = "fp16"
    BF16 = "bf16"
    TERM = "term"  # one that is missing: a bug


class Trial(Record):
    """What a cause does to these inputs: the root mean square of q, and its largest, over the elements tried."""

    cause: Cause
    rms: float
    largest: float


class Judgement(Record):
    """How far two products are apart, and the causes that make as much of a difference.

    No cause: nothing tried explains it. Several: they cannot be told apart on these inputs.
    """

    terms: int
    format: Format
    rms: float
    largest: float
    trials: tuple[Trial, ...]
    causes: tuple[Cause, ...]

    @property
    def is_rounding(self) -> bool:
        """Whether another order of the additions explains it, and nothing else that was tried does."""
        return self.causes == (Cause.ORDER,)

    @property
    def limit(self) -> float:
        """What q cannot exceed between two correctly rounded computations of any order, to first order in u: 2n."""
        return 2.0 * self.terms


def quotients(difference: Array, size: Array, format: Format) -> Array:
    """Return q of each element: |difference| / (u·size); 0 where both are 0.

    >>> from floatlab.formats import parse_format
    >>> quotients(np.array([2.0**-24, 0]), np.array([1.0, 0]), parse_format("fp32")).tolist()
    [1.0, 0.0]
    """
    with np.errstate(all="ignore"):
        found: Array = np.abs(difference) / (2.0**-format.precision * size)
    return np.where((difference == 0) & (size == 0), 0.0, found)


def judge(a: Any, b: Any, actual: Any, expected: Any = None, format: Format | None = None) -> Judgement:
    """Return how far a product of a (rows, n) and b (n, columns) is from another one, or from the exact product.

    All are float arrays; `format`, whose u it is, is that of `actual` where none is given. Raises UnsupportedError for
    shapes that do not go together, and for inputs or results that are not finite.

    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.random((64, 100), np.float32), rng.random((100, 64), np.float32)
    >>> judge(a, b, a @ b).causes, judge(a, b, quantize(a, "bf16") @ b).causes
    ((<Cause.ORDER: 'order'>,), (<Cause.BF16: 'bf16'>,))
    """
    first = _matrix(actual, "actual")
    format = format or format_of(first.dtype)
    assert format is not None
    return Case(a, b, format).judged(first, expected)


class Case:
    """Two factors, and what each cause does to their product: any number of products can be judged by it."""

    def __init__(self, a: Any, b: Any, format: Format) -> None:
        """Take matrices a (rows, n) and b (n, columns), or parts of them; raises as `judge`."""
        x, y = _matrix(a, "a"), _matrix(b, "b")
        if x.shape[1] != y.shape[0]:
            raise UnsupportedError(f"shapes do not go together: {x.shape} times {y.shape}")
        self.format, self.shape, self.terms = format, (x.shape[0], y.shape[1]), x.shape[1]
        rows, columns = (_some(count) for count in self.shape)
        self._places = np.ix_(rows, columns)
        self._x, self._y = x[rows], y[:, columns]
        self._high, self._low, self._size = matrix_totals(self._x, self._y)

    @cached_property
    def trials(self) -> tuple[Trial, ...]:
        """What each cause does to these inputs."""
        return _trials(self._x, self._y, self._high, self._low, self._size, self.format)

    def judged(self, actual: Any, expected: Any = None) -> Judgement:
        """Return how far a product is from another one, or from the exact product; raises as `judge`."""
        first = _matrix(actual, "actual")
        if first.shape != self.shape:
            raise UnsupportedError(f"shapes do not go together: a product of {self.shape} is not {first.shape}")
        values = first[self._places].astype(np.float64)
        if expected is None:
            difference = (values - self._high) - self._low
        else:
            second = _matrix(expected, "expected")
            if second.shape != first.shape:
                raise UnsupportedError(f"expected has shape {second.shape}, and actual {first.shape}")
            difference = values - second[self._places].astype(np.float64)
        rms, largest = _measured(quotients(difference, self._size, self.format))
        return Judgement(self.terms, self.format, rms, largest, self.trials, _explained(rms, self.trials))


def _matrix(x: Any, name: str) -> Array:
    array = np.asarray(x)
    if array.ndim != 2 or format_of(array.dtype) is None:
        raise UnsupportedError(f"{name} is a matrix of floats, not {array.dtype.name} of shape {array.shape}")
    if not np.isfinite(array).all():
        raise UnsupportedError(f"{name} has elements that are not finite; compare tells where")
    return array


def _some(count: int) -> Array:
    """Return the rows, or columns, that are looked at: all, or so many spread over them."""
    return np.unique(np.linspace(0, count - 1, min(count, _SIDE)).astype(np.int64))


def _measured(q: Array) -> tuple[float, float]:
    if not q.size:
        return 0.0, 0.0
    return float(np.sqrt(np.mean(q**2))), float(q.max())


def _trials(x: Array, y: Array, high: Array, low: Array, size: Array, format: Format) -> tuple[Trial, ...]:
    """Try every cause on the inputs."""

    def measured(made: Array) -> tuple[float, float]:
        return _measured(quotients((made.astype(np.float64) - high) - low, size, format))

    orders = [measured(matmul(x, y, schedule, format, fma=fma)) for schedule, fma in _ORDERS]
    # Two results may lie on both sides of the exact one.
    found = [Trial(Cause.ORDER, 2 * max(rms for rms, _ in orders), 2 * max(most for _, most in orders))]
    for name in _NARROWER:
        narrow = [np.asarray(quantize(side, name, overflow="saturate"), np.float64) for side in (x, y)]
        if all(np.array_equal(new, old) for new, old in zip(narrow, (x, y), strict=True)):
            continue  # the inputs have no more digits, and rounding them makes no difference
        found.append(Trial(Cause(name), *measured(matrix_totals(*narrow)[0])))
    terms = np.unique(np.linspace(0, x.shape[1] - 1, _DROPPED).astype(np.int64))
    missing = np.stack([np.multiply.outer(x[:, k], y[k]).astype(np.float64) for k in terms])
    found.append(Trial(Cause.TERM, *_measured(quotients(missing, size, format))))
    return tuple(found)


def _explained(rms: float, trials: tuple[Trial, ...]) -> tuple[Cause, ...]:
    """Return the causes that make such a difference, with those that cannot be told from them."""
    order, *others = trials
    # What would have made a far larger difference is not what made this one.
    alike = [each.cause for each in others if each.rms <= min(_ALIKE * order.rms, _NEAR * rms)]
    if rms <= order.rms:
        return (Cause.ORDER, *alike)
    fitting = [each for each in others if each.rms / _NEAR <= rms <= each.rms * _NEAR]
    if not fitting:
        return ()
    nearest = min(fitting, key=lambda each: abs(np.log(rms / each.rms)))
    near = [each.cause for each in fitting if max(each.rms, nearest.rms) <= 1.5 * min(each.rms, nearest.rms)]
    return (Cause.ORDER, *near) if alike and nearest.cause in alike else tuple(near)
