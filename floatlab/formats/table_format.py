"""Formats given by a table: sorted numbers with their codes, and a rounding boundary between any two neighbours.

A `TableFormat` has the properties and methods of a `Format`. Its *magnitudes* are ranks among the numbers of one sign,
so neighbours in value are still neighbours in magnitude. Only the conversion between magnitudes and codes needs a
table. For rounding, the `Place` of a number tells between which two entries the number is, and whether it is below, on
or above the boundary between these entries. In HiF8, the boundary is the midpoint of the two entries. In NF4, the
boundary is this midpoint rounded to binary32. `formats.tapered` explains the boundary in posits and takums.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats.format import Format
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

Real = tuple[int, int]  # (c, q): the number c·2^q, c ≥ 0
# Magnitudes below 2^(qmin − GUARD) are rounded as if they were this power. Irrational numbers are computed to the
# format's width plus GUARD binary digits.
GUARD = 64
_TIES = {"even": "to the even code", "away": "away from zero", "zero": "toward zero", "down": "to the lower value"}
_KINDS = {"S": "sign", "fraction": "significand", "mantissa": "significand", "index": "significand"}


class Field(Record):
    """One field of a code: its name in the format's definition, its bits, and its kind.

    The kind is the part of the number that the bits determine: `sign`, `exponent` or `significand`.
    """

    name: str
    bits: str
    kind: str


class Place(Record):
    """The position of a number among the entries of a table.

    `rank` is the rank of the largest entry that is not larger than the number in magnitude. The number is below, on or
    above the boundary between this entry and the next if `rest2` is less than, equal to or greater than `unit`. For
    stochastic rounding (`linear` in `TableFormat.place`), rest2/(2·unit) is instead the relative position of the number
    between these two entries. `beyond` is true if the number is at least `next_beyond` of the format. In a format that
    saturates, `beyond` is true if the number lies above the last entry. If `beyond` is true, `rank` is
    `largest_magnitude` + 1.
    """

    rank: int
    rest2: int
    unit: int
    boundary: Real | None  # None if irrational, or if the number is an entry or `beyond`
    beyond: bool = False


class TableFormat(Format):
    """A format given by a table. A subclass defines the numbers (`number`), their order, and the fields of codes.

    `ties` tells how rounding to nearest rounds a number on a boundary: to the `even` code, `away` from zero, toward
    `zero`, or `down` to the lower value. If `saturates` is true, numbers beyond the range are rounded to the largest or
    lowest number, and there is no overflow.
    """

    ties: str
    saturates: bool
    lowest_magnitude: int  # rank of the most negative number; differs from largest_magnitude in asymmetric formats
    _found: dict[int, Real]  # numbers by rank, computed at their first use

    is_table = True

    def _set(
        self, name: str, width: int, precision: int, largest: int, *, ties: str, saturates: bool, lowest: int = 0,
        infinities: bool = False, has_nan: bool = True, negative_zero: bool = False, smallest_normal: int = 1,
    ) -> None:  # fmt: skip
        """Set all fields.

        `precision` is the length of the longest significand (if the numbers are rational). `largest`, `lowest` and
        `smallest_normal` are ranks.
        """
        settled: dict[str, object] = {
            "name": name, "width": width, "precision": precision, "trailing_bits": precision - 1, "bias": 0,
            "exponent_bits": 0, "magnitude_bits": width - 1, "nans": 0, "zero": True, "signed": True,
            "infinities": infinities, "negative_zero": negative_zero, "nan_in_place_of_negative_zero": has_nan,
            "subnormals": smallest_normal > 1, "explicit_integer_bit": False, "ties_to_even_code": True,
            "largest_magnitude": largest, "infinity_magnitude": largest + 1 if infinities else -1,
            "smallest_normal_magnitude": smallest_normal, "ties": ties, "saturates": saturates,
            "lowest_magnitude": lowest or largest, "_found": {},
        }  # fmt: skip
        for field, value in settled.items():
            object.__setattr__(self, field, value)
        least = self.exponent_of(self.real(1))
        # The exponent of the digit that is `precision` digits below the leading digit of the smallest number.
        object.__setattr__(self, "qmin", least - precision)
        object.__setattr__(self, "emin", self.exponent_of(self.real(smallest_normal)))

    # --- defined by subclasses

    def number(self, code: int, width: int) -> Real:
        """Return the magnitude of the number with this code of `width` bits.

        `width` is the format's width, or one bit more when a rounding boundary is computed. A code in two's complement
        must be positive.
        """
        raise NotImplementedError

    def fields(self, code: int) -> tuple[Field, ...]:
        """Return the fields of a code from the left."""
        raise NotImplementedError

    def reading(self, code: int) -> str:
        """Describe how the fields determine the number."""
        raise NotImplementedError

    def compose(self, negative: bool, magnitude: int) -> int:
        """Return the code of a sign and a rank."""
        raise NotImplementedError

    def magnitude(self, code: int) -> int:
        """Return the rank of a code among the numbers of its sign, or 0 for a zero or a NaN with the code of −0."""
        raise NotImplementedError

    def boundary(self, rank: int, negative: bool) -> Real:
        """Return the magnitude below which rounding to nearest gives `rank`, and above which it gives `rank` + 1."""
        raise NotImplementedError

    # --- derived from these

    @property
    def halfway(self) -> str:
        """Return in words where the rounding boundary between two neighbours is."""
        return "in value"

    @property
    def nearest(self) -> str:
        """Describe how numbers are rounded to nearest."""
        return f"the boundary is halfway {self.halfway}; a tie goes {_TIES[self.ties]}"

    def sign(self, code: int) -> int:
        """Return 1 for codes of negative numbers, of −0, and of a NaN in place of −0; else 0."""
        return code >> (self.width - 1)

    def real(self, rank: int, negative: bool = False) -> Real:
        """Return the magnitude of the number with this rank; an irrational one is cut off far below the precision."""
        if not rank:
            return 0, 0
        key = -rank if negative else rank
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self.number(self.compose(negative, rank), self.width)
        return found

    def bounds(self, rank: int, digits: int) -> tuple[Real, Real]:
        """Return a lower and an upper bound of the positive number with this rank; both equal it if it is rational.

        The bounds of an irrational number have at least `digits` binary digits; their last digits differ by one unit.
        """
        exact = self.real(rank)
        return exact, exact

    @staticmethod
    def exponent_of(x: Real) -> int:
        """Return the exponent of the leading digit."""
        return x[0].bit_length() + x[1] - 1

    @property
    def ties_away(self) -> bool:
        """Whether ties go away from zero when rounding to nearest."""
        return self.ties == "away"

    def counts_as_odd(self, rank: int, negative: bool) -> bool:
        """Return whether a tie goes to `rank` + 1 instead of `rank`. Not called if ties go away from zero."""
        return negative if self.ties == "down" else self.ties == "even" and bool(rank & 1)

    @property
    def emax(self) -> int:
        """Exponent of the largest number's leading digit."""
        return self.exponent_of(self.real(self.largest_magnitude))

    @property
    def least_exponent(self) -> int:
        """Exponent of the smallest positive number's leading digit."""
        return self.exponent_of(self.real(1))

    @property
    def nan_code(self) -> int:
        """The NaN's code: the sign bit alone. Raises FormatError if the format has no NaN."""
        if not self.has_nan:
            return super().nan_code
        return 1 << (self.width - 1)

    def _value(self, magnitude: int) -> Fraction:
        from fractions import Fraction

        if self.is_irrational:
            raise UnsupportedError(f"{self.name}: its numbers are powers of √e, which no fraction equals")
        c, q = self.real(magnitude)
        return c * Fraction(2) ** q

    def most(self, negative: bool) -> int:
        """Return the rank of the largest positive number or, if `negative`, of the lowest negative number."""
        return self.lowest_magnitude if negative else self.largest_magnitude

    def next_beyond(self) -> Real | None:
        """Return the number that would follow the largest number, or None in a format that saturates."""
        return None

    def compare(self, x: Real, rank: int, negative: bool) -> int:
        """Compare the magnitude `x` with the magnitude of the number with this rank and sign.

        Return −1 if `x` is smaller, 0 if both are equal, 1 if `x` is larger.
        """
        return compare(x, self.real(rank, negative))

    def reaches(self, x: Real, rank: int, negative: bool) -> int:
        """Return −1, 0 or 1 if a magnitude is below, on or above the boundary between `rank` and `rank` + 1."""
        return compare(x, self.boundary(rank, negative))

    def place(self, x: Real, negative: bool, linear: bool = False) -> Place:
        """Return the place of the magnitude `x` among the numbers of one sign.

        If `linear` is true, `rest2` and `unit` of the place give the relative position that stochastic rounding needs.
        """
        most = self.most(negative)
        if not x[0]:
            return Place(0, 0, 1, None)
        if self.exponent_of(x) < self.qmin - GUARD:
            # x is far below the smallest number; replacing it by this power of two does not change the rounding.
            x = 1, self.qmin - GUARD
        rank, above = 0, most + 1
        while above - rank > 1:
            middle = (rank + above) // 2
            if self.compare(x, middle, negative) < 0:
                above = middle
            else:
                rank = middle
        if rank and not self.compare(x, rank, negative):
            return Place(rank, 0, 1, None)
        if rank == most:
            virtual = self.next_beyond()
            if virtual is None or compare(x, virtual) >= 0:
                return Place(self.largest_magnitude + 1, 1, 2, None, beyond=True)
        return self._between(x, rank, negative, linear)

    def _between(self, x: Real, rank: int, negative: bool, linear: bool) -> Place:
        low = self.real(rank, negative)
        high = self.next_beyond() if rank == self.most(negative) else self.real(rank + 1, negative)
        assert high is not None
        middle = self.boundary(rank, negative)
        q = min(each[1] for each in (low, high, middle, x) if each[0])
        a, b, m, n = (each[0] << each[1] - q if each[0] else 0 for each in (low, high, middle, x))
        if linear or 2 * m == a + b:
            return Place(rank, 2 * (n - a), b - a, middle)
        if n <= m:
            return Place(rank, n - a, m - a, middle)
        return Place(rank, (b - m) + (n - m), b - m, middle)


