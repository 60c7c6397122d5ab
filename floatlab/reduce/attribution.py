"""Attribution: which orders, fused operations, accumulators and machines reproduce results that were observed."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from itertools import pairwise

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.operands import is_floating
from floatlab.arrays.order import NAN_RANK, ordinal
from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Datum, read
from floatlab.record import Record
from floatlab.reduce.adders import Adder
from floatlab.reduce.inputs import settle
from floatlab.reduce.intervals import Observed, Printed, difference_of, format_of_result, target_of
from floatlab.reduce.machines import Machine
from floatlab.reduce.orders import Schedule
from floatlab.reduce.tensor_cores import TensorCore
from floatlab.reduce.trials import Bench, Trial, trials, way_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

_WHOLE = 4  # of the ways that miss elements of the sample, how many are tried on all elements
MAX_PAIRS = 256


class Cause(Enum):
    """In what two ways to compute differ."""

    ORDER = "order"
    FMA = "FMA"
    ACCUMULATOR = "accumulator"
    MACHINE = "machine"


class Verdict(Enum):
    """What explains that two results differ, of what was tried."""

    SAME = "one way to compute gives both"
    FMA = "explained by FMA alone"
    ORDER = "explained by order alone"
    BOTH = "explained by order and FMA together"
    OTHER = "explained by another accumulator or machine"
    NONE = "not explained by any tried"


_VERDICTS = {
    (): Verdict.SAME,
    (Cause.ORDER,): Verdict.ORDER,
    (Cause.FMA,): Verdict.FMA,
    (Cause.ORDER, Cause.FMA): Verdict.BOTH,
}


class Explanation(Record):
    """One way to compute, and how many of the observed elements it gives bit for bit.

    `total` elements were compared, of `elements`: for large products that do not match, a sample. `codes` has all
    results in C order where all were compared, and else None. `same` are the other schedules with the same tree.
    """

    trial: Trial
    format: Format
    matching: int
    total: int
    elements: int
    codes: Array | None

    def __eq__(self, other: object) -> bool:
        """Compare by identity: it holds arrays."""
        return self is other

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        """Show the way and the count."""
        return f"Explanation({self.text}: {self.matching:,} of {self.total:,})"

    @property
    def schedule(self) -> Schedule | None:
        """The order; None for the exact sum."""
        return self.trial.schedule

    @property
    def same(self) -> tuple[Schedule, ...]:
        """Other schedules that were tried and are the same tree here."""
        return self.trial.same

    @property
    def adder(self) -> Adder | TensorCore | None:
        """What a node does; None for the exact sum, rounded once."""
        return self.trial.adder

    @property
    def fma(self) -> bool:
        """Whether products are fused onto partial sums."""
        return isinstance(self.adder, Adder) and self.adder.fma

    @property
    def accumulator(self) -> Format | None:
        """The format of partial sums; None for the exact sum."""
        return None if self.adder is None else self.adder.accumulator

    @property
    def products(self) -> Format | None:
        """What products are rounded to before they are added; None where they are not."""
        return self.adder.products if isinstance(self.adder, Adder) and not self.fma else None

    @property
    def machines(self) -> tuple[Machine, ...]:
        """The machines whose model this is."""
        return self.trial.machines

    @property
    def share(self) -> Fraction:
        """The share of the compared elements that are equal."""
        return Fraction(self.matching, self.total)

    @property
    def fits(self) -> bool:
        """Whether all observed elements are reproduced."""
        return self.matching == self.total == self.elements

    @property
    def text(self) -> str:
        """The way, shortly."""
        return way_text(self.trial, self.format)


class Path(Record):
    """From one result to the other, one cause after the other; `codes` has one result more than there are causes."""

    causes: tuple[Cause, ...]
    format: Format
    codes: tuple[Array, ...]

    __eq__, __hash__ = Explanation.__eq__, Explanation.__hash__

    def __repr__(self) -> str:
        """Show each cause with the largest step that it makes."""
        return f"Path({', '.join(f'{cause.value} {step:+d}' for cause, step in self.steps)})"

    @property
    def moves(self) -> list[Array]:
        """By how many places among the numbers of the format each cause moves each element, as int64; NaNs by none."""
        ranks = [ordinal(Source(codes, self.format)) for codes in self.codes]
        return [
            np.where((before == NAN_RANK) | (after == NAN_RANK), 0, after - before) for before, after in pairwise(ranks)
        ]

    @property
    def steps(self) -> list[tuple[Cause, int]]:
        """Each cause with its move; of many elements, the one that moves most."""
        return [
            (cause, int(moves[np.abs(moves).argmax()])) for cause, moves in zip(self.causes, self.moves, strict=True)
        ]


class Pair(Record):
    """Two ways that give the two observed results, in what they differ, and the paths between the results."""

    first: Explanation
    second: Explanation
    causes: tuple[Cause, ...]
    paths: tuple[Path, ...]

    __eq__, __hash__ = Explanation.__eq__, Explanation.__hash__


class Attribution(Record):
    """What was tried, ranked for each observed result, and, for two, the pairs of ways that give both.

    `pairs` has those with the fewest causes first, 256 at most, of `pair_count`.
    """

    shape: tuple[int, ...]
    format: Format
    explanations: tuple[tuple[Explanation, ...], ...]
    pairs: tuple[Pair, ...]
    pair_count: int
    trial_count: int

    __eq__, __hash__ = Explanation.__eq__, Explanation.__hash__

    def __repr__(self) -> str:
        """Show the verdict or the best explanation."""
        return f"Attribution({self.text})"

    @property
    def fitting(self) -> tuple[tuple[Explanation, ...], ...]:
        """For each observed result the ways that reproduce all of it."""
        return tuple(tuple(each for each in ranked if each.fits) for ranked in self.explanations)

    @property
    def verdict(self) -> Verdict | None:
        """What explains both of two results with the fewest differences between them; None for one result."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The verdict, and others that explain two results with as few differences."""
        if len(self.explanations) < 2:
            return ()
        least = [pair.causes for pair in self.pairs if len(pair.causes) == len(self.pairs[0].causes)]
        return tuple(dict.fromkeys(_VERDICTS.get(causes, Verdict.OTHER) for causes in least)) or (Verdict.NONE,)

    @property
    def text(self) -> str:
        """One line: the verdict on two results, or how much of one is reproduced by what."""
        if self.verdict is not None:
            found = ", or ".join(each.value for each in self.verdicts)
            if not self.pairs:
                return f"{found} of {self.trial_count:,} ways"
            pair = self.pairs[0]
            then = "" if self.verdict is Verdict.SAME else f", then {pair.second.text}"
            return f"{found}: {pair.first.text}{then}"
        (ranked,) = self.explanations
        best = ranked[0].text
        alike = sum(each.fits for each in ranked)
        if alike:
            elements = ranked[0].elements
            whole = f"all {elements:,} elements equal {best}" if elements > 1 else best
            return whole + f", and {alike - 1:,} other way{'s' * (alike > 2)}" * (alike > 1)
        if not ranked[0].matching:
            return f"{Verdict.NONE.value} of {self.trial_count:,} ways"
        return f"{float(ranked[0].share):.2%} of {ranked[0].total:,} elements equal {best}, and no way gives all"


