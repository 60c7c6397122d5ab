"""The named formats given by a table, one row each with its source. To add such a format, add a row and its table.

This module is imported when a format name is not in `formats.catalog`, or when all formats are listed.
"""

from __future__ import annotations

from floatlab.formats.format import CatalogRow
from floatlab.formats.table_format import Field, Listed, Real, fields
from floatlab.formats.tapered import LogarithmicTakum, Posit, Takum

HIFLOAT = "Luo et al., Ascend HiFloat8 Format for Deep Learning (arXiv:2409.16626)"
QLORA = "Dettmers et al., QLoRA (arXiv:2305.14314), appendix E; bitsandbytes, functional.get_4bit_type"
ABNORMAL = "Yoshida, NF4 Isn't Information Theoretically Optimal (arXiv:2306.06965); bitsandbytes, get_4bit_type"
BITSANDBYTES = "bitsandbytes, functional.get_4bit_type('fp4')"
POSIT = "Standard for Posit Arithmetic (2022), Posit Working Group"
TAKUM = "Hunhold, Beating Posits at Their Own Game: Takum Arithmetic (arXiv:2404.18603)"
LINEAR_TAKUM = f"{TAKUM}; the linear form also in arXiv:2408.10594"
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import ClassVar

_SINGLE = 24  # digits of binary32


def rounded_to_single(x: Real) -> Real:
    """Round a magnitude to the 24 digits of binary32, ties to even."""
    c, q = x
    excess = max(c.bit_length() - _SINGLE, 0)
    kept, rest = divmod(c, 1 << excess)
    half = 1 << excess >> 1
    return kept + (rest > half or (excess > 0 and rest == half and kept & 1)), q + excess


def midpoint(x: Real, y: Real) -> Real:
    """Return the number halfway between two magnitudes; `y` must not be zero.

    >>> midpoint((1, 0), (3, 1))
    (7, -1)
    """
    (a, p), (b, q) = x, y
    least = min(p, q) if a else q
    return (a << p - least if a else 0) + (b << q - least), least - 1


class HiFloat8(Listed):
    """HiF8, whose exponent has 0 to 4 bits; the first of these bits is the sign of the exponent.

    The field `dot` of 2 to 4 bits follows the sign bit, and determines how many bits the exponent has.

    >>> hif8 = HiFloat8("hif8", 8)
    >>> hif8.largest, hif8.smallest.denominator == 2**22, [each.bits for each in hif8.fields(0x41)]
    (Fraction(32768, 1), True, ['0', '10', '000', '01'])
    """

    _fields: ClassVar[tuple[str, ...]] = ("name", "width")

    def __init__(self, name: str, width: int) -> None:
        """Compute the table."""
        infinity = 0x6F  # by the rule for numbers, this code would be 1.5·2^15
        entries: list[tuple[bool, Real] | None] = [(code > 0x80, self.number(code, width)) for code in range(256)]
        entries[0x80] = entries[infinity] = entries[infinity | 0x80] = None
        self._order(entries, (infinity, infinity | 0x80))
        last = len(self._codes[0]) - 2
        self._set(name, width, 4, last, ties="away", saturates=False, infinities=True, smallest_normal=8)

    @staticmethod
    def _split(code: int) -> tuple[int, int]:
        """Return the length of the field `dot` and the length of the field `exponent`, in bits."""
        bits = code & 0x7F
        leading = 7 - bits.bit_length()
        return (2, 4 - (bits >> 5 ^ 3)) if leading < 2 else (3, 1) if leading == 2 else (4, 0)

    def number(self, code: int, width: int) -> Real:
        """Return the magnitude: 1.M·2^E for mantissa M and exponent E.

        If the four bits after the sign are 0, the last three bits are an integer m. The magnitude is then 2^(m − 23),
        or 0 if m is 0.
        """
        bits = code & 0x7F
        if bits < 8:
            return (1, bits - 23) if bits else (0, 0)
        dot, length = self._split(code)
        m_bits = 7 - dot - length
        exponent = bits >> m_bits & ((1 << length) - 1)
        e = 0
        if length:  # the bits are the exponent's sign, and then its magnitude without the leading 1
            top = 1 << (length - 1)
            e = (exponent & (top - 1) | top) * (-1 if exponent & top else 1)
        return (1 << m_bits) + (bits & ((1 << m_bits) - 1)), e - m_bits

    def boundary(self, rank: int, negative: bool) -> Real:
        """Return the midpoint of the numbers with the ranks `rank` and `rank` + 1.

        For the largest number, return the midpoint of this number and `next_beyond`.
        """
        return midpoint(self.real(rank), self.real(rank + 1) if rank < self.largest_magnitude else self.next_beyond())

    def next_beyond(self) -> Real:
        """Return 1.5·2^15: the code of infinity would denote this number if it did not denote infinity."""
        return 3, 14

    def fields(self, code: int) -> tuple[Field, ...]:
        """Return sign, dot, exponent and mantissa."""
        dot, length = self._split(code)
        return fields(code, 8, ("S", "dot", "exponent", "mantissa"), (1, dot, length, 7 - dot - length))

    def reading(self, code: int) -> str:
        """Describe how the fields determine the number."""
        if not code & 0x78:
            return f"denormal: 2^({code & 7} − 23)" if code & 7 else "zero"
        (_, length), (c, q) = self._split(code), self.number(code, 8)
        return f"dot says {length} exponent bits: E = {self.exponent_of((c, q))}"


