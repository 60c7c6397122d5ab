"""The results of an audit of recipes: records with the errors that each recipe causes in each tensor."""

from __future__ import annotations

from math import inf, isfinite, log10, sqrt

import numpy as np

from floatlab.arrays.lanes.tally_lanes import Tally
from floatlab.auditing.survival.outputs import OutputErrors
from floatlab.auditing.survival.scale_tally import ScaleTally
from floatlab.presenter import Answering
from floatlab.record import Record

SURVIVES, DAMAGED, OVERFLOWS = "survives", "damaged", "overflows"
QUANTILE = 0.999  # the share of relative errors that do not exceed `relative_999`
_EXPONENT_BIAS = 1023  # bin i of Tally.exponents counts numbers with the exponent i − 1023
_SINGLE_BIAS = 127  # exponent bias of binary32; bin i of relative_errors has the errors whose upper 16 bits are i


class RecipeFigures(Record):
    """The errors that one recipe causes in a tensor, or in all tensors together.

    `bits` is the number of bits per element, scales included. Of the `elements`, `exact` are unchanged, `flushed`
    become 0, `subnormal` become subnormal numbers of the element format, `saturated` are clipped to the largest number
    of this format, and `lost` become NaN or infinite. `mean_relative`, `relative_999` (the 99.9th percentile, up to
    1/128 too large) and `largest_relative` are relative errors of the nonzero numbers. `largest_relative_at` is the
    index of the first element with the largest relative error. `largest_error` is the largest absolute error. `squares`
    is the sum of the squares of the numbers, and `error_squares` is the sum of the squares of the errors. `mse` is the
    mean of the squared errors. `sqnr` is the ratio of signal to quantisation noise in dB. It is infinite if there are
    no errors, and None if all numbers are 0 or if a sum of squares is not finite. `cosine` is the cosine of the angle
    between the tensor and its rounded copy. `error_exponents` has pairs (e, count) in ascending order: for `count`
    nonzero relative errors r, floor(log2 r) is e. `output_sqnr` is the SQNR of the layer's output, and `output_error`
    is the largest error of the output. Both are None without samples of inputs. Elements that are lost, or that are not
    finite in the source, are left out of all errors and sums.

    `scales` counts the stored scales of the blocks; it is None for recipes without scales. `verdict` is survives,
    damaged or overflows; `reason` says why. `expected` is the SQNR that the recipe reaches on normally distributed
    numbers.
    """

    recipe: str
    bits: float
    elements: int
    exact: int
    flushed: int
    subnormal: int
    saturated: int
    lost: int
    mean_relative: float
    relative_999: float
    largest_relative: float
    largest_relative_at: int | None
    largest_error: float
    squares: float
    error_squares: float
    mse: float
    sqnr: float | None
    cosine: float | None
    error_exponents: tuple[tuple[int, int], ...]
    scales: ScaleTally | None
    output_sqnr: float | None
    output_error: float | None
    expected: float
    verdict: str
    reason: str

    @property
    def decisive_sqnr(self) -> float | None:
        """The SQNR by which the recipe is judged: `output_sqnr` if it is known, else `sqnr`."""
        return self.sqnr if self.output_sqnr is None else self.output_sqnr


class TensorFigures(Record):
    """A tensor, and the errors that each recipe causes in it.

    `kind` is the type of its numbers. A quantised weight is decoded before it is measured; `convention` names the way
    in which it was stored. Of the `elements`, `zeros` are 0, and `nonfinite` are NaN or infinite. `largest` and
    `smallest` are the extreme nonzero finite magnitudes; `exponents` has pairs (e, count) in ascending order: for
    `count` nonzero finite magnitudes x, floor(log2 x) is e. `choice` is the recommended recipe; it is empty if the
    tensor should stay as it is. `left_out` says why a tensor was not measured.
    """

    source: str
    tensor: str
    kind: str
    shape: tuple[int, ...]
    convention: str
    elements: int
    zeros: int
    nonfinite: int
    largest: float | None
    smallest: float | None
    exponents: tuple[tuple[int, int], ...]
    recipes: tuple[RecipeFigures, ...]
    choice: str
    is_readable: bool
    left_out: str


class Recommendation(Record):
    """The recommended recipe of each tensor: of the recipes that the tensor survives, the one with the fewest bits.

    `plan` has a pair for each tensor: its name and a recipe, which is empty if the tensor stays as it is. With this
    plan, the tensors have `bits` bits per number on average, and together an SQNR of `sqnr` dB. `base` is the recipe
    that is recommended for the most elements; it is empty if no recipe is recommended. `words` is the
    recommendation as a sentence; `rule` is a sentence that says when a tensor survives a recipe.
    """

    words: str
    rule: str
    base: str
    plan: tuple[tuple[str, str], ...]
    bits: float | None
    sqnr: float | None

    def __str__(self) -> str:
        """Return the recommendation in words."""
        return self.words


