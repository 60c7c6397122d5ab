"""The rounding directions; the kernel, which decides every rounding; and Context, the settings of a rounding.

The kernel determines the truncated number, the discarded tail, and whether to step away from zero. The kernel uses only
operators that Python integers and NumPy arrays both have. It cuts off the lowest `shift` bits of c ≥ 0 in a number
c·2^q:

    c = kept · unit + rest        unit = 2^shift, 0 ≤ rest < unit

A rounding direction may depend on the sign, the parity of the kept code, and the tail: 2·rest compared with unit, and
`sticky`, which is set if the exact number has nonzero digits below the last digit of c:

    2·rest        sticky   the tail is      guard  round-or-sticky
    0             no       zero               0        0
    0             yes      below half         0        1
    < unit        either   below half         0        1
    = unit        no       half, a tie        1        0
    = unit        yes      above half         1        1
    > unit        either   above half         1        1
"""

from __future__ import annotations

from enum import Enum, Flag

from floatlab.errors import ContextError, guess, quoted
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar  # Any is an int, a bool, or a NumPy array of these

    Choice = TypeVar("Choice", bound=Enum)


class Direction(Enum):
    """The rounding directions of IEEE 754-2019 clause 4.3, two that hardware or proofs use, and stochastic ones."""

    RNE = "RNE"  # to nearest, ties to even: roundTiesToEven
    RNA = "RNA"  # to nearest, ties away from zero: roundTiesToAway
    RTZ = "RTZ"  # toward zero: roundTowardZero
    RTP = "RTP"  # toward +∞: roundTowardPositive
    RTN = "RTN"  # toward −∞: roundTowardNegative
    RTO = "RTO"  # to odd: an inexact number goes to the neighbour whose code is odd
    RAZ = "RAZ"  # away from zero
    SR = "SR"  # stochastic
    SRA = "SRA"  # stochastic with N random bits: P3109's StochasticA, StochasticB and StochasticC
    SRB = "SRB"
    SRC = "SRC"

    @property
    def is_stochastic(self) -> bool:
        """Whether a random draw decides between the two neighbours."""
        return self._value_[:2] == "SR"

    @property
    def has_few_bits(self) -> bool:
        """Whether the random draw has N bits (`Context.random_bits`) instead of 32."""
        return self._value_ in ("SRA", "SRB", "SRC")


IN_WORDS = {
    Direction.RNE: "to nearest, ties to even", Direction.RNA: "to nearest, ties away from zero",
    Direction.RTZ: "toward zero", Direction.RTP: "toward +∞", Direction.RTN: "toward −∞", Direction.SR: "stochastic",
    Direction.RAZ: "away from zero", Direction.RTO: "to odd", Direction.SRC: "stochastic, N random bits, tail rounded",
    Direction.SRA: "stochastic, N random bits, tail truncated", Direction.SRB: "stochastic, N random bits and a half",
}  # fmt: skip

# Everyday names, and names in other libraries and standards.
_SPELLINGS = {
    "nearest": "RNE", "even": "RNE", "up": "RTP", "down": "RTN", "zero": "RTZ", "stochastic": "SR", "odd": "RTO",
    "to_nearest": "RNE", "nearest_even": "RNE", "half_even": "RNE", "ties_to_even": "RNE", "tonearest": "RNE",
    "nearest_away": "RNA", "half_away": "RNA", "ties_to_away": "RNA", "ties_away": "RNA", "toward_zero": "RTZ",
    "towards_zero": "RTZ", "towardzero": "RTZ", "to_zero": "RTZ", "truncate": "RTZ", "trunc": "RTZ", "chop": "RTZ",
    "upward": "RTP", "ceil": "RTP", "ceiling": "RTP", "toward_positive": "RTP", "downward": "RTN", "floor": "RTN",
    "toward_negative": "RTN", "away_from_zero": "RAZ", "from_zero": "RAZ", "to_odd": "RTO", "random": "SR",
    "near_even": "RNE", "near_maxmag": "RNA", "minmag": "RTZ", "max": "RTP", "min": "RTN", "rdn": "RTN", "rmm": "RNA",
    "roundtiestoeven": "RNE", "roundtiestoaway": "RNA", "roundtowardzero": "RTZ", "roundtowardpositive": "RTP",
    "roundtowardnegative": "RTN", "rtu": "RTP", "rtd": "RTN", "rup": "RTP", "nearesttiestoeven": "RNE",
    "nearesttiestoaway": "RNA", "towardpositive": "RTP", "towardnegative": "RTN", "toodd": "RTO", "stochastica": "SRA",
    "stochasticb": "SRB", "stochasticc": "SRC",
}  # fmt: skip


