"""Computes one matrix product with every installed library: measures the times, and how far the results differ.

In each run, a backend sends the matrices to its device, multiplies them and fetches the product. These three times and
their total are measured. The backends take turns. The first product of each backend is timed separately, because
libraries start, compile or choose an algorithm at that time. All times include waiting for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE
from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.arrays.ulps import ulp_distance
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
from floatlab.reduce.timing.measurement import (
    RUNS,
    Ranking,
    Timing,
    check_counts,
    operations_of,
    rank,
    take_turns,
    timed,
)

ALL = ("numpy", "torch", "torch:cuda", "jax", "jax:gpu", "cupy")


class BackendTiming(Individual):
    """The product of one backend: its times in seconds, its codes, and its errors, computed from the exact product."""

    name: str
    words: str  # the name of the library and its device
    settings: tuple[str, ...]  # its settings that affect bits or time
    first: float  # the time of the first product
    sending: Timing  # the times of sending the matrices to the device
    rest: Timing  # the times of all products but the first
    fetching: Timing  # the times of fetching the product from the device
    # 2 · rows · terms · columns operations, divided by the median time of a product, in 10⁹ per second.
    gigaflops: float | None
    codes: Array
    repeats: bool  # whether all products have the same bits as the first
    errors: ProductErrors
    judgement: Judgement | None  # how large its errors are (see `ProductJudge`); None if a number is not finite

    @property
    def sent(self) -> float:
        """The median time of sending the matrices."""
        return self.sending.median

    @property
    def fetched(self) -> float:
        """The median time of fetching the product."""
        return self.fetching.median

    @property
    def complete(self) -> Timing:
        """The time of each run, including both transfers; the first product is left out."""
        parts = zip(self.sending.runs, self.rest.runs, self.fetching.runs, strict=True)
        return Timing(tuple(map(sum, parts)))


class Absence(Record):
    """A backend without a timing, and the reason: it is not installed, or it could not multiply these matrices."""

    name: str
    reason: str


class BackendPair(Record):
    """How far the products of two backends differ."""

    names: tuple[str, str]
    equal: int  # number of elements with the same bits
    ulps: int  # the largest difference in ulps between elements that can be compared
    q_rms: float
    q_largest: float
    judgement: Judgement | None  # None if a number is not finite


class BackendComparison(Answering, Record):
    """One product on all backends: times, errors and differences."""

    format: Format
    shape: tuple[int, int, int]  # rows, terms, columns
    measured: int  # number of rows for which q and errors are computed
    asked: int  # number of runs that were requested
    runs: tuple[BackendTiming, ...]
    absent: tuple[Absence, ...]
    pairs: tuple[BackendPair, ...]

    _ASKS = ".runs"

    def __repr__(self) -> str:
        """Show the backends that multiplied."""
        return f"BackendComparison({self.format.name}: {', '.join(each.name for each in self.runs) or 'no backend'})"

    @property
    def elements(self) -> int:
        """The number of elements of the product."""
        return self.shape[0] * self.shape[2]

    @property
    def ranking(self) -> Ranking:
        """The ranking of the backends by the times of products, without transfers."""
        return rank({run.name: run.rest for run in self.runs})

    @property
    def complete_ranking(self) -> Ranking:
        """The ranking of the backends by the times of products with both transfers."""
        return rank({run.name: run.complete for run in self.runs})

    @property
    def fastest(self) -> BackendTiming | None:
        """The backend that multiplies fastest, without transfers; None if several backends may be the fastest."""
        return next((run for run in self.runs if run.name == self.ranking.fastest), None)

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the timing before the requested number of runs."""
        return bool(self.runs) and self.ranking.runs < self.asked

    @property
    def nearest(self) -> BackendTiming:
        """The backend with the smallest root mean square of q (see `ProductErrors`); the first if several are equal."""
        return min(self.runs, key=lambda run: run.errors.q_rms)


