"""One matrix product on every installed library: how long it takes there, and how far the results are apart.

Sending the matrices, multiplying them and fetching the product are timed separately, and the first product apart from
the others, since libraries start, compile or choose an algorithm then. Every time ends when the device is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations
from time import perf_counter

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE
from floatlab.arrays.order import ulp_distance
from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import DefaultMode, in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.reduce.results.inputs import check_factors, check_size
from floatlab.reduce.results.judgements import Judgement, ProductJudge
from floatlab.reduce.results.product_error import ExactProduct, ProductErrors
from floatlab.reduce.timing.devices import (
    DEVICES,
    DTYPES,
    AbsentDeviceError,
    Device,
    Foreign,
    check_device,
    device_of,
    first_line,
)
from floatlab.reduce.timing.partitions import RUNS, Timing

ALL = ("numpy", "torch", "torch:cuda", "jax", "jax:gpu", "cupy")


class BackendTiming(Individual):
    """A backend's product: its times in seconds, its codes, and its errors against the exact product."""

    name: str
    words: str  # the library and its device
    settings: tuple[str, ...]  # what is set there and decides about bits or time
    sent: float
    first: float
    rest: Timing
    fetched: float
    codes: Array
    repeats: bool  # the last product has the bits of the first
    errors: ProductErrors
    judgement: Judgement | None  # against the exact product; None where a number is not finite


class Absence(Record):
    """A backend that is not installed, or cannot multiply such matrices, with the reason."""

    name: str
    reason: str


class BackendPair(Record):
    """How far the products of two backends are apart."""

    names: tuple[str, str]
    equal: int  # elements with the same bits
    ulps: int  # apart at most, of those that can be compared
    q_rms: float
    q_largest: float
    judgement: Judgement | None  # None where a number is not finite


class BackendComparison(Answering, Record):
    """One product on all backends: times, errors and differences."""

    format: Format
    shape: tuple[int, int, int]  # rows, terms, columns
    measured: int  # rows that q and errors are of
    runs: tuple[BackendTiming, ...]
    absent: tuple[Absence, ...]
    pairs: tuple[BackendPair, ...]

    _ASKS = ".runs"

    def __repr__(self) -> str:
        """Show which backends multiplied."""
        return f"BackendComparison({self.format.name}: {', '.join(each.name for each in self.runs) or 'no backend'})"

    @property
    def elements(self) -> int:
        """How many elements the product has."""
        return self.shape[0] * self.shape[2]

    @property
    def fastest(self) -> BackendTiming:
        """The run whose products take the least time once the matrices are there."""
        return min(self.runs, key=lambda run: run.rest.average)

    @property
    def nearest(self) -> BackendTiming:
        """The run that is nearest to the exact product."""
        return min(self.runs, key=lambda run: run.errors.q_rms)


def parse_backends(names: str | Sequence[str] = "all") -> tuple[str, ...]:
    """Return backends by their names, apart by commas: libraries, with `:` and a device, or all that are known.

    Raises UnsupportedError for a name that there is not.

    >>> parse_backends("numpy,torch:cpu,torch:cuda:1,numpy")
    ('numpy', 'torch', 'torch:cuda:1')
    """
    words = [word.strip() for word in names.split(",")] if isinstance(names, str) else [*names]
    backends: list[str] = []
    for word in words:
        library, colon, device = word.partition(":")
        if word == "all":
            backends += ALL
        elif library not in DEVICES or (colon and not device):
            near = guess(word, [*ALL, *DEVICES, "all"])
            raise UnsupportedError(f"{quoted(word)} is no backend: {' '.join(ALL)}, or all of them{near}")
        else:
            check_device(library, device)
            backends.append(library if device == DEVICES[library].kinds[0] else word)
    return tuple(dict.fromkeys(backends))


def multiply_on(
    a: object,
    b: object,
    backends: str | Sequence[str] = "all",
    runs: int = RUNS,
    started: Callable[[int, str], Callable[[int], None]] | None = None,
) -> BackendComparison:
    """Return a product of matrices a (rows, n) and b (n, columns) as every backend makes it, and what each took.

    Both are of one format: binary16, binary32, binary64 or bfloat16. `runs` products are timed after a first one;
    `started` is told how many steps there are. A backend that is not here is told as absent, and none is an error of
    its own; what Python must not catch goes on. Raises UnsupportedError for other matrices and for unknown names.

    >>> found = multiply_on(np.eye(2, dtype=np.float32), np.ones((2, 3), np.float32), "numpy", 2)
    >>> found.runs[0].name, found.runs[0].errors.largest, len(found.runs[0].rest.runs)
    ('numpy', 0.0, 2)
    """
    names = parse_backends(backends)
    if not isinstance(runs, int) or runs < 1:
        raise UnsupportedError(f"runs is a number of products from 1 on, not {runs!r}")
    x, y = source_of(a, "a"), source_of(b, "b")
    check_factors(x.codes, y.codes)
    if not x.codes.size or not y.codes.size:
        raise UnsupportedError(f"a product of shapes {x.codes.shape} and {y.codes.shape} has nothing to multiply")
    check_size(len(x.codes), y.codes.shape[1])
    if x.format != y.format or x.format.name not in DTYPES:
        names_of_formats = " and ".join(dict.fromkeys((x.format.name, y.format.name)))
        raise UnsupportedError(f"both are of one of {' '.join(DTYPES)}, not {names_of_formats}")
    with DefaultMode() as mode:
        add = (lambda _: None) if started is None else started(len(names) * (runs + 2), "steps")
        work = _Work(x, y, runs, add, mode)
        made = [work.run(name) for name in names]
        timed = tuple(each for each in made if isinstance(each, BackendTiming))
        absent = tuple(each for each in made if isinstance(each, Absence))
        pairs = tuple(work.pair(one, other) for one, other in combinations(timed, 2))
    shape = (*x.codes.shape, y.codes.shape[1])
    return BackendComparison(x.format, shape, len(work.exact.rows), timed, absent, pairs)


