"""`RoundedNumber`: a number whose operators round to a format and estimate the accumulated rounding error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partialmethod
from typing import SupportsFloat

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.operations import operate
from floatlab.arrays.recurrences import recurrence_format
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats import Format
from floatlab.fpmode import methods_in_default_mode


def round_number(x: SupportsFloat, fmt: Format) -> float:
    """Return a number rounded to a format, as a float."""
    return float(np.asarray(quantize(np.float64(x), fmt)))


def operate_numbers(operation: str, values: Sequence[float], fmt: Format) -> float:
    """Return the result of an operation on numbers, rounded once to a format."""
    return float(np.asarray(operate(operation, [np.float64(each) for each in values], fmt)))


@methods_in_default_mode
class RoundedNumber:
    """A number of a format; Python's operators round each result once to this format.

    To round every operation of a function, call it with a RoundedNumber. The function may use +, −, ×, ÷, powers with
    positive integer exponents, and `sqrt()`. `roundings` counts the operations. `error` estimates the absolute rounding
    error so far. An operation propagates the errors of its operands to first order. Its rounding adds half an ulp of
    the result, as an independent error (root of the sum of squares). If a subtraction cancels most of the value, the
    absolute error does not shrink with the value.

    >>> x = RoundedNumber(0.1, "fp16")
    >>> x * x, (x * x).roundings
    (RoundedNumber(binary16 0.009995), 1)
    """

    def __init__(self, value: SupportsFloat, format: Format | str, roundings: int = 0, error: float = 0.0) -> None:
        """Round a number to the format."""
        self.format = recurrence_format(format)
        self.value = round_number(value, self.format)
        self.roundings = roundings
        self.error = error

    def __repr__(self) -> str:
        """Show the format and the number."""
        return f"RoundedNumber({self.format.name} {self.value:.4g})"

    def __float__(self) -> float:
        """Return the number."""
        return self.value

    def _apply(self, operation: str, *operands: SupportsFloat) -> RoundedNumber:
        sides = [each if isinstance(each, RoundedNumber) else RoundedNumber(each, self.format) for each in operands]
        values = [np.float64(each.value) for each in sides]
        found = operate_numbers(operation, values, self.format)
        seen = sum(each.roundings for each in sides)
        with np.errstate(all="ignore"):
            carried = _carried(operation, values, [each.error for each in sides], np.float64(found))
        return RoundedNumber(found, self.format, seen + 1, math.hypot(carried, _half_ulp(found, self.format)))

    def _apply_swapped(self, operation: str, other: SupportsFloat) -> RoundedNumber:
        return self._apply(operation, other, self)

    def _apply_both(self, operation: str, other: SupportsFloat) -> RoundedNumber:
        return self._apply(operation, self, other)

    __add__, __radd__ = partialmethod(_apply_both, "add"), partialmethod(_apply_swapped, "add")
    __sub__, __rsub__ = partialmethod(_apply_both, "subtract"), partialmethod(_apply_swapped, "subtract")
    __mul__, __rmul__ = partialmethod(_apply_both, "multiply"), partialmethod(_apply_swapped, "multiply")
    __truediv__, __rtruediv__ = partialmethod(_apply_both, "divide"), partialmethod(_apply_swapped, "divide")

    def __neg__(self) -> RoundedNumber:
        return RoundedNumber(-self.value, self.format, self.roundings, self.error)

    def __pow__(self, power: int) -> RoundedNumber:
        if not isinstance(power, int) or power < 1:
            raise UnsupportedError(
                f"the exponent of a power must be a whole number from 1 up, not {quoted(str(power))}"
            )
        product = self
        for _ in range(power - 1):
            product = product * self
        return product

    def sqrt(self) -> RoundedNumber:
        """Return the square root, rounded once."""
        return self._apply("sqrt", self)


def _carried(operation: str, values: Sequence[np.float64], errors: list[float], found: np.float64) -> float:
    """Return the error of the result `found` that the errors of the operands cause, to first order."""
    if operation == "multiply":
        return float(abs(values[1]) * errors[0] + abs(values[0]) * errors[1])
    if operation == "divide":
        return float((errors[0] + abs(found) * errors[1]) / abs(values[1]))
    if operation == "sqrt":
        return float(errors[0] / (2 * found)) if errors[0] else 0.0
    return sum(errors)


def _half_ulp(x: float, fmt: Format) -> float:
    """Return an estimate of half an ulp: |x|·2^−p with p digits of precision.

    For a subnormal x, the estimate is at least half the format's smallest number.
    """
    return float(max(2.0**-fmt.precision * abs(x), float(fmt.smallest) / 2 if abs(x) < fmt.smallest_normal else 0.0))
