"""Judges the difference of two products: its size in units of rounding errors, and the causes of such differences.

The measure is q = |d| / (u·(|A|·|B|)) for each element. Here d is the difference, u is half an ulp of 1 in the format,
and |A|·|B| is the product of the matrices of magnitudes. In any order of the additions, rounding errors are bounded by
a multiple of u·(|A|·|B|). To first order, q between a computed sum of n terms and the exact sum is at most n (Higham,
*Accuracy and Stability of Numerical Algorithms*, section 3.5). The q that a cause produces depends on n and on the
data. Therefore every cause is tried on the given inputs, or on a part of these inputs.
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

_SIDE = 48  # each cause is tried on at most this many rows and columns
_ORDERS = (("serial", False), ("serial", True), ("pairwise", False), ("lanes(8)", True), ("reversed", False))
_NARROWER = ("fp32", "tf32", "fp16", "bf16")
_WHOLE = 1 << 34  # if a product has more multiply-adds than this, only a part of it is measured
_MOST = 1 << 25  # if a product has more elements than this, only a part of it is measured
_DROPPED = 16  # the largest number of terms that are omitted, one at a time, to measure the effect of a missing term
_ALIKE = 4.0  # two causes cannot be distinguished if their q differ by at most this factor
_NEAR = 3.0  # a cause explains a difference if its q and the observed q differ by at most this factor
# If at most this fraction of the elements differ by more than rounding errors, these elements are left out of the
# judgement.
_FEW = 0.05


class DifferenceCause(Enum):
    """A cause that may make two products differ."""

    ORDER = "order"  # another order of the additions, with or without FMA: only rounding differs
    SINGLE = "fp32 arithmetic"  # a product in a wider format was computed in fp32, from inputs rounded to fp32
    FP32 = "fp32"  # this cause and the next three: the inputs are rounded to the format
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    TERM = "term"  # one term is missing from every sum, which is a bug


class Effect(Record):
    """The q that a cause produces on these inputs; the module's docstring defines q.

    A cause may have several variants, such as orders of the additions. `rms` is the root mean square of q over the
    elements, and `largest` is the largest q. For several variants, `rms` and `largest` are the maxima over the
    variants, and `least` is the smallest root mean square.
    """

    cause: DifferenceCause
    rms: float
    largest: float
    least: float


@methods_in_default_mode
class Judgement(Answering, Record):
    """How much two products differ, and the causes that produce differences of this size.

    If `causes` is empty, no cause that was tried explains the difference. If `causes` has several causes, these inputs
    cannot distinguish them. `looked_at` is the number of measured elements. `beyond` is the number of measured elements
    whose q (see the module's docstring) is far larger than the q of any order of the additions that was tried. If only
    a few elements (at most 5 %) have such a q, `causes` does not explain these elements. `at` is the index of the
    measured element with the largest q, or None if no element was measured.
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
        """Whether a different order of the additions, and no other cause, explains the whole difference."""
        return self.causes == (DifferenceCause.ORDER,) and not self.beyond

    @property
    def limit(self) -> float:
        """The largest q between two computations that round every operation correctly: 2n, to first order in u."""
        return 2.0 * self.terms


@in_default_mode
def judge_difference(
    a: object, b: object, actual: object, expected: object = None, format: Format | None = None
) -> Judgement:
    """Judge how a product of a (rows, n) and b (n, columns) differs from another product, or from the exact one.

    `a`, `b`, `actual` and `expected` are float arrays; if `expected` is None, `actual` is compared with the exact
    product. The measure q (see the module's docstring) uses the u of `format`, which is the format of `actual` by
    default. Raises UnsupportedError if shapes do not match, or if inputs or results are not finite.

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
    """Judges computed products of two factors; the effect of each cause on the exact product is measured once."""

    def __init__(
        self, a: object, b: object, format: Format, exact: tuple[Array, Array | None, Array] | None = None
    ) -> None:
        """Take matrices a (rows, n) and b (n, columns), or parts of them; raises errors as `judge_difference` does.

        If `exact` is given, it has three arrays for all elements: the exact product in binary64, the remainder that
        binary64 cannot hold (None if there is none), and |A|·|B|. In this case, all elements of two results are
        compared, even if the product is large.
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
        """Judge how `actual` differs from `expected` or the exact product; raises errors as `judge_difference` does."""
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
        """|A|·|B| for all elements; None if it was not given and would take too long to compute."""
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
        raise UnsupportedError(f"{name} must be a matrix of floats, not {array.dtype.name} of shape {array.shape}")
    if not np.isfinite(array).all():
        raise UnsupportedError(f"{name} has elements that are not finite; compare shows where")
    return array


def _measured(q: Array) -> tuple[float, float]:
    """Return the root mean square and the largest value of q; both are 0 if q is empty."""
    if not q.size:
        return 0.0, 0.0
    return root_mean_square(q), float(q.max())


def _effects(x: Array, y: Array, high: Array, low: Array, size: Array, format: Format) -> tuple[Effect, ...]:
    """Return the effect of each cause, tried on these inputs."""

    def measured(made: Array) -> tuple[float, float]:
        return _measured(quotients((made.astype(np.float64) - high) - low, size, format))

    def ordered(cause: DifferenceCause, x: Array, y: Array, into: Format, times: int = 1) -> Effect:
        made = [measured(matmul(x, y, schedule, into, fma=fma)) for schedule, fma in _ORDERS]
        rms, largest = zip(*made, strict=True)
        return Effect(cause, times * max(rms), times * max(largest), times * min(rms))

    # Each of the two results has a rounding error, so their difference may be twice as large as one error.
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
    """Return all causes that may have produced the observed q, whose root mean square is `rms`."""
    order, *others = effects
    # Causes whose effect is hard to distinguish from that of another order, and not far above the observed q.
    alike = [each.cause for each in others if each.rms <= min(_ALIKE * order.rms, _NEAR * rms)]
    if rms <= order.rms:
        return (DifferenceCause.ORDER, *alike)
    fitting = [each for each in others if each.least / _NEAR <= rms <= each.rms * _NEAR]
    if not fitting:
        return ()
    nearest = min(fitting, key=lambda each: abs(np.log(rms / min(max(rms, each.least), each.rms))))
    near = [each.cause for each in fitting if max(each.rms, nearest.rms) <= 1.5 * min(each.rms, nearest.rms)]
    return (DifferenceCause.ORDER, *near) if alike and nearest.cause in alike else tuple(near)
