"""Block formats: numbers of few bits that share a scale. To add a block format, add a row to `BLOCK_CATALOG`.

The elements of a block are floats, or integers with an implied scale. A type of signed integers is not a `Format`,
because its codes do not consist of a sign and a magnitude. A number is rounded to a signed integer in two steps: its
magnitude is rounded to the format `Integers.magnitudes`, and the sign is then applied. In mxint8, the numbers of this
format are the multiples of 2^−6 below 2. They do not include the magnitude of the lowest integer (−128 in mxint8, which
stands for −2).
"""

from __future__ import annotations

from functools import lru_cache

from floatlab.errors import FormatError, guess, quoted
from floatlab.formats.catalog import BLOCK_FAMILIES, BLOCK_NAMES, MAX_NAME, MX, parse_format
from floatlab.formats.format import Format
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

NVFP4 = "NVIDIA, Pretraining Large Language Models with NVFP4 (arXiv:2509.25149), section 2 and appendix B"
GGML = "ggml 0.13.1, ggml-common.h (block_q8_0, block_q4_0, block_q4_1, block_q4_K)"
HIF4 = "Luo et al., HiFloat4 Format for Language Model Inference (arXiv:2602.11287)"
LARGEST_BLOCK = 1 << 20
_SMALL_SCALE = 8  # largest width, in bits, of a scale in the family `nvfp4`
_HALF = 16


class Integers(Record):
    """Integers of `width` bits, times 2^`quantum`; the code of n is n + `zero`, modulo 2^width.

    If `zero` is 0, the codes are two's complement. The lowest integer, such as −128, has no positive counterpart. The
    scale rules of floatlab round no element to the lowest integer, so that results are symmetric around zero. The rules
    of some libraries do round to the lowest integer.

    >>> int8 = Integers("int8", 8, quantum=-6)
    >>> int8.largest, hex(int8.code(True, 127)), int8.integer(0x81)
    (Fraction(127, 64), '0x81', -127)
    >>> int4 = Integers("int4", 4, zero=8)
    >>> int4.largest, int4.code(True, 8), int4.integer(15)
    (Fraction(7, 1), 0, 7)
    """

    name: str
    width: int
    quantum: int = 0
    zero: int = 0

    @property
    def magnitudes(self) -> Format:
        """The format of the integers' magnitudes. An element is rounded by rounding its magnitude into this format."""
        bias = 3 - self.width - self.quantum
        return Format(self.name, self.width - 1, 1, bias=bias, infinities=False, nans=0)

    @property
    def lowest(self) -> int:
        """The lowest integer, without 2^quantum."""
        return -(1 << (self.width - 1))

    @property
    def largest(self) -> Fraction:
        """The largest number, exactly."""
        return self.magnitudes.largest

    def code(self, negative: bool, magnitude: int) -> int:
        """Return the code of the integer with this sign and magnitude (without 2^quantum)."""
        return ((-magnitude if negative else magnitude) + self.zero) & ((1 << self.width) - 1)

    def integer(self, code: int) -> int:
        """Return the integer that a code denotes, without 2^quantum."""
        half = 1 << (self.width - 1)
        return ((code - self.zero + half) & (2 * half - 1)) - half


def _unsigned(width: int) -> Format:
    """Return a format whose numbers are the integers from 0 to 2^width − 1; each is its own code."""
    return Format(f"uint{width}", width, 1, bias=2 - width, infinities=False, nans=0, signed=False)


INTEGERS = {each.name: each for each in (Integers("int8", 8), Integers("int4", 4, zero=8))}


