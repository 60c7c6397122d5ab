"""The page of `reveal`: in which order a library adds, and what was found by replaying it."""

from __future__ import annotations

from floatlab.reduce.outline import Part, outline, subtree
from floatlab.views.page import Block, Gap, Note, Page, Role, Row, Run, Table, line
from floatlab.views.words import counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.reduce.adders import Adder
    from floatlab.reduce.revelation import Findings

_SHORT = 12  # terms: a tree of so many is written out
_TAKEN = {"sum": "sum", "dot": "dot product", "matvec": "matrix-vector product", "matmul": "matrix product"}


def reveal_page(found: Findings) -> Page:
    """Return the page of a target's findings.

    >>> from floatlab.reduce.revelation import examine
    >>> from floatlab.render.text import to_text
    >>> print(to_text(reveal_page(examine(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4))).partition("asked")[0].rstrip())
      function: 4 terms, serial
      order        serial
                   (((0 1) 2) 3)
      adds in      binary32, without fused multiply-add
      replayed     32 of 32 random sums have the same bits
      subnormals   kept
    """
    n, name = found.plan.terms, _name(found)
    order = found.schedule.text if found.schedule is not None else "in an order of its own"
    if found.claim is None:
        order = "no order is claimed"
    title = f"{name}: {counted(n, 'term')}, {order}"
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING))), *_order(found), *_replayed(found)]
    blocks.append(Row("subnormals", line("become zero" if found.flushes else "kept")))
    blocks.append(Row("asked", line(f"{counted(found.probes, 'probe')} of {found.format.name}")))
    return Page(tuple(blocks), title)


def _name(found: Findings) -> str:
    name = found.target.name
    return "function" if "<lambda>" in name else name


def _order(found: Findings) -> list[Block]:
    plan, schedule = found.plan, found.schedule
    label = "probed" if found.claim is None else "order"
    blocks: list[Block] = []
    if schedule is not None:
        blocks.append(Row(label, line(Run(schedule.text, Role.VALUE))))
    if plan.terms <= _SHORT:
        blocks.append(Row("" if blocks else label, line(plan.text)))
    if blocks:
        return blocks
    drawn = outline(plan)
    rows = tuple((line(_letter(i)), line(_terms(part)), line(_how(part))) for i, part in enumerate(drawn.parts))
    return [
        Row(label, line(Run(_tree(drawn.tree), Role.VALUE))),
        Gap(),
        Table(("part", "terms", "order"), rows),
        Gap(),
    ]


def _tree(tree: object) -> str:
    if isinstance(tree, tuple):
        return f"({' '.join(map(_tree, tree))})"
    return _letter(int(str(tree)))


def _letter(i: int) -> str:
    return chr(ord("A") + i)


def _terms(part: Part) -> str:
    first, last, many = part.terms[0], part.terms[-1], len(part.terms)
    if many == 1:
        return str(first)
    if part.stride == 1:
        return f"{first}–{last}"
    if many <= 3:
        return ", ".join(map(str, part.terms))
    step = part.terms[1] - first
    return f"{first}, {first + step}, …, {last}" + (f" ({many})" if part.stride else f" ({many}, unevenly)")


def _how(part: Part) -> str:
    if len(part.terms) == 1:
        return "as it is"
    return part.schedule.text if part.schedule is not None else f"a tree of {len(part.terms)}"


def _replayed(found: Findings) -> list[Block]:
    best = found.replays[0]
    share = f"{best.matching} of {best.total} random {_TAKEN[found.target.kind]}s have the same bits"
    if found.claim is None:
        words = f"{share} in the order that probes met, when {_way(found)}; no claim is made"
        return [Row("replayed", line(Run(words, Role.FLAG)))]
    blocks: list[Block] = [Row("adds in", line(Run(_way(found), Role.VALUE)))]
    return [*blocks, Row("replayed", line(share))]


def _way(found: Findings) -> str:
    ways = found.replays[0].trial.adders
    if len(ways) == 1:
        return _one_way(ways[0])
    sides = [
        (Part(subtree(found.plan, child)[0], None), way) for child, way in zip(found.plan.nodes[-1], ways, strict=True)
    ]
    sides.sort(key=lambda side: side[0].terms[0])
    return "terms " + "; terms ".join(f"{_terms(part)} in {_one_way(way)}" for part, way in sides)


def _one_way(way: Adder) -> str:
    if not way.fma:
        rounded = "" if way.products == way.accumulator else f", products rounded to {way.products.name} first"
        return f"{way.accumulator.name}, without fused multiply-add{rounded}"
    meeting = "" if way.pairs else ", but where two products meet"
    return f"{way.accumulator.name}, with fused multiply-add{meeting}"
