"""Quantizes the blocks of a tensor by a recipe: reads the values, computes the scales, and rounds the elements.

The rules of floatlab compute with exact intermediate values: the tensor scale, the block scale and the elements are
each rounded once. The rules of libraries round after each operation; `formats.scale_rules` has their formulas.
"""

from __future__ import annotations

from collections.abc import Sequence

from floatlab.arith.blocks.formulas import rounded
from floatlab.arith.blocks.quantizer import Quantizer
from floatlab.arith.blocks.records import BlockDerivation
from floatlab.arith.blocks.searches import SEARCHES, Found
from floatlab.arith.blocks.values import exact_value, input_format, tiles, typed_text
from floatlab.errors import ContextError
from floatlab.formats import parse_format
from floatlab.formats.blocks import BlockFormat, Integers
from floatlab.formats.format import Format
from floatlab.formats.recipes import Recipe, parse_recipe
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers.rounding import DEFAULT, AnyContext, Context, Negative, Overflow, as_context


def element_context(context: Context, format: BlockFormat) -> Context:
    """Return the context with which elements are rounded. Overflow saturates, as OCP MX 1.0 requires (section 6.3).

    In a format that stores a minimum for each block, such as q4_k, negative elements become 0. For integer elements,
    `flush_results` has no effect. Raises ContextError for `flush_inputs`, because the values may be exact numbers,
    which are never subnormal.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> element_context(Context(rounding="RTZ", flush_results=True), parse_block_format("mxint8"))
    Context(rounding='RTZ', overflow='saturate')
    """
    if context.flush_inputs:
        raise ContextError("flush_inputs is not for blocks: flush subnormal numbers before they are scaled")
    flushes = context.flush_results and not isinstance(format.element, Integers)
    below = Negative.ZERO if format.minimum else context.negative
    return context.replace(overflow=Overflow.SATURATE, flush_results=flushes, negative=below)


def quantize_blocks(
    values: Sequence[object],
    format: BlockFormat | Recipe | str,
    rule: ScaleRule | str | None = None,
    context: AnyContext = DEFAULT,
    tensor_scale: object = None,
) -> tuple[BlockDerivation, ...]:
    """Scale and round values by a recipe, and record every step; the last block may be shorter.

    `values` is one row, or a list of rows (lists) of a tensor with two axes. A value is anything that `read` accepts,
    except a code without a format. If a value is a derivation, its result is used. Floatlab's own rules use the values
    unrounded. The rules of libraries first round the values to the format `rule.takes`. If `rule.takes` is empty,
    values that share a format narrower than binary32 stay unchanged, and all other values are rounded to binary32. If
    the format has a tensor scale, and `tensor_scale` is None, the rule computes this scale, usually as (largest
    magnitude of the values) / (largest element · largest scale). Under stochastic rounding, the value with index i uses
    random draw i. Raises LiteralError for values that are not numbers; raises UnsupportedError for numbers with too
    many digits, and for an invalid tensor scale.

    >>> [block] = quantize_blocks(["957", "1"], "mxfp8_e4m3")
    >>> block.scale, [(hex(each.code), str(each.decoded.as_fraction())) for each in block.elements]
    (Datum(e8m0fnu 0x80 = 2), [('0x7e', '896'), ('0x30', '1')])
    """
    recipe = parse_recipe(format)
    fmt, chosen = recipe.format, recipe.with_rule(rule).rule
    rounding = element_context(as_context(context), fmt)
    rows = [list(row) for row in values if isinstance(row, list | tuple)] or [list(values)]
    flat = [value for row in rows for value in row]
    found, literals = [exact_value(value) for value in flat], tuple(typed_text(value) for value in flat)
    source = _working_input(chosen, flat)
    found = [rounded(value, source) for value in found]
    blocks = tiles(fmt, len(rows), len(rows[0]))
    work = Quantizer(fmt, chosen, rounding, source, tensor_scale)
    cut = [[found[at] for at in block] for block in blocks]
    searched = [SEARCHES[chosen.search](block) for block in cut] if chosen.search else [Found()] * len(cut)
    tensors = work.tensor_scales(cut, searched, blocks, len(rows[0]))
    return tuple(
        work.block(each, tuple(literals[at] for at in places), places, best, tensor)
        for each, places, best, tensor in zip(cut, blocks, searched, tensors, strict=True)
    )


def quantize_block(
    values: Sequence[object],
    places: list[int],
    recipe: Recipe,
    context: AnyContext = DEFAULT,
    tensor_scale: object = None,
    others: Sequence[Sequence[object]] = (),
) -> BlockDerivation:
    """Quantize only one block of a tensor. `quantize_blocks` gives the same block if it gets the whole tensor.

    `places` are the indices of the values in the tensor. `others` are the other blocks that share the tensor scale. If
    the rule has no `search`, only the largest magnitude, the NaNs and the infinities of the other blocks matter. So
    `others` may consist of a few short blocks with these values.

    >>> block = quantize_block(["1", "2"], [2, 3], parse_recipe("nvfp4"), others=[["2688", "0"]])
    >>> block.tensor.datum, block.scale
    (Datum(binary32 0x3f800000 = 1), Datum(e4m3fn 0x2b = 0.34))
    """
    fmt, rule = recipe.format, recipe.rule
    source = _working_input(rule, [*values, *(value for other in others for value in other)])
    cut = [[rounded(exact_value(value), source) for value in block] for block in (values, *others)]
    searched = [SEARCHES[rule.search](block) if rule.search else Found() for block in cut]
    work = Quantizer(fmt, rule, element_context(as_context(context), fmt), source, tensor_scale)
    literals = tuple(typed_text(value) for value in values)
    return work.block(cut[0], literals, places, searched[0], work.tensor(cut, searched))


def _working_input(rule: ScaleRule, values: Sequence[object]) -> Format | None:
    """Return the format into which a rule first rounds the values, or None if the rule uses them unrounded."""
    if rule.is_exact:
        return None
    return parse_format(rule.takes) if rule.takes else input_format(values)
