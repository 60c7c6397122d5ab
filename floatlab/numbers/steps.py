"""A derivation: the way from operands to a result, one frozen step at a time. Steps hold numbers, never strings."""

from __future__ import annotations

from enum import Enum

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.context import Context, Flags
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.literals import Literal
from floatlab.numbers.projection import Rounded
from floatlab.numbers.ratio import Ratio
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    Operand = Literal | Datum | Ratio
    Truth = Exact | Ratio


class Rule(Enum):
    """What settles an operation whose operand is not a finite number."""

    INFINITY = "infinity"
    NAN = "nan"
    FLUSHED_INPUT = "flushed input"


class Step(Record):
    """One stage of a derivation."""


class Read(Step):
    """A literal as the rounding sees it: exact, or cut with a sticky bit."""

    exact: Exact
    sticky: bool


class Decode(Step):
    """A code taken apart."""

    datum: Datum


class Special(Step):
    """A rule took the place of arithmetic."""

    rule: Rule
    flags: Flags


class Round(Step):
    """The one rounding."""

    format: Format
    rounded: Rounded


class Encode(Step):
    """The result, and the exact number that it stands for (None where that is not a finite number)."""

    datum: Datum
    truth: Truth | None

    @property
    def error(self) -> Fraction | None:
        """Result − truth, exactly; None where either is not a finite number.

        Raises UnsupportedError where it is too long to write out.
        """
        if self.truth is None or not self.datum.is_finite:
            return None
        return self.datum.exact.as_fraction() - self.truth.as_fraction()


class Derivation(Record):
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

    @property
    def truth(self) -> Truth | None:
        """The exact number that the result stands for; None where it is not a finite number."""
        last = self.steps[-1]
        return last.truth if isinstance(last, Encode) else None

    @property
    def rounded(self) -> Rounded | None:
        """The rounding's verdict, where there was a rounding."""
        return next((step.rounded for step in self.steps if isinstance(step, Round)), None)

    @property
    def error(self) -> Fraction | None:
        """Result − truth, exactly; None where either is not finite. Raises UnsupportedError where too long."""
        last = self.steps[-1]
        if not isinstance(last, Encode):
            raise UnsupportedError("the derivation has no result yet")
        return last.error

    @property
    def error_ulps(self) -> Fraction | None:
        """The error in units in the last place of the result."""
        error = self.error
        return None if error is None else error / self.result.ulp.as_fraction()
