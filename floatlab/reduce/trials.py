"""Ways to have computed a product that are tried on given inputs: orders, adders and models of matrix units."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.operations import operate
from floatlab.arrays.pairs import is_enough, to_odd, two_sum
from floatlab.arrays.reading import WORDS, container
from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers.projection import round_exact
from floatlab.record import Record
from floatlab.reduce.adders import Adder
from floatlab.reduce.exact import exact_totals, matrix_totals
from floatlab.reduce.expressions import parse_schedule
from floatlab.reduce.machines import MACHINES, Machine, parse_machine
from floatlab.reduce.orders import Fused, Schedule, Sorted
from floatlab.reduce.simulate import simulate
from floatlab.reduce.tensor_cores import TensorCore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

SCHEDULES = (
    "serial", "reversed", "pairwise", "numpy", *(f"lanes({1 << k})" for k in range(1, 7)), "adjacent", "folded",
    "reversed(pairwise)", *(f"splitk({1 << k})" for k in range(1, 6)),
    *(f"blocked({k})" for k in (4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, 512, 1024)),
    *(f"unrolled({1 << k}, lanes({1 << k}))" for k in range(2, 7)),
)  # fmt: skip
FUSED = tuple(f"fused({1 << k})" for k in range(1, 6))
_FEW = 1 << 8  # products; nodes of many operands are simulated one digit after the other, and of more only if asked
WIDER = ("binary32", "binary64")
SAMPLE = 1024  # elements of large products that every way is tried on
_COMPARED = 1 << 11  # terms; of more, orders are not compared node by node


class Trial(Record):
    """One way to compute: an order and an adder; without either, the exact sum, rounded once."""

    schedule: Schedule | None
    adder: Adder | TensorCore | None
    machines: tuple[Machine, ...] = ()  # all whose model this is
    same: tuple[Schedule, ...] = ()  # other schedules that were asked for and have the same tree for these terms


EXACTLY = Trial(None, None)


def way_text(trial: Trial, format: Format) -> str:
    """Return a way in words, for results of a format.

    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.schedules import SERIAL
    >>> way_text(Trial(SERIAL, Adder(fma=True)), parse_format("binary32"))
    'serial with FMA'
    """
    if trial.adder is None or trial.schedule is None:
        return "exact, rounded once"
    if trial.machines:
        return f"model {', '.join(row.name for row in trial.machines)}"
    assert isinstance(trial.adder, Adder)
    adder, parts = trial.adder, [trial.schedule.text]
    if adder.accumulator != format:
        parts.append(f"accumulator {adder.accumulator.name}")
    if adder.products != adder.accumulator:
        parts.append(f"products {adder.products.name}")
    return ", ".join(parts) + " with FMA" * adder.fma


def trials(
    n: int,
    factors: tuple[Format, Format],
    into: Format,
    schedules: Any = None,
    formats: Any = None,
    machines: Any = None,
    elements: int = 1,
) -> list[Trial]:
    """Return what is to be tried on dot products of n terms, simple ways first, each once."""
    usual = SCHEDULES + FUSED * (n * elements <= _FEW)
    orders = _orders(n, usual if schedules is None else _listed(schedules, "schedules"))
    found = [
        Trial(order, adder, same=same) for adder in _adders(factors, into, formats) for order, same in orders.items()
    ]
    if formats is None:
        found.append(EXACTLY)
    models: dict[tuple[Schedule, Any, Format], list[Machine]] = {}
    for row in _machines(factors, machines):
        models.setdefault((row.schedule, row.adder, row.terms), []).append(row)
    return found + [Trial(order, adder, tuple(rows)) for (order, adder, _), rows in models.items()]


def _listed(given: Any, name: str) -> list[Any]:
    if isinstance(given, str) or not hasattr(given, "__iter__"):
        raise UnsupportedError(f"{name} is a list of those to try, not {type(given).__name__}")
    return list(given)


def _orders(n: int, schedules: Iterable[Any]) -> dict[Schedule, tuple[Schedule, ...]]:
    """Return orders that differ for n terms, and the others that each of them stands for."""
    first: dict[Any, Schedule] = {}
    found: dict[Schedule, tuple[Schedule, ...]] = {}
    for each in schedules:
        order = parse_schedule(each)
        if isinstance(order, Sorted):
            key: Any = order
        else:
            key = order.plan(n).left_to_right().nodes if n <= _COMPARED else order
        known = first.setdefault(key, order)
        if known == order:
            found.setdefault(order, ())
        elif order not in found[known]:
            found[known] += (order,)
    return found


def _adders(factors: tuple[Format, Format], into: Format, formats: Any) -> list[Adder]:
    own = [each for each in dict.fromkeys(factors) if all(holds(each, other) for other in factors)]
    if formats is None:
        wider = [each for each in map(parse_format, WIDER) if holds(each, into)]
        kinds = list(dict.fromkeys([into, *own, *wider]))
    else:
        kinds = [parse_format(each) for each in _listed(formats, "formats")]
    found = []
    for kind in kinds:
        found.append(Adder(kind))
        if not _multiplies_exactly(kind, *factors):
            found.append(Adder(kind, fma=True))
        found += [Adder(kind, products=each) for each in own if each != kind and holds(kind, each)]
    return found


def _multiplies_exactly(into: Format, x: Format, y: Format) -> bool:
    """Say whether products need no rounding, so that fused and separate operations are the same."""
    if into.precision < x.precision + y.precision or not into.subnormals:
        return False
    return bool(into.largest >= x.largest * y.largest and into.smallest <= x.smallest * y.smallest)


def _machines(factors: tuple[Format, Format], machines: Any) -> Iterator[Machine]:
    if machines is not None:
        yield from (parse_machine(each) for each in _listed(machines, "machines"))
        return
    wanted = {each.name for each in factors}
    if len(wanted) == 1:
        wanted |= {"tf32"} if wanted == {"binary32"} else set()
        yield from (row for row in MACHINES.values() if row.terms.name in wanted)


class Bench:
    """The inputs of a product, and the codes that each way makes of them, computed once.

    The factors are (rows, n) and (n, columns).
    """

    def __init__(self, left: Source, right: Source, into: Format) -> None:
        """Choose the elements of the sample: all of them, or some that no pattern in the data can follow."""
        self.left, self.right, self.into = left, right, into
        self.shape = (left.codes.shape[0], right.codes.shape[1])
        size = self.size = self.shape[0] * self.shape[1]
        self.places = np.arange(size)
        if size > SAMPLE:
            self.places = np.sort(np.random.default_rng(754).choice(size, SAMPLE, replace=False))
        self._whole: dict[Trial, Array] = {}

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is a part only."""
        return bool(len(self.places) < self.size)

    @cached_property
    def _pairs(self) -> tuple[Source, Source]:
        rows, columns = np.divmod(self.places, self.shape[1])
        x, y = (np.ascontiguousarray(each) for each in (self.left.codes[rows].T, self.right.codes[:, columns]))
        return Source(x, self.left.format), Source(y, self.right.format)

    @cached_property
    def _factors(self) -> tuple[Source, Source]:
        x, y = np.ascontiguousarray(self.left.codes.T)[:, :, None], np.ascontiguousarray(self.right.codes)[:, None, :]
        return Source(x, self.left.format), Source(y, self.right.format)

    def sampled(self, trial: Trial) -> Array:
        """Return the codes of the sample; raises what `simulate` raises."""
        return self._codes(trial, *self._pairs) if trial.schedule else self._exact(range(len(self.places)))

    def whole(self, trial: Trial) -> Array:
        """Return the codes of all elements, in C order."""
        plain = trial.replace(same=())
        if plain not in self._whole:
            if not self.is_sampled:
                made = self.sampled(trial)
            elif trial.schedule:
                made = self._codes(trial, *self._factors).reshape(-1)
            else:
                made = self._exact_product()
            self._whole[plain] = made
        return self._whole[plain]

    def _codes(self, trial: Trial, x: Source, y: Source) -> Array:
        if trial.machines:
            x, y = (_read(side, trial.machines[0]) for side in (x, y))
        assert trial.schedule is not None
        assert trial.adder is not None
        adder, made = trial.adder, trial.adder.accumulator
        if isinstance(adder, Adder) and not adder.fma and adder.products != made and x.codes.ndim == 2:
            # Products that are rounded on their own are terms of a sum, which the processor's formats add.
            terms = operate("multiply", [x, y], adder.products, as_codes=True)
            codes = simulate(Source(terms, adder.products), None, trial.schedule, adder)
        else:
            codes = simulate(x, y, trial.schedule, adder)
        return codes if made == self.into else np.asarray(encode(Source(codes, made), self.into))

    def _exact(self, places: Iterable[int]) -> Array:
        x, y = self._pairs
        return np.array([self._one(x.codes[:, i], y.codes[:, i]) for i in places], container(self.into))

    def _one(self, x: Array, y: Array) -> int:
        sides = Source(x, self.left.format), Source(y, self.right.format)
        totals = exact_totals(*sides)
        if totals is None or not totals[0]:  # specials, and which zero it is
            fused = Adder(self.into, fma=True)
            return int(simulate(*sides, Fused(max(len(x), 2)), fused)[()])
        return round_exact(totals[0], self.into).code

    def _exact_product(self) -> Array:
        """Round pairs of binary64 where what they miss cannot matter, and the exact sums elsewhere."""
        wide, n = WORDS[-1], self.left.codes.shape[1]
        a, b = (decode(side.codes, side.format, np.float64) for side in (self.left, self.right))
        narrow = all(holds(parse_format("binary32"), each.format) for each in (self.left, self.right))
        unsure = np.ones(self.shape, np.bool_)
        codes = np.zeros(self.shape, container(self.into))
        if narrow and is_enough(wide, self.into):
            with np.errstate(all="ignore"):
                high, low, size = matrix_totals(a, b)
                missing = size * (n * n * 2.0**-100)
                ends = [
                    np.asarray(encode(Source(to_odd(two_sum(high, each)), wide), self.into))
                    for each in (low - missing, low + missing)
                ]
            codes, unsure = ends[0], (ends[0] != ends[1]) | ~np.isfinite(high) | (high == 0)
        for i, j in np.argwhere(unsure).tolist():
            codes[i, j] = self._one(self.left.codes[i], self.right.codes[:, j])
        return codes.reshape(-1)


def _read(side: Source, machine: Machine) -> Source:
    if side.format == machine.terms:
        return side
    return Source(np.asarray(encode(side, machine.terms, context=machine.reading)), machine.terms)