class BlockFormat(Record):
    """A block format: the elements of a block share a scale, and blocks may share a tensor scale.

    A block has `rows` rows (usually 1) of `block` consecutive elements. If `block` is None, a block is a whole row
    (`channel`). If `rows` is also None, a block is the whole tensor. If `tensor` is a format, the scales of blocks are
    multiplied by a second, coarser scale, the tensor scale. There is one tensor scale for the whole tensor, one for
    each row (`by_row`), or one for every `superblock` elements. If `flat` is true, blocks are parts of the flattened
    tensor. If `minimum` is true, a minimum is stored beside each scale and each tensor scale, in the same format. In
    HiF4, `groups` is (8, 4): each group of 8 elements in a block has a bit, and so has each group of 4. A bit that is
    set doubles the elements of its group. Scales are stored as their codes minus `first_scale`. The decoded value of an
    element is element × scale × tensor scale, unless the scale rule has another formula.

    >>> mxfp4 = parse_block_format("mxfp4")
    >>> mxfp4.element.name, mxfp4.scale.name, mxfp4.block, float(mxfp4.bits)
    ('e2m1fn', 'e8m0fnu', 32, 4.25)
    """

    name: str
    element: Format | Integers
    scale: Format
    block: int | None
    tensor: Format | None = None
    rows: int | None = 1
    by_row: bool = False
    flat: bool = False
    superblock: int | None = None
    minimum: bool = False
    groups: tuple[int, ...] = ()
    first_scale: int = 0

    def __post_init__(self) -> None:
        """Refuse sizes that are not integers in range, and a block that is not a multiple of the largest group."""
        for size in (self.block, self.rows):
            if size is None:
                continue
            if not isinstance(size, int) or isinstance(size, bool) or not 1 <= size <= LARGEST_BLOCK:
                raise FormatError(
                    f"{self.name}: block must be a number of elements from 1 to {LARGEST_BLOCK:,}, "
                    f"not {quoted(str(size))}"
                )
        if self.groups and (self.block is None or self.block % max(self.groups)):
            raise FormatError(
                f"{self.name}: a block must be a multiple of {max(self.groups)} elements, the size of a group"
            )

    @property
    def magnitudes(self) -> Format:
        """The format into which elements are rounded. For integer elements, it is the format of the magnitudes."""
        return self.element if isinstance(self.element, Format) else self.element.magnitudes

    @property
    def scales_by_powers(self) -> bool:
        """Whether scales are powers of two and there is no tensor scale; a rule then chooses only an exponent."""
        return self.scale.precision == 1 and self.tensor is None

    @property
    def family(self) -> str:
        """The family of this format's scale rules, such as `mx`, `nvfp4` or `fp32` (see `formats.scale_rules`)."""
        if self.groups:
            return "hif4"
        if self.minimum:
            return "minimum" if self.tensor is None else "nested"
        if self.scales_by_powers:
            return "mx"
        if self.scale.width <= _SMALL_SCALE:
            return "nvfp4"
        return "fp16" if self.scale.width == _HALF else "fp32"

    @property
    def scale_bits(self) -> int:
        """Width of a scale in bits, as it is stored.

        If `first_scale` is subtracted (in HiF4), a stored scale has one bit less than the scale's format. The last code
        of such a stored scale is the NaN.
        """
        return self.scale.width - bool(self.first_scale)

    @property
    def shape(self) -> str:
        """The shape of a block: `32`, `16x16`, `flat32` (of the flattened tensor), `channel` (a whole row) or `tensor`.

        >>> parse_block_format("mxfp4").shape
        '32'
        """
        if self.block is None:
            return "tensor" if self.rows is None else "channel"
        return f"{'flat' * self.flat}{self.block}" if self.rows == 1 else f"{self.rows}x{self.block}"

    @property
    def bits(self) -> Fraction:
        """The average number of bits per element, including minima, group bits, and scales of blocks and superblocks.

        Scales of whole rows and of whole tensors are not included.
        """
        from fractions import Fraction

        share = 0 if self.block is None or self.rows is None else Fraction(self.scale_bits, self.block * self.rows)
        if self.tensor is not None and self.superblock is not None:
            share += Fraction(self.tensor.width, self.superblock)
        own = share * (1 + self.minimum) + sum(Fraction(1, size) for size in self.groups)
        return self.element.width + Fraction(own)


class BlockRow(Record):
    """A named block format: its aliases, its source, and its purpose."""

    format: BlockFormat
    aliases: tuple[str, ...]
    source: str
    purpose: str


def _mx(name: str, element: Format | Integers, purpose: str) -> BlockRow:
    return BlockRow(BlockFormat(name, element, parse_format("e8m0"), 32), BLOCK_NAMES[name], MX, purpose)


def _ggml(name: str, element: Format | Integers, purpose: str, minimum: bool = False) -> BlockRow:
    format = BlockFormat(name, element, parse_format("binary16"), 32, flat=True, minimum=minimum)
    return BlockRow(format, (), GGML, purpose)


