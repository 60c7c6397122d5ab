"""How to round and what to do at the edges: Context, and the flags of IEEE 754-2019 clause 7."""

from __future__ import annotations

from enum import Enum, Flag

from floatlab.errors import ContextError, guess, quoted
from floatlab.numbers.rounding import Direction, parse_direction
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    Choice = TypeVar("Choice", bound=Enum)


class Flags(Flag):
    """The five exceptions of IEEE 754-2019 clause 7, in the order in which they are always named."""

    NONE = 0
    INVALID = 1
    DIVIDE_BY_ZERO = 2
    OVERFLOW = 4
    UNDERFLOW = 8
    INEXACT = 16

    @property
    def names(self) -> list[str]:
        """The raised flags as users read them.

        >>> (Flags.INEXACT | Flags.OVERFLOW).names
        ['overflow', 'inexact']
        """
        return [str(flag.name).lower() for flag in self]


class Overflow(Enum):
    """What becomes of a finite number beyond the largest, in directions that do not stop at the largest."""

    NATIVE = "native"  # ∞, else NaN, else the largest
    SATURATE = "saturate"  # the largest, and for ∞ too (OCP's saturating conversion)
    PROPAGATE = "propagate"  # the largest for finite numbers; ∞ stays ∞ (P3109's SatPropagate)


class Absent(Enum):
    """What becomes of an operand that the format has no code for at all: NaN, ∞, or zero.

    A negative number that does not round to zero goes, in an unsigned format, the way of a NaN.
    """

    LARGEST = "largest"  # NaN and ∞: a NaN where there is one, else the largest; zero: the smallest
    ZERO = "zero"  # zero, or the smallest where there is no zero
    NAN = "nan"  # a NaN for zero too where there is one; else as `largest`
    ERROR = "error"  # refuse with UnsupportedError


class Tininess(Enum):
    """When a result counts as tiny (7.5): x86 and RISC-V look after rounding, Arm before."""

    AFTER = "after"
    BEFORE = "before"


class NanRule(Enum):
    """Which NaN an operation with NaN operands gives."""

    FIRST = "first"  # the first NaN operand, quieted; the default NaN is positive
    X86 = "x86"  # the first, as SSE; in x87 extended the larger significand; the default NaN is negative
    ARM = "arm"
    RISCV = "riscv"  # always the default NaN


def _choose(kind: type[Choice], what: str, word: str | Choice) -> Choice:
    if isinstance(word, kind):
        return word
    known = [str(member.value) for member in kind]
    plain = str(word).lower()
    if plain not in known:
        raise ContextError(f"{what} is one of {' '.join(known)}, not {quoted(str(word))}{guess(plain, known)}")
    return kind(plain)


class Context(Record):
    """Everything a rounding depends on besides the number and the format; always an argument, never ambient.

    Words are accepted for every choice, and checked.

    >>> Context(rounding="near_maxMag", overflow="saturate").rounding
    <Direction.RNA: 'RNA'>
    """

    rounding: Direction
    seed: int
    overflow: Overflow
    absent: Absent
    tininess: Tininess
    flush_inputs: bool  # subnormal operands are read as zero ("denormals are zero")
    flush_results: bool  # tiny results become zero ("flush to zero")
    nan: NanRule
    fma_invalid: bool  # whether fma(∞, 0, quiet NaN) raises invalid (7.2 leaves it open)

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
    ) -> None:
        """Take strings, store enums."""
        if not isinstance(seed, int) or not 0 <= seed < 1 << 64:
            raise ContextError(f"a seed is an integer from 0 to 2^64 − 1, not {quoted(str(seed))}")
        put = object.__setattr__
        put(self, "rounding", parse_direction(rounding))
        put(self, "seed", seed)
        put(self, "overflow", _choose(Overflow, "overflow", overflow))
        put(self, "absent", _choose(Absent, "absent", absent))
        put(self, "tininess", _choose(Tininess, "tininess", tininess))
        put(self, "flush_inputs", bool(flush_inputs))
        put(self, "flush_results", bool(flush_results))
        put(self, "nan", _choose(NanRule, "the NaN rule", nan))
        put(self, "fma_invalid", bool(fma_invalid))

    def __repr__(self) -> str:
        """Show the choices that are not the default."""
        chosen = {name: getattr(self, name) for name in self._fields if getattr(self, name) != getattr(DEFAULT, name)}
        words = (f"{name}={getattr(value, 'value', value)!r}" for name, value in chosen.items())
        return f"Context({', '.join(words)})"


DEFAULT = Context()
AnyContext = Context | Direction | str | None  # what `as_context` takes


def as_context(given: AnyContext) -> Context:
    """Return the context that is meant: a Context itself, a rounding direction by its name, or None for the default.

    Every public function that takes a context takes it through here. Raises ContextError for anything else.

    >>> as_context("RTZ"), as_context("near_maxMag").rounding.value, as_context(None)
    (Context(rounding='RTZ'), 'RNA', Context())
    """
    if isinstance(given, Context):
        return given
    if given is None:
        return DEFAULT
    if isinstance(given, str | Direction):
        return Context(given)
    raise ContextError(
        f"context is a floatlab.Context, or a rounding direction such as 'RTZ', not {type(given).__name__}"
    )