def parse_direction(word: str | Direction) -> Direction:
    """Return the direction that a name denotes, such as `RNE`, `roundTiesToEven`, `near_even` (TestFloat) or `up`.

    >>> parse_direction("minMag"), parse_direction("up")
    (<Direction.RTZ: 'RTZ'>, <Direction.RTP: 'RTP'>)
    """
    if isinstance(word, Direction):
        return word
    plain = str(word).strip().lower().replace("-", "_").replace(" ", "_")
    plain = _SPELLINGS.get(plain, plain).upper()
    if plain == "AWAY":
        raise ContextError("'away' has two meanings: RAZ, away from zero, and RNA, nearest with ties away")
    if plain not in Direction.__members__:
        raise ContextError(
            f"unknown rounding direction {quoted(str(word))}{guess(plain, [*Direction.__members__, *_SPELLINGS])}"
            f" (known: {' '.join(Direction.__members__)}; nearest, up, down, zero, odd, stochastic)"
        )
    return Direction[plain]


def split(c: Any, shift: Any) -> tuple[Any, Any, Any]:
    """Cut the lowest `shift` ≥ 0 bits off `c`. Return the kept bits, 2·(the bits cut off), and unit = 2^shift.

    >>> split(0b1011_101, 3)
    (11, 10, 8)
    """
    kept = c >> shift
    rest = c - (kept << shift)
    return kept, rest + rest, 1 << shift


def tail(rest2: Any, unit: Any, sticky: Any) -> tuple[Any, Any, Any]:
    """Return whether the discarded tail is nonzero, whether it is at least half a unit, and whether it is exactly half.

    If `sticky` is set, unit must be above 1: otherwise the tail cannot be compared with half a unit.

    >>> tail(8, 8, False), tail(8, 8, True)
    ((True, True, True), (True, True, False))
    """
    inexact = (rest2 != 0) | sticky
    return inexact, rest2 >= unit, (rest2 == unit) & (sticky == 0)


def increments(direction: Direction, negative: Any, odd: Any, inexact: Any, half: Any, tie: Any) -> Any:
    """Return whether rounding adds one unit to the kept digits (IEEE 754-2019 clauses 4.3.1 and 4.3.2).

    `odd` is the parity of the kept *code*. At precision 1, the parity of the significand may differ. The function has a
    branch for each direction, but no branch depends on the numbers.

    >>> increments(Direction.RNE, False, odd=True, inexact=True, half=True, tie=True)
    True
    >>> increments(Direction.RNE, False, odd=False, inexact=True, half=True, tie=True)
    False
    """
    if direction is Direction.RNE:
        return half & (odd | (tie == 0))
    if direction is Direction.RNA:
        return half
    if direction is Direction.RTZ:
        return inexact & (inexact == 0)
    if direction is Direction.RTP:
        return inexact & (negative == 0)
    if direction is Direction.RTN:
        return inexact & negative
    if direction is Direction.RTO:
        return inexact & (odd == 0)
    if direction is Direction.RAZ:
        return inexact
    raise ContextError(f"{direction.value} needs a random draw: see increments_stochastic")


