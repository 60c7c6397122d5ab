"""The results of quantizing a block: its scale, the steps that led to the scale, and its elements. Decodes elements."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith.blocks.formulas import Value, evaluate, ratio, value_of
from floatlab.formats.blocks import BlockFormat, Integers
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
    """One element: the given value, the steps of its quantization, and the decoded value.

    `scaled` is the number that is rounded to the element, usually the value divided by the scales. It is None if this
    number is infinite or NaN, or if the block's scale is NaN. `rounded` is the rounding of `scaled`. It is None if
    `scaled` is None, or if the scale rule chooses the closest code instead of rounding. `decoded` is None if the
    decoded value is not finite.
    """

    value: Value
    scaled: Ratio | None
    rounded: Rounded | None
    code: int
    flags: Flags
    decoded: Ratio | None

    @property
    def error(self) -> Fraction | None:
        """The decoded value minus the original value, exactly; None if one of the values is not finite."""
        if self.decoded is None or not isinstance(self.value, Ratio):
            return None
        return self.decoded.as_fraction() - self.value.as_fraction()


class TensorScale(Record):
    """A tensor's scale (`datum`), and the largest magnitude from which it was computed (`amax`).

    `amax` is None if this magnitude is not finite, or if the caller gave the scale. `minimum` is a second factor, which
    scales the minima of the blocks. Formats such as q4_k have it; in other formats, `minimum` is None.
    """

    amax: Ratio | None
    datum: Datum
    minimum: Datum | None = None


class ScaleStep(Record):
    """A computed line of a scale rule, a result of the rule's search, or the error of one scale that the rule tried.

    `value` is not yet rounded to the format in which it is stored.
    """

    name: str
    formula: str
    value: Value


class BlockDerivation(Answering, Record):
    """The derivation of a block, from its values to its codes.

    - `amax`: the largest magnitude; None if a value is NaN or infinite. Floatlab's own rules then make the scale NaN,
      unless the scale is constant.
    - `wanted`: the scale before it is rounded to its format; None if it is not finite, or if `amax` is zero or None.
    - `exponent`: the exponent of amax, as floatlab's rules `floor`, `even` and `ceil` define it; None for all other
      rules, and if `wanted` is None.
    - `steps`: the computed lines of the rule. If the rule searches for a scale, the variables that the search found are
      added. If the rule tries several scales, the error of each scale is added.
    - `groups`: formats with groups (HiF4) have one or more group sizes. For each size, `groups` has a tuple with the
      exponents (0 or 1) of all groups of this size.
    - `minimum`: the minimum stored beside the scale; None in formats that store no minimum.
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
    minimum: Datum | None = None
    groups: tuple[tuple[int, ...], ...] = ()

    _ASKS = ".flags or .elements"

    def __repr__(self) -> str:
        """Show the format, the scale and the number of elements."""
        return f"BlockDerivation({self.format.name}: {len(self.elements)} elements, scale {self.scale!r})"

    @property
    def recipe(self) -> Recipe:
        """The recipe: the block format and the scale rule."""
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
        """The factor by which decoding multiplies an element, such as the product of block scale and tensor scale.

        It is None if the factor is not a finite number, or if it differs between the elements of a block (HiF4).
        """
        if self.groups:
            return None
        known = {"scale": value_of(self.scale), "tensor": ratio(1)}
        if self.tensor is not None:
            known["tensor"] = value_of(self.tensor.datum)
            known["tensor_minimum"] = ratio(0) if self.tensor.minimum is None else value_of(self.tensor.minimum)
        known["minimum"] = ratio(0)  # the minimum is added to the product, so it does not change the factor
        found = evaluate(parse_formula(self.rule.value), {**known, "q": ratio(1)}, None)
        return found if isinstance(found, Ratio) else None


def zero_code(format: BlockFormat) -> int:
    """Return the code of an element that is 0.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> zero_code(parse_block_format("mxfp4")), zero_code(parse_block_format("q4_0"))
    (0, 8)
    """
    if isinstance(format.element, Integers):
        return format.element.code(False, 0)
    return format.element.compose(False, 0)


def element_value(code: int, format: BlockFormat) -> Value | None:
    """Return the number of an element's code, not multiplied by the scales; None for NaN.

    >>> from floatlab.formats.blocks import parse_block_format
    >>> [element_value(code, parse_block_format("mxint8")).as_fraction() for code in (0x7F, 0x80)]
    [Fraction(127, 64), Fraction(-2, 1)]
    """
    if isinstance(format.element, Integers):
        n = format.element.integer(code)
        return Ratio(n < 0, abs(n), twos=format.element.quantum)
    value = value_of(Datum(format.element, code))
    return None if isinstance(value, NotANumber) else value
