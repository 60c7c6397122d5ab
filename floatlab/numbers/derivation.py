"""A derivation: the path from operands to a result, as immutable steps. Steps contain numbers, never text."""

from __future__ import annotations

from enum import Enum

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import FAR, Exact, Literal, Ratio, SquareRoot
from floatlab.numbers.projection import Rounded
from floatlab.numbers.rounding import Context, Flags
from floatlab.presenter import Answering
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    Operand = Literal | Datum | Ratio
    Truth = Exact | Ratio | SquareRoot | Datum  # a Datum if its value is irrational


# Pages and JSON approximate the error if the exact number, written out, has more than about this many bits.
EXACT_ERROR_BITS = 200_000
ERROR_DIGITS = 30  # correct binary digits that an approximate error must have at least


class Rule(Enum):
    """A rule that sets an operand, a result or a sign where arithmetic leaves it open, as for NaN operands."""

    INFINITY = "infinity"
    NAN = "nan"
    FLUSHED_INPUT = "flushed input"
    NAN_OPERAND = "NaN operand"
    SIGNALING_OPERAND = "signaling operand"
    UNSUPPORTED_OPERAND = "unsupported operand"
    INFINITY_MINUS_INFINITY = "infinity minus infinity"
    ZERO_TIMES_INFINITY = "zero times infinity"
    ZERO_OVER_ZERO = "zero over zero"
    INFINITY_OVER_INFINITY = "infinity over infinity"
    REMAINDER_INVALID = "remainder invalid"
    NEGATIVE_ROOT = "negative root"
    DIVISION_BY_ZERO = "division by zero"
    INFINITE_RESULT = "infinite result"
    OVER_INFINITY = "over infinity"
    REMAINDER_BY_INFINITY = "remainder by infinity"
    ZERO_SUM = "zero sum"
    ZERO_ROOT = "zero root"
    LOGARITHM_OF_ZERO = "logarithm of zero"
    SIGN_BIT = "sign bit"
    NEIGHBOUR = "neighbour"


class Combination(Enum):
    """The operation whose exact result is recorded in a step `Combine`."""

    PRODUCT = "product"
    SUM = "sum"
    REMAINDER = "remainder"
    INTEGER = "integer"
    SCALED = "scaled"
    EXPONENT = "exponent"
    TOTAL = "total"  # of any number of terms


class Preference(Enum):
    """The reason why one of two operands is the result."""

    VALUE = "value"
    MAGNITUDE = "magnitude"
    ZERO = "sign of zero"
    NUMBER = "number before NaN"
    SAME = "same number"


class Step(Record):
    """One step of a derivation (the base class)."""


class Read(Step):
    """The operand as a binary number, before it is rounded: exact, or truncated with a sticky bit."""

    exact: Exact
    sticky: bool


class Decode(Step):
    """A code decoded into its fields."""

    datum: Datum


class Promote(Step):
    """An operand converted to the result's format, as frameworks do before they compute."""

    datum: Datum
    promoted: Datum


class Align(Step):
    """Two terms of a sum, aligned at one exponent.

    The term whose leading digit has the smaller exponent is shifted right by `shift` places.
    """

    left: Exact
    right: Exact
    shift: int
    moved: int  # the term that is shifted: 0 left, 1 right


class Combine(Step):
    """The exact result of an operation, such as a product or a sum, before this result is rounded into the format."""

    kind: Combination
    exact: Exact


class Integral(Step):
    """A rounding to an integer; `rounded.code` is the integer without its sign."""

    rounded: Rounded


class Divide(Step):
    """A quotient, exact or truncated with a sticky bit.

    For the operation remainder, `quotient` is the nearest integer, and `sticky` tells whether the exact quotient is not
    an integer.
    """

    quotient: Exact
    sticky: bool


class Root(Step):
    """A square root, exact or truncated with a sticky bit."""

    root: Exact
    sticky: bool


class Choose(Step):
    """The choice of one of two operands as the result: its index, and the reason."""

    index: int
    why: Preference


class Special(Step):
    """A rule that was applied instead of arithmetic, and the flags that it raised."""

    rule: Rule
    flags: Flags


class Round(Step):
    """The rounding of an exact number into the result's format (under precision control, into a narrower format)."""

    format: Format
    rounded: Rounded


class Encode(Step):
    """The result, and the exact number that it approximates (None if there is no such finite number)."""

    datum: Datum
    truth: Truth | None

    @property
    def error(self) -> Fraction | None:
        """The result minus the exact number (`truth`), exactly.

        The error is None if one of the two numbers is not finite, or if one is irrational and the numbers differ.
        Raises UnsupportedError if the error is too long to expand.
        """
        from fractions import Fraction

        truth = self.truth
        if truth is None or self.is_enclosed or isinstance(truth, SquareRoot) or not self.datum.is_finite:
            return None
        if isinstance(truth, Datum):
            return Fraction(0)
        return self.datum.exact.as_fraction() - truth.as_fraction()

    @property
    def is_enclosed(self) -> bool:
        """Whether only bounds on the error are known, because the exact number or the result is irrational."""
        truth = self.truth
        if isinstance(truth, SquareRoot):
            return True
        symbol = self.datum.symbol
        if isinstance(truth, Datum):
            return truth.symbol != symbol
        return bool(symbol)

    @property
    def error_bounds(self) -> tuple[Fraction, Fraction] | None:
        """Bounds on the error; None if the exact number (`truth`) or the result is not finite.

        The bounds are equal if the error is rational. Otherwise they are at most 2^−32 ulp apart (after an overflow,
        they may be further apart).
        """
        if self.truth is None or not self.is_enclosed:
            error = self.error
            return None if error is None else (error, error)
        if not self.datum.is_finite:
            return None
        digits, truth = self.datum.format.precision + 34, self.truth
        if isinstance(truth, SquareRoot | Datum):
            low, high = (bound.as_fraction() for bound in truth.bounds(digits))
        else:
            low = high = truth.as_fraction()
        least, most = (bound.as_fraction() for bound in self.datum.bounds(digits))
        return least - high, most - low


