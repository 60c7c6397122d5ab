"""Pages of the explorer about an `audit --to`: one tensor, and the plan (the recommended recipe for each tensor)."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith.blocks.formulas import ratio
from floatlab.arrays.round_trips.round_trip import is_unscaled
from floatlab.auditing.survival.figures import SURVIVES, RecipeAudit, TensorFigures
from floatlab.errors import shown_name
from floatlab.formats import Format
from floatlab.formats.recipes import parse_recipe
from floatlab.numbers.rounding import Context, Overflow
from floatlab.page.measures import number, percent, shape_text
from floatlab.page.model import Block, Gap, Note, Page, Row, Span, Table, heading, hint, line
from floatlab.page.words import counted
from floatlab.verbs.audit.recipes_page import side_by_side
from floatlab.verbs.audit.recipes_report import histograms
from floatlab.verbs.audit.tensor_columns import ROLES
from floatlab.verbs.block.page import exact_text
from floatlab.verbs.question import Question

_LISTED = 2000  # the page of the plan lists at most this many tensors


def tensor_page(tensor: TensorFigures) -> Page:
    """Return the page of a tensor: its errors in each recipe, the reasons for damage, and histograms.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> from floatlab.page.text_layout import to_text
    >>> [tensor] = audit_recipes({"w": np.float32([[1, 2, 3, 1000]])}, "e4m3").tensors
    >>> for row in to_text(tensor_page(tensor), 80).splitlines()[:8]:
    ...     print(row)
      w: 1 × 4 of float32
      recommended  as it is
      magnitudes   1 to 1e+03; 0 % are 0
    <BLANKLINE>
      e4m3: 25 % become NaN or infinite
    <BLANKLINE>
      recipe  bits  SQNR dB   cosine  rel. error  99.9 %  largest  MSE
      e4m3       8        ∞  1.00000           0       0        0    0
    """
    blocks: list[Block] = [
        heading(f"{shown_name(tensor.tensor)}: {shape_text(tensor.shape)} of {tensor.kind or 'unknown type'}")
    ]
    if tensor.convention:
        blocks.append(Row("read as", f"numbers, from {tensor.convention}"))
    if not tensor.recipes:
        said = f"left out, {tensor.left_out}" if tensor.is_readable else f"cannot be read: {tensor.left_out}"
        return Page((*blocks, Note(line(said))), tensor.tensor)
    blocks.append(Row("recommended", tensor.choice or "as it is"))
    if tensor.smallest is not None:
        zeros = f"{percent(tensor.zeros, tensor.elements)} are 0"
        blocks.append(Row("magnitudes", f"{number(tensor.smallest)} to {number(tensor.largest)}; {zeros}"))
    if tensor.nonfinite:
        blocks.append(Row("not finite", counted(tensor.nonfinite, "number")))
    damaged = [each for each in tensor.recipes if each.verdict != SURVIVES]
    blocks += [Gap()] * bool(damaged)
    blocks += [Note(line(f"{each.recipe}: ", Span(each.reason, ROLES[each.verdict]))) for each in damaged]
    blocks += [Gap(), *side_by_side(tensor.recipes, "recipe")]
    for title, chart in histograms([tensor], tensor.recipes):
        if any(curve.points for curve in chart.curves):
            blocks += [Gap(), heading(title), chart]
    return Page(tuple(blocks), tensor.tensor)


def plan_page(found: RecipeAudit) -> Page:
    """Return the page with the recommended recipe for each tensor. Tensors with the plan's `base` recipe come last.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> from floatlab.page.text_layout import to_text
    >>> x = {"w": np.float32([[1, 2, 3, 1000]]), "b": np.float32([1, 2])}
    >>> print(to_text(plan_page(audit_recipes(x, "e4m3,mxfp4")), 90), end="")
      as stored for all but 1 of 2 tensors; in e4m3: b. On average 24 bits a number
      rule         A tensor survives a recipe if its SQNR is at most 3 dB below the usual
                   SQNR, and if no number becomes NaN or infinite. Also, the share of numbers
                   that become 0 must be at most 25 percentage points above the usual share.
                   The usual values are those of normally distributed numbers.
    <BLANKLINE>
      tensor  recipe
      w       as it is
      b       e4m3
    """
    advice = found.recommendation
    rows = sorted(advice.plan, key=lambda row: row[1] == advice.base)
    more = [hint(f"{counted(len(rows) - _LISTED, 'more tensor')}")] if len(rows) > _LISTED else []
    table = Table(("tensor", "recipe"), [(name, recipe or "as it is") for name, recipe in rows[:_LISTED]], optional=())
    return Page((heading(advice.words), Row("rule", advice.rule), Gap(), table, *more), "plan")


def rounding_question(tensor: TensorFigures, saturates: bool = False) -> Question | None:
    """Return the question that shows how the element with the largest relative error is rounded.

    The result is None if the tensor was not measured, if it is a quantised weight, or if `block` and `show` cannot read
    its file.

    The element is rounded by the first recipe that damages the tensor or, if no recipe damages it, by the first recipe.
    If this recipe has scales, the question has the verb `block`, otherwise `show`. If some numbers become NaN or
    infinite, a question for `show` is about the tensor's largest number instead. `saturates` tells whether the audit
    saturates numbers that are too large for a format.

    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> from floatlab.verbs.registry import command_of
    >>> for recipe in ("mxfp4", "e4m3"):
    ...     [tensor] = audit_recipes("random:lognormal:64x256:sigma=3:seed=2@bf16", recipe).tensors
    ...     print(command_of(rounding_question(tensor)))
    floatlab block random:lognormal:64x256:sigma=3:seed=2@bf16 --at 0,0 --to mxfp4
    floatlab show 99328 --e4m3
    """
    source = tensor.source
    one = source.startswith("random:") or source.endswith(".npy")
    if tensor.convention or not tensor.recipes or not (one or source.endswith((".npz", ".safetensors"))):
        return None
    each = next((each for each in tensor.recipes if each.verdict != SURVIVES), tensor.recipes[0])
    place = each.largest_relative_at or 0
    word = source if one else f"{source}::{tensor.tensor}"
    recipe = parse_recipe(each.recipe)
    element = recipe.format.element
    if is_unscaled(recipe) and isinstance(element, Format):
        number = tensor.largest if each.lost and not saturates else _number_at(word, place)
        context = Context(overflow=Overflow.SATURATE) if saturates else Context()
        return Question("show", (exact_text(ratio(Fraction(number or 0))),), (element,), context)
    at = []
    for size in reversed(tensor.shape or (1,)):
        place, rest = divmod(place, max(size, 1))
        at.append(str(rest))
    return Question("block", (word,)).having(to=each.recipe, at=",".join(reversed(at)))


def _number_at(word: str, place: int) -> float:
    from floatlab.arrays.codec import native
    from floatlab.files.readers import open_array

    with open_array(word) as source:
        return float(native(source.read(place, 1))[0])
