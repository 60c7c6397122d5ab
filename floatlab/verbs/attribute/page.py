"""The page of `--observed`: which candidate computations give an observed result, and why two results differ."""

from __future__ import annotations

from floatlab.numbers import Context, Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.rounding import DEFAULT, IN_WORDS
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.page.words import counted, plural, signed_text
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.explain.first_line import noun_of
from floatlab.reduce.replay.causes import Cause, Path
from floatlab.reduce.replay.explanations import Explanation
from floatlab.reduce.replay.tile_edges import TileEdge
from floatlab.reduce.results.diagnosis_record import Diagnosis

_DIAGNOSED = {Cause.ORDER: "order", Cause.FMA: "fma", Cause.ACCUMULATOR: "accumulator", Cause.MACHINE: "accumulator"}
_CHANCE = 0.25  # a candidate that matches less than this share of the elements may do so by chance, and is not named
_MOST = 6  # limit for the listed candidates, and for the listed pairs


def attribution_page(found: Attribution, observed: tuple[str, ...]) -> Page:
    """Return the page of an attribution; `observed` are the results as typed.

    >>> from floatlab.reduce.explain.attribution import attribute
    >>> from floatlab.page.text_layout import to_text
    >>> a, schedules = ["1", "2^-24", "2^-24"], ["serial", "reversed"]
    >>> found = attribute(a, [1, 1, 1], "1.0000001", schedules=schedules, machines=[])
    >>> print(to_text(attribution_page(found, ("1.0000001",))).splitlines()[0])
      1.0000001: reversed, and 6 more of 9 candidates
    """
    shown = [
        edge.text if edge is not None else _summary(each, found.candidate_count)
        for each, edge in zip(found.fitting, found.tile_edges, strict=False)
    ]
    title = "; ".join(f"{word}: {said}" for word, said in zip(observed, shown, strict=True))
    blocks: list[Block] = [heading(title)]
    if rules := _rules(found.context):
        models = any(each.machines for ranked in found.explanations for each in ranked)
        own = "; hardware models keep their own rules" * models
        blocks.append(Note(f"every candidate {rules}{own}"))
    for word, explanations in zip(observed, found.explanations, strict=True):
        blocks += [Gap(), *_candidates(word, explanations, single=not found.shape)]
    if found.verdict is not None:
        blocks += [Gap(), *verdict_rows(found), *_pairs(found)]
    return Page(tuple(blocks), title)


def attribution_blocks(
    found: Attribution, observed: tuple[str, ...], diagnosis: Diagnosis, libraries: tuple[str, ...] = ("", "")
) -> list[Block]:
    """Return the rows that `compare` shows: the candidates for each result, and the cause of the difference.

    `libraries` names, for each result, a library whose product equals this result; the name is empty if no library's
    product does.

    >>> import numpy as np
    >>> from floatlab.reduce.explain.attribution import attribute
    >>> from floatlab.page.model import Page
    >>> from floatlab.page.text_layout import to_text
    >>> x, y = np.float32([[1, 2**-24]]), np.float32([[1], [1]])
    >>> found = attribute(x, y, (x @ y, x @ y), schedules=["serial"], formats=["fp32"], machines=[])
    >>> print(to_text(Page(tuple(attribution_blocks(found, ("A", "B"), found.diagnosis)), "")).strip())
    Candidates with the same bits (2 candidates, 1 element)
      A            serial, and 1 other candidate
      B            serial, and 1 other candidate
    """
    tried = f"{counted(found.candidate_count, 'candidate')}, {_compared(found)}"
    blocks: list[Block] = [Gap(), heading(f"Candidates with the same bits ({tried})")]
    for i, word in enumerate(observed):
        best = _best(found.explanations[i], found.tile_edges[i])
        if libraries[i] and not found.fitting[i]:
            best = [line(Span(_by_library(found, libraries[i]), Role.VALUE))]
        blocks += [Row("" if row else word, part) for row, part in enumerate(best)]
    return [*blocks, *_cause_rows(found, diagnosis)]


def _by_library(found: Attribution, library: str) -> str:
    count = found.explanations[0][0].elements
    return f"all {count:,} elements equal {library}" if count > 1 else library


def _cause_rows(found: Attribution, diagnosis: Diagnosis) -> list[Block]:
    """Return rows that name the cause of the difference between two results.

    The list is empty if the diagnosis is not "rounding", or if no pair of candidates gives both results.
    """
    causes = {cause for pair in found.pairs for cause in pair.causes if len(pair.causes) == len(found.pairs[0].causes)}
    if diagnosis.status != "rounding" or not causes:
        return []
    if {_DIAGNOSED[cause] for cause in causes} == {*diagnosis.names}:
        return verdict_rows(found, "cause")
    pair = found.pairs[0]
    return [Row("cause", noun_of(diagnosis)), Row("", f"{pair.first.text} → {pair.second.text}")]


