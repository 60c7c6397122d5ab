"""The page of `audit --to`: what recipes would do to the tensors of checkpoints.

A recipe is a block format with a rule for its scales, such as `mxfp4`, or a format without scales, such as `e4m3`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from floatlab.arrays.round_trips.round_trip import is_unscaled
from floatlab.auditing.survival.figures import DAMAGED, OVERFLOWS, SURVIVES, RecipeAudit, RecipeFigures, TensorFigures
from floatlab.errors import shown_name
from floatlab.formats import Format
from floatlab.formats.recipes import parse_recipe
from floatlab.page.measures import number, percent
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, Text, heading, hint, line
from floatlab.page.words import counted, listed, plural
from floatlab.verbs.audit.tensor_columns import (
    DECIBELS,
    LISTED,
    OUTPUT,
    ROLES,
    decibels,
    size_text,
    tensor_columns,
    tensors_table,
)

_SPOILED = 4  # at most this many tensors with NaNs are named
_SCALED = 8  # floating-point formats with fewer bits than this usually need scales
_MORE_BITS = 1.02  # if a recipe takes this many times its usual bits per number, the page says why
_REASONS = 10  # reasons are listed for at most this many damaged tensors


def recipes_page(found: RecipeAudit, most: int = LISTED) -> Page:
    """Return the page: the recommendation, a comparison of the recipes, and a table of tensors, the worst first.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> from floatlab.page.text_layout import to_text
    >>> x = {"w": np.float32([[1, 2, 3, 1000]]), "b": np.float32([1, 2])}
    >>> print(to_text(recipes_page(audit_recipes(x, "e4m3,mxfp4")), 90), end="")
      the mapping: 2 tensors of float32 in e4m3 and mxfp4
      recommended  as stored for all but 1 of 2 tensors; in e4m3: b. On average 24 bits a
                   number
                   One of these tensors has fewer than two axes, as norms and biases do.
                   Libraries usually leave these as stored.
    <BLANKLINE>
      recipe  usual dB  do all tensors survive?
      e4m3        31.5  no: 1 of 2; 1 gets NaN or ∞
      mxfp4       18.8  no: 1 of 2; 1 loses precision
      A tensor survives a recipe if its SQNR is at most 3 dB below the usual SQNR, and if no
      number becomes NaN or infinite. Also, the share of numbers that become 0 must be at most
      25 percentage points above the usual share. The usual values are those of normally
      distributed numbers. Formats with few digits have a low usual SQNR; --min-sqnr DB sets
      one limit for all recipes.
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
      mxfp4 takes 6.67 bits a number instead of 4.25: blocks lie along the last axis, and rows
      that they do not divide end with a block that is not full.
    <BLANKLINE>
      tensor (SQNR in dB)  shape  largest   e4m3   mxfp4  recommended
      w                    1 × 4    1e+03  ! NaN  ! 12.7  as it is
      b                    2            2      ∞       ∞  e4m3
    <BLANKLINE>
      w in e4m3: 25 % become NaN or infinite
      w in mxfp4: it has 12.7 dB, 18.8 dB are usual; 75 % become 0; 25 % are clipped to the
      largest number
      ! marks damage
    """
    measured = [each for each in found.tensors if each.recipes and each.elements]
    where = found.sources[0] if len(found.sources) == 1 else counted(len(found.sources), "checkpoint")
    kinds = {each.kind for each in measured}
    of_kind = f" of {measured[0].kind}" if len(kinds) == 1 else ""
    title = f"{where}: {counted(len(measured), 'tensor')}{of_kind} in {listed(list(found.recipes))}"
    blocks: list[Block] = [heading(title)]
    if measured:
        blocks += [Row("recommended", found.recommendation.words), *_remarks(measured)]
    conventions = Counter(each.convention for each in measured if each.convention)
    if conventions:
        said = listed([f"{name} ({count:,})" for name, count in conventions.items()])
        blocks.append(Row("read as", f"numbers, from {said}"))
    if found.inputs:
        with_outputs = sum(each.recipes[0].output_sqnr is not None for each in measured)
        blocks.append(Row("outputs", f"of {counted(with_outputs, 'layer')}, for the inputs in {found.inputs}"))
    if measured:
        blocks += [Gap(), *_survival(found, measured)]
        blocks += [Gap(), *side_by_side(found.totals), *_short_blocks(found.totals, measured)]
        blocks += [Gap(), *_tensors(found, measured[:most]), *_more(measured[most:]), *_reasons(measured)]
        if any(each.output_sqnr is not None and not each.lost for row in measured for each in row.recipes):
            blocks.append(hint(f"{OUTPUT} SQNR of the layer's output, not of the weight"))
        blocks += [hint("! marks damage")] * any(each.verdict != SURVIVES for row in measured for each in row.recipes)
    left = [each for each in found.tensors if not (each.recipes and each.elements)]
    blocks += [Gap()] * bool(left)
    blocks += [Note(line(f"{shown_name(each.tensor)}: ", _left_out(each))) for each in left[:most]]
    return Page((*blocks, *_more(left[most:])), title)


def _remarks(measured: list[TensorFigures]) -> list[Block]:
    """Return remarks on tensors that look like norms or biases, and on tensors that contain NaNs or infinities."""
    blocks: list[Block] = []
    vectors = sum(len(each.shape) < 2 and each.choice != "" for each in measured)
    if vectors:
        count = "One of these tensors has" if vectors == 1 else f"{vectors:,} of these tensors have"
        said = f"{count} fewer than two axes, as norms and biases do. Libraries usually leave these as stored."
        blocks.append(Row("", Span(said, Role.HINT)))
    spoiled = [each for each in measured if each.nonfinite]
    if spoiled:
        few = [f"{shown_name(each.tensor)} ({each.nonfinite:,} of {each.elements:,})" for each in spoiled[:_SPOILED]]
        few += [f"{len(spoiled) - _SPOILED:,} more"] * (len(spoiled) > _SPOILED)
        verb = "has" if len(spoiled) == 1 else "have"
        said = f"{counted(len(spoiled), 'tensor')} {verb} NaNs or infinities: {listed(few)}"
        blocks.append(Row("stored", Span(said, Role.FLAG)))
    return blocks


def _survival(found: RecipeAudit, measured: list[TensorFigures]) -> list[Block]:
    """Return a table that says how many tensors survive each recipe, and the rule that decides this."""
    rows = [(each.recipe, f"{each.expected:.1f}", _survivors(each.recipe, measured)) for each in found.totals]
    words = found.recommendation.rule
    if found.min_sqnr is None:
        words += " Formats with few digits have a low usual SQNR; --min-sqnr DB sets one limit for all recipes."
    header = ("recipe", "usual dB", "do all tensors survive?")
    blocks: list[Block] = [Table(header, rows, right=(1,)), hint(words)]
    bare = [name for name in found.recipes if _rounds_to_few(name)]
    if bare:
        have = "has" if len(bare) == 1 else "have"
        blocks.append(hint(f"{listed(bare)} {have} no scales here; {bare[0]}/channel and {bare[0]}/32 have scales."))
    return blocks


def _rounds_to_few(name: str) -> bool:
    """Return whether a recipe lacks the scales that its format (integers, or floats below 8 bits) needs."""
    recipe = parse_recipe(name)
    element = recipe.format.element
    return is_unscaled(recipe) and (not isinstance(element, Format) or element.width < _SCALED)


def _survivors(name: str, measured: list[TensorFigures]) -> Line:
    verdicts = Counter(each.verdict for tensor in measured for each in tensor.recipes if each.recipe == name)
    total, lost, damaged = len(measured), verdicts[OVERFLOWS], verdicts[DAMAGED]
    if not lost and not damaged:
        return line(Span("yes", Role.GOOD), ": both" if total == 2 else f": all {total:,}" * (total > 1))
    parts = [f"{lost:,} {plural(lost, 'gets', 'get')} NaN or ∞"] * bool(lost)
    parts += [f"{damaged:,} {plural(damaged, 'loses', 'lose')} precision"] * bool(damaged)
    role = Role.BAD if lost else Role.FLAG
    return line(Span("no", role), f": {verdicts[SURVIVES]:,} of {total:,}; {', '.join(parts)}")


def _tensors(found: RecipeAudit, shown: list[TensorFigures]) -> list[Block]:
    """Return the table of tensors, with the SQNR in each recipe. Only the title of the first column has the unit dB."""
    table = tensors_table(tensor_columns(found, shown), shown)
    _, *titles = (title.removesuffix(DECIBELS) for title in table.header)
    return [table.replace(header=("tensor (SQNR in dB)", *titles))] if shown else []


def side_by_side(totals: Sequence[RecipeFigures], first: str = "in all") -> list[Block]:
    """Return three tables with a row for each recipe: errors, shares of exact and of lost numbers, and scales.

    `first` is the title of the column of recipes in the first table.
    """
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


def _short_blocks(totals: Sequence[RecipeFigures], measured: Sequence[TensorFigures]) -> list[Block]:
    """Return a remark on recipes that take more bits than usual because many blocks are not full."""
    found = []
    for each in totals:
        fmt = parse_recipe(each.recipe).format
        usual = float(fmt.bits)
        if fmt.block is None or fmt.flat or each.bits < _MORE_BITS * usual:
            continue
        if any(tensor.shape and tensor.shape[-1] % fmt.block for tensor in measured):
            found.append(f"{each.recipe} takes {each.bits:.3g} bits a number instead of {usual:.4g}")
    said = "blocks lie along the last axis, and rows that they do not divide end with a block that is not full"
    return [hint(f"{listed(found)}: {said}.")] if found else []


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
        where = f"{shown_name(tensor.tensor)} in {each.recipe}: "
        blocks.append(Note(line(where, Span(each.reason, ROLES[each.verdict]))))
    if len(damaged) > _REASONS:
        blocks.append(hint(f"and {len(damaged) - _REASONS:,} more of these; --json has all reasons"))
    return blocks


def _more(rest: Sequence[TensorFigures]) -> list[Block]:
    """Return a remark about the tensors that are not listed."""
    if not rest:
        return []
    damaged = sum(any(each.verdict != SURVIVES for each in tensor.recipes) for tensor in rest)
    survive = f" {plural(len(rest), 'survives', 'survive')} all recipes" if rest[0].recipes else ""
    which = f", {damaged:,} of them damaged" if damaged else survive
    return [hint(f"{counted(len(rest), 'more tensor')}{which}; --worst all lists {plural(len(rest), 'it', 'them')}")]


def _left_out(each: TensorFigures) -> Line:
    if each.is_readable:
        return line(f"left out, {each.left_out or 'it has no numbers'}")
    return line(Span(f"cannot be read: {each.left_out}", Role.BAD))