def attribute(
    a: Any,
    b: Any,
    observed: Any,
    *,
    difference: Any = None,
    schedules: Sequence[str | Schedule] | None = None,
    formats: Sequence[str | Format] | None = None,
    machines: Sequence[str | Machine] | None = None,
) -> Attribution:
    """Return which ways to compute a·b reproduce an observed result, or, of a tuple, two observed results.

    `a` and `b` are vectors or matrices, as `dot` and `matmul` take them, and a result has the shape of their product:
    floats of its format, an array, or a Datum, and then bits are compared (any NaN is a NaN); or, for one dot product,
    text as it was printed, which stands for every number that prints so. `difference` is that of the two results,
    printed too or a number, with any sign. Tried are `schedules`, each with and without FMA in accumulators of all
    `formats` (without the argument also the exact sum, rounded once), and models of `machines`. Of large products,
    1,024 elements are tried first. Raises UnsupportedError for operands or results that do not go together,
    LiteralError for text that is no number, and what `dot` raises.

    >>> from floatlab.reduce.presets import PRESETS
    >>> found = attribute(*PRESETS["forum"].data, ("0.0559577", "0.0559577569366"), difference="8.19563865662e-08")
    >>> found.verdict.value, [(pair.first.text, pair.second.text) for pair in found.pairs][:2]
    ('explained by order and FMA together', [('reversed', 'serial with FMA'), ('pairwise', 'serial with FMA')])
    >>> found.pairs[1].paths
    (Path(order +16, FMA +6), Path(FMA +32, order -10))
    """
    results = observed if isinstance(observed, tuple) else (observed,)
    names = ["observed"] if len(results) == 1 else ["the first result", "the second result"]
    if not 1 <= len(results) <= 2:
        raise UnsupportedError(f"observed is one result or a tuple of two, not of {len(results)}")
    typed = [format_of_result(each, name) for each, name in zip(results, names, strict=False)]
    own = next((each for each in typed if each is not None), None)
    if any(each not in (None, own) for each in typed):
        raise UnsupportedError(f"the two results are of one format, not {' and '.join(x.name for x in typed if x)}")
    has_format = any(_brings_format(side) for side in (a, b))
    left, right, into = _product(a, b, None if has_format else own)
    into = into if own is None else own
    shape = (*left.codes.shape[:-1], *right.codes.shape[1:])
    n = left.codes.shape[-1]
    bench = Bench(
        Source(left.codes.reshape(-1, n), left.format), Source(right.codes.reshape(n, -1), right.format), into
    )
    targets = [target_of(each, name, into, shape) for each, name in zip(results, names, strict=False)]
    apart = difference_of(difference, len(targets), shape)
    tried = trials(n, (left.format, right.format), into, schedules, formats, machines, bench.size)
    if not tried:
        raise UnsupportedError("there is nothing to try: name schedules and formats, or machines")
    explanations = _explained(bench, tried, targets)
    pairs, count = _pairs(bench, explanations, apart) if len(targets) == 2 else ((), 0)
    return Attribution(shape, into, explanations, pairs, count, len(tried))