class Derivation(Answering, Record):
    """An operation with its operands, its steps, its result and the flags that it raised.

    >>> from floatlab import read
    >>> d = read("1.12156456132", "fp16")
    >>> d.result, d.flags, float(d.error_ulps)
    (Datum(binary16 0x3c7c = 1.121), <Flags.INEXACT: 16>, -0.48211079168)
    """

    operation: str
    operands: tuple[Operand, ...]
    context: Context
    steps: tuple[Step, ...]
    result: Datum
    flags: Flags
    literals: tuple[str | None, ...] = ()  # the text from which each operand was read, or None; () if all are None

    def __repr__(self) -> str:
        """Show the operation, the result and the flags, without the steps."""
        names = ", ".join(self.flags.names) or "no flags"
        return f"Derivation({self.operation}: {self.result!r}, {names}, {len(self.steps)} steps)"

    @property
    def is_enclosed(self) -> bool:
        """Whether only bounds on the error are known, because the exact number or the result is irrational."""
        last = self.steps[-1]
        return isinstance(last, Encode) and last.is_enclosed

    @property
    def truth(self) -> Truth | None:
        """The exact number that the result approximates, or None if there is no such finite number."""
        last = self.steps[-1]
        return last.truth if isinstance(last, Encode) else None

    @property
    def rounded(self) -> Rounded | None:
        """The last rounding into a format, with its intermediate values; None if nothing was rounded."""
        return next((step.rounded for step in reversed(self.steps) if isinstance(step, Round)), None)

    @property
    def error(self) -> Fraction | None:
        """The result minus the exact number (`Encode.error`); raises UnsupportedError if there is no `Encode` step."""
        last = self.steps[-1]
        if not isinstance(last, Encode):
            raise UnsupportedError("the derivation has no result yet")
        return last.error

    @property
    def error_bounds(self) -> tuple[Fraction, Fraction] | None:
        """Bounds on the error (`Encode.error_bounds`); None if the exact number or the result is not finite."""
        last = self.steps[-1]
        return last.error_bounds if isinstance(last, Encode) else None

    @property
    def rounding_format(self) -> Format:
        """The format to whose precision the result was rounded: its own or, under precision control, a narrower one."""
        own = self.result.format
        if self.context.precision >= own.precision or not own.explicit_integer_bit:
            return own
        return next((step.format for step in reversed(self.steps) if isinstance(step, Round)), own)

    @property
    def error_unit(self) -> Exact:
        """One ulp, the unit of `error_ulps`: the weight of the last digit that the rounding kept."""
        ulp = self.result.ulp
        return Exact(False, ulp.c, ulp.q + self.result.format.precision - self.rounding_format.precision)

    @property
    def approximate_error_ulps(self) -> Fraction | None:
        """The error in ulps, exactly or to about eight digits, computed quickly.

        The error is None if the exact number (`truth`) or the result is not finite. If the exact number is too long to
        write out, its leading digits are taken from the step `Read`. In this case, the error is also None if there is
        no such step, if the number is far out of range (`exact.FAR`), if the omitted digits matter, or if the result is
        irrational.
        """
        truth = self.truth
        if truth is None or not self.result.is_finite:
            return None
        unit = self.error_unit.as_fraction()
        if self.is_enclosed and not (isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS)):
            bounds = self.error_bounds
            return None if bounds is None else (bounds[0] + bounds[1]) / 2 / unit
        if not isinstance(truth, Ratio) or truth.is_short(EXACT_ERROR_BITS):
            return self.error_ulps
        read = self._near_reading()
        if read is None or self.result.symbol:
            return None
        seen = self.result.exact - read.exact
        if seen.exponent < read.exact.q + ERROR_DIGITS:
            return None  # the error depends on the truncated digits
        return seen.as_fraction() / unit

    def _near_reading(self) -> Read | None:
        """Return the step `Read`; None if there is none, or if its number is far out of range (`FAR`)."""
        read = next((step for step in self.steps if isinstance(step, Read)), None)
        return read if read is not None and abs(read.exact.exponent) <= FAR else None

    @property
    def error_binade_ulps(self) -> int | None:
        """An exponent k with |error| < 2^k ulp, computed quickly from the leading digits in the step `Read`.

        The exponent is None if there is no such step, if its number is far out of range (`exact.FAR`), or if the result
        is irrational or not finite.
        """
        read = self._near_reading()
        if read is None or self.truth is None or not self.result.is_finite or self.result.symbol:
            return None
        seen = abs(self.result.exact - read.exact) + Exact(False, 1, read.exact.q)
        return seen.exponent + 1 - self.result.ulp.q

    @property
    def error_ulps(self) -> Fraction | None:
        """The error in units of `error_unit`, or None if `error` is None."""
        error = self.error
        return None if error is None else error / self.error_unit.as_fraction()
