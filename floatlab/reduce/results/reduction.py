"""A reduction: its terms, its order, its result, and the errors on the way."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from heapq import nlargest

from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Datum, Derivation, Flags, convert
from floatlab.presenter import Answering
from floatlab.record import Individual
from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.plan.orders import Permuted, Schedule, Sorted
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.results.bounds import final_bound, first_bound, running_bound
from floatlab.reduce.results.worst_nodes import worst_nodes
from floatlab.reduce.simulate.adders import Adder, Node, Term, stream_context
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.exact_sum import exact_totals
from floatlab.reduce.simulate.machines import Machine
from floatlab.reduce.simulate.simulation import AnyAdder, places_of

MAX_TRACED = 1 << 14  # terms; of more, no derivation is kept for every node


@methods_in_default_mode
class Reduction(Answering, Individual):
    """A sum or dot product: its order, its roundings, its result, and all that is known about its error.

    >>> from floatlab import sum
    >>> found = sum([1.0, 2**-24, 2**-24, 2**-24], "pairwise", "fp32")
    >>> found.result, found.plan, float(found.error_ulps), float(found.condition)
    (Datum(binary32 0x3f800001 = 1.0000001), Plan(((0 1) (2 3))), -0.5, 1.0)
    """

    operation: str
    sides: Sides  # the terms, or the two factors
    schedule: Schedule
    adder: AnyAdder
    accumulated: Datum  # in the accumulator's format
    result: Datum
    machine: Machine | None = None

    @property
    def x(self) -> Source:
        """The terms of a sum, or the first factors of a dot product."""
        return self.sides[0]

    @property
    def y(self) -> Source | None:
        """The second factors of a dot product; None for a sum."""
        return self.sides[1] if len(self.sides) > 1 else None

    def __float__(self) -> float:
        """Return the result as a float."""
        return float(self.result)

    def __repr__(self) -> str:
        """Show what was done and what came out."""
        terms = f"{len(self):,} term{'s' * (len(self) != 1)}"
        return f"Reduction({self.operation} of {terms}, {self.schedule.text[:80]}: {self.result!r})"

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.sides[0].codes)

    @property
    def terms(self) -> list[Term]:
        """The terms, as data."""
        rows = zip(*(side.codes.tolist() for side in self.sides), strict=True)
        return [Term(*(Datum(s.format, code) for s, code in zip(self.sides, row, strict=True))) for row in rows]

    @property
    def settled(self) -> Schedule:
        """The schedule, with the order of these very terms where it depends on them."""
        if not isinstance(self.schedule, Sorted):
            return self.schedule
        return Permuted(tuple(places_of(self.sides, self.schedule).tolist()), self.schedule.inner)

    @property
    def batches(self) -> Batches:
        """The order as batches over arrays."""
        return self.settled.batches(len(self))

    @property
    def plan(self) -> Plan:
        """The order, node by node."""
        return self.settled.plan(len(self))

    @property
    def nodes(self) -> list[Node]:
        """Every node with its value and derivations, evaluated one by one; of one term, its reading.

        Raises UnsupportedError for more than 2^14 terms.

        >>> from floatlab import sum
        >>> [(node.arguments, float(node.value), float(node.error)) for node in sum([2048, 1, 1], format="fp16").nodes]
        [((0, 1), 2048.0, -1.0), ((3, 2), 2048.0, -1.0)]
        """
        if len(self) > MAX_TRACED:
            raise UnsupportedError(f"{len(self):,} terms are too many to keep every node: at most {MAX_TRACED:,}")
        return _nodes(self)

    def worst(self, count: int = 5) -> list[Node]:
        """Return the nodes whose own roundings missed most, the worst first, of sums of any length.

        Raises UnsupportedError for long sums that are compensated or fused.

        >>> import numpy as np
        >>> from floatlab import sum
        >>> long = sum(np.float32([2**24] + [1] * 99_999))
        >>> float(long.error), [(node.arguments, float(node.error)) for node in long.worst(1)]
        (-99999.0, [((0, 1), -1.0)])
        """
        if len(self) > MAX_TRACED and isinstance(self.adder, Adder):
            return worst_nodes(self.sides, self.batches, self.adder, count)
        errors = {node.id: abs(node.error or Fraction(0)) for node in self.nodes}
        return nlargest(count, (node for node in self.nodes if errors[node.id]), key=lambda node: errors[node.id])

    @property
    def last_rounding(self) -> Derivation | None:
        """How the accumulated sum became the result; None where they have one format.

        >>> from floatlab import sum
        >>> sum([1.0, 2**-9], format="bf16", accumulator="fp32").last_rounding.rounded.tail
        <Tail.BELOW_HALF: 'below half'>
        """
        if self.result.format == self.accumulated.format:
            return None
        last = stream_context(self.adder.context, draw_after_nodes(self.schedule, len(self)))
        return convert(self.accumulated, self.result.format, last)

    @property
    def flags(self) -> Flags:
        """The flags that any rounding on the way raised; as `nodes`. Tensor cores raise none.

        >>> from floatlab import sum
        >>> sum([1.0, 2**-30], format="fp32").flags.names
        ['inexact']
        """
        found = Flags.NONE if self.last_rounding is None else self.last_rounding.flags
        for node in self.nodes:
            for each in node.derivations:
                found |= each.flags
        return found

    @property
    def exact(self) -> Fraction | None:
        """The exact sum of the terms as they were read; None where one is no number."""
        totals = _totals(self)
        return None if totals is None else totals[0]

    @property
    def magnitude(self) -> Fraction | None:
        """Σ|x|, or Σ|x·y|, exactly; None where a term is no number."""
        totals = _totals(self)
        return None if totals is None else totals[1]

    @property
    def error(self) -> Fraction | None:
        """Result − exact; None beyond numbers."""
        exact = self.exact
        return None if exact is None or not self.result.is_finite else self.result.exact.as_fraction() - exact

    @property
    def error_ulps(self) -> Fraction | None:
        """The error in units in the last place of the result."""
        error = self.error
        return None if error is None else error / self.result.ulp.as_fraction()

    @property
    def condition(self) -> Fraction | None:
        """Σ|x| / |Σx|: how much larger a relative error of a term may stand in the sum; None where the sum is zero."""
        totals = _totals(self)
        return None if totals is None or not totals[0] else totals[1] / abs(totals[0])

    @property
    def bound(self) -> Fraction | None:
        """A bound on |error| that order, formats and Σ|x| give beforehand; None where none is claimed.

        Compensated sums and tensor cores have none; `running_bound` may have.
        """
        totals = _totals(self)
        if totals is None or not isinstance(self.adder, Adder):
            return None
        own = [side.format for side in self.sides] if len(self.sides) == 1 else []
        bound = first_bound(self.batches, totals[1], len(self.sides) > 1, own, self.adder)
        return self._finally(bound, totals[0])

    @property
    def running_bound(self) -> Fraction | None:
        """A bound on |error| from the sizes of what was computed; None where none is claimed, or too much to trace."""
        totals = _totals(self)
        if totals is None or len(self) > MAX_TRACED or isinstance(self.adder, Compensated):
            return None
        return self._finally(running_bound(self.nodes, self.terms, self.adder), totals[0])

    def _finally(self, bound: Fraction | None, exact: Fraction) -> Fraction | None:
        if self.result.format == self.accumulated.format:
            return bound
        return final_bound(bound, exact, self.result.format, self.adder.context)


@lru_cache(maxsize=8)
def _nodes(reduction: Reduction) -> list[Node]:
    return reduction.adder.traced(reduction.plan, reduction.terms)[0]


@lru_cache(maxsize=8)
def _totals(reduction: Reduction) -> tuple[Fraction, Fraction] | None:
    totals = exact_totals(*reduction.sides)
    return None if totals is None else (totals[0].as_fraction(), totals[1].as_fraction())


def draw_after_nodes(schedule: Schedule, terms: int) -> int:
    """Return the number that the last rounding draws with: the one after those of all nodes."""
    inner = schedule.inner if isinstance(schedule, Sorted) else schedule
    return terms + inner.batches(terms).nodes
