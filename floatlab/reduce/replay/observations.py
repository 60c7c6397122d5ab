"""Observed results: exact bits, or printed decimals. Each decimal may stand for several numbers."""

from __future__ import annotations

import re
from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.sources import Source, is_floating, is_typed, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import LiteralError, UnsupportedError, quoted
from floatlab.formats import Format
from floatlab.numbers import Datum, Flags, read
from floatlab.record import Individual, Record

_DECIMAL = re.compile(r"([+-]?)(\d+(?:\.\d*)?|\.\d+)(?:[eE]([+-]?\d+))?", re.ASCII)
_MOST_DIGITS = 1200  # the largest number of digits in a printed decimal; a binary64 number never needs more than 1,075
# Number of decimal digits that distinguish all numbers of a format, by the format's size in bytes.
_DISTINGUISHING = {2: 5, 4: 9, 8: 17}
_MOST_EXPONENT = 20_000  # the largest decimal exponent that is accepted; those of binary128 and x87 are below 5,000


class PrintedDecimal(Record):
    """A printed decimal: its digits as an integer, and the power of ten of its last digit."""

    text: str
    digits: int
    place: int

    def holds(self, value: Fraction) -> bool:
        """Return whether a number, rounded to nearest even at the last printed digit, gives this decimal.

        >>> printed = parse_printed("0.0559577")
        >>> printed.holds(Fraction("0.05595774")), printed.holds(Fraction("0.05595776"))
        (True, False)
        """
        return round(value / Fraction(10) ** self.place) == self.digits

    def fits(self, datum: Datum) -> bool:
        """Return whether a datum may be printed as this decimal.

        Libraries print the correctly rounded decimal, or the shortest decimal that reads back as the same number.

        >>> from floatlab import decode
        >>> [parse_printed("0.0559577569366").fits(decode(code, "fp32")) for code in (0x3D6533F6, 0x3D6533F7)]
        [True, False]
        """
        if not datum.is_finite:
            return False
        return self.holds(datum.exact.as_fraction()) or read(self.text, datum.format).result == datum

    @property
    def ends(self) -> tuple[Fraction, Fraction]:
        """The two numbers that lie half a unit of the last printed place below and above this decimal."""
        place = Fraction(10) ** self.place
        return (self.digits - Fraction(1, 2)) * place, (self.digits + Fraction(1, 2)) * place


class PrintedArray(Individual):
    """A printed array. Each element stands for all numbers from `low` to `high`."""

    codes: Array
    format: Format
    low: Array
    high: Array

    def take(self, places: Array) -> PrintedArray:
        """Return the elements at the indices `places`, in C order."""
        return PrintedArray(self.codes[places], self.format, self.low[places], self.high[places])

    def fits(self, codes: Array, format: Format) -> Array:
        """Return a mask of the codes whose numbers lie between `low` and `high` of the element at the same place.

        The mask is false for NaNs.
        """
        values = np.asarray(decode(codes, format), np.float64)
        held: Array = (self.low <= values) & (values <= self.high)
        return held


def printed_array(source: Source) -> PrintedArray | None:
    """Return, for each element of a printed array, the interval of the numbers that it may stand for.

    Libraries may omit trailing zeros. These zeros are restored until an element has as many digits as the element with
    the most digits, or as many decimal places as the element with the most decimal places, whichever comes first. The
    result is None if no element is finite, if NumPy has no dtype for the format, or if the elements have so many digits
    that each number of the format is printed differently.

    >>> found = printed_array(source_of(np.float32([[3.042, -12.3456, 0]])))
    >>> found.low.round(6).tolist(), found.high.round(6).tolist()
    ([[3.04195, -12.34565, -5e-05]], [[3.04205, -12.34555, 5e-05]])
    """
    kind = native_dtype(source.format)
    if kind is None or not source.codes.size:
        return None
    numbers = np.asarray(source.codes).view(kind)
    written = [np.format_float_scientific(each, trim="-").partition("e") for each in numbers.reshape(-1)]
    finite = [(len(digits.lstrip("-").replace(".", "")), int(power)) for digits, _, power in written if power]
    places = [power - digits + 1 for digits, power in finite]
    most = max((digits for digits, _ in finite), default=0)
    if not most or most >= _DISTINGUISHING[kind.itemsize]:
        return None
    values, least = numbers.astype(np.float64), min(places)
    with np.errstate(all="ignore"):
        size = np.floor(np.log10(np.where(values == 0, 1.0, np.abs(values)) * (1 + 1e-12)))
        unit = 10.0 ** np.where(values == 0, least, np.maximum(size - most + 1, least))
        # The library may have printed a number halfway between two decimals as either of them.
        half = np.where(np.isfinite(values), unit / 2 * (1 + 1e-9), 0.0)
    return PrintedArray(source.codes, source.format, values - half, values + half)