class _Work:
    """Two matrices of one format, and what their products are measured and judged by."""

    def __init__(self, x: Source, y: Source, runs: int, add: Callable[[int], None], mode: DefaultMode) -> None:
        self.multiply = mode.outside(_multiply)  # as the library does it in the caller's floating-point mode
        self.format, self.dtype, self.runs, self.add = x.format, DTYPES[x.format.name], runs, add
        self.exact = ExactProduct(x, y, x.format)
        self.sides = self._values(x), self._values(y)
        finite = all(np.isfinite(side).all() for side in self.sides)
        self.judge = ProductJudge(*self.sides, x.format) if finite else None

    def _values(self, side: Source) -> Array:
        """Return the numbers of codes in the narrowest of NumPy's floats that has them."""
        return np.asarray(decode(side.codes, side.format, np.float32 if holds(SINGLE, side.format) else np.float64))

    def run(self, name: str) -> BackendTiming | Absence:
        """Multiply on one backend, or say why it is not there or refuses."""
        library, _, place = name.partition(":")
        try:
            device = device_of(library, place)
            own = device.dtype(self.dtype)
            with np.errstate(all="ignore"), device.scope(own):
                return self._timed(name, device, own)
        except AbsentDeviceError as trouble:
            return Absence(name, str(trouble).partition(": ")[2])
        except MissingPartError as trouble:
            return Absence(name, str(trouble).removeprefix(f"{library} is "))
        except Exception as trouble:  # whatever a library says that it cannot do, or has no memory for
            return Absence(name, first_line(trouble))

    def _timed(self, name: str, device: Device, own: Foreign) -> BackendTiming | Absence:
        began = perf_counter()
        x, y = (device.array(side, own) for side in self.sides)
        device.wait(x)
        device.wait(y)
        sent = perf_counter() - began
        self.add(1)
        times: list[float] = []
        made: list[Foreign] = []
        for _ in range(1 + self.runs):
            began = perf_counter()
            product = self.multiply(device, x, y)
            times.append(perf_counter() - began)
            made = [*made[:1], product]  # the first and the last
            self.add(1)
        began = perf_counter()
        found = device.fetch(made[-1])
        fetched = perf_counter() - began
        if found.format != self.format:
            return Absence(name, f"its product of {self.format.name} is in {found.format.name}")
        codes = np.ascontiguousarray(found.codes)
        return BackendTiming(
            name=name, words=device.words, settings=device.settings(self.dtype), sent=sent, first=times[0],
            rest=Timing(tuple(times[1:])), fetched=fetched, codes=codes,
            repeats=np.array_equal(device.fetch(made[0]).codes, codes), errors=self.exact.errors(codes),
            judgement=self._judged(codes),
        )  # fmt: skip

    def _judged(self, *products: Array) -> Judgement | None:
        results = [self._values(Source(codes, self.format)) for codes in products]
        finite = all(np.isfinite(each).all() for each in results)
        return self.judge.judged(*results) if self.judge is not None and finite else None

    def pair(self, one: BackendTiming, other: BackendTiming) -> BackendPair:
        """Return how far two runs are apart."""
        ulps = ulp_distance(Source(one.codes, self.format), Source(other.codes, self.format))
        rms, largest = self.exact.apart(one.codes, other.codes)
        equal, farthest = int((one.codes == other.codes).sum()), int(np.max(ulps, initial=0))
        judgement = self._judged(one.codes, other.codes)
        return BackendPair((one.name, other.name), equal, farthest, rms, largest, judgement)


def _multiply(device: Device, x: Foreign, y: Foreign) -> Foreign:
    product = x @ y
    device.wait(product)
    return product


@in_default_mode
def in_one_format(sides: Sequence[object], format: Format | None = None) -> list[Source]:
    """Return matrices in one format that backends multiply in: the one named, or one that both have, or binary32.

    Numbers are rounded to nearest into it. Raises UnsupportedError for a format in which no backend multiplies.

    >>> [side.format.name for side in in_one_format((np.ones((1, 1)), np.ones((1, 1), np.float16)))]
    ['binary64', 'binary64']
    """
    sources = [source_of(side) for side in sides]
    if format is None:
        shared = {source.format for source in sources}
        both = (each for each in (SINGLE, DOUBLE) if all(holds(each, one) for one in shared))
        format = shared.pop() if len(shared) == 1 else next(both, SINGLE)
    if format.name not in DTYPES:
        raise UnsupportedError(f"libraries multiply in {' '.join(DTYPES)}, not in {format.name}: -f names one of them")
    return [
        source if source.format == format else Source(np.asarray(encode(source, format)), format) for source in sources
    ]