PRECISIONS, RANDOM_BITS, MOST_RANDOM_BITS = (24, 53, 64), 16, 30  # x87's digits; default and largest N of SRA, SRB, SRC
STREAM = 0x9E3779B97F4A7C15  # increment of the seed from one draw to the next


def draw(seed: int, index: Any = 0) -> Any:
    """Return 32 random bits that depend only on (seed, index): the upper half of output `index` of SplitMix64(seed).

    A uint64 array of indices gives an array of draws.

    Steele, Lea and Flood, *Fast splittable pseudorandom number generators* (OOPSLA 2014). The generator is
    counter-based: each element of an array gets the same draw, however the array is divided.

    >>> hex(draw(0)), hex(draw(0, 1))
    ('0xe220a839', '0x6e789e6a')
    """
    mask = (1 << 64) - 1
    z = (seed + (index + 1) * STREAM) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 32


def increments_stochastic(rest2: Any, unit: Any, drawn: Any, marks: bool = False, sticky: Any = False) -> Any:
    """Return whether `drawn` is below `stochastic_threshold`, so that the number is rounded away from zero.

    For SR, the probability that a draw is below the threshold is about rest2/(2·unit).

    >>> increments_stochastic(1 << 8, 1 << 8, (1 << 31) - 1), increments_stochastic(1 << 8, 1 << 8, 1 << 31)
    (True, False)
    """
    return drawn < stochastic_threshold(rest2, unit, marks, sticky)


def stochastic_threshold(rest2: Any, unit: Any, marks: bool = False, sticky: Any = False) -> Any:
    """Return floor(2³²·rest/unit), with rest2 = 2·rest and unit from `split`. A draw below it rounds away from zero.

    With `marks`, the last bit of the threshold is set to 1 if the division is inexact, or if `sticky` is set.

    >>> hex(stochastic_threshold(1, 1 << 2)), hex(stochastic_threshold(1, 1 << 40, marks=True))
    ('0x20000000', '0x1')
    """
    whole = (rest2 << 31) // unit
    return whole | ((whole * unit != rest2 << 31) | sticky) if marks else whole


def draw_rule(context: Context) -> tuple[int, int, int, int]:
    """Return four integers with which `compared_draw` turns a draw into the number to compare with the threshold.

    SR compares all 32 bits of the draw. The other rules use only the first N = `random_bits` bits, R. Let ν be the
    discarded fraction. P3109 (interim report 4.0, RoundToPrecision) rounds away from zero if

        SRA  floor(ν·2^N) + R ≥ 2^N              that is, ν ≥ 1 − R/2^N
        SRB  floor(ν·2^(N+1)) + 2R + 1 ≥ 2^(N+1)          ν ≥ 1 − (R + 1/2)/2^N
        SRC  nearest_even(ν·2^N) + R ≥ 2^N                as SRB, but > instead of ≥ if 2^N − R is odd

    In units of 2^−32, the bounds on the right are even integers. The last bit of the threshold is therefore free. It
    marks that ν has nonzero digits below 2^−32; this makes the comparison exact.
    """
    direction, full = context.rounding, (1 << 32) - 1
    unit = 1 << (32 - context.random_bits) if direction.has_few_bits else 1
    half, low = 0 if direction is Direction.SRA else unit >> 1, unit & full if direction is Direction.SRC else 0
    rule = full + 1 - unit, half - (direction is Direction.SRC and not low), full * direction.has_few_bits, low
    return rule if context.draw is None else (0, compared_draw(rule, context.draw * unit), 0, 0)


def compared_draw(rule: tuple[int, int, int, int], drawn: int) -> int:
    """Turn a draw of 32 bits (or an array) into the number to compare with a threshold; `draw_rule` gives `rule`."""
    keep, plus, flip, low = rule
    return ((drawn & keep) + plus ^ flip) + (drawn & low != 0)


