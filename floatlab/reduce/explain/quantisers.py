"""Changes of an input: rounding to a format, and quantisation with a scale per tensor, row, group of terms or block.

Each change takes its settings, a part of an input, the whole input, and the axis of its terms. It returns the changed
part.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.arrays.blocks import quantize_blocks
from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.formats.recipes import parse_recipe
from floatlab.reduce.explain.residuals import share_of

# Formats of results that are stored with a scale, and the number to which the largest magnitude is scaled.
_STORED = (("int8", 127.0), ("e4m3", 448.0), ("e5m2", 57344.0), ("int8", 128.0))
_EXACTLY = 2.0**-22  # the largest relative error of the quotient of a result and its scale, both in binary32
_EVIDENCE = 20.0  # a grid is accepted if the values lie on it by chance with a probability of less than 2^−20
_BEYOND = 1.1  # numbers above this many times the largest finite number become infinite if they are rounded to nearest


def rounded(name: str, direction: str, part: Array, whole: Array, axis: int) -> Array:
    """Round to a format.

    Numbers far beyond the largest finite number of the format become infinite, except in rounding toward zero.
    """
    made = np.asarray(quantize(part, name, rounding=direction), np.float64)
    if direction == "RTZ":
        return made
    return np.where(np.abs(part) > float(parse_format(name).largest) * _BEYOND, np.copysign(np.inf, part), made)


def rounded_twice(name: str, direction: str, part: Array, whole: Array, axis: int) -> Array:
    """Round to binary32, and then to a format."""
    return rounded(name, direction, rounded("fp32", "RNE", part, whole, axis), whole, axis)


def saturated(name: str, part: Array, whole: Array, axis: int) -> Array:
    """Round to a format. Numbers beyond the largest finite number become this number, with the same sign."""
    return np.asarray(quantize(part, name, overflow="saturate"), np.float64)


def flushed(least: float, part: Array, whole: Array, axis: int) -> Array:
    """Replace numbers whose magnitude is below `least` by zero."""
    return np.where(np.abs(part) < least, 0.0, part)


def quantized(
    by_row: bool, part: Array, whole: Array, axis: int, steps: float = 127, stored: str = "", is_double: bool = False
) -> Array:
    """Quantise to integers and return the dequantised values.

    The scale is the largest magnitude divided by `steps`. If `by_row` is true, each row of terms has a separate scale;
    otherwise, the whole input has one scale. The function `_stored` rounds the scale as `stored` says. If
    `is_double` is true, the quotients are computed in binary64 (see `_codes`).
    """
    scale = _stored(_largest(by_row, part, whole, axis) / steps, stored)
    made: Array = np.clip(_codes(part, scale, is_double), -np.ceil(steps), np.floor(min(steps, 127))) * scale
    return made


def clipped(share: float, part: Array, whole: Array, axis: int) -> Array:
    """Quantise to int8 with one scale per tensor, and return the dequantised values.

    Let m be the quantile `share` of all magnitudes. The scale is m / 127, and larger magnitudes are reduced to m.
    """
    scale = float(np.quantile(np.abs(whole), share)) / 127 or 1.0
    made: Array = np.clip(_codes(part, scale), -127, 127) * scale
    return made


def fixed_point(bits: int, part: Array, whole: Array, axis: int) -> Array:
    """Round to fixed-point numbers with `bits` bits, including the sign.

    The range is from −2^k to one step below 2^k, where 2^k is the largest magnitude of the input, rounded up to a power
    of two.
    """
    one = 2.0 ** (bits - 1)
    scale = _stored(_largest(False, part, whole, axis), "a power of two") / one
    made: Array = np.clip(np.rint(part / scale), -one, one - 1) * scale
    return made


def with_zero(by_row: bool, part: Array, whole: Array, axis: int, steps: int = 255, is_double: bool = False) -> Array:
    """Quantise to unsigned integers up to `steps` with a zero point, and return the dequantised values."""
    ends = (part.min(axis, keepdims=True), part.max(axis, keepdims=True)) if by_row else (whole.min(), whole.max())
    least, most = np.minimum(ends[0], 0.0), np.maximum(ends[1], 0.0)
    scale = np.where(most == least, 1.0, (most - least) / steps)
    zero = _codes(-least, scale, is_double)
    made: Array = (np.clip(_codes(part, scale, is_double) + zero, 0, steps) - zero) * scale
    return made


def in_groups(
    size: int, steps: int, zero: bool, part: Array, whole: Array, axis: int, stored: str = "", is_double: bool = False
) -> Array:
    """Quantise groups of terms to integers, and return the dequantised values.

    Each group has a separate scale and, if `zero` is true, a separate zero point.
    """
    n = part.shape[axis]
    made = np.empty(part.shape)
    for low in range(0, n, size):
        index = (slice(None),) * axis + (slice(low, low + size),)
        group = part[index]
        least, most = (end(group, axis=axis, keepdims=True) for end in (np.min, np.max))
        if zero:
            least, most = np.minimum(least, 0.0), np.maximum(most, 0.0)
            scale = _stored((most - least) / (2 * steps + 1), stored)
            shift = _codes(-least, scale, is_double)
            made[index] = (np.clip(_codes(group, scale, is_double) + shift, 0, 2 * steps + 1) - shift) * scale
        else:
            scale = _stored(np.maximum(np.abs(least), np.abs(most)) / steps, stored)
            made[index] = np.clip(_codes(group, scale, is_double), -steps, steps) * scale
    return made


def scaled(name: str, most: float, by_row: bool, part: Array, whole: Array, axis: int, stored: str = "") -> Array:
    """Scale numbers so that the largest magnitude becomes `most`, round to a format, and undo the scaling.

    `by_row` and `stored` have the same meaning as for `quantized`. If `stored` is "binary32", the scaled numbers are
    also rounded to binary32 before they are rounded to the format.
    """
    scale = _stored(_largest(by_row, part, whole, axis) / most, stored)
    number = part / scale
    number = number.astype(np.float32) if stored == "binary32" else number
    return np.asarray(quantize(number, name, overflow="saturate"), np.float64) * scale


def scaled_formats(values: Array, exact: Array, known: Array) -> Iterator[tuple[tuple[tuple[str, str], ...], Array]]:
    """Yield formats to which a result may have been quantised, with scales per tensor, per row or per column.

    At most one format is yielded for each of these three kinds of scales. A format fits if each value of the result is
    a number of the format times the scale of its tensor, row or column.

    Each item has the evidence, and an array with the largest rounding error of each value. `known` is the mask of the
    values that count. A format is left out if the values may have this form by chance, or if at least half of the exact
    products also have this form (with other scales).
    """
    sizes = np.where(known, np.abs(values), 0.0)
    for axis, words in ((None, "tensor"), (1, "row"), (0, "column")):
        for name, most in _STORED:
            with np.errstate(all="ignore"):
                scale = _scale(sizes, axis, most)
                number = sizes / scale
                made = _on_grid(name, number)
                off = np.abs(number - made) > _EXACTLY * number
            if off.any():
                continue
            # The largest value that shares a scale lies on the grid by definition, so it is left out. Equal values
            # count once.
            others = np.unique(np.where((made > 0) & (made < most), sizes, 0.0), return_index=True)[1]
            number, made = number.ravel()[others], made.ravel()[others]
            step = 1.0 if name == "int8" else np.exp2(np.frexp(made)[1] - float(parse_format(name).precision))
            bits = np.where(made > 0, np.log2(step / (2 * _EXACTLY * np.maximum(number, 1e-300))), 0.0)
            plain = np.where(known, np.abs(exact), 0.0)
            with np.errstate(all="ignore"):
                plain = (plain / _scale(plain, axis, most)).ravel()[others]
            lies = np.abs(plain - _on_grid(name, plain)) <= 2 * _EXACTLY * plain
            if float(np.maximum(bits, 0.0)[~lies].sum()) > _EVIDENCE and share_of(lies) < 0.5:
                half = 0.5 if name == "int8" else _half_step(_on_grid(name, sizes / scale), parse_format(name))
                half = half * scale + _EXACTLY * np.abs(values)
                yield (("format", name if name == "int8" else parse_format(name).name), ("scale per", words)), half
                break


def _scale(sizes: Array, axis: int | None, most: float) -> Array:
    """Return the scales with which the largest magnitude becomes `most`: one in all, one per row, or one per column."""
    scale = np.asarray(sizes.max(axis=axis, keepdims=True) / most)
    return np.where(scale == 0, 1.0, scale)


def _on_grid(name: str, numbers: Array) -> Array:
    """Return the numbers rounded to the format `name`, which may also be "int8"."""
    made: Array = np.rint(numbers) if name == "int8" else np.asarray(quantize(numbers, name), np.float64)
    return made


def _half_step(numbers: Array, format: Format) -> Array:
    exponent = np.maximum(np.frexp(numbers)[1], format.emin + 1)
    return np.asarray(np.exp2(exponent - float(format.precision) - 1))


def ternary(part: Array, whole: Array, axis: int) -> Array:
    """Quantise to −1, 0 and 1 times the mean magnitude of the tensor."""
    scale = float(np.abs(whole).mean()) or 1.0
    made: Array = np.clip(_codes(part, scale), -1, 1) * scale
    return made


def in_blocks(recipe: str, part: Array, whole: Array, axis: int) -> Array:
    """Round to a block format whose blocks lie along the terms, or in tiles of the whole input.

    If the terms do not fill the last block, this block is padded with zeros, which do not change its scale.
    """
    format = parse_recipe(recipe).format
    rows, every = (side if axis else side.T for side in (part, whole))
    count, terms = rows.shape
    if format.tensor is not None and count < len(every):
        # The scale of the tensor depends on its largest number, so append the row that contains this number. Padding
        # keeps this row out of the tiles of other rows.
        rows = np.pad(rows, [(0, -count % (format.rows or 1)), (0, 0)])
        rows = np.vstack([rows, every[np.unravel_index(int(np.abs(every).argmax()), every.shape)[0]]])
    block = format.block or terms
    rows = np.pad(rows, [(0, 0), (0, -terms % block)])
    single = rows.astype(np.float32)
    made = np.asarray(quantize_blocks(single if np.array_equal(single, rows) else rows, recipe), np.float64)
    made = made[:count, :terms]
    return made if axis else made.T


def _codes(numbers: Array, scale: Array | float, is_double: bool = False) -> Array:
    """Return numbers divided by a scale and rounded to integers.

    The division decides how numbers close to a tie are rounded. Most programs divide in binary32, so numbers that
    binary32 holds are divided in binary32, too, unless `is_double` is true.
    """
    single, step = np.asarray(numbers, np.float32), np.asarray(scale, np.float32)
    if is_double or not step.all() or not np.array_equal(single, numbers):
        return np.asarray(np.rint(numbers / scale))
    codes: Array = np.rint(single / step).astype(np.float64)
    return codes


def _largest(by_row: bool, part: Array, whole: Array, axis: int) -> Array:
    return np.asarray(np.abs(part).max(axis=axis, keepdims=True) if by_row else np.abs(whole).max())


def _stored(scale: Array, stored: str) -> Array:
    """Return a scale as it is stored: unchanged, rounded to a format, or rounded up to a power of two.

    A scale of 0 becomes 1.
    """
    if stored == "a power of two":
        with np.errstate(all="ignore"):
            scale = np.exp2(np.ceil(np.log2(scale)))
    elif stored:
        scale = np.asarray(quantize(scale, stored), np.float64)
    return np.where(scale == 0, 1.0, scale)
