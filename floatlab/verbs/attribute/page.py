"""The page of `dot --observed`: candidates that give an observed result, and how two of them differ."""

from __future__ import annotations

from floatlab.numbers import Context, Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.rounding import DEFAULT, IN_WORDS
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.page.words import counted, plural, signed_text
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.replay.causes import Path
from floatlab.reduce.replay.explanations import Explanation
from floatlab.reduce.replay.tile_edges import TileEdge

_MOST = 6  # at most this many explanations and pairs are listed


def attribution_page(found: Attribution, observed: tuple[str, ...]) -> Page:
    """Return the page of an attribution; `observed` has the results as typed.

    >>> from floatlab.reduce.explain.attribution import attribute
    >>> from floatlab.page.layout import to_text
    >>> a, schedules = ["1", "2^-24", "2^-24"], ["serial", "reversed"]
    >>> found = attribute(a, [1, 1, 1], "1.0000001", schedules=schedules, machines=[])
    >>> print(to_text(attribution_page(found, ("1.0000001",))).splitlines()[0])
      1.0000001: reversed, and 6 more of 9 ways tried
    """
    shown = [
        edge.text if edge is not None else _summary(each, found.candidate_count)
        for each, edge in zip(found.fitting, found.tile_edges, strict=False)
    ]
    title = "; ".join(f"{word}: {said}" for word, said in zip(observed, shown, strict=True))
    blocks: list[Block] = [heading(title)]
    if rules := _rules(found.context):
        models = any(each.machines for ranked in found.explanations for each in ranked)
        own = "; models of machines keep their own rules" * models
        blocks.append(Note(f"every way {rules}{own}"))
    for word, explanations in zip(observed, found.explanations, strict=True):
        blocks += [Gap(), *_ways(word, explanations, single=not found.shape)]
    if found.verdict is not None:
        blocks += [Gap(), *verdict_rows(found), *_pairs(found)]
    return Page(tuple(blocks), title)


def attribution_blocks(found: Attribution, observed: tuple[str, ...]) -> list[Block]:
    """Return the rows of an attribution on a page of differences: each result's candidates, and the cause.

    >>> import numpy as np
    >>> from floatlab.reduce.explain.attribution import attribute
    >>> from floatlab.page.model import Page
    >>> from floatlab.page.layout import to_text
    >>> x, y = np.float32([[1, 2**-24]]), np.float32([[1], [1]])
    >>> found = attribute(x, y, (x @ y, x @ y), schedules=["serial"], formats=["fp32"], machines=[])
    >>> print(to_text(Page(tuple(attribution_blocks(found, ("A", "B"))), "")).strip())
    What each equals, of 2 ways tried on 1 element
      A            serial, and 1 other way
      B            serial, and 1 other way
      cause        one way to compute gives both
    """
    tried = f"{counted(found.candidate_count, 'way')} tried on {_compared(found)}"
    blocks: list[Block] = [Gap(), heading(f"What each equals, of {tried}")]
    for word, explanations, patch in zip(observed, found.explanations, found.tile_edges, strict=True):
        blocks += [Row("" if i else word, part) for i, part in enumerate(_best(explanations, patch))]
    if not found.pairs and found.verdict is not None:  # no cause is named here; the diagnosis may name one
        return [*blocks, Row("together", "no two of these ways give both results, bit for bit")]
    return [*blocks, *verdict_rows(found, "cause")]


def unlike_blocks(formats: tuple[str, str]) -> list[Block]:
    """Return the rows shown if the two results have different formats."""
    words = "floatlab matmul X Y --observed FILE tells what each of them equals"
    return [Gap(), Row("cause", f"the formats, {formats[0]} and {formats[1]}, differ; {words}")]


def _rules(context: Context) -> str:
    """Describe the context, apart from rounding to nearest; an empty text if nothing else differs from the default."""
    words = {
        f"rounds {IN_WORDS[context.rounding]}": context.rounding is not DEFAULT.rounding,
        "flushes tiny results to zero": context.flush_results,
        "reads subnormal numbers as zero": context.flush_inputs,
        f"overflows by the rule '{context.overflow.value}'": context.overflow is not DEFAULT.overflow,
    }
    return ", ".join(word for word, is_meant in words.items() if is_meant)


def _compared(found: Attribution) -> str:
    most = max(each.total for ranked in found.explanations for each in ranked)
    whole = found.explanations[0][0].elements
    return counted(whole, "element") if most == whole else f"{most:,} of {counted(whole, 'element')}"


def _best(explanations: tuple[Explanation, ...], edge: TileEdge | None) -> list[Line]:
    """Return the first candidate that matches everywhere and the nearest other one, or only the nearest of all."""
    fitting = [each for each in explanations if each.fits]
    others = [each for each in explanations if not each.fits and each.matching]
    if edge is not None:
        return [line(Span(edge.text, Role.VALUE))]
    if not fitting and not others:
        return [line(Span("none of its elements is what any way gives", Role.FLAG))]
    if not fitting:
        return [line(Span(others[0].said, Role.FLAG), "; no way gives all")]
    more = f", and {counted(len(fitting) - 1, 'other way')}" if len(fitting) > 1 else ""
    return [line(Span(fitting[0].said, Role.VALUE), more), *(line(Span(each.said, Role.HINT)) for each in others[:1])]


