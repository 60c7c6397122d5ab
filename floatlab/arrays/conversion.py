"""`quantize`, `encode` and `decode`: arrays into any format, including block formats, and back."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Unpack

from floatlab.arrays.codec import AnyOptions, BlockOptions, CallOptions, decode_array, round_array
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers.rounding import AnyContext

_OF_BLOCKS = ("axis", *BlockOptions.__annotations__)
_ROUNDING = (*CallOptions.__annotations__, "dialect")
_READING = ("lane", "threads")
_KNOWN = ["rounding", "overflow", "out", "dtype", *_ROUNDING, *_OF_BLOCKS]


def _is_of_blocks(format: object, options: AnyOptions, known: tuple[str, ...]) -> bool:
    """Return whether `format` is a block format or the name of a block format.

    Raises UnsupportedError for keywords that do not suit the format.
    """
    if isinstance(format, str):
        blocks = _is_block_name(format)
    else:
        blocks = not isinstance(format, Format) and (hasattr(format, "block") or hasattr(format, "rule"))
    for name in options:
        if name in known or (blocks and name in _OF_BLOCKS):
            continue
        if name in _OF_BLOCKS:
            raise UnsupportedError(f"{name} is for block formats such as mxfp4, not for {quoted(str(format))}")
        hint = ': a seed is part of a context, Context("SR", seed=1)' if name == "seed" and not blocks else ""
        where = " for formats of blocks" if blocks else hint
        raise UnsupportedError(f"there is no argument {quoted(name)}{guess(name, _KNOWN)}{where}")
    return blocks


@lru_cache(maxsize=256)
def _is_block_name(name: str) -> bool:
    from floatlab.formats.recipes import is_recipe

    return is_recipe(name)


def _block_keywords(options: AnyOptions, out: object, overflow: str = "native") -> dict[str, Any]:
    """Return the keywords for functions on blocks; raises UnsupportedError for arguments that blocks do not support."""
    kept: dict[str, Any] = {**options}
    refused = {
        "out": out is not None,
        "return_flags": kept.pop("return_flags", False) is not False,
        "threads": kept.pop("threads", None) not in (None, 1),
        "dialect": kept.pop("dialect", None) is not None,
        "overflow": overflow not in ("native", "saturate"),
    }
    for name, is_given in refused.items():
        if is_given:
            raise UnsupportedError(f"{name} is not for block formats: their elements saturate, in new arrays")
    return kept


@in_default_mode
def encode(
    x: object,
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    **options: Unpack[AnyOptions],
) -> Any:
    """Round numbers into a format, and return their codes; each number is rounded once, directly.

    Parameters
    ----------
    x
        Array of any shape, or nested lists: floats (NumPy's dtypes of up to 64 bits, those of ml_dtypes), integers
        within ±2^53, a `FloatArray`, a tensor of PyTorch or JAX.
    format
        A format or its name; also a block format (`mxfp4`, `nvfp4` …).
    rounding
        Rounding direction, or a Context. In stochastic rounding, the element with index i in C order uses draw i.
    overflow
        Result of an overflow, unless the direction (such as RTZ) requires the largest number. `native`: ∞ if the format
        has it, else NaN, else the largest number. `saturate`: the largest number, also for infinities. `propagate`: the
        largest number, but infinities stay infinite.
    out
        Array for the result. After an error, it is unchanged.
    **options
        The keywords that follow.
    context
        Context; it overrides `overflow`, and it overrides `rounding` if `rounding` is a direction.
    dialect
        Follow the rules of a processor or library for overflow, NaNs, zero and negative numbers: "cuda", "arm-fp8",
        "torch", "ml_dtypes" …
    return_flags
        True: also return the flags of each element as uint8, the values of `Flags`. "counts": also return the number of
        elements that raised each flag.
    lane
        `compiled`, `numpy` or `scalar`; by default the fastest. All lanes give the same results.
    threads
        Number of threads; by default one for small arrays; for large ones, one per processor, but at most eight.
    axis, scale, tensor_scale, block
        For block formats, as in `encode_blocks`. Block formats take no `out`, `dialect` or `return_flags`, and only one
        thread; their `overflow` is `native` or `saturate`.

    Returns
    -------
    codes
        Unsigned integers of 8, 16, 32 or 64 bits, in the shape of `x`; with `return_flags`, a pair of codes and flags.
        For block formats a `Blocks`, which unpacks as (scales, codes).

    Raises
    ------
    UnsupportedError
        For arrays that are not numeric, and for an `out` that does not fit. If the context's `absent` is "error", also
        for values that the format does not contain.
    FormatError, ContextError
        For unknown names.

    Examples
    --------
    >>> encode([1.0, 448.0, 1000.0], "e4m3").tolist()
    [56, 126, 127]
    >>> [encode([1000.0, float("inf")], "e4m3", dialect=name).tolist() for name in ("torch", "ml_dtypes")]
    [[126, 126], [127, 127]]
    >>> from floatlab import Flags
    >>> encode([1.0, 448.0, 1000.0], "e4m3", return_flags="counts")[1][Flags.OVERFLOW]
    1
    """
    if _is_of_blocks(format, options, _ROUNDING):
        from floatlab.arrays.blocks import encode_blocks

        return encode_blocks(x, format, rounding=rounding, **_block_keywords(options, out, overflow))  # type: ignore[arg-type]
    return round_array(x, format, rounding, overflow, out, **options, as_codes=True)  # type: ignore[misc]


@in_default_mode
def decode(
    codes: object,
    format: Format | str,
    dtype: object = None,
    out: Array | None = None,
    **options: Unpack[AnyOptions],
) -> Array:
    """Return the values of codes as floats.

    The values are exact, with two exceptions, which are rounded to nearest: irrational numbers, and values of blocks
    that `dtype` cannot represent. NaNs keep their payloads if the format has payloads.

    Parameters
    ----------
    codes
        Integers of any shape; for a block format the result of `encode`.
    format
        A format or its name.
    dtype
        Dtype of the values; by default float32 if it contains the format, else float64. MX and NVFP4 give float64.
    out
        Array for the result; not for block formats.
    **options
        The keywords that follow.
    lane, threads
        As in `encode`.
    axis, tensor_scale, block
        For block formats, as in `decode_blocks`.

    Returns
    -------
    values
        Floats in the shape of the codes.

    Raises
    ------
    FormatError
        For an unknown format, and for a format of rational numbers that float64 does not contain.
    UnsupportedError
        For codes that are too wide, and for a `dtype` that cannot represent the values.

    Examples
    --------
    >>> decode([56, 126, 127], "e4m3").tolist()
    [1.0, 448.0, nan]
    """
    if _is_of_blocks(format, options, _READING):
        from floatlab.arrays.blocks import decode_blocks

        kept = _block_keywords(options, out)
        kept.pop("lane", None)
        return decode_blocks(codes, format, dtype=dtype, **kept)  # type: ignore[arg-type]
    return decode_array(codes, format, dtype, out, **options)  # type: ignore[misc]


@in_default_mode
def quantize(
    x: object,
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    **options: Unpack[AnyOptions],
) -> Any:
    """Round numbers into a format, and return the rounded numbers as floats.

    Parameters
    ----------
    x, format, rounding, overflow, out, **options
        As in `encode`.

    Returns
    -------
    values
        Floats. Their dtype is that of `x` if this dtype contains the format, or the format contains this dtype; else
        float32 or float64. For block formats as in `quantize_blocks`. With `return_flags` a pair of values and flags.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `encode`.

    Examples
    --------
    >>> import numpy as np
    >>> quantize(np.array([0.1, 3.0, 500.0], np.float32), "e4m3").tolist()
    [0.1015625, 3.0, nan]
    >>> quantize(np.float16(65504), "bf16").item()
    65536.0
    """
    if _is_of_blocks(format, options, _ROUNDING):
        from floatlab.arrays.blocks import quantize_blocks

        return quantize_blocks(x, format, rounding=rounding, **_block_keywords(options, out, overflow))  # type: ignore[arg-type]
    return round_array(x, format, rounding, overflow, out, **options)  # type: ignore[misc]
