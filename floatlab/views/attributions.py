"""The page of `dot --observed`: which ways to compute give an observed result, and what two of them differ by."""

from __future__ import annotations

from floatlab.views.page import Block, Gap, Line, Note, Page, Role, Row, Run, Table, line
from floatlab.views.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.attribution import Attribution, Explanation, Path

_MOST = 6  # explanations and pairs that are listed


def attribution_page(found: Attribution, observed: tuple[str, ...]) -> Page:
    """Return the page of an attribution; `observed` has the results' own words.

    >>> from floatlab.reduce.attribution import attribute
    >>> from floatlab.render.text import to_text
    >>> found = attribute([1, 2**-24, 2**-24], [1, 1, 1], "1.0000001", schedules=["serial", "reversed"], machines=[])
    >>> print(to_text(attribution_page(found, ("1.0000001",))).splitlines()[0])
      1.0000001: reversed, and 6 more of 9 ways tried
    """
    shown = [_summary(each, found.trial_count) for each in found.fitting]
    title = "; ".join(f"{word}: {said}" for word, said in zip(observed, shown, strict=True))
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    for word, explanations in zip(observed, found.explanations, strict=True):
        fitting = [each for each in explanations if each.fits]
        rows = tuple(_row(each) for each in (fitting or explanations)[:_MOST])
        blocks += [Gap(), Note(line(f"What gives {word}")), Table(("way", "code", "share"), rows, (2,))]
    if found.verdict is not None:
        blocks += [Gap(), Row("verdict", line(Run(found.verdict.value, Role.VALUE)))]
        blocks += _pairs(found)
    return Page(tuple(blocks), title)


def _summary(fitting: tuple[Explanation, ...], tried: int) -> str:
    if not fitting:
        return f"none of {counted(tried, 'way')} tried gives it"
    others = len(fitting) - 1
    first = fitting[0].text
    return f"{first}, and {others} more of {counted(tried, 'way')} tried" if others else f"{first} alone gives it"


def _row(each: Explanation) -> tuple[Line, ...]:
    code = "" if each.codes is None or each.codes.size != 1 else f"0x{int(each.codes.reshape(-1)[0]):08x}"
    share = "all" if each.fits else f"{100 * float(each.share):.3g} %"
    return line(Run(each.text, Role.VALUE if each.fits else Role.HINT)), line(Run(code, Role.CODE)), line(share)


def _pairs(found: Attribution) -> list[Block]:
    if not found.pairs:
        return []
    title = f"{counted(found.pair_count, 'pair')} of ways that give both"
    blocks: list[Block] = [Gap(), Note(line(Run(title, Role.HEADING)))]
    for pair in found.pairs[:_MOST]:
        blocks.append(Row("", line(Run(pair.first.text, Role.VALUE), " → ", Run(pair.second.text, Role.VALUE))))
        blocks += [Row("by way of", *_path(each)) for each in pair.paths]
    return blocks


def _path(path: Path) -> tuple[Line, Line]:
    codes = " → ".join(f"0x{int(each.reshape(-1)[0]):08x}" for each in path.codes if each.size == 1)
    moves = ", ".join(f"{cause.value} {ulps:+,}" for cause, ulps in path.steps)
    return line(Run(codes, Role.CODE)), line(f"{moves} ulps")
