"""`audit --to`: shows what recipes would do to the tensors of checkpoints."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from floatlab.auditing.survival.figures import DAMAGED, OVERFLOWS, SURVIVES, RecipeAudit, RecipeFigures, TensorFigures
from floatlab.page.measures import number, percent
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, Text, heading, hint, line
from floatlab.page.words import counted, listed
from floatlab.verbs.audit.tensor_columns import ROLES, decibels, size_text, tensor_columns, tensors_table

LISTED = 40  # the default number of tensors on the page
_REASONS = 10  # the number of damaged tensors whose reasons are listed


def recipes_page(found: RecipeAudit, most: int = LISTED) -> Page:
    """Return the page: the recommendation, the recipes side by side, and a row for each tensor, the worst first.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> from floatlab.page.text_layout import to_text
    >>> x = {"w": np.float32([[1, 2, 3, 1000]]), "b": np.float32([1, 2])}
    >>> print(to_text(recipes_page(audit_recipes(x, "e4m3,mxfp4")), 90), end="")
      the mapping: 2 tensors of float32 in e4m3 and mxfp4
      recommended  e4m3 for all but 1 of 2 tensors; as stored: w. On average 24 bits a number
    <BLANKLINE>
      recipe  do the tensors survive?
      e4m3    no: 1 of 2 tensors survives; in 1, numbers become NaN or infinite
      mxfp4   no: 1 of 2 tensors survives; 1 loses too much precision
      A tensor survives a recipe if its SQNR is at most 3 dB below that of normally
      distributed numbers, no number becomes NaN or infinite, and at most 25 % more than usual
      become 0. In 4 bits, a surviving tensor has fewer digits than in 8.
    <BLANKLINE>
      in all   bits  SQNR dB   cosine  rel. error  99.9 %  largest       MSE
      e4m3        8        ∞  1.00000           0       0        0         0
      mxfp4   6.667     12.7  0.99999       0.539       1        1  8.97e+03
    <BLANKLINE>
      numbers   exact  subnormal  become 0  clipped  become NaN or ∞
      e4m3     83.3 %        0 %       0 %      0 %           16.7 %
      mxfp4    33.3 %        0 %      50 %   16.7 %              0 %
    <BLANKLINE>
      scales  blocks  smallest  largest  spread  clipped  underflowed
      mxfp4        2       0.5      128   2^8.0      0 %          0 %
    <BLANKLINE>
      tensor  shape  largest  e4m3 dB  mxfp4 dB  recommended
      w       1 × 4    1e+03    ! NaN    ! 12.7  as it is
      b       2            2        ∞         ∞  e4m3
    <BLANKLINE>
      w in e4m3: 25 % become NaN or infinite
      w in mxfp4: it has 12.7 dB, 18.8 dB are usual; 75 % become 0; 25 % are clipped to the
      largest number
      ! marks damage
    """
    measured = [each for each in found.tensors if each.recipes]
    where = found.sources[0] if len(found.sources) == 1 else counted(len(found.sources), "checkpoint")
    kinds = {each.kind for each in measured}
    of_kind = f" of {measured[0].kind}" if len(kinds) == 1 else ""
    title = f"{where}: {counted(len(measured), 'tensor')}{of_kind} in {listed(list(found.recipes))}"
    blocks: list[Block] = [heading(title)]
    if measured:
        blocks.append(Row("recommended", found.recommendation.words))
    conventions = Counter(each.convention for each in measured if each.convention)
    if conventions:
        said = listed([f"{name} ({count:,})" for name, count in conventions.items()])
        blocks.append(Row("read as", f"numbers, from {said}"))
    if found.inputs:
        with_outputs = sum(each.recipes[0].output_sqnr is not None for each in measured)
        blocks.append(Row("outputs", f"of {counted(with_outputs, 'layer')}, for the inputs in {found.inputs}"))
    if measured:
        survival = [(name, _survival(name, measured)) for name in found.recipes]
        rule = found.recommendation.rule
        relative = "" if found.min_sqnr is not None else " In 4 bits, a surviving tensor has fewer digits than in 8."
        blocks += [
            Gap(),
            Table(("recipe", "do the tensors survive?"), survival),
            hint(f"{rule[0].upper()}{rule[1:]}.{relative}"),
        ]
        blocks += [Gap(), *side_by_side(found.totals)]
        blocks += [Gap(), _tensors(found, measured[:most]), *_more(len(measured) - most), *_reasons(measured)]
        blocks += [hint("! marks damage")] * any(each.verdict != SURVIVES for row in measured for each in row.recipes)
    left = [each for each in found.tensors if not each.recipes]
    blocks += [Gap()] * bool(left)
    blocks += [Note(line(f"{each.tensor}: ", _left_out(each))) for each in left[:most]]
    return Page((*blocks, *_more(len(left) - most)), title)


def _survival(name: str, measured: list[TensorFigures]) -> Line:
    """Return whether the tensors survive a recipe, in words."""
    verdicts = Counter(each.verdict for tensor in measured for each in tensor.recipes if each.recipe == name)
    total, lost, damaged = len(measured), verdicts[OVERFLOWS], verdicts[DAMAGED]
    if not lost and not damaged:
        return line(Span("yes", Role.GOOD), f", all {total:,} tensors survive" if total > 1 else ", it survives")
    parts = []
    if lost:
        parts.append(f"in {lost:,}, numbers become NaN or infinite")
    if damaged:
        parts.append(f"{damaged:,} {'loses' if damaged == 1 else 'lose'} too much precision")
    survivors = f"{verdicts[SURVIVES]:,} of {counted(total, 'tensor')} survive{'s' * (verdicts[SURVIVES] == 1)}"
    return line(Span("no", Role.BAD if lost else Role.FLAG), f": {survivors}; {listed(parts)}")


def _tensors(found: RecipeAudit, shown: list[TensorFigures]) -> Table:
    return tensors_table(tensor_columns(found, shown), shown)


def side_by_side(totals: Sequence[RecipeFigures], first: str = "in all") -> list[Block]:
    """Return the figures of recipes: errors, what becomes of the numbers, and scales; `first` heads the first table."""
    errors = (first, "bits", "SQNR dB", "cosine", "rel. error", "99.9 %", "largest", "MSE")
    rows = [
        (
            each.recipe, f"{each.bits:.4g}", decibels(each.sqnr), size_text(each.cosine, ".5f"),
            *map(number, (each.mean_relative, each.relative_999, each.largest_relative, each.mse)),
        )
        for each in totals
    ]  # fmt: skip
    shares = ("numbers", "exact", "subnormal", "become 0", "clipped", "become NaN or ∞")
    counts: list[list[Text]] = []
    for each in totals:
        kept = (each.exact, each.subnormal, each.flushed, each.saturated)
        lost = Span(percent(each.lost, each.elements), Role.BAD if each.lost else Role.PLAIN)
        counts.append([each.recipe, *(percent(count, each.elements) for count in kept), lost])
    found: list[Block] = [Table(errors, rows, right=tuple(range(1, 8)))]
    found += [Gap(), Table(shares, counts, right=tuple(range(1, 6)))]
    return [*found, Gap(), _scales(totals)] if any(each.scales is not None for each in totals) else found


def _scales(totals: Sequence[RecipeFigures]) -> Table:
    rows = []
    for each in totals:
        scales = each.scales
        if scales is None:
            continue
        spread = "·" if scales.spread is None else f"2^{scales.spread:.1f}"
        rows.append(
            (
                each.recipe, f"{scales.blocks:,}", size_text(scales.smallest), size_text(scales.largest), spread,
                percent(scales.clipped, scales.blocks), percent(scales.underflowed, scales.blocks),
            )
        )  # fmt: skip
    header = ("scales", "blocks", "smallest", "largest", "spread", "clipped", "underflowed")
    return Table(header, rows, right=tuple(range(1, len(header))))


def _reasons(measured: list[TensorFigures]) -> list[Block]:
    damaged = [(tensor, each) for tensor in measured for each in tensor.recipes if each.verdict != SURVIVES]
    blocks: list[Block] = [Gap()] * bool(damaged)
    for tensor, each in damaged[:_REASONS]:
        blocks.append(Note(line(f"{tensor.tensor} in {each.recipe}: ", Span(each.reason, ROLES[each.verdict]))))
    if len(damaged) > _REASONS:
        blocks.append(hint(f"and {len(damaged) - _REASONS:,} more of these; --json has all reasons"))
    return blocks


def _more(count: int) -> list[Block]:
    return [hint(f"{counted(count, 'more tensor')}: --worst N lists more")] if count > 0 else []


def _left_out(each: TensorFigures) -> Line:
    if each.is_readable:
        return line(f"left out, {each.left_out}")
    return line(Span(f"cannot be read: {each.left_out}", Role.BAD))
