"""Computations that reproduce the bits of a result, the usual accumulator, and how two computations differ."""

from __future__ import annotations

from floatlab.formats import Format, parse_format
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT
from floatlab.record import Individual
from floatlab.reduce.replay.candidates import EXACT_SUM, Candidate
from floatlab.reduce.replay.causes import Cause, causes_of

_NAMES = {Cause.ORDER: "order", Cause.FMA: "fma", Cause.ACCUMULATOR: "accumulator", Cause.MACHINE: "accumulator"}


class Way(Individual):
    """A computation whose bits are compared with a result: a candidate, a compensated sum or a library call.

    It reproduces all replayed elements, except in `CandidateGrid.truncated_except_few`.
    """

    text: str
    candidate: Candidate | None = None
    compensated: str = ""  # the method of a compensated sum, such as "kahan"
    rounds_inputs: bool = False  # whether the modelled unit rounds the inputs to a narrower format
    inputs: Format | None = None  # the narrower format in which all inputs are exact, if the unit takes this format
    rules: Context = DEFAULT


def names_between(first: list[Way], second: list[Way], own: Format) -> tuple[dict[str, str], tuple[Way, Way] | None]:
    """Return a dictionary that says why two results differ, and the best pair of computations (or None).

    The best pairs of computations differ in the fewest causes. The dictionary maps the causes of all best pairs to
    descriptions. If there are no pairs, or if a pair differs in no cause, the second value is None. The dictionary then
    says how each result differs from usual sums. If neither result differs from usual sums, the only cause is "order".
    `own` is the accumulator format that libraries use for these results.
    """
    pairs = [(one, other) for one in first for other in second if one.candidate and other.candidate]
    if pairs:
        causes = {id(pair): _causes(*pair, own) for pair in pairs}
        least = min(map(len, causes.values()))
        if least:
            best = [pair for pair in pairs if len(causes[id(pair)]) == least]
            names = {name: f"A: {best[0][0].text}; B: {best[0][1].text}" for pair in best for name in causes[id(pair)]}
            if any(way.rounds_inputs for way in best[0]):
                names["inputs-rounded"] = next(way.text for way in best[0] if way.rounds_inputs)
            return names, best[0]
    found: dict[str, str] = {}
    for ways in (first, second):
        known = [way for way in ways if way.candidate is not None or way.compensated]
        if not known:
            continue
        plain = [way for way in known if _is_plain(way, own)]
        for way in () if plain else known:
            found["compensated" if way.compensated else _name_of(way, own)] = way.text
            if way.rounds_inputs:
                found["inputs-rounded"] = way.text
    if not found:
        said = next((way.text for way in (*first, *second)), "not known")
        found = {"order": said}
    return found, None


def _causes(one: Way, other: Way, own: Format) -> tuple[str, ...]:
    assert one.candidate is not None
    assert other.candidate is not None
    names = []
    for cause in causes_of(one.candidate, other.candidate):
        name = _NAMES[cause]
        adders = (*one.candidate.adders, *other.candidate.adders)
        if cause is Cause.ACCUMULATOR and _accumulators(one) == _accumulators(other) != (None,):
            # The accumulators are equal, so the products are rounded differently. Name them if some are narrow.
            name = "products" if any(each.products.precision < own.precision for each in adders) else name
        names.append(name)
    return tuple(dict.fromkeys(names))


def _accumulators(way: Way) -> tuple[Format | None, ...]:
    assert way.candidate is not None
    return tuple(each.accumulator for each in way.candidate.adders) or (None,)


def _is_plain(way: Way, own: Format) -> bool:
    """Return whether a computation adds in the usual accumulator `own`, with FMA or with products rounded to `own`."""
    if way.candidate is None or way.compensated or way.candidate == EXACT_SUM or way.candidate.machines:
        return False
    return all(
        each.accumulator == own and (each.fma or each.products in (own,)) for each in way.candidate.adders
    )  # fmt: skip


def _name_of(way: Way, own: Format) -> str:
    assert way.candidate is not None
    adders = way.candidate.adders
    if adders and all(each.accumulator == own for each in adders):
        return "products"
    return "accumulator"


def own_accumulator(into: Format) -> Format:
    """Return the accumulator format that libraries usually use for results in the format `into`."""
    single = parse_format("fp32")
    return single if into.precision < single.precision else into