Observed = Source | PrintedDecimal | PrintedArray


def parse_printed(text: str) -> PrintedDecimal | None:
    """Parse a decimal without a base prefix; return None for other text, such as nan or 0x1p3.

    Raises LiteralError for text that is longer than the decimals of any format, and for exponents beyond any format.

    >>> parse_printed("8.19e-08").ends
    (Fraction(1637, 20000000000), Fraction(1639, 20000000000))
    """
    plain = text.strip()
    if len(plain) > _MOST_DIGITS:
        raise LiteralError(f"{quoted(plain)} has too many digits for a printed result: at most {_MOST_DIGITS:,}")
    found = _DECIMAL.fullmatch(plain)
    if found is None:
        return None
    sign, digits, exponent = found.groups()
    whole, _, fraction = digits.partition(".")
    place = int(exponent or 0) - len(fraction)
    if abs(place) > _MOST_EXPONENT:
        raise LiteralError(f"{quoted(plain)} is out of the range of every format")
    return PrintedDecimal(plain, int(whole + fraction) * (-1 if sign == "-" else 1), place)


def format_of_result(observed: object, name: str) -> Format | None:
    """Return the format of a result; None for text, lists, integers and Python's numbers, which have no format."""
    if isinstance(observed, Datum | PrintedArray):
        return observed.format
    if isinstance(observed, str | list) or not is_floating(observed):
        return None
    return source_of(observed, name).format


def read_observed(observed: object, name: str, into: Format, shape: tuple[int, ...]) -> Observed:
    """Return what candidates must reproduce: the codes of all elements in the format `into`, or the printed decimals.

    Raises UnsupportedError if the shape of the result is not `shape`, or if `into` cannot represent the result; raises
    LiteralError for invalid text.

    >>> from floatlab.formats import parse_format
    >>> [hex(read_observed(0.5, "observed", parse_format("fp16"), ()).codes[0])]
    ['0x3800']
    """
    if isinstance(observed, PrintedArray):
        if observed.codes.shape != shape:
            raise UnsupportedError(f"{name} has shape {observed.codes.shape}, and the product of a and b {shape}")
        return PrintedArray(
            *(observed.codes.reshape(-1), observed.format, observed.low.reshape(-1), observed.high.reshape(-1))
        )
    if isinstance(observed, str):
        if shape:
            raise UnsupportedError(f"{name} is text, which is for a single dot product; this product has shape {shape}")
        if (printed := parse_printed(observed)) is not None:
            return printed
    if isinstance(observed, str) or (isinstance(observed, int | float) and not is_typed(observed)):
        reading = read(observed, into)
        if reading.flags & Flags.INEXACT:
            prints = f"is not a number of {into.name}; a decimal given as text stands for all numbers printed so"
            raise UnsupportedError(f"{name} {quoted(str(observed))} {prints}")
        observed = reading.result
    if isinstance(observed, Datum):
        observed = Source(np.array(observed.code, dtype=np.uint64), observed.format)
    source = source_of(observed, name)
    if source.codes.shape != shape:
        raise UnsupportedError(f"{name} has shape {source.codes.shape}, but these inputs give the shape {shape}")
    if source.format == into:
        return Source(source.codes.reshape(-1), into)
    codes, flags = encode(source, into, return_flags="counts")
    if flags.get(Flags.INEXACT):
        raise UnsupportedError(f"{name} has numbers that {into.name} cannot represent: give an array with a dtype")
    return Source(np.asarray(codes).reshape(-1), into)


def difference_of(difference: object, results: int, shape: tuple[int, ...]) -> PrintedDecimal | Fraction | None:
    """Return the absolute value of a given difference of two results, or None if no difference is given.

    `difference` is a printed decimal or a number; it is None if no difference is given. Raises UnsupportedError if the
    difference is not finite, if `results` is not 2, or if the results are arrays.
    """
    if difference is None:
        return None
    if results != 2 or shape:
        raise UnsupportedError("difference needs two results of one dot product")
    if isinstance(difference, str) and (printed := parse_printed(difference)) is not None:
        return PrintedDecimal(printed.text.lstrip("+-"), abs(printed.digits), printed.place)
    found = difference if isinstance(difference, Datum) else read(difference, "binary64").result
    if not found.is_finite:
        raise UnsupportedError(f"difference must be a number, not {difference}")
    return abs(found.exact.as_fraction())