def _brings_format(x: Any) -> bool:
    return any(isinstance(each, Datum) for each in x) if isinstance(x, list | tuple) else is_floating(x)


def _product(a: Any, b: Any, format: Format | None) -> tuple[Source, Source, Format]:
    sources, settings = settle(
        {"a": a, "b": b}, None, format, None, None, None, False, "rounded", None, None
    )  # fmt: skip
    left, right = sources
    shapes = f"{left.codes.shape} and {right.codes.shape}"
    if not 1 <= left.codes.ndim <= 2 or not 1 <= right.codes.ndim <= 2:
        raise UnsupportedError(f"a and b are vectors or matrices, and these have shapes {shapes}")
    if left.codes.shape[-1] != right.codes.shape[0]:
        raise UnsupportedError(f"shapes {shapes} of a and b do not make a product")
    if not left.codes.size or not right.codes.size:
        raise UnsupportedError(f"shapes {shapes} of a and b have nothing to add: no order")
    return left, right, settings.format


def _explained(bench: Bench, tried: list[Trial], targets: list[Observed]) -> tuple[tuple[Explanation, ...], ...]:
    """Try all on the sample, and on the whole those that reproduce the sample, and the best of the others."""
    sampled = [bench.sampled(trial) for trial in tried]
    found = []
    for target in targets:
        part = target
        if isinstance(target, Source):
            part = Source(target.codes[bench.places], target.format)
        counts = [_matching(codes, part, bench.into) for codes in sampled]
        ranked = sorted(range(len(tried)), key=lambda i: -counts[i])
        total = len(bench.places)
        explained, misses = [], 0
        for i in ranked:
            misses += counts[i] < total
            if bench.is_sampled and misses > _WHOLE:
                explained.append(Explanation(tried[i], bench.into, counts[i], total, bench.size, None))
                continue
            codes = bench.whole(tried[i]) if bench.is_sampled else sampled[i]
            matching = _matching(codes, target, bench.into) if bench.is_sampled else counts[i]
            explained.append(Explanation(tried[i], bench.into, matching, len(codes), bench.size, codes))
        found.append(tuple(sorted(explained, key=lambda each: -each.share)))
    return tuple(found)


