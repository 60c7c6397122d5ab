"""A reduction: its terms, its order, its result, its rounding errors, and the nodes with the largest errors."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from heapq import nlargest

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.pairs import two_product, two_sum
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Context, Datum, Derivation, Flags, convert
from floatlab.presenter import Answering
from floatlab.progress import begin
from floatlab.record import Individual
from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Permuted, Schedule, Sorted
from floatlab.reduce.results.bounds import final_bound, first_bound, running_bound
from floatlab.reduce.simulate.adders import Adder, Node, Term, stream_context
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.exact_sum import exact_totals
from floatlab.reduce.simulate.float_engine import engine_for
from floatlab.reduce.simulate.matrix_units import Machine
from floatlab.reduce.simulate.simulation import AnyAdder, evaluate, places_of

MAX_TRACED = 1 << 14  # if a sum has more terms than this, its nodes and their derivations are not kept
_CLOSE = 4  # to find the n worst nodes, the first _CLOSE·n of an approximate ranking are evaluated exactly


@methods_in_default_mode
class Reduction(Answering, Individual):
    """A sum or dot product: its order, its roundings, its result and its error.

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
        """Show the operation, the order and the result."""
        terms = f"{len(self):,} term{'s' * (len(self) != 1)}"
        return f"Reduction({self.operation} of {terms}, {self.schedule.text[:80]}: {self.result!r})"

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.sides[0].codes)

    @property
    def terms(self) -> list[Term]:
        """The terms, as `Term` objects."""
        rows = zip(*(side.codes.tolist() for side in self.sides), strict=True)
        return [Term(*(Datum(s.format, code) for s, code in zip(self.sides, row, strict=True))) for row in rows]

    @property
    def settled(self) -> Schedule:
        """The schedule; for a `sorted` schedule, the permutation that sorts these terms."""
        if not isinstance(self.schedule, Sorted):
            return self.schedule
        return Permuted(tuple(places_of(self.sides, self.schedule).tolist()), self.schedule.inner)

    @property
    def batches(self) -> Batches:
        """The order of the additions as batches: each batch does many independent additions at once, with arrays."""
        if isinstance(self.schedule, Sorted):
            return self.schedule.inner.batches_of(places_of(self.sides, self.schedule))
        return self.schedule.batches(len(self))

    @property
    def plan(self) -> Plan:
        """The order of the additions, node by node."""
        return self.settled.plan(len(self))

    @property
    def nodes(self) -> list[Node]:
        """Every node with its value and derivations, in order. A sum of one term has one node, which converts the term.

        Raises UnsupportedError for more than 2^14 terms.

        >>> from floatlab import sum
        >>> [(node.arguments, float(node.value), float(node.error)) for node in sum([2048, 1, 1], format="fp16").nodes]
        [((0, 1), 2048.0, -1.0), ((3, 2), 2048.0, -1.0)]
        """
        if len(self) > MAX_TRACED:
            raise UnsupportedError(f"{len(self):,} terms are too many to keep every node: at most {MAX_TRACED:,}")
        return _nodes(self)

    def worst(self, count: int = 5) -> list[Node]:
        """Return the nodes whose roundings have the largest errors, largest first.

        For more than 2^14 terms, raises UnsupportedError if the sum is compensated or computed by a tensor core, if
        nodes add more than two numbers, or if binary64 does not contain the formats.

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
        """The derivation of the rounding from the accumulator's format to the result's; None if the formats are equal.

        >>> from floatlab import sum
        >>> sum([1.0, 2**-9], format="bf16", accumulator="fp32").last_rounding.rounded.tail
        <Tail.BELOW_HALF: 'below half'>
        """
        if self.result.format == self.accumulated.format:
            return None
        return convert(self.accumulated, self.result.format, last_context(self.schedule, self.adder, len(self)))

    @property
    def flags(self) -> Flags:
        """The union of the flags of all roundings; raises errors as `nodes` does.

        The nodes in which a tensor core adds products have no flags.

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
        """The exact sum of the converted terms, or of the products of the converted factors; None if not finite."""
        return _totals(self)[0]

    @property
    def magnitude(self) -> Fraction | None:
        """Σ|x|, or for dot products Σ|x·y|, exactly; None if a term or factor is not finite."""
        return _totals(self)[1]

    @property
    def error(self) -> Fraction | None:
        """The result minus the exact sum, or None if either is not finite."""
        exact = self.exact
        return None if exact is None or not self.result.is_finite else self.result.exact.as_fraction() - exact

    @property
    def error_ulps(self) -> Fraction | None:
        """The error in units in the last place of the result, or None if the error is None."""
        error = self.error
        return None if error is None else error / self.result.ulp.as_fraction()

    @property
    def condition(self) -> Fraction | None:
        """Σ|x| / |Σx|, or for dot products Σ|x·y| / |Σx·y|; None if the exact sum is zero or not finite.

        The condition is the largest factor by which the relative errors of the terms or products can grow in the sum.
        """
        exact, magnitude = _totals(self)
        return magnitude / abs(exact) if exact and magnitude is not None else None

    @property
    def bound(self) -> Fraction | None:
        """An a priori bound on |error| from the order, the formats and `magnitude`; None if no bound is proved.

        Compensated sums and tensor cores have no such bound. Tensor cores may have a `running_bound`.
        """
        magnitude = self.magnitude
        if magnitude is None or not isinstance(self.adder, Adder):
            return None
        own = [side.format for side in self.sides] if len(self.sides) == 1 else []
        return self._finally(first_bound(self.batches, magnitude, len(self.sides) > 1, own, self.adder))

    @property
    def running_bound(self) -> Fraction | None:
        """A bound on |error| from the values of all nodes, or None if no bound is proved.

        There is no such bound for compensated sums, or for more than 2^14 terms.
        """
        if self.exact is None or len(self) > MAX_TRACED or isinstance(self.adder, Compensated):
            return None
        return self._finally(running_bound(self.nodes, self.terms, self.adder))

    def _finally(self, bound: Fraction | None) -> Fraction | None:
        """Return a bound on |error| of the result, given a bound for the accumulated sum; None if none is proved."""
        if self.result.format == self.accumulated.format or self.exact is None:
            return bound
        return final_bound(bound, self.exact, self.result.format, self.adder.context)


