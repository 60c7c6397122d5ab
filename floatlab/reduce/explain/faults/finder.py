"""Search for faults of many elements: a bias, a factor, moved rows or columns, omitted terms, transposed operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.explain.epilogue.given_bias import named_bias
from floatlab.reduce.explain.estimates import PROVED, factor_between, shift_bits, within
from floatlab.reduce.explain.faults.doubts import may_be_flushed
from floatlab.reduce.explain.faults.moved import are_surely_moved, may_hold_rows, show_sources
from floatlab.reduce.explain.faults.outliers import standing_out
from floatlab.reduce.explain.faults.patterns import BITS_EACH, are_live, evidence_bits
from floatlab.reduce.explain.faults.rivals import whole_sums_in
from floatlab.reduce.explain.faults.shifts import ShiftFinder
from floatlab.reduce.explain.findings import NEAR, Fault, number_text, placed
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import multiply_exactly
from floatlab.reduce.explain.problem import ProductProblem, View, middle
from floatlab.reduce.explain.residuals import (
    EXACT,
    find_places,
    has_few_bits,
    is_flat,
    mask_of,
    moved_rows,
    runs_of,
    share_of,
    term_counts,
    term_ranges,
)
from floatlab.reduce.explain.stages import PLAIN, transposed_inputs
from floatlab.reduce.results.diagnosis_record import Evidence, Place

_REPLAYED = 0.98  # flushing is reported if simulated sums with flushing reproduce at least this share of the elements
_MOSTLY_WRONG = 0.5  # a rectangle is wrong if more than this share of it is wrong, and all elements outside are right
_LISTED = 16  # `region_alone`: the right elements must have at least this many different numbers
_LEAST = 3  # a fault must explain at least this many more elements than it has free parameters
_UNCHANGED = 1e-12  # products that differ by at most this share of Σ|x·y| are equal
_DOUBT = 14.0  # transposed operands are reported if a coincidence has a probability below about exp(−14)
_SAME_NUMBERS = 4  # a result of equal elements is reported as constant if it has at least this many elements
_IN_MEMORY = ("transposed", "the result in memory")
_CLIPPED = 4  # clipping is reported if the bound replaces at least this many different numbers
_SCATTERED = 0.4  # largest share of elements that may be wrong in a result that is otherwise right or shifted
# Zeros are wrong if at least _MASKED other numbers are right, and at most the share _MOST_MASKED is zero.
_MASKED, _MOST_MASKED = 16, 0.75


class FaultFinder(ShiftFinder):
    """Searches a result for faults of many elements. A returned fault explains all errors that exceed rounding."""

    def find(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the first fault that fits.

        The fault has no name if another explanation fits equally well. Return None if no fault fits.
        """
        for look in (self.constant, self.clipped, self.shifted, self.moved, self.terms):
            self.tick()
            if (found := look(view, product, wrong)) is not None:
                return found
        return None

    def constant(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if all elements are equal, usually zero, although the elements of the product differ."""
        values = view.values
        if values.size < _SAME_NUMBERS or not wrong.any() or (values != values.flat[0]).any():
            return None
        if is_flat(view.totals.product if product is None else product):
            return None
        number, least = float(values.flat[0]), 2.0**self.side.format.emin
        if number and (np.abs(number) <= np.abs(view.totals.product)).all() and has_few_bits(number):
            return None  # sums in a 16-bit format may have stopped growing at this number
        if number == 0 and any((np.abs(x[x != 0]) < least).any() for x in (self.problem.x, self.problem.y)):
            return None  # the processor may have flushed the inputs to zero
        known = ("holds", "zeros") if number == 0 else ("number", number_text(number))
        where: tuple[Place, ...] = (tuple((0, count) for count in values.shape),)
        evidence: Evidence = (known, ("all", "elements"))
        right = np.argwhere(view.right(wrong))
        if right.size:
            at = tuple(right[0].tolist())
            where, evidence = _all_but(at, values.shape), (*evidence, ("element", str(at)))
        return Fault("region", where, evidence, wrong)

    def clipped(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if a bound replaced all numbers beyond it, as a ReLU replaces negative numbers by 0."""
        values = view.values[view.usable]
        if not values.size or not wrong.any() or values.min() == values.max():
            return None
        exact = (view.totals.product if product is None else product)[wrong]
        mine, known, left = view.values[wrong], [], np.ones(int(wrong.sum()), bool)
        for bound, beyond, words in (
            (float(values.min()), exact < mine, "below"), (float(values.max()), exact > mine, "above"),
        ):  # fmt: skip
            bounded = (mine == bound) & beyond & left
            if len(np.unique(exact[bounded])) >= _CLIPPED:
                known.append((words, f"all numbers {words} {number_text(bound)} are {number_text(bound)}"))
                left &= ~bounded
        return Fault("clipped", (), tuple(known), wrong) if known and not left.any() else None

    def flushed(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if subnormal results, products or partial sums were flushed to zero."""
        least = 2.0**self.side.format.emin
        values = self.side.values
        exact = view.totals.product if product is None else product
        # Flushed results are zeros.
        most = least * (1 + 4 * self.problem.terms * view.noise.u)
        small = not values[wrong].any() and (np.abs(exact[wrong]) <= most).all() and (view.totals.size > 0)[wrong].all()
        if small and not ((values != 0) & (np.abs(values) < least)).any():
            return Fault("flush-to-zero", (), (("flushed", "results"),), wrong)
        if product is None and may_be_flushed(view, wrong, least, self.problem.x, self.problem.y):
            grid = grid_of(self.problem, PLAIN, self.side.rounded_to, self.tick)
            if evidence_bits(view, wrong, self.side.rounded_to) < BITS_EACH:
                return None  # one of the simulations may give a number that is wrong by few ulps by chance
            if grid.flushing_share(self.side, wrong) >= _REPLAYED:
                return Fault("flush-to-zero", (), (("flushed", "products or partial sums"),), wrong)
        return None

    def scattered(self, view: View, wrong: Array) -> Fault | None:
        """Return the wrong elements as a fault if they are less than 40 % of all elements; otherwise None.

        If all wrong elements are zero, there may be more of them: any number if the zeros form rectangles, and less
        than three quarters of all elements if they do not, as in a masked product. Without rectangles, the largest
        exact value of the wrong elements must exceed the median exact value of the right elements. The other elements
        must have only rounding errors.
        """
        right, z = view.right(wrong), view.fit().z
        if not wrong.any():
            return None
        if not view.values[wrong].any() and right.sum() >= _MASKED:
            places = find_places(wrong)
            if places is not None and places.name == "region" and middle(z[right]) <= NEAR:
                return placed(view, wrong)  # the rest of the result was not written, or was written elsewhere
            sizes = np.abs(view.totals.product)
            if sizes[wrong].max() > np.median(sizes[right]) and share_of(wrong[view.usable]) < _MOST_MASKED:
                return placed(view, wrong) if middle(z[right]) <= NEAR else None
        live = are_live(view)
        if middle(z[live]) > NEAR or share_of(wrong[live]) >= _SCATTERED:
            return None
        return placed(view, wrong)

    def of_narrow_sums(self, view: View, format: Format, beyond: Array, by_bits: bool) -> Fault | None:
        """Return a fault of a result whose sums were computed in a narrow format, or None.

        `beyond` is the mask of the elements whose errors are too large for sums in the usual format. If `by_bits` is
        true, a fault is returned only if simulated narrow sums reproduce most elements bit for bit.
        """
        made = whole_sums_in(self.problem, self.side, format)
        if made is not None:
            off = beyond & (made != self.side.values)
            clipped = self.clipped(view, made, off)
            stands = standing_out(self.problem, self.side, off, format)
            return clipped or (placed(view, stands) if stands.any() else None)
        if by_bits:
            return None
        wrong = view.fit().wrong
        moved = self.moved(view, None, wrong)
        moved = moved if moved is not None and are_surely_moved(self.problem, view, moved, wrong) else None
        found = self.transposed(view, wrong) or moved or self.clipped(view, None, wrong)
        if found is None or found.wrong is None or not (beyond & ~found.wrong).any():
            return found
        # No replay confirms the narrow sums, so smaller errors may be faults, too.
        others = ("others", f"wrong, too, or made by sums in {format.name}")
        return found.replace(evidence=(*found.evidence, others))

    def moved(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if rows or columns of the result hold other rows or columns of the product, or else None."""
        if product is not None:
            return None
        # Elements that overflow are infinite, or as large as the largest number. Both count as equal to it.
        largest = float(self.side.rounded_to.largest)
        made, exact = (np.clip(each, -largest, largest) for each in (view.values, view.totals.product))
        everything, limits = [np.arange(count) for count in wrong.shape], view.errors()[1]
        for name, turned, axis in (("rows-moved", False, 0), ("columns-moved", True, 1)):
            values, goal, mask = (each.T if turned else each for each in (made, exact, wrong))
            if not may_hold_rows(values, goal, limits):
                continue
            # If all rows were moved up or down, rows of zeros remain at an edge. They match no row of the product.
            off, filled = (np.asarray(each.any(axis=1)) for each in (mask, values))
            zero = off & ~filled
            to = moved_rows(values, goal, off & filled)
            if to is None:
                continue
            at = np.flatnonzero(to != np.arange(len(to)))
            if (is_wide := goal.shape[1] > 1) and (np.ptp(values[at], axis=1) == 0).any():
                continue  # a row of equal numbers does not show which row it is
            index = list(everything)
            index[axis] = to
            left = view.against(view.totals.take(*index)).fit().wrong
            are_enough = (mask & ~zero[:, None]).sum() >= len(at) + _LEAST or not is_wide
            are_enough = are_enough or show_sources(self.problem, values[at], limits.T[at] if turned else limits[at])
            if are_enough and not (left.T if turned else left)[~zero].any():
                pairs = tuple((int(i), int(to[i])) for i in at)
                kind = "copied" if len(set(to[~zero].tolist())) < (~zero).sum() else "permuted"
                noun = name.partition("-")[0]
                zeros = ((f"{noun} of zeros", ", ".join(map(str, np.flatnonzero(zero).tolist()))),) * bool(zero.any())
                fault = Fault(name, pairs, (("kind", kind), *zeros), wrong)
                if is_wide or (kind == "permuted" and are_surely_moved(self.problem, view, fault, wrong)):
                    return fault
        return None

    def rest(self, view: View, factor: float | Array, off: Array, wrong: Array) -> Fault:
        """Return the fault that remains when the bias `off` and then the factor are undone.

        This fault is moved rows or columns if they explain the rest of the errors, else the `wrong` elements.
        """
        with np.errstate(all="ignore"):
            shifted = (view.values - off) / factor
        plain = View(view.totals, shifted, view.usable, view.noise, view.format, self._half(view, factor, off))
        return self.moved(plain, None, wrong) or placed(view, wrong)

    def _half(self, view: View, factor: float | Array, off: Array) -> Array:
        """Return the largest possible rounding error of each element after an estimated factor and bias are undone."""
        with np.errstate(all="ignore"):
            return np.asarray(2 * (view.half + 2.0**-view.format.precision * np.abs(off)) / np.abs(factor))

    def terms(self, view: View, product: Array | None, wrong: Array) -> Fault | None:
        """Return the fault if terms of the sums were omitted or added more than once, or else None."""
        x, y = self.problem.x, self.problem.y
        if product is not None or wrong.sum() < _LEAST:
            return None
        error = np.where(view.usable, view.totals.error(view.values), np.nan)
        limit = view.noise.limit(view.totals) + view.half
        for first, stop, times in term_ranges(x, y, error, limit):
            if stop - first == self.problem.terms:
                continue
            made = view.totals.product + times * (x[:, first:stop] @ y[first:stop])
            if not view.fit(made).wrong.any():
                name = "terms-missing" if times < 0 else "terms-twice"
                fault = Fault(name, ((first, stop),), (("terms", str(stop - first)),), wrong, product=made)
                return named_bias(self.problem, fault)
        counts = term_counts(x, y, error)
        if (
            counts is not None
            and 2 * np.count_nonzero(counts) <= counts.size
            and len(set(counts[counts != 0].tolist())) == 1
            and counts.min() >= -1
            and not view.fit(view.totals.product + (x * counts) @ y).wrong.any()
        ):
            at = np.flatnonzero(counts)  # at most half of the terms: otherwise, a factor is likelier
            name = "terms-missing" if (counts[at] < 0).all() else "terms-twice"
            times = 1 + int(counts[at[0]])
            evidence: Evidence = (("terms", str(len(at))), *((("times", str(times)),) * (times > 2)))
            return named_bias(self.problem, Fault(name, tuple(runs_of(counts != 0)), evidence, wrong))
        return None

    def region_alone(self, view: View, wrong: Array) -> Fault | None:
        """Return rectangles that contain all wrong elements, if all elements outside them are right beyond doubt."""
        if not wrong.any():
            return None
        usual = np.full(wrong.shape, np.median(np.abs(view.totals.error(view.values))[wrong]))
        for filled in (EXACT, _MOSTLY_WRONG):
            places = find_places(wrong, filled)
            if places is None or places.name != "region":
                continue
            right = view.right(wrong) & ~mask_of(places.where, wrong.shape)
            bits = shift_bits(self.problem.independent, usual, view.errors()[1], right)
            if bits >= PROVED and np.unique(view.values[right]).size >= _LISTED:
                known = ("holds", "other numbers")
                return placed(view, wrong) if filled == EXACT else Fault("region", places.where, (known,), wrong)
        return None

    def part_without_terms(self, view: View, wrong: Array) -> Fault | None:
        """Return one rectangle of wrong elements if its sums lack terms, or have terms twice; otherwise None."""
        places = find_places(wrong, EXACT)
        if places is None or places.name != "region" or len(places.where) != 1:
            return None
        rows, columns = (np.arange(*span) for span in places.where[0] if isinstance(span, tuple))
        x, y, index = self.problem.x[rows], self.problem.y[:, columns], np.ix_(rows, columns)
        usable = view.usable[index]
        half = np.broadcast_to(view.half, wrong.shape)[index]
        part = View(view.totals.take(rows, columns), view.values[index], usable, view.noise, view.format, half)
        error, limit = np.where(usable, part.totals.error(part.values), np.nan), part.noise.limit(part.totals) + half
        if shift_bits(self.problem.independent, error, limit, wrong[index], 2) < PROVED:
            return None
        for first, stop, times in term_ranges(x, y, error, limit):
            made = part.totals.product + times * (x[:, first:stop] @ y[first:stop])
            are_all = times < 0 and stop - first == len(y)  # the sums would be 0
            if not (are_all or part.fit(made).wrong.any()):
                terms = str(first) if stop == first + 1 else f"{first}–{stop - 1}"
                known: Evidence = ("terms", terms), ("there", "missing" if times < 0 else "counted twice")
                if self.problem.has_bias and first == self.problem.terms - 1:
                    known = (("the given bias", "is missing" if times < 0 else "was added twice"),)
                return Fault("region", places.where, (("holds", "other numbers"), *known), wrong)
        return None

    def transposed(self, view: View, wrong: Array) -> Fault | None:
        """Return the fault if factors or the result were transposed, factors were swapped, or memory was misread."""
        error, room, _ = view.errors()
        with np.errstate(all="ignore"):
            doubt = np.log(np.abs(error) / room)[wrong]  # −ln of the probability that an error vanishes by chance
        if wrong.sum() < 2 or not doubt.sum() >= _DOUBT:
            return None
        for name, known, part, whole in self._turned(view):
            if middle(part.fit().z) <= NEAR and not whole().fit().wrong.any():
                return Fault(name, (), (known,), wrong)
        return self._in_other_memory_order(view, wrong)

    def _turned(self, view: View) -> Iterator[tuple[str, tuple[str, str], View, Callable[[], View]]]:
        """Yield comparisons of a result with every product of transposed or swapped factors.

        Each item has the name of the fault, its evidence, a `View` of the sampled elements, and a function that returns
        the `View` of all elements. This function computes a whole product.
        """
        rows, columns = self.problem.rows, self.problem.columns
        index = np.ix_(rows, columns)
        half = np.broadcast_to(view.half, view.values.shape)[index]
        for name, which, x, y in transposed_inputs(self.problem.x, self.problem.y):
            self.tick()
            totals = multiply_exactly(x[rows], y[:, columns], False)
            if (np.abs(totals.product - view.totals.product[index]) <= _UNCHANGED * totals.size).all():
                continue  # the order of a constant input does not matter
            part = View(totals, view.values[index], view.usable[index], view.noise, view.format, half)
            yield name, ("transposed", which), part, partial(self._against, view, x, y)

    def _against(self, view: View, x: Array, y: Array) -> View:
        """Return a view that compares the same result with another product."""
        return view.against(multiply_exactly(x, y, self.problem.precise))

    def _in_other_memory_order(self, view: View, wrong: Array) -> Fault | None:
        """Return the fault if the memory of a result holds the product column by column instead of row by row."""
        if any(not read.fit().wrong.any() for read in _in_other_memory_orders(view)):
            return Fault("transposed-output", (), (_IN_MEMORY,), wrong)
        return None

    def moved_and_biased(self, view: View, wrong: Array) -> tuple[Fault, ...]:
        """Return two faults if all rows, or all columns, of a result are permuted and a bias was added; else ().

        The bias of permuted rows is the mean error of each column, because the permutation does not change this mean.
        The bias of permuted columns is the mean error of each row.
        """
        if not view.usable.all():
            return ()
        for axis, words, name in ((0, "column", "rows-moved"), (1, "row", "columns-moved")):
            off = view.totals.error(view.values).mean(axis=axis, keepdims=True)
            plain = View(
                view.totals, view.values - off, view.usable, view.noise, view.format, self._half(view, 1.0, off)
            )
            fault = self.moved(plain, None, wrong)
            if fault is None or fault.name != name or ("kind", "permuted") not in fault.evidence:
                continue
            error, room, _ = view.errors()
            if shift_bits(self.problem.independent, error, room, wrong, off.size) > PROVED:
                known = (("one number a", words), ("largest", f"{float(np.abs(off).max()):.6g}"))
                return Fault("bias", (), known, wrong), fault
        return ()

    def transposed_and_scaled(self, view: View, wrong: Array) -> tuple[Fault, ...]:
        """Return two faults if a result is a number times a product of transposed or swapped factors; else ()."""
        for name, known, part, whole in self._turned(view):
            if _factor_of(self.problem, part) and (factor := _factor_of(self.problem, whole())):
                return self._with_factor(name, known, factor, wrong)
        for read in _in_other_memory_orders(view):
            if factor := _factor_of(self.problem, read):
                return self._with_factor("transposed-output", _IN_MEMORY, factor, wrong)
        return ()

    def _with_factor(self, name: str, known: tuple[str, str], factor: float, wrong: Array) -> tuple[Fault, ...]:
        return Fault(name, (), (known,), wrong), Fault("scale", (), (("factor", f"{factor:.9g}"),), wrong)


def all_zero(view: View, wrong: Array) -> Fault | None:
    """Return the fault that all elements of a result are zero, or None if an element is not zero."""
    where = tuple((0, count) for count in view.values.shape)
    return None if view.values.any() else Fault("region", (where,), (("holds", "zeros"), ("all", "elements")), wrong)


def _in_other_memory_orders(view: View) -> Iterator[View]:
    """Yield views that undo a wrong memory order: stored by columns and read by rows, or the reverse."""
    m, n = view.values.shape
    if m == n or min(m, n) < 2:
        return
    orders: tuple[Callable[[Array], Array], ...] = (lambda a: a.reshape(n, m).T, lambda a: a.T.reshape(m, n))
    for read in orders:
        yield View(view.totals, read(view.values), read(view.usable), view.noise, view.format)


def _factor_of(problem: ProductProblem, view: View) -> float | None:
    """Return the factor of all elements of a result. Return None if no factor fits, or if it may fit by chance."""
    exact, values = view.totals.product, np.where(view.usable, view.values, np.nan)
    rough = factor_between(values, exact, view.noise.limit(view.totals) + view.half)
    if not rough:
        return None
    factor = float(within(rough, values, exact, view.errors(None, rough)[1]))
    error, room, _ = view.errors(None, factor)
    if not (np.abs(error) <= room)[view.usable].all():
        return None
    return factor if shift_bits(problem.independent, values, room, view.usable, 1) >= PROVED else None


def _all_but(at: tuple[int, ...], shape: tuple[int, ...]) -> tuple[tuple[tuple[int, int], ...], ...]:
    """Return rectangles that cover all elements of a matrix except one."""
    (i, j), (m, n) = at, shape
    boxes = ((0, i), (0, n)), ((i, i + 1), (0, j)), ((i, i + 1), (j + 1, n)), ((i + 1, m), (0, n))
    return tuple(box for box in boxes if all(low < high for low, high in box))
