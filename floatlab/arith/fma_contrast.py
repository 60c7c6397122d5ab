"""Fused and separate multiply-add: a·b + c rounded once, compared with rounding the product and then the sum."""

from __future__ import annotations

from floatlab.arith.operands import begin
from floatlab.arith.operations import add, fma, multiply
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import Derivation, Encode, Round
from floatlab.numbers.rounding import DEFAULT
from floatlab.presenter import Answering
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers.projection import Rounded
    from floatlab.numbers.rounding import AnyContext


class Contrast(Answering, Record):
    """The fused and the separate computation of the same a·b + c."""

    fused: Derivation
    separate: Derivation
    _ASKS = ".same"

    def __repr__(self) -> str:
        """Show both results."""
        return f"Contrast(fused {self.fused.result!r}, separate {self.separate.result!r})"

    @property
    def same(self) -> bool:
        """Whether both results have the same bits."""
        return self.fused.result == self.separate.result

    @property
    def product(self) -> Datum | None:
        """The rounded product of the separate computation."""
        return next((step.datum for step in self.separate.steps if isinstance(step, Encode)), None)

    @property
    def product_rounding(self) -> Rounded | None:
        """The rounding of the product in the separate computation, or None if the product was exact or not finite."""
        rounded = next((step.rounded for step in self.separate.steps if isinstance(step, Round)), None)
        return rounded if rounded is not None and rounded.flags else None


def multiply_then_add(
    a: object, b: object, c: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return a·b + c with two roundings: one of the product, and one of the sum.

    Parameters
    ----------
    a, b, c : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Text is read into the result's format. A float is binary64; a NumPy scalar has the format of its dtype. An int
        must be representable in the result's format.
    format : Format or str, optional
        Format of the result. Default: the operands' common format, or binary32 if no operand has a format. If the
        operands have different formats, the default is the first of binary16, bfloat16, binary32, binary64 and
        binary128 that contains all these formats.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.

    Returns
    -------
    Derivation
        The error of the result is measured from the exact a·b + c. The flags are those of the product and of the sum.

    Raises
    ------
    LiteralError
        An operand is not a number.
    FormatError
        Unknown format, or none of the default formats contains the formats of all operands.
    ContextError
        Unknown rounding direction or rule.
    UnsupportedError
        An int is not representable in the result's format.

    Examples
    --------
    >>> x = "1.0009765625"
    >>> multiply_then_add(x, x, "-1.001953125", "fp16").result
    Datum(binary16 0x0000 = 0)
    """
    work = begin("multiply_then_add", (a, b, c), format, context)
    x, y, z = work.operands
    rules = work.context
    product = multiply(x, y, work.format, rules)
    total = add(product.result, z, work.format, rules)
    once = fma(x, y, z, work.format, rules)
    steps = (*product.steps, *total.steps[:-1], Encode(total.result, once.truth))
    flags = product.flags | total.flags
    return Derivation("multiply_then_add", work.operands, rules, steps, total.result, flags, work.literals)


def contrast(fused: Derivation, separate: Derivation) -> Contrast:
    """Compare a fused and a separate derivation of the same a·b + c.

    Parameters
    ----------
    fused : Derivation
        The result of `fma`.
    separate : Derivation
        The result of `multiply_then_add` for the same operands.

    Returns
    -------
    Contrast
        `.same`, `.product` (the rounded product), `.product_rounding` (None if the product was exact).

    Raises
    ------
    UnsupportedError
        The arguments are not an `fma` and a `multiply_then_add` of the same operands.

    Examples
    --------
    >>> x, y = "1.0009765625", "-1.001953125"
    >>> both = contrast(fma(x, x, y, "fp16"), multiply_then_add(x, x, y, "fp16"))
    >>> both.same, both.product, both.product_rounding.tail.value
    (False, Datum(binary16 0x3c02 = 1.002), 'below half')
    """
    if (fused.operation, separate.operation) != ("fma", "multiply_then_add") or fused.operands != separate.operands:
        raise UnsupportedError("contrast must be given the fma and the multiply_then_add of the same operands")
    return Contrast(fused, separate)