BLOCK_CATALOG: tuple[BlockRow, ...] = (
    _mx("mxfp8_e4m3", parse_format("e4m3"), "weights, activations and gradients"),
    _mx("mxfp8_e5m2", parse_format("e5m2"), "gradients of wide range"),
    _mx("mxfp6_e2m3", parse_format("e2m3"), "fp6, more digits"),
    _mx("mxfp6_e3m2", parse_format("e3m2"), "fp6, more range"),
    _mx("mxfp4", parse_format("e2m1"), "fp4 weights"),
    _mx("mxint8", Integers("int8", 8, quantum=-6), "integers with a shared exponent"),
    BlockRow(
        BlockFormat("nvfp4", parse_format("e2m1"), parse_format("e4m3"), 16, parse_format("binary32")),
        BLOCK_NAMES["nvfp4"],
        NVFP4,
        "fp4 with finer scales, on NVIDIA Blackwell",
    ),
    BlockRow(
        BlockFormat(
            "hif4",
            Format("s1p2", 3, 1, bias=1, infinities=False, nans=0),
            # HiF4's scales are 1.M · 2^E. This format has one exponent bit more, and also zero and three subnormals.
            Format("e6m2", 3, 7, bias=49, infinities=False, nans=253, signed=False),
            64,
            groups=(8, 4),
            first_scale=4,
        ),
        BLOCK_NAMES["hif4"],
        HIF4,
        "4 bits with scales on three levels, on Huawei Ascend",
    ),
    _ggml("q8_0", INTEGERS["int8"], "weights of local models, 8 bits"),
    _ggml("q4_0", INTEGERS["int4"], "weights of local models, 4 bits"),
    _ggml("q4_1", _unsigned(4), "as q4_0, with a minimum", minimum=True),
    BlockRow(
        BlockFormat(
            "q4_k", _unsigned(4), _unsigned(6), 32, parse_format("binary16"), flat=True, superblock=256, minimum=True
        ),
        (),
        GGML,
        "weights of local models: blocks in groups, with 6-bit scales and minima",
    ),
)

_BY_NAME = {name: row for row in BLOCK_CATALOG for name in (row.format.name, *row.aliases)}


def block_row(format: BlockFormat) -> BlockRow:
    """Return the catalog row of a block format; for a format that is not in the catalog, return a new row.

    If the format differs from a format of the catalog only in its block size, the new row has the source of the
    catalog's format. Otherwise its source is "custom".

    >>> block_row(parse_block_format("nvfp4")).purpose
    'fp4 with finer scales, on NVIDIA Blackwell'
    """
    named = _BY_NAME.get(format.name)
    if named is not None and named.format == format:
        return named
    like = named is not None and named.format.replace(block=format.block) == format
    return BlockRow(format, (), f"{named.source}, but blocks of {format.block}" if named and like else "custom", "")


def is_block_format(name: str) -> bool:
    """Return whether a name denotes a block format.

    >>> is_block_format("MXFP4"), is_block_format("fp4")
    (True, False)
    """
    return _plain(name) in _BY_NAME


def _plain(name: str) -> str:
    return name.strip().lower().replace("-", "_")


@lru_cache(maxsize=64)
def _lookup(name: str) -> BlockFormat:
    plain = _plain(name)
    if plain in _BY_NAME:
        return _BY_NAME[plain].format
    known = " ".join(row.format.name for row in BLOCK_CATALOG)
    if plain in BLOCK_FAMILIES:
        raise FormatError(f"{quoted(name)} is a family of block formats: name one of {BLOCK_FAMILIES[plain]}")
    try:
        single = parse_format(plain[:MAX_NAME])
    except FormatError:
        raise FormatError(
            f"unknown block format {quoted(name)}{guess(plain, sorted(_BY_NAME))} (known: {known})"
        ) from None
    raise FormatError(f"{single.name} is a format of single numbers; the block formats are {known}")


def parse_block_format(name: str | BlockFormat) -> BlockFormat:
    """Return the block format of a name; a BlockFormat is returned unchanged.

    Case is ignored, and `-` equals `_`. Raises FormatError for an unknown name; the message suggests a similar one.

    >>> parse_block_format("MXFP8-E4M3").element.largest
    Fraction(448, 1)
    """
    if isinstance(name, BlockFormat):
        return name
    if not isinstance(name, str):
        raise FormatError(f"a block format must be a name or a BlockFormat, not {type(name).__name__}")
    return _lookup(name)