def verdict_rows(found: Attribution, label: str = "verdict") -> list[Block]:
    """Return the verdict on two results, and the causes that do not explain them alone."""
    said = ", or ".join(each.value for each in found.verdicts) + _apart(found)
    blocks: list[Block] = [Row(label, Span(said, Role.VALUE if found.pairs else Role.FLAG))]
    if found.pairs and found.pairs[0].causes and found.shape:
        blocks.append(Row("", f"{found.pairs[0].first.text} → {found.pairs[0].second.text}"))
    for each in found.refutations:
        ((_, ulps),) = each.path.steps
        codes = _codes(each.path)
        tried = counted(each.tried, "pair")
        words = line(f"not by {each.cause.value} alone: none of {tried} of ways that differ by it gives both")
        own = line(f"{each.first.text} → {each.second.text}: ", Span(codes, Role.CODE), f", {_moved(ulps)}")
        blocks += [Row("", words), Row("", own)]
    return blocks


def _apart(found: Attribution) -> str:
    """Return the difference between the two results, if all pairs of candidates agree on it."""
    if any(codes.size != 1 for pair in found.pairs for path in pair.paths for codes in path.codes):
        return ""
    moves = {
        (int(path.codes[0][0]), sum(step for _, step in path.steps)) for pair in found.pairs for path in pair.paths
    }
    if len(moves) != 1 or not next(iter(moves))[1]:
        return ""
    ((_, ulps),) = moves
    return f": {_moved(ulps)} from the first to the second"


def _signed(ulps: int) -> str:
    return signed_text(f"{ulps:,}") if ulps else "+0"


def _moved(ulps: int) -> str:
    return f"{_signed(ulps)} {plural(abs(ulps), 'ulp')}"


def _summary(fitting: tuple[Explanation, ...], tried: int) -> str:
    if not fitting:
        return f"none of {counted(tried, 'way')} tried gives it"
    others = len(fitting) - 1
    first = fitting[0].text
    return f"{first}, and {others} more of {counted(tried, 'way')} tried" if others else f"{first} alone gives it"


def _ways(word: str, explanations: tuple[Explanation, ...], single: bool) -> list[Block]:
    """Return the candidates that give a result, or the nearest ones if none does; for arrays, with their shares."""
    fitting = [each for each in explanations if each.fits]
    heading = f"What gives {word}" if fitting else f"No way that was tried gives {word}; what they give instead"
    rows = tuple(_row(each, single) for each in (fitting or explanations)[:_MOST])
    table = Table(("way", "code", "value"), rows, (2,)) if single else Table(("way", "share"), rows, (1,))
    more = line(Span(f"and {counted(len(fitting) - _MOST, 'other way')}", Role.HINT))
    return [Note(heading), table, *([Note(more)] if fitting[_MOST:] else [])]


def _row(each: Explanation, single: bool) -> tuple[Line, ...]:
    way = line(Span(each.text, Role.VALUE if each.fits else Role.HINT))
    if not single:
        return way, line("all" if each.fits else f"{100 * float(each.share):.3g} %")
    if each.codes is None:
        return way, (), ()
    result = Datum(each.format, int(each.codes.reshape(-1)[0]))
    return way, line(Span(hexadecimal_code(result), Role.CODE)), line(shortest(result))


def _pairs(found: Attribution) -> list[Block]:
    if all(pair.first.text == pair.second.text for pair in found.pairs[:_MOST]):
        return []  # none, or one candidate gives both, and is shown above
    title = f"{counted(found.pair_count, 'pair')} of ways that give both"
    title += f", the first {_MOST}" if found.pair_count > _MOST else ""
    blocks: list[Block] = [Gap(), heading(title)]
    for pair in found.pairs[:_MOST]:
        blocks.append(Row("", line(Span(pair.first.text, Role.VALUE), " → ", Span(pair.second.text, Role.VALUE))))
        blocks += [Row("by way of", *_path(each)) for each in pair.paths]
    return blocks


def _path(path: Path) -> tuple[Line, ...]:
    moves = ", ".join(f"{cause.value} {_signed(ulps)}" for cause, ulps in path.steps)
    codes = _codes(path)
    return (line(Span(codes, Role.CODE)), line(f"{moves} ulps")) if codes else (line(f"{moves} ulps at most"),)


def _codes(path: Path) -> str:
    """Return the codes along a path for one element."""
    return " → ".join(
        hexadecimal_code(Datum(path.format, int(each.reshape(-1)[0]))) for each in path.codes if each.size == 1
    )
