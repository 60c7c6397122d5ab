"""What a FloatArray is made of: formats that arrays can compute in, and the codes of whatever holds numbers."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import encode
from floatlab.arrays.lanes.reading import DOUBLE, container
from floatlab.arrays.lanes.reading import checked_codes as checked_codes  # for storage
from floatlab.arrays.sources import format_of, source_of
from floatlab.arrays.types import Array
from floatlab.errors import FormatError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, convert
from floatlab.numbers import encode as encode_one


def array_format(format: Any) -> Format:
    """Return the format that a name, a Format or a dtype means; raises FormatError for one too wide for arrays."""
    if isinstance(format, np.dtype) or (isinstance(format, type) and issubclass(format, np.generic | float)):
        found = format_of(np.dtype(format))
        if found is None:
            raise FormatError(f"dtype {np.dtype(format).name} is no format of floatlab: name one, such as 'fp16'")
        return found
    fmt = parse_format(format)
    if not holds(DOUBLE, fmt):
        raise FormatError(f"{fmt.name} has numbers that float64 does not hold; a FloatArray cannot compute with them")
    return fmt


def is_number(x: Any) -> bool:
    """Say whether `x` is one number, which takes the format of the array it meets."""
    return isinstance(x, int | float | np.number | np.bool_ | Fraction | Decimal | Datum)


def codes_in(x: Any, format: Format, context: Context) -> Array:
    """Return the codes of anything that a FloatArray may be made of: rounded once, and not at all from its own format.

    Raises UnsupportedError for what is no number and no array of numbers.
    """
    if isinstance(x, Datum):
        return np.asarray(convert(x, format, context).result.code, container(format))
    if isinstance(x, str) or (is_number(x) and not isinstance(x, np.generic)):
        return np.asarray(encode_one(x, format, context).code, container(format))
    if getattr(x, "dtype", None) == np.bool_:
        x = np.asarray(x, np.uint8)
    source = source_of(x)
    if source.format == format:
        unsigned = container(format)
        found: Array = source.codes.astype(unsigned) & unsigned.type((1 << format.width) - 1)
        return found
    found = encode(x, format, context=context)
    return np.asarray(found)