class RecipeAudit(Record, Answering):
    """What recipes would do to the tensors of checkpoints: errors of each tensor, the most damaged tensor first.

    `totals` has the errors of all tensors together, one record for each recipe. `inputs` is the name of the file of
    activations.
    """

    _ASKS = ".survives"

    sources: tuple[str, ...]
    recipes: tuple[str, ...]
    tensors: tuple[TensorFigures, ...]
    totals: tuple[RecipeFigures, ...]
    recommendation: Recommendation
    min_sqnr: float | None
    inputs: str

    @property
    def failing(self) -> tuple[TensorFigures, ...]:
        """The tensors that cannot be read and, if `min_sqnr` is given, those that at least one recipe damages.

        A recipe damages a tensor if its verdict is `damaged` or `overflows`.
        """
        return tuple(each for each in self.tensors if not each.is_readable or self._is_below(each))

    def _is_below(self, tensor: TensorFigures) -> bool:
        if self.min_sqnr is None:
            return False
        return any(each.verdict != SURVIVES for each in tensor.recipes)

    @property
    def survives(self) -> bool:
        """Whether every tensor can be read, and every measured tensor survives every recipe."""
        verdicts = (each.verdict for tensor in self.tensors for each in tensor.recipes)
        return not self.failing and all(verdict == SURVIVES for verdict in verdicts)

    def __repr__(self) -> str:
        """Return one line with the number of tensors and the recommendation."""
        return f"RecipeAudit(tensors: {len(self.tensors)}, recommendation: {self.recommendation})"


def sqnr_of(noise: float, signal: float) -> float | None:
    """Return the ratio of signal to noise in dB: ∞ without noise, −∞ without signal.

    The ratio is None if `noise` and `signal` are 0, or if one of them is not finite.

    >>> sqnr_of(1.0, 100.0), sqnr_of(0.0, 1.0), sqnr_of(0.0, 0.0)
    (20.0, inf, None)
    """
    if not (isfinite(noise) and isfinite(signal)):
        return None
    if not signal:
        return -inf if noise else None
    if not noise:
        return inf
    return 10 * (log10(signal) - log10(noise))


def exponents_of(tally: Tally) -> tuple[tuple[int, int], ...]:
    """Return pairs (e, count): for `count` of the finite nonzero numbers x, floor(log2 |x|) is e.

    Numbers below 2^−1022 are counted at −1023.
    """
    found = zip(tally.exponents.bins.tolist(), tally.exponents.counts.tolist(), strict=True)
    return tuple((field - _EXPONENT_BIAS, count) for field, count in found)


def _error_exponents(tally: Tally) -> tuple[tuple[int, int], ...]:
    bins, counts = tally.relative_errors.bins, tally.relative_errors.counts
    fields, first = np.unique(bins[bins > 0] >> 7, return_index=True)
    if not len(fields):
        return ()
    sums = np.add.reduceat(counts[bins > 0], first)
    return tuple((field - _SINGLE_BIAS, count) for field, count in zip(fields.tolist(), sums.tolist(), strict=True))


def figures_of(
    recipe: str, bits: float, tally: Tally, scales: ScaleTally | None, output: OutputErrors | None, expected: float
) -> RecipeFigures:
    """Return the errors that a recipe causes in a tensor, computed from `tally`; verdict and reason are left empty."""
    both = sqrt(tally.squares) * sqrt(tally.rounded_squares)
    return RecipeFigures(
        recipe=recipe,
        bits=bits,
        elements=tally.elements,
        exact=tally.exact,
        flushed=tally.flushed,
        subnormal=tally.subnormal,
        saturated=tally.saturated,
        lost=tally.lost,
        mean_relative=tally.mean_relative,
        relative_999=tally.relative_quantile(QUANTILE),
        largest_relative=tally.largest_relative,
        largest_relative_at=tally.largest_relative_at if tally.largest_relative_at >= 0 else None,
        largest_error=tally.largest_error,
        squares=tally.squares,
        error_squares=tally.error_squares,
        mse=tally.error_squares / tally.measured if tally.measured else 0.0,
        sqnr=sqnr_of(tally.error_squares, tally.squares),
        cosine=tally.products / both if both and isfinite(both) else None,
        error_exponents=_error_exponents(tally),
        scales=scales,
        output_sqnr=None if output is None else sqnr_of(output.error_squares, output.squares),
        output_error=None if output is None else output.largest_error,
        expected=expected,
        verdict="",
        reason="",
    )