def parse_backends(names: str | Sequence[str] = "all") -> tuple[str, ...]:
    """Parse comma-separated backend names: libraries, with an optional `:` and device, or "all".

    Raises UnsupportedError for unknown names.

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
            raise UnsupportedError(f"{quoted(word)} is not a backend: {' '.join(ALL)}, or all of them{near}")
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
    keep_interrupted: bool = False,
) -> BackendComparison:
    """Return the product of matrices a (rows, n) and b (n, columns) on every backend, with times.

    Both matrices have the same format: binary16, binary32, binary64 or bfloat16. `runs` products are timed after a
    first product. `started` is called with the number of steps and the word "steps", and returns a function that counts
    steps. A missing or failing backend does not raise an error; the result has an `Absence` for it. In each round,
    every backend multiplies once. If `keep_interrupted` is true and at least one round is complete, Ctrl-C only ends
    the timing, and the complete rounds are returned. Otherwise KeyboardInterrupt propagates, as do other exceptions
    that are not subclasses of `Exception`. Raises UnsupportedError for other matrices, for unknown backends, and for
    fewer than 1 run.

    >>> found = multiply_on(np.eye(2, dtype=np.float32), np.ones((2, 3), np.float32), "numpy", 2)
    >>> found.runs[0].name, found.runs[0].errors.largest, len(found.runs[0].rest.runs)
    ('numpy', 0.0, 2)
    """
    names = parse_backends(backends)
    check_counts(runs=runs)
    x, y = source_of(a, "a"), source_of(b, "b")
    check_factors(x.codes, y.codes)
    if not x.codes.size or not y.codes.size:
        raise UnsupportedError(f"a product of shapes {x.codes.shape} and {y.codes.shape} is empty")
    check_size(len(x.codes), y.codes.shape[1])
    if x.format != y.format or x.format.name not in DTYPES:
        names_of_formats = " and ".join(dict.fromkeys((x.format.name, y.format.name)))
        raise UnsupportedError(f"both factors must have one of the formats {' '.join(DTYPES)}, not {names_of_formats}")
    with DefaultMode() as mode:
        add = (lambda _: None) if started is None else started(len(names) * (runs + 2), "steps")
        work = _Work(x, y, add, mode)
        for name in names:
            work.start(name)
        times = take_turns([*work.started], work.run, runs, keep_interrupted)
        timings = tuple(work.timing(name, times[name]) for name in work.started)
        absent = tuple(work.absent[name] for name in names if name in work.absent)
        pairs = tuple(work.pair(one, other) for one, other in combinations(timings, 2))
    return BackendComparison(x.format, work.shape, len(work.exact.rows), runs, timings, absent, pairs)


class _Started(Individual):
    """A backend that has computed a first product: its device, its dtype, and the time and codes of that product."""

    device: Device
    own: Foreign
    first: float
    codes: Array


class _Work:
    """Holds two matrices of one format; measures and judges the products that backends compute from them."""

    def __init__(self, x: Source, y: Source, add: Callable[[int], None], mode: DefaultMode) -> None:
        self.multiply = mode.outside(_multiply)  # uses the caller's floating-point mode
        self.format, self.dtype, self.add = x.format, DTYPES[x.format.name], add
        self.shape = (*x.codes.shape, y.codes.shape[1])
        self.exact = ExactProduct(x, y, x.format)
        self.sides = self._values(x), self._values(y)
        finite = all(np.isfinite(side).all() for side in self.sides)
        self.judge = ProductJudge(*self.sides, x.format) if finite else None
        self.started: dict[str, _Started] = {}
        self.absent: dict[str, Absence] = {}
        self.changing: set[str] = set()  # names of backends whose later products do not have the same bits as the first

    def _values(self, side: Source) -> Array:
        """Return the values of codes, as float32 if float32 contains their format, else as float64."""
        return np.asarray(decode(side.codes, side.format, np.float32 if holds(SINGLE, side.format) else np.float64))

    def start(self, name: str) -> None:
        """Compute a first product with a backend; if the backend is missing or fails, record the reason."""
        library, _, place = name.partition(":")
        try:
            device = device_of(library, place)
            own = device.dtype(self.dtype)
            self.add(1)
            found, (_, first, _) = self._cycle(device, own)
            if found.format != self.format:
                raise UnsupportedError(f"its product of {self.format.name} is in {found.format.name}")
        # A library may raise any exception, for example if it has no such dtype or no memory left.
        except Exception as trouble:
            self.absent[name] = Absence(name, _reason(library, trouble))
        else:
            self.started[name] = _Started(device, own, first, np.array(found.codes, order="C"))

    def run(self, name: str) -> tuple[float, float, float] | None:
        """Return the seconds of sending, multiplying and fetching in another run; None after a failure."""
        if name in self.absent:
            return None
        backend = self.started[name]
        try:
            found, seconds = self._cycle(backend.device, backend.own)
        except Exception as trouble:
            del self.started[name]
            self.absent[name] = Absence(name, _reason(name.partition(":")[0], trouble))
            return None
        if not np.array_equal(found.codes, backend.codes):
            self.changing.add(name)
        return seconds

    def _cycle(self, device: Device, own: Foreign) -> tuple[Source, tuple[float, float, float]]:
        """Return a product, and three times in seconds: for sending the matrices, multiplying, and fetching."""
        with np.errstate(all="ignore"), device.scope(own):
            sides, sent = timed(self._send, device, own)
            product, multiplied = timed(self.multiply, device, *sides)
            found, fetched = timed(device.fetch, product)
        self.add(1)
        return found, (sent, multiplied, fetched)

    def _send(self, device: Device, own: Foreign) -> list[Foreign]:
        sides = [device.array(side, own) for side in self.sides]
        for side in sides:
            device.wait(side)
        return sides

    def timing(self, name: str, seconds: Sequence[tuple[float, float, float] | None]) -> BackendTiming:
        backend = self.started[name]
        sending, rest, fetching = (Timing(part) for part in zip(*filter(None, seconds), strict=True))
        return BackendTiming(
            name=name, words=backend.device.words, settings=backend.device.settings(self.dtype), first=backend.first,
            sending=sending, rest=rest, fetching=fetching, gigaflops=rest.gigaflops(operations_of(self.shape)),
            codes=backend.codes, repeats=name not in self.changing, errors=self.exact.errors(backend.codes),
            judgement=self._judged(backend.codes),
        )  # fmt: skip

    def _judged(self, *products: Array) -> Judgement | None:
        results = [self._values(Source(codes, self.format)) for codes in products]
        finite = all(np.isfinite(each).all() for each in results)
        return self.judge.judged(*results) if self.judge is not None and finite else None

    def pair(self, one: BackendTiming, other: BackendTiming) -> BackendPair:
        ulps = ulp_distance(Source(one.codes, self.format), Source(other.codes, self.format))
        rms, largest = self.exact.apart(one.codes, other.codes)
        equal, farthest = int((one.codes == other.codes).sum()), int(np.max(ulps, initial=0))
        judgement = self._judged(one.codes, other.codes)
        return BackendPair((one.name, other.name), equal, farthest, rms, largest, judgement)


def _reason(library: str, trouble: Exception) -> str:
    """Return the reason why a backend is absent, made from the message of the exception `trouble`."""
    if isinstance(trouble, AbsentDeviceError):
        return str(trouble).partition(": ")[2]
    if isinstance(trouble, MissingPartError):
        return str(trouble).removeprefix(f"{library} is ")
    return first_line(trouble)


def _multiply(device: Device, x: Foreign, y: Foreign) -> Foreign:
    product = x @ y
    device.wait(product)
    return product


@in_default_mode
def in_one_format(sides: Sequence[object], format: Format | None = None) -> list[Source]:
    """Return matrices in one format: `format`, or else the format that all matrices have.

    If `format` is None and the matrices have different formats, the matrices are rounded to nearest into a new format.
    This is the first of binary32 and binary64 that contains all formats of the matrices, or binary32 if neither does.
    Raises UnsupportedError for a format in which no backend multiplies.

    >>> [side.format.name for side in in_one_format((np.ones((1, 1)), np.ones((1, 1), np.float16)))]
    ['binary64', 'binary64']
    """
    sources = [source_of(side) for side in sides]
    if format is None:
        shared = {source.format for source in sources}
        both = (each for each in (SINGLE, DOUBLE) if all(holds(each, one) for one in shared))
        format = shared.pop() if len(shared) == 1 else next(both, SINGLE)
    if format.name not in DTYPES:
        raise UnsupportedError(f"libraries multiply in {' '.join(DTYPES)}, not in {format.name}: choose one with -f")
    return [
        source if source.format == format else Source(np.asarray(encode(source, format)), format) for source in sources
    ]
