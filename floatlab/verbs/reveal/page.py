"""The page of `reveal`: the order in which a library adds, and how many random sums this order reproduces."""

from __future__ import annotations

from collections.abc import Sequence

from floatlab.page.model import Block, Gap, Page, Role, Row, Span, Table, heading
from floatlab.page.words import counted
from floatlab.reduce import Compensated, Plan, Schedule
from floatlab.reduce.plan.matching import OutlinePart, outline, schedule_of, subtree
from floatlab.reduce.replay.candidates import NodeAdder
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import PartlyFused

_SHORT = 12  # the whole tree is shown for at most this many terms
_MOST_RANGES = 6
_TAKEN = {"sum": "sum", "dot": "dot product", "matvec": "matrix-vector product", "matmul": "matrix product"}


def reveal_page(found: Findings) -> Page:
    """Return the page of what `reveal` found about a function.

    >>> from floatlab.reduce.reveal.revelation import examine
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(reveal_page(examine(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4))).partition("prob")[0].rstrip())
      function: 4 terms, serial
      order        serial
                   (((0 1) 2) 3)
      adds in      binary32, without fused multiply-add
      replayed     32 of 32 random sums have the same bits
      subnormals   kept
    """
    name = "function" if "<lambda>" in found.target.name else found.target.name
    order = found.schedule.text if found.schedule is not None else "in an order without a name"
    if found.claim is None:
        order = "no order is claimed"
    title = f"{name}: {counted(found.plan.terms, 'term')}, {order}"
    blocks = [
        heading(title),
        *_drawn("probed" if found.claim is None else "order", found.plan, found.schedule),
        *_replayed(found),
        Row("subnormals", "become zero" if found.flushes else "kept"),
        Row("probing", f"{counted(found.probes, 'probe')} of {found.format.name}"),
    ]
    return Page(tuple(blocks), title)


def plan_page(plan: Plan) -> Page:
    """Return the page of an order of evaluation.

    The page shows the schedule expression, if there is one for this order, and the tree, if the tree is short. If the
    page shows neither of them, it has an outline of the tree.

    >>> from floatlab.reduce.plan.plan import Plan
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(plan_page(Plan(4, ((0, 1), (2, 3), (4, 5))))), end="")
      order of 4 terms, depth 2
      order        pairwise
                   ((0 1) (2 3))
    """
    title = f"order of {counted(plan.terms, 'term')}, depth {plan.depth}"
    return Page((heading(title), *_drawn("order", plan, schedule_of(plan))), title)


def _drawn(label: str, plan: Plan, schedule: Schedule | None) -> list[Block]:
    blocks: list[Block] = []
    if schedule is not None:
        blocks.append(Row(label, Span(schedule.text, Role.VALUE)))
    if plan.terms <= _SHORT:
        blocks.append(Row("" if blocks else label, plan.text))
    if blocks:
        return blocks
    drawn = outline(plan)
    rows = tuple((_letter(i), _terms(part), _how(part)) for i, part in enumerate(drawn.parts))
    return [Row(label, Span(_tree(drawn.tree), Role.VALUE)), Gap(), Table(("part", "terms", "order"), rows), Gap()]


def _tree(tree: object) -> str:
    if isinstance(tree, tuple):
        return f"({' '.join(map(_tree, tree))})"
    return _letter(int(str(tree)))


def _letter(i: int) -> str:
    return chr(ord("A") + i)


def _terms(part: OutlinePart) -> str:
    first, last, many = part.terms[0], part.terms[-1], len(part.terms)
    if many == 1:
        return str(first)
    if part.stride == 1:
        return f"{first}–{last}"
    if many <= 3:
        return ", ".join(map(str, part.terms))
    step = part.terms[1] - first
    return f"{first}, {first + step}, …, {last}" + (f" ({many})" if part.stride else f" ({many}, unevenly)")


def _how(part: OutlinePart) -> str:
    if len(part.terms) == 1:
        return "as it is"
    return part.schedule.text if part.schedule is not None else f"a tree of {len(part.terms)}"


def _ranges(terms: Sequence[int]) -> list[tuple[int, int]]:
    """Return the indices of terms, which are in ascending order, as ranges (first, last)."""
    found: list[tuple[int, int]] = []
    for each in terms:
        if found and found[-1][1] == each - 1:
            found[-1] = found[-1][0], each
        else:
            found.append((each, each))
    return found


def _listed(ranges: list[tuple[int, int]]) -> str:
    words = [str(low) if low == high else f"{low}–{high}" for low, high in ranges[:_MOST_RANGES]]
    return ", ".join(words) + ", …" * (len(ranges) > _MOST_RANGES)


def _replayed(found: Findings) -> list[Block]:
    best = found.replays[0]
    share = f"{best.matching} of {best.total} random {_TAKEN[found.target.kind]}s have the same bits"
    if found.claim is None:
        words = f"{share} in the order that the probes found, with {_arithmetic(found)}; no claim is made"
        return [Row("replayed", Span(words, Role.FLAG))]
    blocks: list[Block] = [Row("adds in", Span(_arithmetic(found), Role.VALUE)), Row("replayed", share)]
    if found.target.shape:
        blocks.append(Row("examined", _examined(found)))
    return blocks


def _examined(found: Findings) -> str:
    """Name the element that was examined.

    Also say how many elements of the product are reproduced bit for bit by the order of this element.
    """
    shape, elements, agreeing = found.target.shape, found.elements, found.agreeing or 0
    place = "0" if len(shape) == 1 else "(0, 0)"
    examined = f"element {place} of {' × '.join(map(str, shape))}"
    if agreeing == elements:
        return f"{examined}; this order gives the bits of all {elements:,} elements"
    share = f"{agreeing:,} of {elements:,} elements ({100 * agreeing / elements:.3g} %)"
    return f"{examined}; this order gives the bits of only {share}"


def _arithmetic(found: Findings) -> str:
    ways = found.replays[0].candidate.adders
    if len(ways) == 1:
        return _arithmetic_of(ways[0], range(found.plan.terms))
    sides = [(subtree(found.plan, child)[0], way) for child, way in zip(found.plan.nodes[-1], ways, strict=True)]
    sides.sort(key=lambda side: side[0][0])
    return "terms " + "; terms ".join(
        f"{_terms(OutlinePart(part, None))} in {_arithmetic_of(way, part)}" for part, way in sides
    )


def _fusions(fused: set[int], terms: Sequence[int]) -> str:
    """List the terms whose products are fused, or all other terms if these form fewer ranges."""
    inside, outside = ([each for each in terms if (each in fused) is wanted] for wanted in (True, False))
    if not inside or not outside:
        return f"with{'out' if outside else ''} fused multiply-add"
    sides = (outside, "rounded", "all others fused"), (inside, "fused", "all others rounded")
    named, verb, others = min(sides, key=lambda side: len(_ranges(side[0])))
    return f"products of {counted(len(named), 'term')} {verb} ({_listed(_ranges(named))}), {others}"


def _arithmetic_of(way: NodeAdder, terms: Sequence[int]) -> str:
    if isinstance(way, Compensated):
        return f"{way.accumulator.name}, compensated ({way.rule})"
    if isinstance(way, PartlyFused):
        return f"{way.accumulator.name}, {_fusions(set(way.fused), terms)}"
    if not way.fma:
        rounded = "" if way.products == way.accumulator else f", products rounded to {way.products.name} first"
        return f"{way.accumulator.name}, without fused multiply-add{rounded}"
    meeting = "" if way.pairs else ", except where two products are added"
    return f"{way.accumulator.name}, with fused multiply-add{meeting}"