def unlike_blocks(formats: tuple[str, str]) -> list[Block]:
    """Return rows that say that two results differ because their formats differ."""
    words = "floatlab matmul X Y --observed FILE finds candidates for each result"
    return [Gap(), Row("cause", f"the formats, {formats[0]} and {formats[1]}, differ; {words}")]


def _rules(context: Context) -> str:
    """Describe the rounding rules that differ from the default; return an empty text if there are none."""
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
    """Return one or two lines that describe the best candidates for a result.

    If `edge` is given, the only line describes this tile edge: one candidate gives the elements of some rows or
    columns, and another candidate gives all other elements. If some candidates give all elements of the result, the
    first line names one of them, and the second line names the best candidate that gives only some elements. Otherwise,
    the only line names the best candidate. If this candidate gives less than the share `_CHANCE` (a quarter) of the
    elements, the line does not name it, but says how few elements it gives.
    """
    fitting = [each for each in explanations if each.fits]
    others = [each for each in explanations if not each.fits and each.matching]
    if edge is not None:
        return [line(Span(edge.text, Role.VALUE))]
    if not fitting and not others:
        return [line(Span("no candidate gives any of its elements", Role.FLAG))]
    if not fitting and others[0].share < _CHANCE:
        share = f"{100 * float(others[0].share):.2g} %"
        return [line(Span(f"no candidate gives more than {share} of its elements", Role.FLAG))]
    if not fitting:
        return [line(Span(others[0].summary, Role.FLAG), "; no candidate gives all elements")]
    more = f", and {counted(len(fitting) - 1, 'other candidate')}" if len(fitting) > 1 else ""
    return [
        line(Span(fitting[0].summary, Role.VALUE), more),
        *(line(Span(each.summary, Role.HINT)) for each in others[:1]),
    ]


def verdict_rows(found: Attribution, label: str = "verdict") -> list[Block]:
    """Return rows with the cause of the difference between two results, and with the causes that are ruled out."""
    said = ", or ".join(each.value for each in found.verdicts) + _common_difference(found)
    blocks: list[Block] = [Row(label, Span(said, Role.VALUE if found.pairs else Role.FLAG))]
    if found.pairs and found.pairs[0].causes and found.shape:
        blocks.append(Row("", f"{found.pairs[0].first.text} → {found.pairs[0].second.text}"))
    for each in found.refutations:
        ((_, ulps),) = each.path.steps
        codes = _codes(each.path)
        tried = f"{counted(each.tried, 'pair')} of candidates"
        words = line(f"not by {each.cause.value} alone: of {tried} that differ only in this, none gives both results")
        own = line(f"{each.first.text} → {each.second.text}: ", Span(codes, Role.CODE), f", {_moved(ulps)}")
        blocks += [Row("", words), Row("", own)]
    return blocks


def _common_difference(found: Attribution) -> str:
    """Return the difference between the two results in ulps, as text.

    The text is empty for arrays with several elements, for equal results, and if pairs of candidates disagree.
    """
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
        return f"none of {counted(tried, 'candidate')} gives it"
    others = len(fitting) - 1
    first = fitting[0].text
    return f"{first}, and {others} more of {counted(tried, 'candidate')}" if others else f"only {first} gives it"


def _candidates(word: str, explanations: tuple[Explanation, ...], single: bool) -> list[Block]:
    """Return a table of the candidates that give a result or, if none does, of the best candidates.

    For arrays, the table has the share of the elements that each candidate gives.
    """
    fitting = [each for each in explanations if each.fits]
    heading = f"Candidates that give {word}" if fitting else f"No candidate gives {word}; results of the candidates"
    rows = tuple(_row(each, single) for each in (fitting or explanations)[:_MOST])
    table = Table(("candidate", "code", "value"), rows, (2,)) if single else Table(("candidate", "share"), rows, (1,))
    more = line(Span(f"and {counted(len(fitting) - _MOST, 'other candidate')}", Role.HINT))
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
        return []  # there are no pairs, or one candidate gives both results, and is already listed
    title = f"{counted(found.pair_count, 'pair')} of candidates that give both results"
    title += f", the first {_MOST}" if found.pair_count > _MOST else ""
    blocks: list[Block] = [Gap(), heading(title)]
    for pair in found.pairs[:_MOST]:
        blocks.append(Row("", line(Span(pair.first.text, Role.VALUE), " → ", Span(pair.second.text, Role.VALUE))))
        blocks += [Row("through", *_path(each)) for each in pair.paths]
    return blocks


def _path(path: Path) -> tuple[Line, ...]:
    moves = ", ".join(f"{cause.value} {_signed(ulps)}" for cause, ulps in path.steps)
    codes = _codes(path)
    return (line(Span(codes, Role.CODE)), line(f"{moves} ulps")) if codes else (line(f"{moves} ulps at most"),)


def _codes(path: Path) -> str:
    """Return the codes of the results along a path, as text; empty for arrays with several elements.

    A path leads from one candidate computation to another. Each step changes one cause, such as the order.
    """
    return " → ".join(
        hexadecimal_code(Datum(path.format, int(each.reshape(-1)[0]))) for each in path.codes if each.size == 1
    )
