"""Judges the difference of two products: its size in units of rounding errors, and the causes of such differences.

The measure is q = |d| / (u·(|A|·|B|)) for each element: d is the difference, u is half the format's ulp of 1, and
|A|·|B| is the product of the magnitudes; rounding errors are proportional to it in any order (Higham, *Accuracy and
Stability of Numerical Algorithms*, section 3.5: to first order, q is at most n between a computed sum of n terms and
the exact sum). The q that a cause produces depends on n and on the data, so every cause is tried on the given inputs,
or on a part of them.
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
from floatlab.reduce.results.product_error import quotients, root_mean_square, spread_indices
from floatlab.reduce.results.products import matmul
from floatlab.reduce.simulate.exact_sum import matrix_totals

_SIDE = 48  # causes are tried on at most this many rows and columns
_ORDERS = (("serial", False), ("serial", True), ("pairwise", False), ("lanes(8)", True), ("reversed", False))
_NARROWER = ("fp32", "tf32", "fp16", "bf16")
_WHOLE = 1 << 34  # for more multiply-adds, only a part of the product is measured
_MOST = 1 << 25  # for more elements, only a part of the product is measured
_DROPPED = 16  # number of terms that are tried as the missing term
_ALIKE = 4.0  # causes whose q are within this ratio of each other cannot be distinguished
_NEAR = 3.0  # a cause explains a difference if their q are within this ratio
_FEW = 0.05  # up to this fraction of elements beyond rounding, the others are judged separately


class DifferenceCause(Enum):
    """A cause for which two products may differ."""

    ORDER = "order"  # another order of the additions, fused or not: only rounding differs
    SINGLE = "fp32 arithmetic"  # inputs and sums of a wider product in fp32
    FP32 = "fp32"  # this and the next three: inputs rounded to the format
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    TERM = "term"  # a missing term: a bug


class Effect(Record):
    """The effect of a cause on these inputs: the root mean square of q and the largest q, over the elements tried.

    If a cause has several variants, these are the largest values of any variant, and `least` is the smallest root mean
    square.
    """

    cause: DifferenceCause
    rms: float
    largest: float
    least: float


@methods_in_default_mode
class Judgement(Answering, Record):
    """How much two products differ, and the causes of differences of this size.

    If `causes` is empty, nothing that was tried explains the difference; if it has several causes, these inputs cannot
    distinguish them. `looked_at` of `elements` elements were measured. `beyond` of them have a q that far exceeds that
    of any order; if these are few, `causes` describes the other elements. `at` is the index of the largest q.
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
        """Whether another order of the additions is the only cause that explains the whole difference."""
        return self.causes == (DifferenceCause.ORDER,) and not self.beyond

    @property
    def limit(self) -> float:
        """The bound on q between two computations with correctly rounded operations, to first order in u: 2n."""
        return 2.0 * self.terms


@in_default_mode
def judge_difference(
    a: object, b: object, actual: object, expected: object = None, format: Format | None = None
) -> Judgement:
    """Judge the difference between a product of a (rows, n) and b (n, columns) and another or the exact product.

    All arguments are float arrays; u is that of `format`, by default the format of `actual`. Raises UnsupportedError
    for shapes that do not match, and for inputs or results that are not finite.

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
    """Two factors, and the effect of each cause on their product; judges any number of computed products."""

    def __init__(
        self, a: object, b: object, format: Format, exact: tuple[Array, Array | None, Array] | None = None
    ) -> None:
        """Take matrices a (rows, n) and b (n, columns), or parts of them; raises the errors of `judge_difference`.

        If they are known already, `exact` is the exact product, the part of it beyond binary64 (None: nothing), and
        |A|·|B|. Differences of two results are then measured on all elements.
        """
        x, y = _matrix(a, "a"), _matrix(b, "b")
        if x.shape[1] != y.shape[0]:
            raise UnsupportedError(f"shapes do not fit together: {x.shape} times {y.shape}")
        self.format, self.shape, self.terms = format, (x.shape[0], y.shape[1]), x.shape[1]
        self._rows, self._columns = (spread_indices(count, _SIDE) for count in self.shape)
        self._whole = x, y
        self._x, self._y = x[self._rows], y[:, self._columns]
        self._exact = exact
        if exact is None:
            self._high, self._low, self._size = matrix_totals(self._x, self._y)
        else:
            part = np.ix_(self._rows, self._columns)
            product, missed, size = exact
            self._high, self._size = product[part], size[part]
            self._low = np.zeros_like(self._high) if missed is None else missed[part]

    @cached_property
    def effects(self) -> tuple[Effect, ...]:
        """The effect of each cause on these inputs."""
        return _effects(self._x, self._y, self._high, self._low, self._size, self.format)

    def judged(self, actual: object, expected: object = None) -> Judgement:
        """Judge the difference of a product from another or the exact product; errors as for `judge_difference`."""
        first, rows, columns, size = _matrix(actual, "actual"), self._rows, self._columns, self._size
        if first.shape != self.shape:
            raise UnsupportedError(f"shapes do not match: the product has shape {self.shape}, not {first.shape}")
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
        """|A|·|B| for all elements; None if it is not known and takes too long to compute."""
        if self._exact is not None:
            return self._exact[2]
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
        raise UnsupportedError(f"{name} has elements that are not finite; compare shows where")
    return array


def _measured(q: Array) -> tuple[float, float]:
    """Return the root mean square and the largest value of q; both 0 if q is empty."""
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

    # The difference of two results may be twice the error of one.
    found = [ordered(DifferenceCause.ORDER, x, y, format, 2)]
    single = parse_format("fp32")
    if format.precision > single.precision:
        left, right = (np.asarray(quantize(side, single)) for side in (x, y))
        found.append(ordered(DifferenceCause.SINGLE, left, right, single))
    for name in _NARROWER:
        narrow = [np.asarray(quantize(side, name, overflow="saturate"), np.float64) for side in (x, y)]
        if all(np.array_equal(new, old) for new, old in zip(narrow, (x, y), strict=True)):
            continue  # the inputs are already in this format
        rms, largest = measured(matrix_totals(*narrow)[0])
        found.append(Effect(DifferenceCause(name), rms, largest, rms))
    terms = spread_indices(x.shape[1], _DROPPED)
    missing = np.stack([np.multiply.outer(x[:, k], y[k]).astype(np.float64) for k in terms])
    rms, largest = _measured(quotients(missing, size, format))
    found.append(Effect(DifferenceCause.TERM, rms, largest, rms))
    return tuple(found)


def _explained(rms: float, effects: tuple[Effect, ...]) -> tuple[DifferenceCause, ...]:
    """Return the causes of a difference of this size, and all causes that cannot be distinguished from them."""
    order, *others = effects
    # A cause whose effect is far larger than the observed q is excluded.
    alike = [each.cause for each in others if each.rms <= min(_ALIKE * order.rms, _NEAR * rms)]
    if rms <= order.rms:
        return (DifferenceCause.ORDER, *alike)
    fitting = [each for each in others if each.least / _NEAR <= rms <= each.rms * _NEAR]
    if not fitting:
        return ()
    nearest = min(fitting, key=lambda each: abs(np.log(rms / min(max(rms, each.least), each.rms))))
    near = [each.cause for each in fitting if max(each.rms, nearest.rms) <= 1.5 * min(each.rms, nearest.rms)]
    return (DifferenceCause.ORDER, *near) if alike and nearest.cause in alike else tuple(near)