class Flags(Flag):
    """The five exceptions of IEEE 754-2019 clause 7, in the order in which floatlab lists them."""

    NONE = 0
    INVALID = 1
    DIVIDE_BY_ZERO = 2
    OVERFLOW = 4
    UNDERFLOW = 8
    INEXACT = 16

    @property
    def names(self) -> list[str]:
        """The names of the raised flags.

        >>> (Flags.INEXACT | Flags.OVERFLOW).names
        ['overflow', 'inexact']
        """
        return [str(flag.name).lower() for flag in self]


class Overflow(Enum):
    """The result of an overflow, unless the direction (RTZ) or the format (posits) requires the largest number."""

    NATIVE = "native"  # ∞ if the format has it, else NaN, else the largest number
    SATURATE = "saturate"  # the largest number, for infinite operands too (OCP's saturating conversion)
    PROPAGATE = "propagate"  # the largest number for finite operands; ∞ stays ∞ (P3109's SatPropagate)
    NONE = "none"  # ∞, else the largest number (SatNone of P3109's interim report 4.0)
    NONE_NAN = "none-nan"  # as `native`, but RTO, too, gives ∞ or NaN (P3109's executable specification)


class Absent(Enum):
    """The replacement for a NaN, infinity or zero that the format lacks.

    The same replacement is used for negative numbers in an unsigned format if `Context.negative` is `native`.
    """

    LARGEST = "largest"  # for NaN and ∞: a NaN if there is one, else the largest number; for zero: the smallest
    ZERO = "zero"  # zero, or the smallest number in a format without zero
    NAN = "nan"  # as `largest`, but zero, too, becomes a NaN if the format has one
    ERROR = "error"  # raise UnsupportedError


class Negative(Enum):
    """The result, in an unsigned format, for a negative number that does not round to zero."""

    NATIVE = "native"  # as `absent` says; P3109's formats follow `overflow`
    ZERO = "zero"  # zero, or the smallest number in a format without zero
    DROP = "drop"  # the result for the number without its sign (CUDA)


class Tininess(Enum):
    """Whether tininess is detected before or after rounding (IEEE 754, 7.5): after on x86 and RISC-V, before on Arm."""

    AFTER = "after"
    BEFORE = "before"


class NanRule(Enum):
    """The NaN that an operation with NaN operands returns."""

    FIRST = "first"  # the first NaN operand, quieted; the default NaN is positive
    X86 = "x86"  # as in SSE: the first; in x87 extended, as in x87 instructions; the default NaN is negative
    ARM = "arm"  # the first signaling NaN, else the first NaN
    RISCV = "riscv"  # always the default NaN
    RISCV_FP8 = "riscv-fp8"  # as `riscv`, also for overflow; in e5m2 and e4m3fn, this NaN is 0x7f (Zvfofp8min)

    @property
    def is_default(self) -> bool:
        """Whether every NaN result is the default NaN."""
        return self in (NanRule.RISCV, NanRule.RISCV_FP8)


def _choose(kind: type[Choice], what: str, word: str | Choice) -> Choice:
    if isinstance(word, kind):
        return word
    known = [str(member.value) for member in kind]
    plain = str(word).lower()
    if plain not in known:
        raise ContextError(f"{what} must be one of {' '.join(known)}, not {quoted(str(word))}{guess(plain, known)}")
    return kind(plain)


