"""The order in which the terms of each element of a product are added; the product recomputed in these orders."""

from __future__ import annotations

from functools import lru_cache
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import methods_in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.reduce.plan.matching import outline, schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.replay.candidates import Candidate, CandidateAdder, candidate_text
from floatlab.reduce.replay.evaluator import candidate_codes
from floatlab.reduce.reveal.stripes import Stripes, rectangles_of, stripes_text
from floatlab.reduce.simulate.code_engine import Sides

_NAMED = 1 << 11  # orders of more terms than this are not described by a schedule
_SHORT = 10  # up to this many terms, the tree is written in full
_MOST_PARTS = 4  # a tree without a schedule is described as at most this many parts
# The elements of a class are computed as rectangles of the product. They are instead computed one by one if they take
# at most _FEW products x·y in all, or if there are more than _MOST_RECTANGLES rectangles.
_FEW, _MOST_RECTANGLES = 1 << 18, 64
_GATHERED = 1 << 22  # about this many products x·y are computed at once


class Region(Record):
    """Rows and columns of a product: the elements at the intersections of these rows and these columns."""

    rows: tuple[Stripes, ...]
    columns: tuple[Stripes, ...]


class OrderClass(Record):
    """Elements of a product that are computed in the same way: their tree, its arithmetic, and their positions.

    `plan` is None if the order was not found, and `candidate` is None if the arithmetic of the nodes was not found. In
    both cases, `reason` says why. `share` is the fraction of all elements that belong to the class. `agreement` is 1 if
    a replay on random data reproduced all elements of the class bit for bit, and 0 if there is no candidate.
    """

    plan: Plan | None
    candidate: Candidate | None
    format: Format  # the format of the results
    regions: tuple[Region, ...]
    rows: tuple[Stripes, ...]  # all rows that contain an element of the class
    columns: tuple[Stripes, ...]
    elements: int
    share: float
    agreement: float
    reason: str = ""

    @property
    def adder(self) -> CandidateAdder | None:
        """The arithmetic of a node, or None if it was not found."""
        return None if self.candidate is None else self.candidate.adder

    @property
    def fused(self) -> bool:
        """True if some products are added by FMA."""
        return self.candidate is not None and any(each.fma for each in self.candidate.adders)

    @property
    def accumulator(self) -> Format:
        """The format of partial sums. If the arithmetic was not found, this is the format of the results."""
        return self.format if self.adder is None else self.adder.accumulator

    @property
    def schedule(self) -> Schedule | None:
        """A schedule that gives the plan. None if no schedule was found, or if there are more than 2^11 terms."""
        return None if self.plan is None else _schedule_of(self.plan)

    @property
    def text(self) -> str:
        """The order and the arithmetic of its nodes, in one line.

        >>> OrderClass(None, None, source_of(np.ones(1)).format, (), (), (), 1, 1.0, 0.0, "the target is random").text
        'not found: the target is random'
        """
        if self.plan is None or self.candidate is None:
            return f"not found: {self.reason}"
        order = _described(self.plan) if self.schedule is None else self.schedule.text
        return candidate_text(self.candidate.replace(order=order), self.format)


