"""The results of quantizing a block: its scale, the steps to it, and its elements; and how codes are decoded."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith.scaling import Value, evaluate, ratio, value_of
from floatlab.formats.blocks import BlockFormat, TwosComplement
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import NotANumber, Ratio
from floatlab.numbers.projection import Rounded
from floatlab.numbers.rounding import Context, Flags
from floatlab.presenter import Answering
from floatlab.record import Record


class Element(Record):
    """One element: its value, the value divided by the scales, the rounding, the code, and the decoded value.

    `scaled` is None if the block's scale is NaN or the division gave no number, `rounded` also for NaN and for rules
    that round otherwise than in a direction; `decoded` is None for NaN.
    """

    value: Value
    scaled: Ratio | None
    rounded: Rounded | None
    code: int
    flags: Flags
    decoded: Ratio | None

    @property
    def error(self) -> Fraction | None:
        """Decoded value − original value, exactly; None if either is not finite."""
        if self.decoded is None or not isinstance(self.value, Ratio):
            return None
        return self.decoded.as_fraction() - self.value.as_fraction()


class TensorScale(Record):
    """A tensor's scale, and the largest magnitude from which it was derived (None if the caller gave the scale)."""

    amax: Ratio | None
    datum: Datum


class ScaleStep(Record):
    """One line of a scale rule: its name, its formula, and its value before it is stored."""

    name: str
    formula: str
    value: Value


class BlockDerivation(Answering, Record):
    """The derivation of a block, from values to codes.

    `amax` is None if a NaN or an infinity is among the values; the block's scale is then NaN, unless the rule of a
    library says otherwise. `exponent` is amax's exponent as the rule defines it (None for rules that use no exponent).
    `wanted` is the scale before it was rounded into the scale's format (None if amax is zero or None). `steps` are the
    lines of the rule for the tensor and for this block. `groups` are the exponents, 0 or 1, of the groups of each size
    that the format has.
    """

    format: BlockFormat
    rule: ScaleRule
    context: Context
    amax: Ratio | None
    exponent: int | None
    wanted: Ratio | None
    scale: Datum
    tensor: TensorScale | None
    elements: tuple[Element, ...]
    literals: tuple[str | None, ...] = ()
    steps: tuple[ScaleStep, ...] = ()
    groups: tuple[tuple[int, ...], ...] = ()

    _ASKS = ".flags or .elements"

    def __repr__(self) -> str:
        """Show the format, the scale and the number of elements."""
        return f"BlockDerivation({self.format.name}: {len(self.elements)} elements, scale {self.scale!r})"

    @property
    def recipe(self) -> Recipe:
        """The format and the rule."""
        return Recipe(self.format, self.rule)

    @property
    def scale_code(self) -> int:
        """The code by which the scale is stored."""
        return min(self.scale.code - self.format.first_scale, (1 << self.format.scale_bits) - 1)

    @property
    def flags(self) -> Flags:
        """The union of the elements' flags."""
        raised = Flags.NONE
        for element in self.elements:
            raised |= element.flags
        return raised

    @property
    def multiplier(self) -> Ratio | None:
        """The factor that decodes an element, such as the product of both scales; None if no finite number is."""
        if self.groups:
            return None
        tensor = ratio(1) if self.tensor is None else value_of(self.tensor.datum)
        known = {"q": ratio(1), "scale": value_of(self.scale), "tensor": tensor}
        found = evaluate(parse_formula(self.rule.value), known, None)
        return found if isinstance(found, Ratio) else None


def element_value(code: int, format: BlockFormat) -> Value | None:
    """Return the value of an element's code without the scales; None for NaN.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> [element_value(code, parse_block_format("mxint8")).as_fraction() for code in (0x7F, 0x80)]
    [Fraction(127, 64), Fraction(-2, 1)]
    """
    if isinstance(format.element, TwosComplement):
        n = format.element.integer(code)
        return Ratio(n < 0, abs(n), twos=format.element.quantum)
    value = value_of(Datum(format.element, code))
    return None if isinstance(value, NotANumber) else value