def _matching(codes: Array, target: Observed, format: Format) -> int:
    if isinstance(target, Printed):
        return sum(target.fits(Datum(format, int(code))) for code in codes)
    equal = codes == target.codes
    if not equal.all() and format.has_nan:
        equal |= np.isnan(decode(codes, format, np.float64)) & np.isnan(decode(target.codes, format, np.float64))
    return int(equal.sum())


def _pairs(
    bench: Bench, explanations: tuple[tuple[Explanation, ...], ...], apart: Printed | Fraction | None
) -> tuple[tuple[Pair, ...], int]:
    firsts, seconds = ([each for each in ranked if each.fits] for ranked in explanations)
    found = [(first, second) for first in firsts for second in seconds if _is_apart(first, second, apart)]
    causes = {pair: _causes(*pair) for pair in found}
    found.sort(key=lambda pair: (len(causes[pair]), any(_RANK[each] > 1 for each in causes[pair])))
    pairs = tuple(Pair(*pair, causes[pair], _paths(bench, *pair, causes[pair])) for pair in found[:MAX_PAIRS])
    return pairs, len(found)


_RANK = {each: i for i, each in enumerate(Cause)}


def _is_apart(first: Explanation, second: Explanation, apart: Printed | Fraction | None) -> bool:
    """Say whether the difference of two results is the observed one, exact or in their format."""
    if apart is None:
        return True
    x, y = (Datum(first.format, int(each.codes[0])) for each in (first, second) if each.codes is not None)
    if not x.is_finite or not y.is_finite:
        return False
    exact = abs(y.exact.as_fraction() - x.exact.as_fraction())
    rounded = read(exact, first.format).result
    if isinstance(apart, Printed):
        return apart.holds(exact) or apart.fits(rounded)
    return apart in (exact, rounded.exact.as_fraction())


def _causes(first: Explanation, second: Explanation) -> tuple[Cause, ...]:
    one, other = first.trial, second.trial
    if one.machines != other.machines:
        return (Cause.MACHINE,)
    found = []
    if one.schedule is not None and other.schedule is not None and one.schedule != other.schedule:
        found.append(Cause.ORDER)
    if first.accumulator != second.accumulator:
        found.append(Cause.ACCUMULATOR)
    elif first.fma != second.fma:
        found.append(Cause.FMA)
    elif first.products != second.products:
        found.append(Cause.ACCUMULATOR)
    return tuple(found)


def _paths(bench: Bench, first: Explanation, second: Explanation, causes: tuple[Cause, ...]) -> tuple[Path, ...]:
    """Return the ways from one result to the other, one cause at a time: in either order where there are two."""
    if first.codes is None or second.codes is None or not causes:
        return ()
    if len(causes) == 1:
        return (Path(causes, bench.into, (first.codes, second.codes)),)
    one, other = first.trial, second.trial
    turned = bench.whole(Trial(other.schedule, one.adder)), bench.whole(Trial(one.schedule, other.adder))
    return tuple(
        Path(order, bench.into, (first.codes, middle, second.codes))
        for order, middle in zip((causes, causes[::-1]), turned, strict=True)
    )
