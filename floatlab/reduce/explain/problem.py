"""The inputs of a product, their exact product, and the two computed results whose errors are to be explained."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode, quantize
from floatlab.arrays.sources import Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.record import Record
from floatlab.reduce.explain.estimates import independent_errors
from floatlab.reduce.explain.noise import Noise, Totals, calibrated, half_ulp, multiply_exactly, noise_of
from floatlab.reduce.explain.quantisers import scaled_formats
from floatlab.reduce.explain.stages import PLAIN, Model, input_models, rare_models
from floatlab.reduce.results.diagnosis_record import Evidence
from floatlab.reduce.results.product_error import spread_indices

_SINGLE, _DOUBLE = parse_format("fp32"), parse_format("fp64")
_NARROW = tuple(parse_format(name) for name in ("e5m2", "e4m3", "bf16", "fp16", "tf32", "fp32"))
_FEW = 4  # if a result has more values than this, but only one magnitude, it is no evidence of a narrower format
_CHANCE = 10  # a narrower format is accepted if the result has at least this many spare bits (see `_spare_bits`)
_LEAST_APART = 6  # of two formats that hold all values, the wider one is excluded if it has this many spare bits
_LEAST_SCALED = 20  # a scale is looked for only in results that need a format of at least this precision
_STEPS = 2.0  # each term of a scaled product is rounded twice: when an input is scaled, and when it is multiplied
# The sample has at least _SAMPLE_ROWS rows and columns and about _SAMPLE elements, if the product has as many.
_SAMPLE_ROWS, _SAMPLE = 32, 32 * 32


def _spare_bits(values: Array, own: Format, format: Format) -> int:
    """Return the number of significant bits that `values` could have in the format `own`, but not in `format`.

    The bits are added up over the distinct magnitudes.

    Subnormal numbers of `own` count fewer bits. If more than four values all have the same magnitude, the result is 0.
    """
    different = np.unique(np.abs(values[values != 0]))
    if values.size > _FEW and different.size < 2:
        return 0  # one repeated number is little evidence
    exponent = np.frexp(different)[1]
    return int(np.maximum(np.minimum(own.precision, exponent - own.qmin) - format.precision, 0).sum())


def matrices_of(
    x: object, y: object, actual: object, expected: object
) -> tuple[tuple[Source, Source], tuple[Source, Source]]:
    """Return both factors and both results as matrices.

    Raises UnsupportedError if the shapes do not fit together, the product has no terms or no elements, or a format is
    more precise than binary64.
    """
    left, right, first, second = (source_of(each, name) for each, name in (
        (x, "x"), (y, "y"), (actual, "actual"), (expected, "expected"),
    ))  # fmt: skip
    for side in (left, right, first, second):
        if side.format.precision > _DOUBLE.precision:
            raise UnsupportedError(f"a diagnosis supports formats up to binary64, not {side.format.name}")
    if not left.codes.ndim or not 1 <= right.codes.ndim <= 2 or left.codes.shape[-1] != right.codes.shape[0]:
        raise UnsupportedError(f"shapes {left.codes.shape} and {right.codes.shape} do not make a product")
    shape = (*left.codes.shape[:-1], *right.codes.shape[1:])
    n = right.codes.shape[0]
    rows, columns = prod(left.codes.shape[:-1]), prod(right.codes.shape[1:])
    if not rows * columns * n:
        what = "give a result without elements" if n else "have nothing to add"
        raise UnsupportedError(f"shapes {left.codes.shape} and {right.codes.shape} {what}")
    for side, name in ((first, "actual"), (second, "expected")):
        if side.codes.shape != shape and side.codes.size != rows * columns:
            raise UnsupportedError(f"{name} has shape {side.codes.shape}, and the product of x and y {shape}")
    flat = [
        Source(np.ascontiguousarray(side.codes).reshape(size), side.format, side.dtype)
        for side, size in (
            (left, (rows, n)),
            (right, (n, columns)),
            (first, (rows, columns)),
            (second, (rows, columns)),
        )
    ]
    return (flat[0], flat[1]), (flat[2], flat[3])


class Side:
    """One of the two results: its values as float64, its format, and the narrower formats that hold all its values."""

    def __init__(self, name: str, source: Source) -> None:
        """Decode the result `source`, which is a matrix."""
        self.name, self.source, self.format = name, source, source.format
        with np.errstate(all="ignore"):  # signaling NaNs would cause a warning
            self.values = np.asarray(decode(source.codes, source.format), np.float64)
        self.finite = np.isfinite(self.values)

    @cached_property
    def rounded_to(self) -> Format:
        """The format to which this result was probably rounded: the widest format in `held`, or its own format.

        If there are few numbers, narrower formats in `held` may hold all of them by chance.
        """
        return self.held[-1] if self.held else self.format

    @property
    def coarsest(self) -> Format:
        """The narrowest format of `held`, or the result's own format if `held` is empty."""
        return self.held[0] if self.held else self.format

    @cached_property
    def held(self) -> tuple[Format, ...]:
        """Narrower usual formats to which this result may have been rounded, the narrowest first.

        Each of these formats holds all finite values, so the values do not show which format was used. The tuple is
        empty if all values are 0, or if there are too few values to be evidence.
        """
        values = self.values[self.finite]
        found: list[Format] = []
        if not values.any():
            return ()
        some = values[:: max(1, values.size // 4096)]
        for format in _NARROW:
            if format.precision >= self.format.precision or _spare_bits(some, self.format, format) < _CHANCE:
                continue
            if found and format.precision == found[-1].precision:
                continue
            if found and _spare_bits(some, format, found[-1]) >= _LEAST_APART:
                break
            if all(np.array_equal(np.asarray(quantize(part, format), np.float64), part) for part in (some, values)):
                found.append(format)
        return tuple(found)


class ProductProblem:
    """The inputs as float64, and their exact product.

    Rows of x and columns of y that contain NaN or infinity are replaced by zeros. The mask `known` marks the elements
    of the product that depend on none of these rows and columns. In all other elements, `special` holds the product of
    the original inputs. If all elements are known, `special` is None.
    """

    def __init__(
        self,
        x: Source,
        y: Source,
        results: tuple[Format, ...],
        has_bias: bool = False,
        tick: Callable[[], None] | None = None,
        misplaced: Callable[[], list[tuple[str, Array]]] | None = None,
    ) -> None:
        """Multiply the inputs with enough precision for computing the errors of results in these formats.

        If `has_bias` is true, the last term of each sum is a bias. Models of rounded inputs do not change this term.
        The function `misplaced` returns possible mistakes with the bias: a description of each, and the array that is
        then added. In a large product, `tick` is called after each block of rows.
        """
        self.sources, self.has_bias, self._misplaced = (x, y), has_bias, misplaced
        # The most precise format of inputs and results. Results in less precise formats were rounded at the end.
        self.widest = max((x.format, y.format, *results), key=lambda each: each.precision)
        first, second = (np.asarray(decode(side.codes, side.format), np.float64) for side in (x, y))
        rows = np.asarray(np.isfinite(first).all(axis=1))
        columns = np.asarray(np.isfinite(second).all(axis=0))
        self.known = rows[:, None] & columns
        self.special: Array | None = None
        if not self.known.all():
            with np.errstate(all="ignore"):
                self.special = np.where(self.known, 0.0, first @ second)
            first, second = np.where(rows[:, None], first, 0.0), np.where(columns, second, 0.0)
        self.x, self.y = first, second
        self.terms = first.shape[1]
        self.shape = (first.shape[0], second.shape[1])
        self.precise = max(each.precision for each in results) > _SINGLE.precision
        self.totals = multiply_exactly(first, second, self.precise, tick)
        self.rows = spread_indices(self.shape[0], max(_SAMPLE_ROWS, _SAMPLE // max(1, self.shape[1])))
        self.columns = spread_indices(self.shape[1], max(_SAMPLE_ROWS, _SAMPLE // len(self.rows)))
        self._noises: dict[str, Noise] = {}
        self.grids: dict[object, object] = {}  # candidate computations by model and format
        self._scaled: dict[str, tuple[Evidence, Array] | None] = {}
        self._models: dict[bool, list[tuple[Model, Array | None]]] = {}

    def noise(self, accumulator: Format) -> Noise:
        """Return the `Noise` of sums in a format.

        For binary32 and binary64, the noise is adapted to simulated sums of these inputs.
        """
        if accumulator.name not in self._noises:
            noise = noise_of(accumulator)
            kind = native_dtype(accumulator)
            if kind is not None and kind.itemsize > 2:
                noise = calibrated(noise, self.x, self.y, self.totals, kind)
            self._noises[accumulator.name] = noise
        return self._noises[accumulator.name]

    def scaled_output(self, side: Side) -> tuple[Evidence, Array] | None:
        """If a result was quantised with a scale, return the evidence and the largest errors of this quantisation.

        Otherwise return None. The result is quantised if all of its numbers are numbers of a narrow format times a
        scale, although most exact products are not.
        """
        if side.name not in self._scaled:
            known, found = side.finite & self.known, None
            if side.rounded_to.precision >= _LEAST_SCALED:
                found = next(scaled_formats(side.values, self.totals.product, known), None)
            self._scaled[side.name] = found
        return self._scaled[side.name]

    @contextmanager
    def unscaled(self, side: Side) -> Iterator[None]:
        """Context manager: within it, `scaled_output` returns None for this result."""
        found = self.scaled_output(side)
        self._scaled[side.name] = None
        try:
            yield
        finally:
            self._scaled[side.name] = found

    def sampled_models(self, tick: Callable[[], None], rare: bool = False) -> list[tuple[Model, Array | None]]:
        """Return the usual or the rare models of the inputs, each with its product in the sample. The list is cached.

        The first of the usual models is `PLAIN`, the unchanged inputs; its product is given as None. Other models are
        left out if they do not change the product in the sample.
        """
        if rare not in self._models:
            x, y = self.x[self.rows], self.y[:, self.columns]
            as_they_are = self.made(PLAIN, x, y)
            # BLAS may add the same terms in another order if the memory layout differs, which causes small differences.
            room = 2 * (self.terms + 1) * 2.0**-_DOUBLE.precision * self.sample.size
            formats = self.sources[0].format, self.sources[1].format
            found: list[tuple[Model, Array | None]] = [] if rare else [(PLAIN, None)]
            for model in rare_models(formats, self.terms) if rare else input_models(formats, *self.factors):
                tick()
                product = self.made(model, x, y)
                with np.errstate(all="ignore"):
                    alike = (np.abs(product - as_they_are) <= room) | (product == as_they_are)
                if not (alike | np.isnan(as_they_are)).all():
                    found.append((model, product))
            self._models[rare] = found
        return self._models[rare]

    def whole(self, model: Model) -> Array:
        """Return the product that a model gives, for all rows and columns."""
        return self.made(model, self.x, self.y)

    @property
    def factors(self) -> tuple[Array, Array]:
        """The factors of the product, without the bias."""
        return (self.x[:, :-1], self.y[:-1]) if self.has_bias else (self.x, self.y)

    @property
    def given_bias(self) -> Array | None:
        """The bias that is added to each element of the product, or None if there is no bias."""
        return self.x[:, -1:] * self.y[-1:] if self.has_bias else None

    @cached_property
    def misplaced_biases(self) -> list[tuple[str, Array]]:
        """The possible mistakes in which the bias is added to wrong elements.

        Each mistake has a description, and the array that is then added.
        """
        return [] if self._misplaced is None else self._misplaced()

    def made(self, model: Model, x: Array, y: Array) -> Array:
        """Return the product that a model gives for some rows of the first input and some columns of the second."""
        if not self.has_bias:
            return model.make(x, y, self.x, self.y)
        with np.errstate(all="ignore"):
            product: Array = model.make(x[:, :-1], y[:-1], *self.factors) + x[:, -1:] * y[-1:]
        return product

    @cached_property
    def independent(self) -> int:
        """The number of independent errors that changes of one input may cause (see `independent_errors`)."""
        return independent_errors(self.x, self.y)

    @property
    def sample(self) -> Totals:
        """The `Totals` of the elements at the sampled rows and columns."""
        return self.totals.take(self.rows, self.columns)


class Fit(Record):
    """The errors of a result against the exact product or a model's product.

    `z` holds the absolute errors, minus the largest error of the final rounding, in sigmas (see `noise`). If this
    rounding explains a whole error, the `z` of the element is 0. For unusable elements, `z` is NaN. `wrong` is the mask
    of the errors above their limits.
    """

    z: Array
    wrong: Array

    __hash__ = object.__hash__


class View:
    """All elements of a result, or a sample of them, together with the totals of their exact products.

    The mask `usable` marks the elements that are finite and whose exact product is known.
    """

    def __init__(
        self, totals: Totals, values: Array, usable: Array, noise: Noise, output: Format, half: Array | None = None
    ) -> None:
        """Take the exact products, the elements of the result, and the `noise` of sums in the accumulator.

        If the format `output` is narrower than the accumulator, half an ulp in `output` is added to the limit of each
        error. If the result was rounded in another way, `half` holds the largest errors of this rounding instead.
        """
        self.totals, self.values, self.usable, self.noise, self.format = totals, values, usable, noise, output
        self.half: Array | float = half_ulp(values, output) if 2.0**-output.precision > noise.u else 0.0
        if half is not None:
            self.half = half
        self.slack: Array | float = 0.0  # the uncertainty of the product itself; see `stored`
        self.bias: Array | None = None  # the given bias, which is part of the product

    def right(self, wrong: Array) -> Array:
        """Return the mask of the usable elements other than 0 that are not marked in `wrong`."""
        right: Array = self.usable & ~wrong & (self.values != 0)
        return right

    def against(self, totals: Totals) -> View:
        """Return a `View` of the same result, compared with another product, whose `Totals` are given."""
        return View(totals, self.values, self.usable, self.noise, self.format, np.asarray(self.half))

    def stored(self) -> Iterator[View]:
        """Yield views that compare the result with the product rounded to the output format.

        A factor or bias may have been applied after this rounding. Products close to a tie may have been rounded up or
        down. The attribute `slack` of each view therefore makes the error limits of the view larger. If the user gave a
        bias, there are two views: one adds this bias before the rounding, and the other after it. If the output format
        is not narrower than the accumulator, there is no view.
        """
        if not isinstance(self.half, np.ndarray):
            return
        room = self.noise.limit(self.totals)
        for after in (0.0,) if self.bias is None else (0.0, self.bias):
            with np.errstate(all="ignore"):
                ends = (self.totals.product - after - room, self.totals.product - after + room)
                low, high = (np.asarray(quantize(end, self.format), np.float64) for end in ends)
                totals = self.totals.replace(product=low / 2 + high / 2 + after, missed=None)
                slack = np.where(np.isfinite(high - low), high - low, 0.0) / 2
            view = View(totals, self.values, self.usable, self.noise, self.format, self.half)
            view.slack = slack
            yield view

    def errors(self, product: Array | None = None, factor: float | Array = 1.0) -> tuple[Array, Array, Array]:
        """Return three arrays: the errors against `factor`·product, the error limits, and the sigmas of the errors.

        Besides the errors of the sums, the limits allow for two roundings: one before the multiplication by the factor,
        and one after it. If the output format is narrower than the accumulator, the limits allow only for the rounding
        after the multiplication (see `stored`). Errors of unusable elements are NaN.
        """
        totals, values, is_narrow = self.totals, self.values, isinstance(self.half, np.ndarray)
        with np.errstate(all="ignore"):
            base = totals.product if product is None else product
            error = totals.error(values, product) if np.all(factor == 1) else values - factor * base
            size = np.abs(values) + np.abs(factor * base)
            extra = 2.0**-self.format.precision * size * 1.01 + self.noise.quantum
            limit: Array = self.noise.limit(totals, product) + self.slack
            if np.any(factor != 1):  # if an input was multiplied by the factor and rounded, sums are no longer exact
                limit = np.maximum(limit, _STEPS * self.noise.u * totals.terms_of(product).size)
            room = abs(factor) * limit + self.half * (1 + 1e-6) + extra * (not is_narrow)
            sigma = abs(factor) * self.noise.sigma(totals, product) + extra / 2
        return np.where(self.usable, error, np.nan), room, sigma

    def fit(self, product: Array | None = None, times: float = 1.0) -> Fit:
        """Return the errors of the result against a product, by default the exact product.

        The error limits are multiplied by `times`.
        """
        totals = self.totals
        with np.errstate(all="ignore"):
            limit, sigma = self.noise.limit(totals, product), self.noise.sigma(totals, product)
            beyond = np.maximum(np.abs(totals.error(self.values, product)) - self.half, 0.0)
            z = np.where(beyond == 0, 0.0, beyond / np.maximum(sigma, 1e-320))
            z = np.where(np.isnan(z), np.inf, z)  # the product of a model may contain NaNs
        return Fit(np.where(self.usable, z, np.nan), self.usable & ~(beyond <= times * limit))


def view_of(problem: ProductProblem, side: Side, accumulator: Format, sampled: bool = False) -> View:
    """Return the `View` that compares all elements of a result, or the sampled elements, with the exact product."""
    index = np.ix_(problem.rows, problem.columns) if sampled else (slice(None), slice(None))
    usable = side.finite[index] & problem.known[index]
    totals = problem.sample if sampled else problem.totals
    stored = problem.scaled_output(side)
    half = None if stored is None else np.broadcast_to(stored[1], side.values.shape)[index]
    view = View(totals, side.values[index], usable, problem.noise(accumulator), side.rounded_to, half)
    view.bias = None if problem.given_bias is None else problem.given_bias[index]
    return view


def middle(z: Array) -> float:
    """Return the median of the values that are not NaN, or infinity if all are NaN."""
    z = z[~np.isnan(z)]
    return float(np.median(z)) if z.size else np.inf
