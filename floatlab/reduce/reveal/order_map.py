"""Find, for every element of a product, the order in which its terms are added.

First, the elements are divided into classes that are computed in the same way (see `classes`). Then the tree of each
class is probed at elements of this class, the largest class first. Replays on random matrices find the arithmetic of
the nodes. Elements whose replay gives other bits become a separate class, which is divided and probed again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from math import prod
from time import perf_counter

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.fpmode import DefaultMode
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.replay.evaluator import candidate_codes
from floatlab.reduce.replay.explanations import agreement
from floatlab.reduce.reveal.assembly import assemble_probed
from floatlab.reduce.reveal.classes import Classes
from floatlab.reduce.reveal.node_arithmetic import compensated_candidates, narrowed_candidates, usual_candidates
from floatlab.reduce.reveal.order_map_record import OrderClass, OrderMap, Region, compute
from floatlab.reduce.reveal.probes import Lines, ProbeReader, all_masks
from floatlab.reduce.reveal.probing import PROBES_A_TERM, NotASum, plan_of
from floatlab.reduce.reveal.random_products import RandomProduct, RandomProducts
from floatlab.reduce.reveal.sized_target import LAYOUTS, SizedTarget, check_mode, checked_shape
from floatlab.reduce.reveal.smaller_products import Explained, SmallerProducts
from floatlab.reduce.reveal.stripes import rectangles_of, stripes_of
from floatlab.reduce.reveal.targets import target_of
from floatlab.reduce.simulate.adders import PartlyFused

# Probing a class may take _WORK multiply-adds. Another _WORK_SHARED are divided among all classes, by their sizes.
_WORK, _WORK_SHARED = 1 << 35, 1 << 39
_SAMPLE = 256  # every kind of node arithmetic is tried on about this many elements of a class
_REPLAYED = 1024  # random products are made until a class has this many elements in all, if memory allows
_CONFIRMED = 4  # if no more random products can be kept, a candidate must reproduce a sample in this many new ones
_ROUNDS = 4  # in one search, at most this many candidates are replayed on all elements of a class
_IN_A_ROW = 8  # if an order was not found, one product is repeated this many times, to see whether its bits change
_DEPTH = 6  # a class may be divided this many times

Progress = Callable[[int, int], object]  # takes the number of elements in classes and the number of all elements


class _Mapping:
    """The search for the orders of all elements, with the classes found so far."""

    def __init__(self, sized: SizedTarget, seed: int, progress: Progress | None) -> None:
        self.sized = sized
        self.shape = sized.matrix_shape
        self.size = prod(self.shape)
        self.rng = np.random.default_rng(seed)
        self.labels = np.full(self.shape, -1, np.int64)
        self.classes: list[OrderClass] = []
        if progress is not None:
            sized.before_product = lambda: progress(sum(each.elements for each in self.classes), self.size)
        self.trials = RandomProducts(sized, self.rng)
        self.trials.check_repeats()
        self.into = self.trials.kept[0].result.format
        self.partition = Classes(sized)
        self.probes = 0
        self.refusal: NotASum | None = None
        self.smaller: SmallerProducts | None = SmallerProducts(sized, self._explained)

    def _explained(self, sized: SizedTarget) -> Explained:
        """Find the orders in a smaller product; return the candidate of each class, and the class of each element.

        This inner search does not use even smaller products.
        """
        inner = _Mapping(sized, 1, None)
        inner.smaller = None
        inner.run()
        self.probes += inner.probes
        self.sized.products += sized.products
        return [each.candidate for each in inner.classes], inner.labels

    def run(self) -> None:
        """Find the orders of all elements; raises NotASum if the target gives different results for the same terms."""
        self.partition.split()
        waiting = [(places, _DEPTH) for places in self._parts(np.ones(self.shape, np.bool_))]
        while waiting:
            waiting.sort(key=lambda each: int(each[0].sum()))
            places, depth = waiting.pop()
            waiting += ((part, depth - 1) for part in self._find_order(places, depth))
        if any(each.candidate is None for each in self.classes):
            self.trials.check_repeats(_IN_A_ROW)

    def _parts(self, places: Array) -> list[Array]:
        """Split the mask `places` into one mask for each class of the partition."""
        labels = self.partition.labels.reshape(self.shape)
        return [places & (labels == label) for label in np.unique(labels[places])]

    def _divided(self, places: Array) -> list[Array]:
        """Divide the elements further, by results for more random vectors; return the parts of the mask `places`."""
        self.partition.split(masks=False)
        return self._parts(places)

    def _find_order(self, places: Array, depth: int) -> list[Array]:
        """Find the order of elements that seem to be computed in the same way.

        Return the parts of the mask `places` for which the order has to be found separately.
        """
        plan, reader, reason = self._probed(places)
        if plan is None and depth:
            parts = self._divided(places)
            if len(parts) > 1:
                return parts
            if reader is not None and len(reader.lines or "") > 1:  # the trees may differ: probe a single element
                only = np.zeros_like(places)
                only.flat[places.argmax()] = True
                plan, reader, reason = self._probed(only)
        for way in self._guesses(places, reason) if plan is None else [plan]:
            fits = self._claim(way, reader, places)
            if fits.any():
                rest = places & ~fits
                return self._divided(rest) if depth and rest.any() else self._add_failure(plan, rest, _UNCLEAR)
        if plan is not None and depth:
            parts = self._divided(places)
            if len(parts) > 1:
                return parts
        return self._add_failure(plan, places, reason if plan is None else _UNCLEAR)

    def _guesses(self, places: Array, reason: str) -> Iterator[Plan | Candidate]:
        """Yield guesses for elements whose tree was not found.

        First come the trees of other classes. Two kinds of guesses follow if too few elements can be probed: orders of
        smaller products, and trees that are assembled from probed blocks (see `assembly`).
        """
        known = [
            *dict.fromkeys(each.plan for each in self.classes if each.candidate is not None and each.plan is not None)
        ]
        yield from known
        if reason != _FEW_LINES:
            return
        if self.smaller is not None:
            yield from self.smaller.guesses(places, known)
        lines, most = self._lines(places)
        reader = ProbeReader(self.sized, lines)
        yield from assemble_probed(reader, known, most)
        self.probes += reader.probes

    def _add_failure(self, plan: Plan | None, places: Array, reason: str) -> list[Array]:
        if places.any():
            self._add(plan, None, places, reason)
        return []

    def _probed(self, places: Array) -> tuple[Plan | None, ProbeReader | None, str]:
        """Return the probed tree or None, the reader (None for too few elements), and why a tree is missing."""
        sized = self.sized
        lines, most = self._lines(places)
        if sized.terms > max(most, 1):
            return None, None, _FEW_LINES
        reader, reason = ProbeReader(sized, lines), ""
        most_probes = PROBES_A_TERM * sized.terms + 1000
        for masks in all_masks(sized.format, sized.terms):
            try:
                reader.use(masks)
                reader.check()
                return plan_of(reader.meetings, sized.terms, most_probes, batch=reader.batch), reader, ""
            except NotASum as trouble:
                self.refusal = self.refusal or trouble
                reason = reason or str(trouble)
            finally:
                self.probes, reader.probes = self.probes + reader.probes, 0
        return None, reader, reason

    def _lines(self, places: Array) -> tuple[Lines, int]:
        """Return the elements at which probes are read, and how many terms can be probed with the allowed work."""
        lines = Lines(places.reshape(self.sized.shape), self.sized.is_gram)
        work = _WORK + int(places.sum() / self.size * _WORK_SHARED)
        return lines, work * len(lines) // (2 * self.sized.work)

    def _claim(self, way: Plan | Candidate, reader: ProbeReader | None, places: Array) -> Array:
        """Replay `way` on the elements at `places`; if `way` is a plan, replay candidates that have this plan.

        The elements that the best replay reproduces bit for bit become a class. Return the mask of these elements.
        """
        self.trials.make(-(-_REPLAYED // int(places.sum())))
        searches: list[Callable[[], Iterable[Candidate]]] = (
            [lambda: [way]]
            if isinstance(way, Candidate)
            else [
                partial(usual_candidates, self.sized.format, self.into, way, reader),
                partial(compensated_candidates, self.into, way),
                partial(narrowed_candidates, self.sized.format, self.into, way, reader),
            ]
        )
        best, claimed = np.zeros_like(places), None
        for search in searches:
            candidate, fits = self._best_fit([*search()], places)
            if fits.sum() > best.sum():
                best, claimed = fits, candidate
            if (best == places).all():
                break
        if claimed is not None and not (best == places).all():
            best = self._confirmed(claimed, best)
        if best.any():
            assert claimed is not None
            assert isinstance(claimed.schedule, ExplicitTree)
            has_ids = isinstance(claimed.adder, PartlyFused) and bool(claimed.adder.kept)
            self._add(way if isinstance(way, Plan) and not has_ids else claimed.schedule.tree, claimed, best, "")
        return best

    def _confirmed(self, candidate: Candidate, places: Array) -> Array:
        """Return the mask of the elements at `places` that a candidate reproduces in further random products.

        So far, some elements may have agreed by chance. The number of products is doubled until all remaining elements
        agree. If the limit of products is reached first, a sample of the elements is replayed in a few more products.
        If an element of this sample differs, the returned mask is empty.
        """
        while new := self.trials.make(2 * len(self.trials.kept)):
            fits = places
            for trial in new:
                fits = fits & self._replayed(candidate, fits, trial)
            if (fits == places).all() or not fits.any():
                return fits
            places = fits
        some = np.zeros_like(places)
        some.flat[np.flatnonzero(places)[:: max(1, int(places.sum()) // _SAMPLE)]] = True
        agrees = all((self._replayed(candidate, some, self.trials.new()) == some).all() for _ in range(_CONFIRMED))
        return places if agrees else np.zeros_like(places)

    def _best_fit(self, ways: list[Candidate], places: Array) -> tuple[Candidate | None, Array]:
        """Return the candidate that reproduces the most elements bit for bit, and the mask of these elements.

        An element must be equal in all random products. Only candidates that are best on a sample are replayed in full.
        """
        failed, best = np.zeros((len(self.trials.kept), *self.shape), np.bool_), np.zeros_like(places)
        tried: list[Candidate] = []
        claimed: Candidate | None = None
        while len(tried) < _ROUNDS and not (best == places).all():
            candidate = self._best_on_sample(ways, places, failed)  # the sample includes elements that failed before
            if candidate is None or candidate in tried:
                break
            tried.append(candidate)
            failed = np.stack([places & ~self._replayed(candidate, places, trial) for trial in self.trials.kept])
            fits = places & ~failed.any(axis=0)
            if claimed is None or fits.sum() > best.sum():
                best, claimed = fits, candidate
        return claimed, best

    def _best_on_sample(self, ways: list[Candidate], places: Array, failed: Array) -> Candidate | None:
        """Return the candidate that reproduces the most elements of a sample bit for bit.

        The masks `failed` mark elements that the previous candidate did not reproduce; some of them are in the sample.
        """
        rows, columns = np.nonzero(places)
        total = len(rows) * len(self.trials.kept)
        chosen = np.arange(total) if total <= _SAMPLE else self.rng.choice(total, _SAMPLE, replace=False)
        missed = np.flatnonzero(failed[:, rows, columns])
        chosen = np.union1d(chosen, missed[:: max(1, len(missed) // _SAMPLE)])
        which, place = np.divmod(chosen, len(rows))
        x, y, goal = [], [], []
        for number, trial in enumerate(self.trials.kept):
            at = place[which == number]
            x.append(trial.sides[0].codes[rows[at]])
            y.append(trial.sides[1].codes[:, columns[at]])
            goal.append(trial.result.codes[rows[at], columns[at]])
        format = self.sized.format
        left, right = np.ascontiguousarray(np.concatenate(x).T), np.concatenate(y, axis=1)
        sides, wanted = (Source(left, format), Source(right, format)), Source(np.concatenate(goal), self.into)
        best, most = None, 0
        for candidate in ways:
            matching = int(agreement(candidate_codes(candidate, sides, self.into), wanted, self.into).sum())
            if matching > most:
                best, most = candidate, matching
            if most == len(wanted.codes):
                break
        return best

    def _replayed(self, candidate: Candidate, places: Array, trial: RandomProduct) -> Array:
        """Return the mask of the elements at `places` that a candidate reproduces bit for bit in a random product."""
        codes = np.zeros(self.shape, trial.result.codes.dtype)
        compute(candidate, trial.sides, places, self.into, codes)
        fits = np.zeros_like(places)
        fits[places] = agreement(codes[places], Source(trial.result.codes[places], self.into), self.into)
        return fits

    def _add(self, plan: Plan | None, candidate: Candidate | None, places: Array, reason: str) -> None:
        """Add the elements at `places` as a class, or to the class that has the same candidate."""
        alike = (each for each, old in enumerate(self.classes) if candidate is not None and old.candidate == candidate)
        number = next(alike, len(self.classes))
        self.labels[places] = number
        places = self.labels == number
        found = OrderClass(
            plan=plan,
            candidate=candidate,
            format=self.into,
            regions=tuple(Region(stripes_of(rows), stripes_of(columns)) for rows, columns in rectangles_of(places)),
            rows=stripes_of(np.flatnonzero(places.any(axis=1))),
            columns=stripes_of(np.flatnonzero(places.any(axis=0))),
            elements=int(places.sum()),
            share=float(places.mean()),
            agreement=float(candidate is not None),
            reason=reason,
        )
        self.classes[number : number + 1] = [found]


_FEW_LINES = "too few of these elements can be probed at the same time"
_UNCLEAR = "its tree is known, but no tested arithmetic of its nodes gives the results"


def order_map(
    target: object,
    shape: tuple[int, ...],
    dtype: str = "float32",
    *,
    kind: str | None = None,
    layout: str = LAYOUTS[0],
    device: str = "cpu",
    seed: int = 1,
    progress: Progress | None = None,
) -> OrderMap:
    """Return, for each element of a matrix product of one shape, the order in which a function adds the terms.

    Parameters
    ----------
    target : callable or str
        A function of two matrices, or of a matrix and a vector; or its name: "numpy.matmul", "module:function".
    shape : tuple of int
        Rows, terms and columns (M, K, N) of a product, (B, M, K, N) of a batch of products, or rows and terms (M, K) if
        the function multiplies a matrix and a vector.
    dtype, device
        As for `reveal`.
    kind : {"matmul", "matvec"}, optional
        The operands of the function; by default "matvec" if the shape has two numbers, else "matmul".
    layout : str
        The memory layout of the operands: "A@B", "A.T@B", "A@B.T", "A.T@B.T", "A@A.T" or "A.T@A". A.T is the transposed
        view of a matrix in C order, so the operand itself is in Fortran order. In the last two layouts, one matrix is
        both operands.
    seed : int
        The seed of the random matrices for the replays.
    progress : callable, optional
        Called before each product, and at the end, with the number of elements in the classes found so far and the
        number of all elements. This function may raise an exception to end the search.

    Returns
    -------
    OrderMap
        The classes of elements, each with its order, and the class number of each element.

    Raises
    ------
    PlanError
        If there is no element whose terms are added along a tree, or two results for the same terms differ.
    UnsupportedError
        If the function cannot be called with these operands.
    MissingPartError
        If the function's library is not installed.

    Notes
    -----
    A class has a candidate only if this candidate reproduces all elements of the class bit for bit on random matrices.

    Examples
    --------
    >>> def by_rows(a, b):
    ...     made = np.zeros((a.shape[0], b.shape[1]), a.dtype)
    ...     for k in range(a.shape[1]):
    ...         made[:3] += a[:3, k, None] * b[k]
    ...         made[3:] += a[3:, -1 - k, None] * b[-1 - k]
    ...     return made
    >>> print(order_map(by_rows, (5, 8, 4), kind="matmul").text)
    60 % (rows 0–2, all columns): serial
    40 % (rows 3–4, all columns): reversed
    """
    began = perf_counter()
    batch, rows, terms, *columns = checked_shape(shape, kind)
    asked = target_of(target, kind or ("matmul" if columns else "matvec"), device)
    with DefaultMode() as mode:
        sized = SizedTarget(asked, terms, dtype, (batch * rows, *columns), layout, check_mode(asked, mode), batch)
        mapping = _Mapping(sized, seed, progress)
        mapping.run()
        sized.before_product()  # makes the last progress report
        if all(each.plan is None for each in mapping.classes) and mapping.refusal is not None:
            raise NotASum(f"{asked.name} is not a sum along a tree: {mapping.refusal}")
        order = sorted(range(len(mapping.classes)), key=lambda i: -mapping.classes[i].elements)
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        classes = tuple(mapping.classes[i] for i in order)
        return OrderMap(
            shape=(batch * rows, terms, columns[0] if columns else 1),
            classes=classes,
            labels=place[mapping.labels],
            share=sum(each.elements for each in classes if each.candidate) / mapping.size,
            target=asked.name,
            layout=layout,
            terms_format=sized.format,
            format=mapping.into,
            probes=mapping.probes,
            products=sized.products,
            seconds=perf_counter() - began,
            batch=batch,
        )