def compare(x: Real, y: Real) -> int:
    """Compare two magnitudes c·2^q: return −1, 0 or 1, like the sign of x − y.

    >>> compare((3, -1), (1, 1)), compare((4, 0), (1, 2))
    (-1, 0)
    """
    if not x[0] or not y[0]:
        return bool(x[0]) - bool(y[0])
    e, f = TableFormat.exponent_of(x), TableFormat.exponent_of(y)
    if e != f:
        return 1 if e > f else -1
    q = min(x[1], y[1])
    a, b = x[0] << x[1] - q, y[0] << y[1] - q
    return (a > b) - (a < b)


def fields(code: int, width: int, names: tuple[str, ...], lengths: tuple[int, ...]) -> tuple[Field, ...]:
    """Cut a code into fields of these lengths. Fields of length 0 are left out.

    >>> [(each.name, each.bits) for each in fields(0b0110, 4, ("S", "dot", "mantissa"), (1, 2, 1))]
    [('S', '0'), ('dot', '11'), ('mantissa', '0')]
    """
    bits, start, found = f"{code:0{width}b}", 0, []
    for name, length in zip(names, lengths, strict=True):
        if length:
            found.append(Field(name, bits[start : start + length], _KINDS.get(name, "exponent")))
        start += length
    return tuple(found)


