"""Should I worry? How far two products are apart, in units of rounding, and which causes make such a difference.

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
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.reduce.results.product_error import quotients, root_mean_square
from floatlab.reduce.results.products import matmul
from floatlab.reduce.simulate.exact_sum import matrix_totals

_SIDE = 48  # rows and columns that causes are tried on
_ORDERS = (("serial", False), ("serial", True), ("pairwise", False), ("lanes(8)", True), ("reversed", False))
_NARROWER = ("fp32", "tf32", "fp16", "bf16")
_WHOLE = 1 << 34  # multiply-adds; of larger products only a part is looked at
_MOST = 1 << 25  # and elements
_DROPPED = 16  # terms that are left out, one at a time
_ALIKE = 4.0  # causes whose q are within this ratio of each other cannot be told apart
_NEAR = 3.0  # and a difference is explained by those that are within this ratio of it
_FEW = 0.05  # of the elements: so few that are beyond rounding are told apart from the others


class DifferenceCause(Enum):
    """A cause for which two products may differ."""

    ORDER = "order"  # of the additions, fused or not: rounding
    SINGLE = "fp32 arithmetic"  # of a wider product: inputs and sums in fp32
    FP32 = "fp32"  # inputs that were rounded to so few digits
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    TERM = "term"  # one that is missing: a bug


class Effect(Record):
    """What a cause does to these inputs: the root mean square of q, and its largest, over the elements tried.

    Of a cause that was tried in several ways these are the largest, and `least` is the smallest root mean square.
    """

    cause: DifferenceCause
    rms: float
    largest: float
    least: float


@methods_in_default_mode
class Judgement(Answering, Record):
    """How far two products are apart, and the causes that make as much of a difference.

    No cause: nothing tried explains it. Several: they cannot be told apart on these inputs. `looked_at` of `elements`
    were measured, and `beyond` of them have a q that no order comes near to on these inputs; where these are few, the
    causes are those of the others. `at` is where q is largest.
    """

    terms: int
    format: Format
    rms: float
    largest: float
    effects: tuple[Effect, ...]
    causes: tuple[DifferenceCause, ...]
    looked_at: int
    elements: int
    beyond: int
    at: tuple[int, int] | None

    _ASKS = ".is_rounding or .causes"

    def __repr__(self) -> str:
        """Show q and the causes."""
        causes = ", ".join(each.value for each in self.causes) or "none"
        return f"Judgement({self.terms:,} terms: q {self.rms:.3g} rms, {self.largest:.3g} largest; causes {causes})"

    @property
    def is_rounding(self) -> bool:
        """Whether another order of the additions explains it all, and nothing else that was tried does."""
        return self.causes == (DifferenceCause.ORDER,) and not self.beyond

    @property
    def limit(self) -> float:
        """What q cannot exceed between two correctly rounded computations of any order, to first order in u: 2n."""
        return 2.0 * self.terms


@in_default_mode
def judge_difference(
    a: object, b: object, actual: object, expected: object = None, format: Format | None = None
) -> Judgement:
    """Return how far a product of a (rows, n) and b (n, columns) is from another one, or from the exact product.

    All are float arrays; `format`, whose u it is, is that of `actual` where none is given. Raises UnsupportedError for
    shapes that do not go together, and for inputs or results that are not finite.

    >>> rng = np.random.default_rng(1)
    >>> a, b = rng.random((64, 100), np.float32), rng.random((100, 64), np.float32)
    >>> judge_difference(a, b, a @ b).causes, judge_difference(a, b, quantize(a, "bf16") @ b).causes
    ((<DifferenceCause.ORDER: 'order'>,), (<DifferenceCause.BF16: 'bf16'>,))
    """
    first = _matrix(actual, "actual")
    format = format or format_of(first.dtype)
    assert format is not None
    return ProductJudge(a, b, format).judged(first, expected)


class ProductJudge:
    """Two factors, and what each cause does to their product: any number of products can be judged by it."""

    def __init__(self, a: object, b: object, format: Format) -> None:
        """Take matrices a (rows, n) and b (n, columns), or parts of them; raises what `judge_difference` does."""
        x, y = _matrix(a, "a"), _matrix(b, "b")
        if x.shape[1] != y.shape[0]:
            raise UnsupportedError(f"shapes do not go together: {x.shape} times {y.shape}")
        self.format, self.shape, self.terms = format, (x.shape[0], y.shape[1]), x.shape[1]
        self._rows, self._columns = (_some(count) for count in self.shape)
        self._whole = x, y
        self._x, self._y = x[self._rows], y[:, self._columns]
        self._high, self._low, self._size = matrix_totals(self._x, self._y)

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """What each cause does to these inputs."""
        return _effects(self._x, self._y, self._high, self._low, self._size, self.format)

    def judged(self, actual: object, expected: object = None) -> Judgement:
        """Return how far a product is from another one, or from the exact product; raises as `judge_difference`."""
        first, rows, columns, size = _matrix(actual, "actual"), self._rows, self._columns, self._size
        if first.shape != self.shape:
            raise UnsupportedError(f"shapes do not go together: a product of {self.shape} is not {first.shape}")
        if expected is None:
            difference = (first[np.ix_(rows, columns)].astype(np.float64) - self._high) - self._low
        else:
            second = _matrix(expected, "expected")
            if second.shape != first.shape:
                raise UnsupportedError(f"expected has shape {second.shape}, and actual {first.shape}")
            if self._sizes is not None:
                size, rows, columns = self._sizes, *(np.arange(count) for count in self.shape)
            part = np.ix_(rows, columns)
            difference = first[part].astype(np.float64) - second[part].astype(np.float64)
        q = quotients(difference, size, self.format)
        rms, largest = _measured(q)
        far = q > _ALIKE * self.effects[0].largest
        beyond = int(far.sum())
        usual = _measured(q[~far])[0] if 0 < beyond <= _FEW * q.size else rms
        at = None
        if q.size:
            row, column = np.unravel_index(int(q.argmax()), q.shape)
            at = int(rows[row]), int(columns[column])
        return Judgement(
            terms=self.terms, format=self.format, rms=rms, largest=largest, effects=self.effects,
            causes=_explained(usual, self.effects), looked_at=q.size, elements=self.shape[0] * self.shape[1],
            beyond=beyond, at=at,
        )  # fmt: skip

    @cached_property
    def _sizes(self) -> Array | None:
        """|A|·|B| of all elements; None where that is too much to compute."""
        count = self.shape[0] * self.shape[1]
        if count > _MOST or count * self.terms > _WHOLE:
            return None
        x, y = (np.abs(side, dtype=np.float64) for side in self._whole)
        return np.asarray(x @ y)


def _matrix(x: object, name: str) -> Array:
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
    """Return the root mean square of q and the largest; 0 of none."""
    if not q.size:
        return 0.0, 0.0
    return root_mean_square(q), float(q.max())


def _effects(x: Array, y: Array, high: Array, low: Array, size: Array, format: Format) -> tuple[Effect, ...]:
    """Try every cause on the inputs."""

    def measured(made: Array) -> tuple[float, float]:
        return _measured(quotients((made.astype(np.float64) - high) - low, size, format))

    def ordered(cause: DifferenceCause, x: Array, y: Array, into: Format, times: int = 1) -> Effect:
        made = [measured(matmul(x, y, schedule, into, fma=fma)) for schedule, fma in _ORDERS]
        rms, largest = zip(*made, strict=True)
        return Effect(cause, times * max(rms), times * max(largest), times * min(rms))

    # Two results may lie on both sides of the exact one.
    found = [ordered(DifferenceCause.ORDER, x, y, format, 2)]
    single = parse_format("fp32")
    if format.precision > single.precision:
        left, right = (np.asarray(quantize(side, single)) for side in (x, y))
        found.append(ordered(DifferenceCause.SINGLE, left, right, single))
    for name in _NARROWER:
        narrow = [np.asarray(quantize(side, name, overflow="saturate"), np.float64) for side in (x, y)]
        if all(np.array_equal(new, old) for new, old in zip(narrow, (x, y), strict=True)):
            continue  # the inputs have no more digits, and rounding them makes no difference
        rms, largest = measured(matrix_totals(*narrow)[0])
        found.append(Effect(DifferenceCause(name), rms, largest, rms))
    terms = np.unique(np.linspace(0, x.shape[1] - 1, _DROPPED).astype(np.int64))
    missing = np.stack([np.multiply.outer(x[:, k], y[k]).astype(np.float64) for k in terms])
    rms, largest = _measured(quotients(missing, size, format))
    found.append(Effect(DifferenceCause.TERM, rms, largest, rms))
    return tuple(found)


def _explained(rms: float, effects: tuple[Effect, ...]) -> tuple[DifferenceCause, ...]:
    """Return the causes that make such a difference, with those that cannot be told from them."""
    order, *others = effects
    # What would have made a far larger difference is not what made this one.
    alike = [each.cause for each in others if each.rms <= min(_ALIKE * order.rms, _NEAR * rms)]
    if rms <= order.rms:
        return (DifferenceCause.ORDER, *alike)
    fitting = [each for each in others if each.least / _NEAR <= rms <= each.rms * _NEAR]
    if not fitting:
        return ()
    nearest = min(fitting, key=lambda each: abs(np.log(rms / min(max(rms, each.least), each.rms))))
    near = [each.cause for each in fitting if max(each.rms, nearest.rms) <= 1.5 * min(each.rms, nearest.rms)]
    return (DifferenceCause.ORDER, *near) if alike and nearest.cause in alike else tuple(near)
