"""The scale of a whole tensor: the caller's scale, or the scale that uses the full range of elements and scales.

Some scale rules have other formulas; `Quantizer.tensor` evaluates the formula of any rule.
"""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith.blocks.formulas import positive
from floatlab.arith.blocks.values import typed_text
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.format import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import Derivation
from floatlab.numbers.reading import encode
from floatlab.numbers.rounding import Context


def read_tensor_scale(value: object, kind: Format) -> Datum:
    """Return the caller's tensor scale, rounded into `kind`.

    Raises UnsupportedError unless the scale is positive and finite.

    >>> from floatlab import parse_format
    >>> read_tensor_scale("0.1", parse_format("fp32"))
    Datum(binary32 0x3dcccccd = 0.1)
    """
    scale = encode(value.result if isinstance(value, Derivation) else value, kind)
    if not scale.is_finite or scale.sign_bit or not scale.magnitude:
        raise UnsupportedError(
            f"tensor_scale must be a positive number of {kind.name}, not {quoted(typed_text(value) or str(value))}"
        )
    return scale


def full_range_tensor_scale(amax: Fraction | int, format: BlockFormat) -> Datum:
    """Return amax / (largest element · largest scale), rounded into the tensor scale's format; 1 if `amax` is zero.

    The result is never rounded to zero or ∞: the smallest or the largest number is returned instead. With this tensor
    scale, `amax` is stored as the largest element with the largest scale.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> full_range_tensor_scale(2688, parse_block_format("nvfp4"))
    Datum(binary32 0x3f800000 = 1)
    """
    kind = format.tensor
    assert kind is not None
    wanted = amax / (format.magnitudes.largest * format.scale.largest) if amax else 1
    return positive(encode(wanted, kind, Context(overflow="saturate")))