class TwosComplementFormat(TableFormat):
    """A format whose codes, as integers in two's complement, increase with the numbers (posits, takums).

    The only special code is 10…0, NaR ("not a real"). No nonzero number is rounded to zero, and no number to NaR;
    numbers beyond the range are rounded to the ends of the range.
    """

    def __init__(self, name: str, width: int) -> None:
        """Set the fields. `precision` is the precision of the numbers from 1 to 2, which have the longest fraction."""
        self._set(name, width, width - 4, (1 << (width - 1)) - 1, ties="even", saturates=True)

    def compose(self, negative: bool, magnitude: int) -> int:
        """Return the code of a sign and a rank."""
        return (-magnitude if negative else magnitude) & ((1 << self.width) - 1)

    def magnitude(self, code: int) -> int:
        """Return the rank of a code, or 0 for NaR."""
        if self.sign(code):
            return ((1 << self.width) - code) & ((1 << (self.width - 1)) - 1)
        return code

    def real(self, rank: int, negative: bool = False) -> Real:
        """Return the magnitude of the number with this rank; a rank has the same magnitude for both signs."""
        return super().real(rank)

    @property
    def halfway(self) -> str:
        """Return in words where the rounding boundary between two neighbours is."""
        return "between the codes: the number whose code has one bit more"

    def boundary(self, rank: int, negative: bool) -> Real:
        """Return the number between ranks `rank` and `rank` + 1 in the format of one more bit; its code is 2·rank + 1.

        Between 0 and the smallest number, the boundary is 0: no nonzero number is rounded to zero.
        """
        return self.number(2 * rank + 1, self.width + 1) if rank else (0, 0)


class Listed(TableFormat):
    """A format of few codes in any order: all numbers are computed at once and sorted."""

    _codes: tuple[tuple[int, ...], tuple[int, ...]]  # by rank, of positive and of negative numbers
    _ranks: dict[int, int]

    def _order(self, entries: list[tuple[bool, Real] | None], infinities: tuple[int, ...] = ()) -> None:
        """Sort the codes of each sign by magnitude.

        `entries` has sign and magnitude of each code, or None for special values. `infinities` has the codes of ±∞.
        """
        least = min(entry[1][1] for entry in entries if entry)
        sides: list[tuple[int, ...]] = []
        ranks: dict[int, int] = {}
        for sign in (False, True):
            real = [(entry[1], code) for code, entry in enumerate(entries) if entry and entry[0] is sign]
            real.sort(key=lambda pair: pair[0][0] << pair[0][1] - least)
            codes = [code for _, code in real]
            if sign and real[0][0][0]:  # the format has no −0: rank 0 is the only zero
                codes.insert(0, sides[0][0])
            codes += infinities[sign : sign + 1]
            ranks |= {code: rank for rank, code in enumerate(codes)}
            sides.append(tuple(codes))
        object.__setattr__(self, "_codes", tuple(sides))
        object.__setattr__(self, "_ranks", ranks)

    def compose(self, negative: bool, magnitude: int) -> int:
        """Return the code of a sign and a rank; a rank that is too large gives the last code."""
        codes = self._codes[negative]
        return codes[min(magnitude, len(codes) - 1)]

    def magnitude(self, code: int) -> int:
        """Return the rank of a code, or 0 for the NaN in place of −0."""
        return self._ranks.get(code, 0)
