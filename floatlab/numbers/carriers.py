"""Numbers of Python and of other libraries, by the format that they bring: no library is imported for that."""

from __future__ import annotations

import sys

from floatlab.errors import LiteralError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.names import format_called
from floatlab.numbers.datum import Datum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# The format of NumPy's longdouble, by how many trailing digits it has on this machine.
_LONG_DOUBLES = {52: "binary64", 63: "x87", 112: "binary128"}


def binary64_datum(value: float) -> Datum:
    """Return a Python float as what it is."""
    from struct import pack

    return Datum(parse_format("binary64"), int.from_bytes(pack(">d", value), "big"))


def own_datum(value: Any) -> Datum | None:
    """Return a number in the format that it brings; None for text, integers, fractions, and whatever brings none.

    A Python float is a binary64 number. A NumPy scalar, or an array or tensor without axes of any library, is a number
    of its dtype. Bits are kept where the library shows them: those of NumPy's and ml_dtypes' NaNs are.

    >>> own_datum(0.1), own_datum("0.1"), own_datum(1)
    (Datum(binary64 0x3fb999999999999a = 0.1), None, None)
    """
    if isinstance(value, float):
        return binary64_datum(value)
    dtype = getattr(value, "dtype", None)
    if dtype is None or isinstance(value, type) or getattr(value, "shape", None) != ():
        return None
    if type(dtype).__module__.partition(".")[0] == "numpy" and dtype.name.startswith(
        ("longdouble", "float96", "float128")
    ):
        return _long_double(value, dtype)
    format = format_called(str(dtype).rpartition(".")[2])
    if format is None:
        return None
    if hasattr(value, "tobytes") and getattr(dtype, "isnative", True):
        return Datum(format, int.from_bytes(value.tobytes(), sys.byteorder) & ((1 << format.width) - 1))
    return _converted(value.detach() if hasattr(value, "detach") else value, format)


def _converted(value: Any, format: Format) -> Datum:
    """Return a number by way of a Python float, which holds all numbers of the format."""
    from floatlab.numbers.reading import convert  # which reads numbers by way of this module

    return convert(binary64_datum(float(value)), format).result


def _long_double(value: Any, dtype: Any) -> Datum | None:
    name = _LONG_DOUBLES.get(int(sys.modules["numpy"].finfo(dtype).nmant))
    if name is None:
        return None
    format = parse_format(name)
    octets = value.astype(dtype.newbyteorder("=")).tobytes()
    used = octets[: format.width // 8] if sys.byteorder == "little" else octets[-(format.width // 8) :]
    return Datum(format, int.from_bytes(used, sys.byteorder))


def whole_number(value: Any) -> int | None:
    """Return an integer of Python, or of a library's integer dtype, as a Python int; None for everything else.

    Raises LiteralError for True and False, which are no numbers here.

    >>> whole_number(3), whole_number(3.0), whole_number("3")
    (3, None, None)
    """
    if type(value) is int:
        return value
    if isinstance(value, str | float | Datum | type):
        return None
    if isinstance(value, bool) or str(getattr(value, "dtype", "")).rpartition(".")[2] == "bool":
        raise LiteralError(f"{quoted(str(value))} is a truth value, not a number floatlab reads: give 1 or 0")
    if not hasattr(value, "__index__"):
        return None
    try:
        return int(value.__index__())
    except (TypeError, ValueError):  # an array or a tensor that is not one integer
        return None