class ValueList(Listed):
    """A 4-bit format of bitsandbytes: a code is an index into sixteen binary32 values.

    The boundary between two adjacent values is their midpoint, rounded to binary32.

    Ties go to the lower value, because bitsandbytes counts the boundaries below a number. For fp4, bitsandbytes counts
    the boundaries below the magnitude, so ties go toward zero. Numbers out of the range are rounded to the ends of the
    range.
    """

    values: tuple[float, ...]  # by code

    _fields: ClassVar[tuple[str, ...]] = ("name", "values", "ties")

    def __init__(self, name: str, values: tuple[float, ...], ties: str = "down") -> None:
        """Round the values to binary32, and sort them."""
        object.__setattr__(self, "values", values)
        width = (len(values) - 1).bit_length()
        self._order([(bool(self.sign(code)), self.number(code, width)) for code in range(len(values))])
        positive, negative = (len(codes) - 1 for codes in self._codes)
        self._set(
            name, width, _SINGLE, positive, ties=ties, saturates=True, lowest=negative, has_nan=False,
            negative_zero=self._codes[0][0] != self._codes[1][0],
        )  # fmt: skip

    def number(self, code: int, width: int) -> Real:
        """Return the magnitude of the value with this code, rounded to binary32."""
        n, d = self.values[code].as_integer_ratio()
        return rounded_to_single((abs(n), 1 - d.bit_length()))

    @property
    def halfway(self) -> str:
        """Describe where the boundary between two neighbours is."""
        return "in value, rounded to binary32"

    def boundary(self, rank: int, negative: bool) -> Real:
        """Return the midpoint of the values with the ranks `rank` and `rank` + 1, rounded to binary32."""
        return rounded_to_single(midpoint(self.real(rank, negative), self.real(rank + 1, negative)))

    def sign(self, code: int) -> int:
        """Return 1 if the value with this code is negative or −0, else 0; codes of this format have no sign bit."""
        return int(str(self.values[code])[0] == "-")

    def fields(self, code: int) -> tuple[Field, ...]:
        """Return the only field, `index`: the whole code is an index into the table."""
        return fields(code, self.width, ("index",), (self.width,))

    def reading(self, code: int) -> str:
        """Describe the position of the number in the table."""
        return f"value {code} of the table"


NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453,
    -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0,
    0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
    0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
AF4 = (
    1.0, 0.72424863, 0.55496234, 0.42563882, 0.31675666, 0.21961274, 0.12934483, 0.04273164, 0.0,
    -0.04934812, -0.14982478, -0.25607552, -0.3736951, -0.51243739, -0.69441008, -1.0,
)  # fmt: skip
# The values in the order of their codes; bitsandbytes computes them with a decision tree instead of a table.
FP4 = tuple(sign * twelfths / 12 for sign in (1.0, -1.0) for twelfths in (0, 0.0625, 8, 12, 4, 6, 2, 3))


TABLES: tuple[CatalogRow, ...] = (
    CatalogRow(HiFloat8("hif8", 8), ("hifloat8",), HIFLOAT, "fp8 with tapered precision, on Ascend"),
    CatalogRow(ValueList("nf4", NF4), ("normalfloat4", "bnb_nf4"), QLORA, "quantiles of the normal distribution"),
    CatalogRow(ValueList("bnb_fp4", FP4, ties="zero"), ("fp4_bnb",), BITSANDBYTES, "the fp4 of bitsandbytes: no e2m1"),
    CatalogRow(ValueList("af4", AF4), ("abnormalfloat4", "bnb_af4"), ABNORMAL, "nf4 for blocks of 64"),
    CatalogRow(Posit("posit8", 8), (), POSIT, "tapered precision, one special code"),
    CatalogRow(Posit("posit16", 16), (), POSIT, "tapered precision, one special code"),
    CatalogRow(Posit("posit32", 32), (), POSIT, "tapered precision, one special code"),
    CatalogRow(Takum("takum_linear8", 8), (), LINEAR_TAKUM, "tapered precision, bounded range"),
    CatalogRow(Takum("takum_linear16", 16), (), LINEAR_TAKUM, "tapered precision, bounded range"),
    CatalogRow(Takum("takum_linear32", 32), (), LINEAR_TAKUM, "tapered precision, bounded range"),
    CatalogRow(LogarithmicTakum("takum_log8", 8), ("takum8",), TAKUM, "powers of √e, irrational"),
    CatalogRow(LogarithmicTakum("takum_log16", 16), ("takum16",), TAKUM, "powers of √e, irrational"),
)
TABLE_NAMES = {name: row for row in TABLES for name in (row.format.name, *row.aliases)}


def table_row(name: str) -> CatalogRow | None:
    """Return the row of a name or alias in lower case, or None if no table format has this name.

    >>> row = table_row("posit16")
    >>> row.format.width if row else None
    16
    """
    return TABLE_NAMES.get(name)
