"""Block formats on arrays (MX, NVFP4 and other recipes). The results have the same bits as those of `arith.blocks`.

Let x be an element, amax the largest magnitude of its block, s the scale of the block, t the tensor scale (or 1), and
`largest` the largest number of the element format. `arith.blocks` computes the quotients amax / (`largest`·t) and x /
(s·t) exactly and rounds them once. Here, both are computed in float64 and then rounded. The module `arrays.quotients`
explains why the results are equal. A division by a power of two is always exact.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Unpack

import numpy as np

from floatlab.arith.blocks import quantize_blocks as derive_blocks
from floatlab.arith.blocks.formulas import evaluate, positive, ratio, stored
from floatlab.arith.blocks.records import zero_code
from floatlab.arith.operands import holds
from floatlab.arrays.block_job import (
    Job,
    dtype_of_results,
    encode_plain,
    from_magnitudes,
    given_scale,
    reader,
    saturating_context,
    silent,
)
from floatlab.arrays.codec import BlockRounding, decode_array, round_array, rules_of
from floatlab.arrays.lanes.compiled_blocks import scaled_elements
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, checked_codes, container
from floatlab.arrays.packing import MAX_WIDTH
from floatlab.arrays.recipes import formulas
from floatlab.arrays.recipes.lane import lane_for
from floatlab.arrays.recipes.tiling import Tiling
from floatlab.arrays.scales import (
    DOUBLES,
    SINGLES,
    WORDS,
    BlockLayout,
    Blocks,
    dtype_of,
    is_plain,
    product_dtype,
    recipe_of,
    scales_for,
)
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.formats.blocks import BlockFormat, Integers
from floatlab.formats.format import Format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import PRODUCT
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import Context

_CLOSE = 2.0**-40  # if the relative difference of two errors is smaller, they are compared exactly


@in_default_mode
def encode_blocks(
    x: object, format: BlockFormat | Recipe | str, axis: int = -1, **options: Unpack[BlockRounding]
) -> Blocks:
    """Encode an array in a block format; return one code for the scale of each block and one for each element.

    Parameters
    ----------
    x
        Array, as in `encode`.
    format
        Block format or its name: `mxfp8_e4m3`, `mxfp4`, `mxint8`, `nvfp4` …
    axis
        Axis along which blocks are formed. For MX and NVFP4 with floatlab's own rules, the length of the axis must be a
        multiple of the block size. A shorter last block is padded with zeros in three cases: scales are binary32,
        blocks have several rows, or the rule is that of a library.
    scale
        Rule for scales (`formats.scale_rules`). The default depends on the format: floor for MX, nearest for nvfp4.
    rounding, context
        Rounding direction or Context for the elements. Elements that are too large saturate.
    tensor_scale
        Scale of the whole tensor for nvfp4; by default computed from the largest magnitude.
    block
        Block size; by default the format's own.
    lane
        As in `encode`.

    Returns
    -------
    Blocks
        `scales` has the shape of `x`, but the axis is shorter: one scale per block. `codes` has the shape of `x`, with
        one code per byte (two's complement for mxint8). In MX and NVFP4, a block with a NaN or an infinity gets the
        scale NaN and elements 0, unless the rule is that of a library.

    Raises
    ------
    UnsupportedError
        For arrays that are not numeric, for an axis that does not exist, and for a short last block that is not padded.
    FormatError, ContextError
        For unknown names.

    Examples
    --------
    >>> scales, codes = encode_blocks(np.array([957.0, *[1.0] * 31], np.float32), "mxfp8_e4m3")
    >>> scales.tolist(), codes[:2].tolist()
    ([128], [126, 48])
    """
    recipe = recipe_of(format, options.get("block"), options.get("scale"))
    if not is_plain(recipe) or _is_padded(source_of(x).codes.shape, recipe, axis):
        return _encode_tiles(x, recipe, axis, options)
    return encode_plain(x, recipe, axis, options)


def _is_padded(shape: tuple[int, ...], recipe: Recipe, axis: object) -> bool:
    """Return whether the last block along the axis is short and will be padded.

    Only the family `fp32` (binary32 scales) is padded here. Other plain recipes raise an error for a short block.
    """
    fmt = recipe.format
    if fmt.family != "fp32" or fmt.block is None or not shape or not hasattr(axis, "__index__"):
        return False
    at = axis.__index__()
    return -len(shape) <= at < len(shape) and shape[at] % fmt.block != 0


def _encode_tiles(x: object, recipe: Recipe, axis: int, options: BlockRounding) -> Blocks:
    """Encode an array by a recipe that is not plain (`is_plain`), or with padding. Blocks may span several rows.

    The blocks ("tiles") become the rows of a matrix. This matrix is encoded, and the codes are then put back into the
    shape of the array.
    """
    fmt, rule = recipe.format, recipe.rule
    context = saturating_context(rules_of(options.get("context"), options.get("rounding", "RNE")), fmt)
    if context.rounding.is_stochastic:
        raise UnsupportedError(f"stochastic rounding is for blocks along one axis, not for {recipe.name}")
    given, source = options.get("tensor_scale"), source_of(x)
    given_scale(given, fmt)
    taken = source.format
    if not rule.is_exact:
        taken = parse_format(rule.takes) if rule.takes else taken if taken.width < SINGLE.width else SINGLE
    values = decode_array(source.codes, source.format, threads=1).reshape(source.codes.shape)
    values = values if taken == source.format else np.asarray(round_array(values, taken))
    tiling = Tiling(values.shape, fmt, axis)
    matrix = tiling.cut(values)
    with silent():
        if not rule.is_exact:
            rows = tiling.row_of_block() if fmt.by_row else None
            lane = lane_for(recipe, taken, context)
            scales, codes, tensor, groups = lane(matrix.astype(np.float32, copy=False), rows, tiling.columns, given)
            stored = tensor if tensor is None or fmt.by_row else np.float32(tensor.item())
            return Blocks(scales.reshape(tiling.scales_shape), tiling.join(codes), stored, groups)
        flat = recipe.replace(format=fmt.replace(block=None, rows=1, by_row=False, flat=False))  # a row is a block
        kept: BlockRounding = {"context": context, "lane": options.get("lane")}
        rows = tiling.row_of_block() if fmt.by_row else np.zeros(0, np.intp)
        matrices = [matrix[rows == row] for row in range(int(rows.max(initial=0)) + 1)] if fmt.by_row else [matrix]
        parts = [_encode_rows(each, flat, context, {**kept, "tensor_scale": given}) for each in matrices]
    scales = np.concatenate([part.scales.reshape(-1) for part in parts]).reshape(tiling.scales_shape)
    codes = tiling.join(np.concatenate([part.codes for part in parts]))
    tensors = [part.tensor_scale for part in parts]
    return Blocks(scales, codes, np.array(tensors, np.float32) if fmt.by_row else tensors[0])


def _encode_rows(matrix: Array, recipe: Recipe, context: Context, options: BlockRounding) -> Blocks:
    """Encode a matrix whose rows are blocks, by a rule that rounds only its results (`is_exact`)."""
    if recipe.rule.name == "none":
        return _unscaled(matrix, recipe, context)
    if recipe.rule.choice is not None:
        given = options.pop("tensor_scale", None)
        return _chosen(matrix, recipe, given, options)
    return encode_plain(matrix, recipe, -1, options)


def _unscaled(matrix: Array, recipe: Recipe, context: Context) -> Blocks:
    """Encode values without scaling them: every scale is 1."""
    numbers = recipe.format.magnitudes
    codes = round_array(matrix, numbers, context=context, threads=1, as_codes=True)
    if isinstance(recipe.format.element, Integers):
        codes = from_magnitudes(recipe.format.element).take(codes)
    nan = codes.dtype.type(numbers.nan_code if numbers.has_nan else zero_code(recipe.format))
    ones = round_array(np.ones(len(matrix)), recipe.format.scale, threads=1, as_codes=True)
    return Blocks(ones, np.where(np.isnan(matrix), nan, codes), None)


def _chosen(matrix: Array, recipe: Recipe, given: object, options: BlockRounding) -> Blocks:
    """Encode each block with several scales, and keep the result with the smallest error (`ScaleChoice`).

    Errors are computed in float64. If the errors of two scales are nearly equal, exact scalar arithmetic decides.
    """
    fmt, choice = recipe.format, recipe.rule.choice
    assert choice is not None
    job = Job(matrix, recipe, -1, **options)
    amax = job.largest()
    job.finite = bool(np.isfinite(amax).all())
    top = float(np.max(amax, where=np.isfinite(amax), initial=0))
    known = {"tensor_amax": ratio(Fraction(top)), "largest": ratio(fmt.magnitudes.largest)}
    [line] = [line for line in recipe.rule.steps() if line.name == "tensor"]
    tensor = given_scale(given, fmt)
    if fmt.tensor is not None and tensor is None:
        tensor = np.float32(float(positive(stored(evaluate(line.formula, known, None), fmt.tensor, saturates=True))))
    tries = []
    for factor in choice.factors:
        scaled = amax.astype(np.float64) * float(factor)
        scales = job.steps.codes(scaled, float(scaled.max(initial=0)), tensor)
        codes = np.empty(matrix.shape, container(job.steps.numbers))
        errors = np.empty(len(matrix))
        for rows, made, by in job.round(scales, tensor, job.cut.blocks(codes)):
            values = decode_array(made, fmt.magnitudes, np.float64, threads=1) * by - job.cut.blocks(matrix)[rows]
            errors[rows] = np.square(values).sum(axis=(1, 2))
        tries.append((scales.reshape(-1), codes, errors))
    (scales, codes, first), *others = tries
    for other_scales, other_codes, errors in others:
        better, near = errors < first, np.flatnonzero(np.abs(errors - first) <= _CLOSE * (errors + first))
        one, other = (
            decode_array(made[near], fmt.magnitudes, np.float64, threads=1)
            * job.steps.values(by[near, None], np.dtype(np.float64))
            for made, by in ((codes, scales), (other_codes, other_scales))
        )
        near = near[(one != other).any(axis=1)]  # if both scales give the same values, the errors are equal
        scales, codes = np.where(better, other_scales, scales), np.where(better[:, None], other_codes, codes)
        for row in near:
            [block] = derive_blocks(matrix[row].tolist(), recipe, None, job.context, tensor)
            scales[row], codes[row] = block.scale.code, [element.code for element in block.elements]
    return Blocks(scales, codes, tensor)


@in_default_mode
def quantize_blocks(
    x: object, format: BlockFormat | Recipe | str, axis: int = -1, **options: Unpack[BlockRounding]
) -> Array:
    """Return the numbers of `x` rounded into a block format: element × scale × tensor scale.

    Parameters and errors are those of `encode_blocks`.

    Returns
    -------
    values
        float64 for float64 arrays and Python floats; float32 for integers and narrower floats, since float16 lacks the
        range of the scales.

    Notes
    -----
    In MX, element × scale is exact in float32, unless this product reaches 2^128 and becomes ∞. In nvfp4, the product
    of element, scale and tensor scale has up to 30 bits and is rounded once, to nearest.

    Examples
    --------
    >>> quantize_blocks(np.array([957.0, *[1.1] * 31], np.float32), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.125]
    """
    recipe = recipe_of(format, options.get("block"), options.get("scale"))
    if not is_plain(recipe) or _is_padded(source_of(x).codes.shape, recipe, axis):
        dtype = dtype_of_results(x, source_of(x))
        return decode_blocks(_encode_tiles(x, recipe, axis, options), recipe, axis, dtype=dtype)
    job = Job(x, format, axis, **options)
    with silent():
        if (found := job.at_once(False, True)) and found.values is not None:
            return found.values
    values = np.empty(job.array.shape, job.dtype)
    into, kind, numbers = job.cut.blocks(values), product_dtype(job.fmt, job.dtype), job.steps.numbers
    direct: Format | None = WORDS[job.dtype]
    if isinstance(job.fmt.element, Integers) or not holds(WORDS[job.dtype], numbers):
        direct = None
    with silent():
        codes, tensor = job.scales()
        for rows, made, by in job.round(codes, tensor, into if direct else None, direct):
            elements = made if direct else reader(job.fmt, kind, True)(made)
            np.multiply(elements, by, out=into[rows], dtype=kind, casting="same_kind")
    return values


@in_default_mode
def decode_blocks(
    blocks: object,
    format: BlockFormat | Recipe | str,
    axis: int = -1,
    *,
    tensor_scale: object = None,
    block: int | None = None,
    dtype: object = None,
) -> Array:
    """Return the exact values of encoded blocks; a value that the dtype cannot represent is rounded to nearest.

    Parameters
    ----------
    blocks
        The result of `encode_blocks`, or a pair of scales and codes.
    format, axis, block
        As in `encode_blocks`.
    tensor_scale
        Scale of the tensor for nvfp4, if `blocks` is a pair.
    dtype
        Default: float64 for MX, nvfp4, other formats with numbers that float32 lacks, and recipes that are not plain
        (`is_plain`); otherwise float32. If float32 is requested, values beyond its range become infinite.

    Raises
    ------
    UnsupportedError
        For codes that are too wide, for shapes that do not match, and for a missing tensor scale.

    Examples
    --------
    >>> decode_blocks((np.array([128]), np.array([126, 48] * 16)), "mxfp8_e4m3")[:2].tolist()
    [896.0, 1.0]
    """
    recipe = recipe_of(format, block)
    fmt = recipe.format
    pair: Any = blocks
    try:
        scales, codes = pair
    except (TypeError, ValueError):
        raise UnsupportedError("blocks must be a pair of scales and codes, as encode_blocks returns it") from None
    width = fmt.scale_bits if fmt.first_scale else fmt.scale
    scales, codes = checked_codes(scales, width, "scales"), checked_codes(codes, fmt.element.width)
    if tensor_scale is None and isinstance(blocks, Blocks):
        tensor_scale = blocks.tensor_scale
    if not is_plain(recipe) or _is_padded(codes.shape, recipe, axis):
        groups = blocks.groups if isinstance(blocks, Blocks) else ()
        return _decode_tiles(Blocks(scales, codes, None, groups), tensor_scale, recipe, axis, dtype)
    tensor = given_scale(tensor_scale, fmt)
    if fmt.tensor is not None and tensor is None:
        raise UnsupportedError(f"tensor_scale: {fmt.name} needs the scale of the tensor, which a pair does not contain")
    cut = BlockLayout(codes.shape, axis, fmt)
    if scales.shape != cut.scales_shape:
        raise UnsupportedError(f"scales must have shape {cut.scales_shape} for these codes, not {scales.shape}")
    kind = dtype_of(fmt) if dtype is None else np.dtype(dtype)  # type: ignore[call-overload]
    if kind not in WORDS:
        raise UnsupportedError(f"dtype {kind.name} does not hold the range of {fmt.name}; float32 and float64 do")
    values = np.empty(codes.shape, kind)
    into, elements, rowed = cut.blocks(values), cut.blocks(codes), cut.scales(scales)
    within = product_dtype(fmt, kind)
    read, steps = reader(fmt, within), scales_for(fmt, None)
    with silent():
        if cut.inner == 1 and kind == SINGLES:
            found = _in_singles(fmt, elements[:, :, 0], steps.values(scales.reshape(-1), DOUBLES, tensor))
            if found is not None:
                return found.reshape(codes.shape)
        for rows in cut.slabs():
            by = steps.values(rowed[rows], within, tensor)
            np.multiply(read(elements[rows]), by, out=into[rows], dtype=within, casting="same_kind")
    return values


def _in_singles(fmt: BlockFormat, codes: Array, by: Array) -> Array | None:
    """Return the values of rows of codes as float32, or None if the compiled lane cannot decode them.

    `by` has one factor for each row.
    """
    numbers = fmt.magnitudes
    if fmt.element.width > MAX_WIDTH or not holds(SINGLE, numbers) or sum(_digits(fmt)) > DOUBLE.precision:
        return None
    table = reader(fmt, SINGLES)(np.arange(1 << fmt.element.width))
    return scaled_elements(codes, table, by, product_dtype(fmt, SINGLES) == DOUBLES)


def _digits(fmt: BlockFormat) -> list[int]:
    """Return the precisions of the factors of a decoded value: element, scale and tensor scale."""
    return [each.precision for each in (fmt.magnitudes, fmt.scale, fmt.tensor) if each is not None]


def _decode_tiles(blocks: Blocks, tensor_scale: object, recipe: Recipe, axis: int, dtype: object) -> Array:
    """Return the values of an array that `_encode_tiles` encoded; the rule's formula is computed in float64."""
    scales, codes, groups = blocks.scales, blocks.codes, blocks.groups
    fmt, rule = recipe.format, recipe.rule
    tiling = Tiling(codes.shape, fmt, axis)
    if scales.shape != tiling.scales_shape:
        raise UnsupportedError(f"scales must have shape {tiling.scales_shape} for these codes, not {scales.shape}")
    stores = any(line.name == "tensor" for line in rule.steps())
    tensor: Array = np.ones((1, 1))
    if fmt.tensor is not None and stores:
        if tensor_scale is None:
            raise UnsupportedError(
                f"tensor_scale: {fmt.name} needs the scale of the tensor, which a pair does not contain"
            )
        tensor = np.asarray(tensor_scale, np.float64).reshape(-1, 1)
        tensor = tensor[tiling.row_of_block()] if fmt.by_row else tensor
    kind = np.dtype(np.float64 if dtype is None else dtype)  # type: ignore[call-overload]
    stored = scales.reshape(-1, 1).astype(np.uint64) + fmt.first_scale  # the sum may not fit into a byte
    scale = decode_array(stored, fmt.scale, np.float64, threads=1)
    if kind == SINGLES and rule.value == PRODUCT and not fmt.groups:
        with silent():
            values = _in_singles(fmt, tiling.cut(codes), np.broadcast_to(scale * tensor, scale.shape))
        if values is not None:
            return tiling.join(values)
    known = {
        "q": reader(fmt, np.dtype(np.float64))(tiling.cut(codes)),
        "scale": scale,
        "tensor": tensor,
    }
    if len(groups) != len(fmt.groups):
        raise UnsupportedError(f"{fmt.name} needs the exponents of its groups, which a pair does not contain")
    for size, exponents in zip(fmt.groups, groups, strict=True):
        known[f"micro{size}"] = np.exp2(np.repeat(exponents, size, axis=1).astype(np.float64))
    with silent():
        # The product is exact (at most 53 digits). At most one division follows, so the value is rounded once.
        values = formulas.evaluate(parse_formula(rule.value), known, DOUBLE).astype(kind)
    return tiling.join(values)
