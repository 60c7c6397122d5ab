"""Diagnose two results of an operation: each of its matrix products is diagnosed, and the diagnoses are joined."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import cast

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, native_dtype
from floatlab.arrays.types import Array
from floatlab.fpmode import in_default_mode
from floatlab.record import Individual
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.first_line import bug_line, faults_among, identical_line, shared_line
from floatlab.reduce.explain.grid import NUMPY, Replaying
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.operations.axes import products_of
from floatlab.reduce.explain.operations.boxes import all_boxes, box_text
from floatlab.reduce.explain.operations.places import mark_wrong, places_of
from floatlab.reduce.explain.operations.products import Products
from floatlab.reduce.explain.problem import ProductProblem, matrices_of
from floatlab.reduce.explain.residuals import indices_of, share_of
from floatlab.reduce.explain.ways import own_accumulator
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis, Place

_MOST = 48  # at most this many products are diagnosed: those with the largest errors
_MOST_SHOWN = 3  # a first line names at most this many parts of the result
_ORDER = ("bug", "unknown", "rounding", "identical")  # the status of a product, the most serious first
_SWAPPED = {"rows-moved": "columns-moved", "columns-moved": "rows-moved"}
_LOCAL = ("elements", "region", "nan")  # causes whose positions are indices of the result
_SAME = 2.0  # to find products at wrong positions, errors of up to this many u·n·Σ|x·y|, and one ulp, are allowed


@in_default_mode
def diagnose_operation(
    operation: str,
    x: object,
    y: object,
    actual: object,
    expected: object,
    *,
    bias: object = None,
    maps: Sequence[Replaying] = (),
    progress: Callable[[], None] | None = None,
    keep_interrupted: bool = False,
) -> Diagnosis:
    """Return the diagnosis of why two results of an operation differ.

    Parameters
    ----------
    operation : str
        The operation, as for `products_of`: matmul, linear, dot, sum, einsum:SPEC or conv2d.
    x, y : array_like
        The inputs, with any number of axes; y is None for a sum.
    actual, expected : array_like
        The two results, in the shape that the operation gives; axes of length 1 may be missing or additional.
    bias : array_like, optional
        The array that was added to the products. It counts as the last term of each sum.
    maps, progress, keep_interrupted
        As for `diagnose`.

    Returns
    -------
    Diagnosis
        One diagnosis for all products. The positions of wrong elements are indices of the operation's result. If the
        result is not a matrix, the evidence of the causes `rows-moved` and `columns-moved` gives the axes of the result
        along which elements moved.

    Raises
    ------
    UnsupportedError
        If the shapes do not fit together, or the operation is unknown.

    Notes
    -----
    A batch that is multiplied by one matrix is one product. If there are more than 48 products, only the 48 with the
    largest errors are diagnosed.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x, y = rng.random((4, 8, 50), np.float32), rng.random((4, 50, 30), np.float32)
    >>> wrong = x @ y
    >>> wrong[2, 3, 7] += 1
    >>> diagnose_operation("matmul", x, y, x @ y, wrong).first
    'Yes: element (2, 3, 7) of B is wrong; all others agree.'
    """
    products = products_of(operation, x, y, bias)
    results = products.checked(actual, "actual"), products.checked(expected, "expected")
    if products.is_plain:
        return diagnose(*products.factors(0), *results, maps=maps, progress=progress, keep_interrupted=keep_interrupted)
    return _JointDiagnosis(products, results, maps, progress, keep_interrupted).diagnose()


class _BiasLast:
    """A library or an order map that multiplies without the bias (the last term of each sum), and then adds it.

    Without an `inner` map, the library is NumPy.
    """

    def __init__(self, inner: Replaying | None) -> None:
        self.inner = inner
        self.name = f"{NUMPY}, then the bias" if inner is None else getattr(inner, "name", "a map")

    def replay(self, a: object, b: object) -> Array:
        """Return the sum of all terms except the last, plus the last term."""
        left, right = np.asarray(a), np.asarray(b)
        x, y = np.ascontiguousarray(left[:, :-1]), np.ascontiguousarray(right[:-1])
        with np.errstate(all="ignore"):
            made = x @ y if self.inner is None else np.asarray(self.inner.replay(x, y))
            return np.asarray(made + left[:, -1:] * right[-1:])


class _Part(Individual):
    """The number of one product, and its diagnosis."""

    number: int
    found: Diagnosis


class _JointDiagnosis:
    """Diagnoses all products of an operation, and joins the diagnoses."""

    def __init__(
        self,
        products: Products,
        results: tuple[Source, Source],
        maps: Sequence[Replaying],
        progress: Callable[[], None] | None,
        keep_interrupted: bool,
    ) -> None:
        self.keep_interrupted = keep_interrupted
        self.products, self.results, self.maps, self.progress = products, results, maps, progress

    def diagnose(self) -> Diagnosis:
        numbers, self.errors = self._by_error()
        self.parts: list[_Part] = []
        for number in numbers:
            self.parts.append(_Part(number, self._diagnose_one(number)))
            if self.parts[-1].found.stopped:
                break
        causes = self._moved_products() or self._causes()
        status = "bug" if causes and causes[0].name == "products-moved" else self._status()
        last = self.parts[-1].found
        if last.stopped:
            first = f"Stopped. {self._first(status, causes)}" if status == "bug" else last.first
            return Diagnosis(status, first, causes, self._nearer(), True)
        return Diagnosis(status, self._first(status, causes), causes, self._nearer())

    def _by_error(self) -> tuple[list[int], Array]:
        """Return the numbers of the products to diagnose, and the largest error of each result in each product.

        Errors are relative to Σ|x·y|. The products with the largest errors come first. If there is only one product,
        its errors are given as 0.
        """
        count = len(self.products)
        if count == 1:
            return [0], np.zeros((1, 2))
        errors = np.zeros((count, 2))
        for number in range(count):
            if self.progress is not None:
                self.progress()
            exact, size = self.products.exact(number)
            for side, result in enumerate(self.results):
                block = self.products.result(result, number)
                values = np.asarray(decode(block.codes, block.format), np.float64)
                with np.errstate(all="ignore"):
                    q = np.abs(values - exact) / np.where(size > 0, size, 1.0)
                errors[number, side] = np.nan_to_num(q, nan=np.inf).max()
        largest = errors.max(axis=1)
        return np.argsort(-largest, kind="stable")[:_MOST].tolist(), errors

    def _factors(self, number: int) -> tuple[Source, Source]:
        return self.products.factors_with_bias(number)

    def _diagnose_one(self, number: int) -> Diagnosis:
        x, y = self._factors(number)
        results = [self.products.result(each, number) for each in self.results]
        maps: tuple[Replaying, ...] = tuple(self.maps)
        if self.products.has_bias:
            kinds = {native_dtype(each.format) for each in (x, y, *results)}
            plain = len(kinds) == 1 and None not in kinds
            maps = tuple(_BiasLast(each) for each in (None, *maps)) if plain else ()
        factors, made = matrices_of(x, y, *results)
        formats = made[0].format, made[1].format
        misplaced = partial(self.products.misplaced_biases, number)
        problem = ProductProblem(*factors, formats, self.products.has_bias, self.progress, misplaced)
        return diagnose(
            *factors, *made, maps=maps, progress=self.progress, keep_interrupted=self.keep_interrupted, problem=problem
        )

    def _status(self) -> str:
        return min((part.found.status for part in self.parts), key=_ORDER.index)

    def _nearer(self) -> str | None:
        said = {part.found.nearer for part in self.parts} - {None}
        if len(said) < 2:
            return next(iter(said), None)
        first, second = np.nan_to_num(self.errors, posinf=1e300).max(axis=0)
        return None if first == second else "actual" if first < second else "expected"

    def _causes(self) -> tuple[DiagnosedCause, ...]:
        """Return the causes of all products without duplicates, bugs first; positions are indices of the result."""
        kinds: dict[tuple[str, str, str], list[tuple[int, DiagnosedCause]]] = {}
        for part in sorted(self.parts, key=lambda part: (_ORDER.index(part.found.status), part.number)):
            for cause in part.found.causes:
                # Wrong elements are collected here; `_located` decides again whether they form a region.
                name = "elements" if cause.name == "region" else cause.name
                kinds.setdefault((name, cause.stage, cause.side), []).append((part.number, cause))
        return tuple(
            self._located(alike) if name in _LOCAL else self._joined(alike) for (name, *_), alike in kinds.items()
        )

    def _located(self, alike: list[tuple[int, DiagnosedCause]]) -> DiagnosedCause:
        """Combine causes of the same kind from several products into one cause that lists all wrong elements."""
        _, first = alike[0]
        evidence = tuple(pair for pair in first.evidence if all(pair in cause.evidence for _, cause in alike))
        wrong = mark_wrong(self.products, self.results[first.side == "expected"], alike)
        if not wrong.all():
            evidence = tuple(pair for pair in evidence if pair[0] not in ("all", "element"))
        name, where = places_of(wrong)
        if first.name == "nan":
            name, where = "nan", indices_of(wrong)
        return DiagnosedCause(name, first.stage, first.side, share_of(wrong), where, evidence + self._looked_at())

    def _looked_at(self) -> tuple[tuple[str, str], ...]:
        count, all_of_them = len(self.parts), len(self.products)
        return (("looked at", f"{count:,} of {all_of_them:,} products"),) if count < all_of_them else ()

    def _joined(self, alike: list[tuple[int, DiagnosedCause]]) -> DiagnosedCause:
        """Combine causes with the same name, stage and result from several products into one cause."""
        _, first = alike[0]
        evidence = list(first.evidence)
        share = sum(cause.share for _, cause in alike) / len(self.parts)
        where = tuple(dict.fromkeys(place for _, cause in alike for place in self._along(cause)))
        if any(isinstance(span, tuple) for _, cause in alike for place in cause.where for span in place):
            # The cause affects rectangles of some products.
            where = places_of(mark_wrong(self.products, self.results[first.side == "expected"], alike))[1]
        if (axes := self._axes(first.name)) and not self.products.is_transposed:
            evidence.append(("axes", ", ".join(map(str, axes))))
        if self.products.is_transposed:
            swap = {"row": "column", "column": "row"}
            evidence = [(key, swap.get(value, value) if key == "one number a" else value) for key, value in evidence]
        if len(alike) < len(self.parts):
            evidence.append(("in", self._texts([number for number, _ in alike])))
        name = _SWAPPED.get(first.name, first.name) if self.products.is_transposed else first.name
        return DiagnosedCause(name, first.stage, first.side, min(share, 1.0), where, (*evidence, *self._looked_at()))

    def _along(self, cause: DiagnosedCause) -> tuple[Place, ...]:
        """Return where a cause applies.

        If rows or columns were moved, their numbers are converted to indices along the axes of the result.
        """
        if cause.name not in _SWAPPED:
            return cause.where
        is_row = cause.name == "rows-moved"
        pairs = [cast("tuple[int, int]", pair) for pair in cause.where]
        moved = [(self.products.place(to, is_row), self.products.place(source, is_row)) for to, source in pairs]
        return cast("tuple[Place, ...]", tuple(moved))

    def _axes(self, name: str) -> tuple[int, ...]:
        """Return the axes of the result along which rows or columns were moved, if the cause `name` says so.

        The tuple is empty for all other causes, and for a result that is a matrix.
        """
        if name not in _SWAPPED or len(self.products.shape) == 2:
            return ()
        return self.products.axis_of(name == "rows-moved")

    def _texts(self, numbers: list[int]) -> str:
        boxes = all_boxes(self.products.boxes(number) for number in numbers)
        shown = ", ".join(box_text(box, self.products.shape) for box in boxes[:_MOST_SHOWN])
        return shown + (f" and {len(boxes) - _MOST_SHOWN:,} more" if len(boxes) > _MOST_SHOWN else "")

    def _first(self, status: str, causes: tuple[DiagnosedCause, ...]) -> str:
        """Return the first line of the diagnosis.

        If there is a bug, or if both results have the same faults, the line names the causes. Otherwise, the first line
        of one product is returned: the product with the largest error among the products with this status.
        """
        shared = tuple(each for each in faults_among(causes) if each.side == "both")
        if shared and status in ("identical", "rounding"):
            return identical_line(shared) if status == "identical" else shared_line(shared)
        if status != "bug":
            return next(part.found.first for part in self.parts if part.found.status == status)
        first, second = (np.asarray(decode(each.codes, each.format), np.float64) for each in self.results)
        differing = ((first != second) & ~(np.isnan(first) & np.isnan(second))).reshape(self.products.shape)
        is_known = not any(part.found.status == "unknown" for part in self.parts)
        line = bug_line(causes, differing, is_known)
        confined = dict.fromkeys(value for cause in causes for key, value in cause.evidence if key == "in")
        if len(confined) == 1 and not any(cause.name in _LOCAL for cause in causes):
            return line.replace("Yes:", f"Yes, in {next(iter(confined))}:", 1)
        return line

    def _moved_products(self) -> tuple[DiagnosedCause, ...]:
        """Return a cause for each result whose products are correct but are at wrong positions in the batch."""
        strange = [p.number for p in self.parts if any(c.name == "not-the-product" for c in p.found.causes)]
        if not strange or not 1 < len(self.products) <= _MOST:
            return ()
        exact = [self.products.exact(number) for number in range(len(self.products))]
        found = []
        for result, name in zip(self.results, ("actual", "expected"), strict=True):
            sources = {number: self._source_of(result, number, exact) for number in strange}
            moved = sorted((to, source) for to, source in sources.items() if source is not None and source != to)
            if moved and None not in sources.values():
                pairs = tuple((self.products.batch(to), self.products.batch(source)) for to, source in moved)
                where = cast("tuple[Place, ...]", pairs)
                found.append(DiagnosedCause("products-moved", "result", name, len(pairs) / len(exact), where, ()))
        return tuple(found)

    def _source_of(self, result: Source, number: int, exact: list[tuple[Array, Array]]) -> int | None:
        """Return the number of the product that a result holds at position `number`; None if no product fits.

        If several products fit, product `number` is preferred.
        """
        block = self.products.result(result, number)
        values = np.asarray(decode(block.codes, block.format), np.float64)
        limit = _SAME * 2.0 ** -own_accumulator(block.format).precision * self.products.terms
        half = 2 * half_ulp(values, block.format)
        with np.errstate(all="ignore"):
            fits = [bool((np.abs(values - product) <= limit * size + half).all()) for product, size in exact]
        return number if fits[number] else next((other for other, fit in enumerate(fits) if fit), None)
