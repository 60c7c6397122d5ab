"""Records of the search on one result: its explanation, the models that fit a sample, and faults.

A *model* assumes a change of the inputs or of the sums, such as inputs rounded to bfloat16. A *sigma* is the expected
root mean square rounding error of an element. *Evidence* is a tuple of details, each with a name and a text, such as
("format", "binary16").
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Individual, Record
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import EXACT, Places, find_places, indices_of, mask_of, share_of
from floatlab.reduce.explain.stages import PLAIN, Model
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Evidence, Place

SINGLE, DOUBLE = parse_format("fp32"), parse_format("fp64")
STAGES = {
    "order": "order",
    "fma": "order",
    "accumulator": "accumulator",
    "compensated": "accumulator",
    "inputs-rounded": "inputs",
    "products": "products",
}
_ELSEWHERE = {"rows-moved", "columns-moved", "transposed-operand", "transposed-output", "not-the-product"}
_MOSTLY = 0.6  # zeros at the end of a result are reported as one fault if more than this share of them is wrong
_BY_CHANCE = 3.0  # a rectangle of wrong elements may have this many times as many right ones as expected by chance
DIRECTED = "sums that are rounded in one direction"  # a correct computation that looks like a bias or a factor
NEAR = 3.0  # largest median error that counts as rounding, in sigmas (expected root mean square errors)
ENOUGH = 50  # smallest number of elements whose median error is reliable
_FAR_BELOW = 1 / 16  # no sum overflows if Σ|x·y| is at most this share of the largest number
MOVED = {"terms-missing", "terms-twice", "rows-moved", "columns-moved"}


class SideExplanation(Individual):
    """The explanation of one result: a status, the causes of its errors, and the mask of wrong elements."""

    side: Side
    status: str  # product, rounding, bug or unknown
    causes: tuple[DiagnosedCause, ...]
    model: Model = PLAIN
    accumulator: Format = SINGLE
    wrong: Array | None = None
    z: float = 0.0  # the median error in sigmas
    doubt: str = ""  # a fault that fits, such as a factor, but is doubtful because another explanation fits, too
    rival: str = ""  # the other explanation; empty for sums that are rounded in one direction
    other_format: Model | None = None  # a model that rounds the inputs to TF32 instead of binary16, or the reverse

    @property
    def listed(self) -> int:
        """The number of wrong elements that are listed, but not explained.

        It is 0 if moved rows or columns, missing terms or doubled terms explain the wrong elements.
        """
        is_explained = bool({each.name for each in self.causes} & MOVED)
        return 0 if self.wrong is None or is_explained else int(self.wrong.sum())


class SampledModel(Individual):
    """A model, and the residuals that it leaves in a sample of the elements.

    `z` is the median residual in sigmas, and `wrong` is the number of wrong elements.
    """

    z: float
    wrong: int
    model: Model
    accumulator: Format
    view: View
    product: Array | None
    rms: float = 0.0  # the root mean square residual in sigmas

    @property
    def exact(self) -> Array:
        """The product that the model gives for the sampled elements."""
        return self.view.totals.product if self.product is None else self.product


class Fault(Record):
    """A fault that explains the residuals of a model. If another explanation fits equally well, `name` is empty."""

    name: str
    where: tuple[Place, ...] = ()
    evidence: Evidence = ()
    wrong: Array | None = None
    left: float = 0.0  # the median of the errors that the fault leaves, in sigmas
    product: Array | None = None  # the exact product with this fault, if it is known

    __hash__ = object.__hash__


def placed(view: View, wrong: Array) -> Fault:
    """Return the fault that lists the wrong elements or rectangles, and says whether all wrong elements are zero."""
    zero = not view.values[wrong].any()
    places = (find_places(_last_zeros(view.values, wrong)) if zero else None) or find_places(wrong)
    if places is not None and places.name == "region" and not zero and _has_right(view, wrong, places):
        places = find_places(wrong, EXACT)
    name, where = ("elements", indices_of(wrong)) if places is None else (places.name, places.where)
    boxes = [tuple(slice(*span) for span in box if isinstance(span, tuple)) for box in where]
    if zero and name == "region" and any(view.values[box].any() for box in boxes):
        name, where = "elements", indices_of(wrong)  # a rectangle also contains right elements, which are not zero
    more = (("elements", f"{int(wrong.sum()):,}"),) * bool(name == "elements" and wrong.sum() > len(where))
    holds = more + (("holds", "zeros" if zero else "other numbers"),) * (name == "region" or (zero and len(where) > 1))
    return Fault(name, where, holds, wrong)


def _has_right(view: View, wrong: Array, places: Places) -> bool:
    """Return whether more elements of the rectangles are right than can be right by chance.

    An element is right by chance if its error happens to be within the error limit. Elements with at most about one
    nonzero term do not count, because they may be right even in a tile of old data.
    """
    totals = view.totals
    box = mask_of(places.where, wrong.shape) & view.usable & ~totals.have_one_term
    room = (view.noise.limit(view.totals) + view.half)[box]
    error = np.abs(view.totals.error(view.values))[wrong & view.usable]
    if not error.size or not room.size:
        return bool(room.size)
    with np.errstate(all="ignore"):
        expected = box.sum() * float(np.median(room)) / max(float(np.median(error)), 1e-300)
    return bool((box & ~wrong).sum() > _BY_CHANCE * expected)


def _last_zeros(values: Array, wrong: Array) -> Array:
    """Return the mask of the zeros at the end of a result in memory, or `wrong` if too few of these zeros are wrong.

    Also return `wrong` if other elements are wrong, too.

    A copy that was interrupted leaves zeros at the end. For a few of these elements, zero may be the right number.
    """
    last = np.flatnonzero(values)[-1:]
    tail = (np.arange(values.size) > (last[0] if last.size else -1)).reshape(values.shape)
    return tail if not (wrong & ~tail).any() and wrong.sum() > _MOSTLY * tail.sum() else wrong


def find_overflow(problem: ProductProblem, side: Side) -> Array:
    """Return the mask of infinities that are due to overflow.

    In these elements, the exact product has the same sign, and its magnitude is at least the format's largest number
    minus one ulp.
    """
    return _overflow(side, problem.totals.product)


def _overflow(side: Side, exact: Array) -> Array:
    most = float(side.rounded_to.largest) * (1 - 2.0**-side.rounded_to.precision)
    with np.errstate(all="ignore"):
        overflow: Array = np.isinf(side.values) & (np.sign(side.values) == np.sign(exact)) & (np.abs(exact) >= most)
    return overflow


def find_stray(problem: ProductProblem, side: Side, moved: Fault | None = None) -> Array:
    """Return the mask of stray elements: NaN or infinite instead of finite, or different from an expected NaN or ∞.

    An infinity that is due to overflow is not stray. If `moved` is given, each moved row or column of the result is
    compared with the row or column of the product that was moved to its position.
    """
    exact, known, special = problem.totals.product, problem.known, problem.special
    if moved is not None:
        axis = int(moved.name == "columns-moved")
        source = np.arange(known.shape[axis])
        to, taken = np.array(moved.where, np.int64).T
        source[to] = taken
        exact, known = (each.take(source, axis) for each in (exact, known))
        special = None if special is None else special.take(source, axis)
    stray: Array = known & ~side.finite & ~_overflow(side, exact)
    if special is not None:
        values = side.values
        alike = (np.isnan(values) & np.isnan(special)) | (values == special)
        stray |= ~known & ~alike
    return stray


def explains_stray(
    problem: ProductProblem, side: Side, stray: Array, faults: tuple[Fault, ...], model: Model, accumulator: Format
) -> bool:
    """Return whether an explanation also explains all `stray` elements.

    Stray elements may have been moved with their row or column. They may also come from changed inputs, or from partial
    sums that overflowed in the accumulator.
    """
    moved = next((each for each in faults if each.name in ("rows-moved", "columns-moved")), None)
    if moved is not None:
        return not find_stray(problem, side, moved).any()
    if model.name and not np.isfinite(problem.whole(model)[stray]).any():
        return True
    is_narrow = any(each.name == "accumulator" for each in faults)
    return is_narrow and bool((problem.totals.size[stray] >= float(accumulator.largest) / 2).all())


def stray_fault(side: Side, stray: Array) -> Fault:
    """Return the fault `nan`, with the positions of the `stray` elements."""
    places = find_places(stray)
    known = () if places is None else (("places", places.name),)
    return Fault("nan", indices_of(stray), (*known, ("holds", stray_words(side, stray))), stray)


def stray_words(side: Side, stray: Array) -> str:
    """Describe the elements in the mask `stray` as NaN, as infinite, or as both.

    If some of them are finite, say that NaN or infinity was expected.
    """
    values = side.values[stray]
    if np.isnan(values).all():
        return "NaN"
    if np.isinf(values).all():
        return "infinite"
    return "NaN or infinite" if not side.finite[stray].any() else "not the NaN or ∞ that the inputs make"


def with_overflow(problem: ProductProblem, found: SideExplanation, other: SideExplanation) -> SideExplanation:
    """Return `found`, with the status "bug" if some elements are NaN or infinite but finite in the other result.

    A cause that lists these elements is added, unless `found` has it already. If `found` does not explain the finite
    elements, the bug says so, and the elements that may be wrong are not named.
    """
    overflow, causes = overflow_of(problem, found, other), found.causes
    if overflow is None and found.status == "unknown":
        most = float(found.side.rounded_to.largest) * _FAR_BELOW  # no partial sum is larger than Σ|x·y|
        certain = problem.known & ~found.side.finite & other.side.finite & (problem.totals.size <= most)
        overflow = next((each for each in causes if each.name == "nan" and certain.any()), None)
        causes = tuple(each for each in causes if each is not overflow)
    if overflow is None:
        return found
    if found.status == "unknown":
        causes = tuple(each for each in causes if each.name != "elements")
        rival = found.rival or DIRECTED
        others = f"explained by {found.doubt} or by {rival}" if found.doubt else "off by more than rounding, too"
        overflow = overflow.replace(evidence=(*overflow.evidence, ("others", others)))
    return found.replace(status="bug", causes=(overflow, *causes))


def overflow_of(problem: ProductProblem, found: SideExplanation, compared: SideExplanation) -> DiagnosedCause | None:
    """Return a cause that lists the elements that overflowed but are finite in the other result, or None.

    `compared` is the explanation of the other result. A finite element of the other result does not always show that
    the overflowed element should be finite. Return None if the elements of either result were moved, or belong to
    another product. Also return None if the other result has the same format and is not explained.
    """
    side, other = found.side, compared.side
    is_unexplained = compared.status == "unknown" and other.format == side.format
    if is_unexplained or {each.name for each in (*found.causes, *compared.causes)} & _ELSEWHERE:
        return None
    overflow = find_overflow(problem, side) & other.finite
    partial = problem.known & ~side.finite & other.finite & ~overflow
    if partial.any() and not any(each.name == "nan" for each in found.causes):
        both = partial | overflow
        seen = (
            ("holds", stray_words(side, both)),
            ("elements", f"{int(both.sum()):,}"),
            ("partial sums", "overflowed"),
        )
        return DiagnosedCause("nan", "accumulator", side.name, share_of(both), indices_of(both), seen)
    largest, exact = float(side.format.largest), problem.totals.product
    size = np.abs(exact)
    with np.errstate(all="ignore"):  # a number that is too small, or has the other sign, is wrong, and ∞ is right
        overflow &= (np.sign(exact) * other.values >= np.minimum(size, largest) / 2) | np.isinf(exact)
    if other.format == side.format:
        overflow &= (np.abs(other.values) >= largest) | (size < 2 * largest) | np.isinf(exact)
    if not overflow.any():
        return None
    sizes = np.abs(problem.totals.product[overflow])
    largest = float(sizes.max())
    most = f"{'up to ' * (sizes.size > 1)}{number_text(largest)}"
    if not np.isfinite(largest):
        most = f"over {number_text(float(DOUBLE.largest))}"
    known = (
        ("holds", "infinite"),
        ("elements", f"{sizes.size:,}"),
        ("product", most),
        ("format", side.rounded_to.name),
        ("largest", number_text(float(side.rounded_to.largest))),
    )
    where = indices_of(overflow)
    return DiagnosedCause("nan", "output", side.name, share_of(overflow), where, known)


def number_text(value: float) -> str:
    """Format a number for a message with six digits, or as an integer if its magnitude is from 1,000 to 10^9.

    >>> number_text(65504), number_text(3.4028235e38), number_text(-0.125)
    ('65,504', '3.40282e+38', '-0.125')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.6g}"


def merged(first: tuple[DiagnosedCause, ...], second: tuple[DiagnosedCause, ...]) -> tuple[DiagnosedCause, ...]:
    """Return the causes of both results. A cause that both share is listed once."""
    found = []
    for cause in first:
        twin = next((each for each in second if each.replace(side="actual") == cause), None)
        found.append(cause.replace(side="both") if twin is not None else cause)
    return (*found, *(each for each in second if each.replace(side="actual") not in first))