@methods_in_default_mode
class OrderMap(Answering, Individual):
    """For each element of a product, the order in which its terms are added.

    `shape` is (rows, terms, columns). In a batch, the rows of all products are counted together. `labels` (rows,
    columns) holds the class number of each element. `share` is the fraction of all elements whose order was found and
    confirmed by a replay.
    """

    shape: tuple[int, int, int]
    classes: tuple[OrderClass, ...]
    labels: Array
    share: float
    target: str
    layout: str
    terms_format: Format
    format: Format
    probes: int
    products: int
    seconds: float
    batch: int = 1
    _ASKS = ".share or .classes"

    def __repr__(self) -> str:
        """Show the shape and the number of orders."""
        sides, count = " × ".join(map(str, self.shape)), len(self.classes)
        return f"OrderMap({self.target}, {sides}: {count} order{'s' * (count != 1)}, {self.share:.4g} explained)"

    @property
    def plan(self) -> Plan | None:
        """The plan of all elements, or None if they have different plans, or if no plan was found."""
        plans = {each.plan for each in self.classes}
        return plans.pop() if len(plans) == 1 else None

    @property
    def text(self) -> str:
        """The share, the positions and the order of each class in one line, the largest class first."""
        rows, _, columns = self.shape
        lines = []
        for each in self.classes:
            where = f"{stripes_text(each.rows, rows, 'rows')}, {stripes_text(each.columns, columns, 'columns')}"
            lines.append(f"{100 * each.share:.3g} % ({where}): {each.text}")
        return "\n".join(lines)

    def replay(self, a: object, b: object | None = None) -> Array:
        """Return the product of two matrices computed along the orders of this map.

        Parameters
        ----------
        a, b : array_like
            The matrices (rows, terms) and (terms, columns), or batches of them. Numbers of other formats are rounded to
            the format of the map's terms. If one matrix is both operands (layout "A@A.T" or "A.T@A"), `b` may be
            omitted.

        Returns
        -------
        numpy.ndarray
            The product (rows, columns), or all products of a batch, bit for bit as the target computes it. Elements
            whose order was not found are NaN. The dtype is NumPy's dtype for the format of the results, or float32 if
            NumPy has no dtype for it.

        Raises
        ------
        UnsupportedError
            If the shapes of the matrices differ from the map's.
        """
        rows, terms, columns = self.shape[0] // self.batch, *self.shape[1:]
        x = self._operand("a", a, (self.batch, rows, terms))
        y = x.transpose(0, 2, 1) if b is None else self._operand("b", b, (self.batch, terms, columns))
        codes = np.full((self.batch, rows, columns), self.format.nan_code, container(self.format))
        labels = self.labels.reshape(codes.shape)
        for number, each in enumerate(self.classes):
            for left, right, places, part in zip(x, y, labels == number, codes, strict=True):
                if each.candidate is not None and places.any():
                    sides = Source(left, self.terms_format), Source(right, self.terms_format)
                    compute(each.candidate, sides, places, self.format, part)
        codes, kind = codes if self.batch > 1 else codes[0], native_dtype(self.format)
        return np.asarray(decode(codes, self.format, np.float32)) if kind is None else codes.view(kind)

    def _operand(self, name: str, given: object, shape: tuple[int, int, int]) -> Array:
        """Return the codes of an operand in the format of the terms, as (batch, rows, columns)."""
        source = source_of(given, name)
        wanted = shape if self.batch > 1 else shape[1:]
        is_vector = source.codes.ndim == 1 and source.codes.size == prod(shape)
        if source.codes.shape != wanted and not is_vector:
            raise UnsupportedError(f"{name} has the shape {source.codes.shape}, but this map is for {wanted}")
        codes = source.codes if source.format == self.terms_format else np.asarray(encode(source, self.terms_format))
        return codes.reshape(shape)


_schedule_of = lru_cache(maxsize=256)(lambda plan: schedule_of(plan) if plan.terms <= _NAMED else None)


@lru_cache(maxsize=256)
def _described(plan: Plan) -> str:
    """Describe an order that no schedule gives, by the whole tree or by its parts.

    >>> from floatlab.reduce.plan.grouped_schedules import SERIAL
    >>> _described(Plan.from_tree((tuple(SERIAL.plan(9).to_tree()), tuple(range(9, 12)))))
    '(serial of terms 0–8) + (fused(3) of terms 9–11)'
    """
    if plan.terms <= _SHORT:
        return plan.text
    drawn = outline(plan, _MOST_PARTS)
    words = []
    for part in drawn.parts:
        if part.stride not in (1, None) or (part.schedule is None and len(part.terms) > 1) or not part.terms:
            return f"a tree of {plan.terms:,} terms"
        first, last = part.terms[0], part.terms[-1]
        words.append(f"{part.schedule.text} of terms {first}–{last}" if part.schedule is not None else f"term {first}")

    def text(tree: object) -> str:
        return " + ".join(f"({text(each)})" for each in tree) if isinstance(tree, tuple) else words[int(str(tree))]

    return text(drawn.tree)


def compute(candidate: Candidate, sides: Sides, places: Array, into: Format, codes: Array) -> None:
    """Compute the elements of a product at `places` by one candidate, and write their codes into `codes`."""
    x, y = sides
    terms = x.codes.shape[1]
    parts = rectangles_of(places)
    if len(parts) > 1 and (len(parts) > _MOST_RECTANGLES or places.sum() * terms <= _FEW):
        rows, columns = np.nonzero(places)
        step = max(1, _GATHERED // terms)
        for low in range(0, len(rows), step):
            some = rows[low : low + step], columns[low : low + step]
            codes[some] = compute_elements(candidate, sides, some, into)
        return
    for rows, columns in parts:
        left = np.ascontiguousarray(x.codes[rows].T)[:, :, None]
        right = np.ascontiguousarray(y.codes[:, columns])[:, None, :]
        codes[np.ix_(rows, columns)] = candidate_codes(
            candidate, (Source(left, x.format), Source(right, y.format)), into
        )


def compute_elements(candidate: Candidate, sides: Sides, places: tuple[Array, Array], into: Format) -> Array:
    """Return the codes of the elements of a product at `places` (rows, columns), computed by one candidate."""
    x, y = sides
    left, right = np.ascontiguousarray(x.codes[places[0]].T), np.ascontiguousarray(y.codes[:, places[1]])
    return candidate_codes(candidate, (Source(left, x.format), Source(right, y.format)), into)
