"""The scale of a whole tensor: as given by the caller, or computed for arrays from the largest magnitude.

Step by step, `Quantizer.tensor` computes it by the formula of the scale rule.
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
    """Return the caller's tensor scale, rounded to nearest into its format; raises UnsupportedError if it is invalid.

    >>> from floatlab import parse_format
    >>> read_tensor_scale("0.1", parse_format("fp32"))
    Datum(binary32 0x3dcccccd = 0.1)
    """
    scale = encode(value.result if isinstance(value, Derivation) else value, kind)
    if not scale.is_finite or scale.sign_bit or not scale.magnitude:
        raise UnsupportedError(
            f"tensor_scale is a positive number of {kind.name}, not {quoted(typed_text(value) or str(value))}"
        )
    return scale


def tensor_scale_for(amax: Fraction | int, format: BlockFormat) -> Datum:
    """Return the scale of a tensor with largest magnitude `amax`; it is never zero or ∞, and is 1 if `amax` is zero.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> tensor_scale_for(2688, parse_block_format("nvfp4")), tensor_scale_for(0, parse_block_format("nvfp4"))
    (Datum(binary32 0x3f800000 = 1), Datum(binary32 0x3f800000 = 1))
    """
    kind = format.tensor
    assert kind is not None
    wanted = amax / (format.magnitudes.largest * format.scale.largest) if amax else 1
    return positive(encode(wanted, kind, Context(overflow="saturate")))