@lru_cache(maxsize=8)
def _nodes(reduction: Reduction) -> list[Node]:
    return reduction.adder.traced(reduction.plan, reduction.terms)[0]


@lru_cache(maxsize=8)
def _totals(reduction: Reduction) -> tuple[Fraction, Fraction] | tuple[None, None]:
    totals = exact_totals(*reduction.sides)
    return (None, None) if totals is None else (totals[0].as_fraction(), totals[1].as_fraction())


def last_context(schedule: Schedule, adder: AnyAdder, terms: int) -> Context:
    """Return the context of the final rounding to the result's format.

    Under stochastic rounding, its random draw comes after the draws of all nodes.
    """
    inner = schedule.inner if isinstance(schedule, Sorted) else schedule
    return stream_context(adder.context, terms + inner.batches(terms).nodes)


# In a long sum, the errors of all nodes are estimated on arrays. The nodes with the largest estimates are then
# evaluated exactly.


def worst_nodes(sides: Sides, batches: Batches, adder: Adder, count: int) -> list[Node]:
    """Return the nodes of one long sum that have the largest rounding errors, largest first.

    Raises UnsupportedError for formats that binary64 does not contain, and for nodes that add more than two numbers.

    >>> from floatlab.arrays.sources import source_of
    >>> from floatlab.reduce.plan.grouped_schedules import SERIAL
    >>> x = source_of(np.float32([2**24, 1, 2**30, 1]))
    >>> [(node.id, float(node.error)) for node in worst_nodes((x,), SERIAL.batches(4), Adder(), 2)]
    [(4, -1.0), (6, -1.0)]
    """
    n, format = batches.terms, adder.accumulator
    if not all(holds(DOUBLE, each) for each in (format, *(side.format for side in sides))):
        raise UnsupportedError(f"sums of {n:,} terms are ranked in binary64, which does not hold these formats")
    if any(chains.rest.shape[1] > 1 for chains in batches.each):
        raise UnsupportedError(f"nodes of more than two numbers are not ranked in sums of {n:,} terms")
    engine = engine_for(sides, adder)
    numbers = np.empty(n + batches.nodes, engine.blank(1).dtype)
    begin(batches.nodes)
    numbers[:n] = engine.leaf(np.arange(n))
    evaluate(batches, engine, numbers.__setitem__)
    codes = engine.codes(numbers)
    pairs = np.concatenate([*batches.arguments(), np.empty((0, 2), np.int64)])
    missed = _missed(sides, adder, pairs, decode(codes, format, np.float64))
    ranked = np.argsort(-missed, kind="stable")[: _CLOSE * count]

    def argument(id: int) -> Term | Datum:
        if id >= n:
            return Datum(format, int(codes[id]))
        return Term(*(Datum(side.format, int(side.codes[id])) for side in sides))

    rows = [(n + i, tuple(pairs[i].tolist())) for i in ranked.tolist() if missed[i] > 0]
    nodes = [adder.node(id, ids, [argument(each) for each in ids]) for id, ids in rows]
    return sorted((node for node in nodes if node.error), key=lambda node: (-abs(node.error or 0), node.id))[:count]


def _missed(sides: Sides, adder: Adder, pairs: Array, numbers: Array) -> Array:
    """Estimate the size of each node's rounding error, including the errors of its products; 0 if not finite."""
    n = len(sides[0].codes)
    values = [decode(side.codes, side.format, np.float64) for side in sides]
    with np.errstate(all="ignore"):
        exact, rest = (values[0], np.zeros(n)) if len(sides) == 1 else two_product(*values)
        lost = np.zeros(len(numbers))
        lost[:n] = (numbers[:n] - exact) - rest
        left, right = pairs.T
        a, b, below = numbers[left], numbers[right], np.zeros(len(pairs))
        error = lost[left] + lost[right]
        if adder.fma and len(sides) == 2:
            onto = np.where(right < n, right, np.where(left < n, left, -1))
            fused = (onto >= 0) & (adder.pairs | (left >= n) | (right >= n))
            error -= np.where(fused, lost[onto], 0)
            b = np.where(fused, exact[np.where(fused, onto, 0)], b)
            a = np.where(fused & (right >= n), numbers[right], a)
            below = np.where(fused, rest[np.where(fused, onto, 0)], 0)
        s, e = two_sum(a, b)
        error += ((numbers[n:] - s) - e) - below
    found: Array = np.where(np.isfinite(error), np.abs(error), 0)
    return found
