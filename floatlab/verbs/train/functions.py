"""The functions whose derivatives `train check` can check: built-in functions, and functions of any Python module."""

from __future__ import annotations

import math
from collections.abc import Callable

from floatlab.errors import FloatlabError, UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.reduce.reveal.targets import import_target
from floatlab.training.gradient_check import Function, StepSweep
from floatlab.training.rounded_number import RoundedNumber
from floatlab.training.validation import checked_number


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def _softplus(x: float) -> float:
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def _root(x: RoundedNumber | float) -> RoundedNumber | float:
    return x.sqrt() if isinstance(x, RoundedNumber) else math.sqrt(x)


# OWN: every operation is rounded. WHOLE: computed in binary64; only the argument and the value are rounded.
OWN: dict[str, Function] = {
    "x^2": lambda x: x * x,
    "x^3": lambda x: x * x * x,
    "x^4": lambda x: x * x * x * x,
    "1/x": lambda x: 1 / x,
    "sqrt": _root,
    "rosenbrock": lambda x: (1 - x) * (1 - x) + 100 * ((1 - x * x) * (1 - x * x)),
}
WHOLE: dict[str, Callable[[float], float]] = {
    "sin": math.sin, "cos": math.cos, "tan": math.tan, "exp": math.exp, "log": math.log, "tanh": math.tanh,
    "sigmoid": _sigmoid, "softplus": _softplus,
}  # fmt: skip
NAMES = (*OWN, *WHOLE)


class NamedFunction(Record):
    """A function to be evaluated in a format.

    `round_all` tells whether each of its operations is rounded to the format, or only its argument and its value.
    """

    name: str
    call: Function
    round_all: bool
    format: Format

    def checked(self, curve: StepSweep) -> StepSweep:
        """Return a curve without the points whose error or quotient is not finite.

        Raises UnsupportedError if no point is left, or if the derivative is not finite.
        """
        points = tuple(each for each in curve.points if math.isfinite(each.error) and math.isfinite(each.quotient))
        if not points or not math.isfinite(curve.derivative):
            raise UnsupportedError(f"{quoted(self.name)} is not defined at any step around {curve.x:g}")
        return curve.replace(points=points)


@in_default_mode
def function_of(name: str, x: str, format: Format | None = None) -> NamedFunction:
    """Return the function with this name (`x^3`, `sin`, …) or MODULE:FUNCTION, to be evaluated in a format at x.

    A function of a module is called with a float, then with a `RoundedNumber`, which rounds each operation. If the
    second call does not return a `RoundedNumber`, only the argument and the value will be rounded. Raises
    UnsupportedError for an unknown name, for a function that does not take one number, and if the value at x is not
    finite.

    >>> function_of("x^3", "1.5").round_all, function_of("math:atan", "1").round_all
    (True, False)
    """
    fmt = format or parse_format("binary32")
    point = checked_number(x, "x")
    known = OWN | WHOLE
    if name not in known and ":" not in name:
        raise UnsupportedError(
            f"there is no function {quoted(name)}{guess(name, [*NAMES])} (known: {' '.join(NAMES)}, or MODULE:FUNCTION)"
        )
    function = known[name] if name in known else import_target(name)
    if not callable(function):
        raise UnsupportedError(f"{quoted(name)} is not a function, but {type(function).__name__}")
    call = _guarded(function, name)
    if not math.isfinite(call(point)):
        raise UnsupportedError(f"{name} is not defined at {point:g}")
    return NamedFunction(name, call, name in OWN if name in known else _computes(function, point, fmt), fmt)


def _computes(call: Function, x: float, format: Format) -> bool:
    """Return whether a function accepts a `RoundedNumber` and returns one."""
    try:
        return isinstance(call(RoundedNumber(x, format)), RoundedNumber)
    except KeyboardInterrupt:
        raise
    except BaseException:  # a function that accepts only floats may raise any exception
        return False


def _guarded(call: Function, name: str) -> Function:
    """Return the function, changed to return NaN instead of raising ValueError or ArithmeticError.

    Other exceptions, except KeyboardInterrupt and FloatlabError, become UnsupportedError. So do results that are not
    numbers.
    """

    def guarded(x: RoundedNumber | float) -> RoundedNumber | float:
        try:
            found = call(x)
        except (ValueError, ArithmeticError):
            return RoundedNumber(math.nan, x.format) if isinstance(x, RoundedNumber) else math.nan
        except (KeyboardInterrupt, FloatlabError):
            raise
        except BaseException as trouble:  # also catch SystemExit: the function must not end floatlab
            said = f"{type(trouble).__name__}: {trouble}".splitlines()[0][:100]
            raise UnsupportedError(f"{quoted(name)} raises {said}") from None
        if isinstance(found, RoundedNumber):
            return found
        try:
            return float(found)
        except OverflowError:  # an integer beyond the range of binary64
            return math.nan
        except (TypeError, ValueError):
            raise UnsupportedError(f"{quoted(name)} returns {type(found).__name__}, not a number") from None

    return guarded
