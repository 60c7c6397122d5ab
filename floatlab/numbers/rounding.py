"""The one rounding kernel: where a number is cut, what the cut-off tail is, and whether to step away from zero.

The decision is written once and with operators only, so that Python integers and NumPy arrays pass
through the same three functions. A number is c·2^q with an integer c ≥ 0; cutting it `shift`
places up leaves

    c = kept · unit + rest        unit = 2^shift, 0 ≤ rest < unit

and everything a rounding direction may depend on is the sign, the parity of the kept code, and
where 2·rest (with `sticky`, which says that something nonzero lies below even c) stands to unit:

    2·rest        sticky   the tail is      guard  round-or-sticky
    0             no       zero               0        0
    0             yes      below half         0        1
    < unit        either   below half         0        1
    = unit        no       half, a tie        1        0
    = unit        yes      above half         1        1
    > unit        either   above half         1        1
"""

from __future__ import annotations

from enum import Enum

from floatlab.errors import ContextError, guess, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any  # an int and a bool, or NumPy arrays of them: the kernel does not care


class Direction(Enum):
    """The rounding directions of IEEE 754-2019 clause 4.3, and three that hardware and proofs use."""

    RNE = "RNE"  # to nearest, ties to even: roundTiesToEven
    RNA = "RNA"  # to nearest, ties away from zero: roundTiesToAway
    RTZ = "RTZ"  # toward zero: roundTowardZero
    RTP = "RTP"  # toward +∞: roundTowardPositive
    RTN = "RTN"  # toward −∞: roundTowardNegative
    RTO = "RTO"  # to odd: inexact results get an odd code, so that a later rounding is innocuous
    RAZ = "RAZ"  # away from zero
    SR = "SR"  # stochastic


IN_WORDS = {
    Direction.RNE: "to nearest, ties to even",
    Direction.RNA: "to nearest, ties away from zero",
    Direction.RTZ: "toward zero",
    Direction.RTP: "toward +∞",
    Direction.RTN: "toward −∞",
    Direction.RTO: "to odd",
    Direction.RAZ: "away from zero",
    Direction.SR: "stochastic",
}

# Everyday words, and those of other libraries and standards.
_SPELLINGS = {
    "nearest": "RNE", "even": "RNE", "up": "RTP", "down": "RTN", "zero": "RTZ", "stochastic": "SR",
    "to_nearest": "RNE", "nearest_even": "RNE", "half_even": "RNE", "ties_to_even": "RNE", "tonearest": "RNE",
    "nearest_away": "RNA", "half_away": "RNA", "ties_to_away": "RNA", "ties_away": "RNA",
    "toward_zero": "RTZ", "towards_zero": "RTZ", "towardzero": "RTZ", "to_zero": "RTZ", "truncate": "RTZ",
    "trunc": "RTZ", "chop": "RTZ",
    "upward": "RTP", "ceil": "RTP", "ceiling": "RTP", "toward_positive": "RTP",
    "downward": "RTN", "floor": "RTN", "toward_negative": "RTN",
    "away_from_zero": "RAZ", "from_zero": "RAZ", "to_odd": "RTO", "random": "SR",
    "near_even": "RNE", "near_maxmag": "RNA", "minmag": "RTZ", "max": "RTP", "min": "RTN", "odd": "RTO",
    "roundtiestoeven": "RNE", "roundtiestoaway": "RNA", "roundtowardzero": "RTZ",
    "roundtowardpositive": "RTP", "roundtowardnegative": "RTN", "rtu": "RTP", "rtd": "RTN", "rup": "RTP",
    "rdn": "RTN", "rmm": "RNA",
}  # fmt: skip


def parse_direction(word: str | Direction) -> Direction:
    """Return the direction that a word means: RNE …, IEEE 754's names, TestFloat's (`near_even`, `minMag`), or `up`.

    >>> parse_direction("minMag"), parse_direction("up")
    (<Direction.RTZ: 'RTZ'>, <Direction.RTP: 'RTP'>)
    """
    if isinstance(word, Direction):
        return word
    plain = str(word).strip().lower().replace("-", "_").replace(" ", "_")
    plain = _SPELLINGS.get(plain, plain).upper()
    if plain == "AWAY":
        raise ContextError(
            "rounding direction 'away' has two meanings: RAZ is away from zero, RNA to nearest, ties away"
        )
    if plain not in Direction.__members__:
        known = [*Direction.__members__, *_SPELLINGS]
        raise ContextError(
            f"unknown rounding direction {quoted(str(word))}{guess(plain, known)}"
            f" (known: {' '.join(Direction.__members__)}; nearest, up, down, zero, odd, stochastic)"
        )
    return Direction[plain]


def split(c: Any, shift: Any) -> tuple[Any, Any, Any]:
    """Cut `c` above its lowest `shift` ≥ 0 bits; return kept, 2·rest and unit.

    >>> split(0b1011_101, 3)
    (11, 10, 8)
    """
    kept = c >> shift
    rest = c - (kept << shift)
    return kept, rest + rest, 1 << shift


def tail(rest2: Any, unit: Any, sticky: Any) -> tuple[Any, Any, Any]:
    """Weigh the tail: is it nonzero, is it at least half a unit, is it a tie.

    No shift is a special case; but `sticky` with unit 1 would hide half of the tail, so whoever
    passes it keeps at least one digit below the cut.

    >>> tail(8, 8, False), tail(8, 8, True)
    ((True, True, True), (True, True, False))
    """
    inexact = (rest2 != 0) | sticky
    return inexact, rest2 >= unit, (rest2 == unit) & (sticky == 0)


def increments(direction: Direction, negative: Any, odd: Any, inexact: Any, half: Any, tie: Any) -> Any:
    """Say whether the kept digits step one unit away from zero (IEEE 754-2019 clauses 4.3.1 and 4.3.2).

    `odd` is the parity of the kept *code*, which differs from the significand's at precision 1.
    Branches on the direction only.

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


STREAM = 0x9E3779B97F4A7C15  # what a seed moves on by from one draw to the next


def draw(seed: int, index: Any = 0) -> Any:
    """Return 32 random bits that depend on (seed, index) only: output `index` of SplitMix64(seed), upper half.

    An array of indices, of 64 bits without a sign, gives an array of draws.

    Steele, Lea and Flood, *Fast splittable pseudorandom number generators* (OOPSLA 2014). Counter
    based, so that the same element gets the same draw however the work is divided.

    >>> hex(draw(0)), hex(draw(0, 1))
    ('0xe220a839', '0x6e789e6a')
    """
    mask = (1 << 64) - 1
    z = (seed + (index + 1) * STREAM) & mask
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
    return (z ^ (z >> 31)) >> 32


def increments_stochastic(rest2: Any, unit: Any, drawn: Any) -> Any:
    """Step away from zero with probability floor(2³²·rest/unit) / 2³²: when the draw is below it.

    >>> increments_stochastic(1 << 8, 1 << 8, (1 << 31) - 1), increments_stochastic(1 << 8, 1 << 8, 1 << 31)
    (True, False)
    """
    return drawn < stochastic_threshold(rest2, unit)


def stochastic_threshold(rest2: Any, unit: Any) -> Any:
    """Return floor(2³²·rest/unit), what a draw is compared with.

    >>> hex(stochastic_threshold(1, 1 << 2))
    '0x20000000'
    """
    return (rest2 << 31) // unit