class Context(Record):
    """All settings on which a rounding depends, besides the number and the format. No setting is global state.

    A setting that is a member of an enumeration may be given by its name.

    >>> Context(rounding="near_maxMag", overflow="saturate").rounding
    <Direction.RNA: 'RNA'>
    """

    rounding: Direction
    seed: int
    overflow: Overflow
    absent: Absent
    tininess: Tininess
    flush_inputs: bool  # whether subnormal operands are read as zero ("denormals are zero")
    flush_results: bool  # whether tiny results become zero ("flush to zero")
    nan: NanRule
    fma_invalid: bool  # whether fma(∞, 0, quiet NaN) raises invalid (7.2 leaves it open)
    random_bits: int  # N of SRA, SRB and SRC
    draw: int | None  # one draw for every stochastic rounding, instead of draws by the seed
    negative: Negative
    precision: int  # significand bits of x87's results: 24, 53 or 64 (precision control)

    def __init__(
        self,
        rounding: Direction | str = Direction.RNE,
        seed: int = 0,
        overflow: Overflow | str = Overflow.NATIVE,
        absent: Absent | str = Absent.LARGEST,
        tininess: Tininess | str = Tininess.AFTER,
        flush_inputs: bool = False,
        flush_results: bool = False,
        nan: NanRule | str = NanRule.FIRST,
        fma_invalid: bool = True,
        random_bits: int = RANDOM_BITS,
        draw: int | None = None,
        negative: Negative | str = Negative.NATIVE,
        precision: int = 64,
    ) -> None:
        """Convert names to enum members, and validate."""
        if not isinstance(seed, int) or not 0 <= seed < 1 << 64:
            raise ContextError(f"a seed must be an integer from 0 to 2^64 − 1, not {quoted(str(seed))}")
        direction = parse_direction(rounding)
        if not isinstance(random_bits, int) or not 0 <= random_bits <= MOST_RANDOM_BITS:
            raise ContextError(
                f"random_bits must be a number from 0 to {MOST_RANDOM_BITS}, not {quoted(str(random_bits))}"
            )
        most = (1 << (random_bits if direction.has_few_bits else 32)) - 1
        if draw is not None and not (isinstance(draw, int) and 0 <= draw <= most):
            raise ContextError(f"a draw must be an integer from 0 to {most} here, not {quoted(str(draw))}")
        if precision not in PRECISIONS or type(precision) is not int:
            raise ContextError(f"the x87's precision must be 24, 53 or 64 bits, not {quoted(str(precision))}")
        put = object.__setattr__
        put(self, "rounding", direction)
        put(self, "overflow", _choose(Overflow, "overflow", overflow))
        put(self, "absent", _choose(Absent, "absent", absent))
        put(self, "tininess", _choose(Tininess, "tininess", tininess))
        put(self, "flush_inputs", bool(flush_inputs))
        put(self, "flush_results", bool(flush_results))
        put(self, "nan", _choose(NanRule, "the NaN rule", nan))
        put(self, "fma_invalid", bool(fma_invalid))
        for name, value in (("seed", seed), ("random_bits", random_bits), ("draw", draw), ("precision", precision)):
            put(self, name, value)
        put(self, "negative", _choose(Negative, "negative", negative))

    def __repr__(self) -> str:
        """Show the settings that differ from the default."""
        chosen = {name: getattr(self, name) for name in self._fields if getattr(self, name) != getattr(DEFAULT, name)}
        words = (f"{name}={getattr(value, 'value', value)!r}" for name, value in chosen.items())
        return f"Context({', '.join(words)})"


DEFAULT = Context()
# Newer fields. JSON and saved files omit each of them that has its default value.
LATER_FIELDS = ("random_bits", "draw", "negative", "precision")
AnyContext = Context | Direction | str | None  # accepted by `as_context`


def as_context(given: AnyContext) -> Context:
    """Convert an argument (a Context, a rounding direction or its name, or None for the default) to a Context.

    Public functions convert their context arguments with this function. Raises ContextError for other arguments.

    >>> as_context("RTZ"), as_context("near_maxMag").rounding.value, as_context(None)
    (Context(rounding='RTZ'), 'RNA', Context())
    """
    if given is None or isinstance(given, Context):
        return given or DEFAULT
    if isinstance(given, str | Direction):
        return Context(given)
    raise ContextError(
        f"context must be a floatlab.Context, or a rounding direction such as 'RTZ', not {type(given).__name__}"
    )
