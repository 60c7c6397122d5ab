"""Exact quantization of one block: its largest magnitude, its scale, and its scaled and rounded elements.

All intermediate values are exact. The tensor scale, the block scale and the elements are each rounded once. With block
scale s and tensor scale t (1 if there is none), an element is the exact quotient x / (s·t), rounded once.
"""

from __future__ import annotations

from enum import Enum

from floatlab.errors import ContextError, LiteralError, UnsupportedError, guess, quoted
from floatlab.formats.blocks import BlockFormat, TwosComplement, parse_block_format
from floatlab.formats.catalog import short_name
from floatlab.formats.format import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import EXACT_ERROR_BITS, Derivation
from floatlab.numbers.exact import Code, Exact, Infinity, Literal, NotANumber, Ratio
from floatlab.numbers.projection import Rounded, round_exact
from floatlab.numbers.reading import encode, read
from floatlab.numbers.rounding import DEFAULT, Context, Direction, Flags, Overflow, as_context
from floatlab.presenter import Answering
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from floatlab.numbers.rounding import AnyContext

    Value = Ratio | Infinity | NotANumber


class ScaleRule(Enum):
    """The rule that derives a block's scale from its largest magnitude, amax.

    Let e be the exponent of amax, and emax the exponent of the element format's largest number. The first three rules
    are for scales that are powers of two. They give 2^(e − emax), and differ in the definition of e. The other rules
    round amax / (largest element · tensor scale) into the scale's format.
    """

    FLOOR = "floor"  # e = ⌊log2 amax⌋: OCP MX 1.0, section 6.3
    EVEN = "even"  # e of amax rounded to the element's precision
    CEIL = "ceil"  # e = ⌈log2 amax⌉
    UP = "up"  # round up: the smallest scale at which no element saturates
    NEAREST = "nearest"  # round to nearest


BY_EXPONENT = (ScaleRule.FLOOR, ScaleRule.EVEN, ScaleRule.CEIL)
_SPELLINGS = {"ocp": "floor", "rceil": "up"}


def rules_for(format: BlockFormat) -> tuple[ScaleRule, ...]:
    """Return the scale rules of a block format, the default first.

    >>> [rule.value for rule in rules_for(parse_block_format("nvfp4"))]
    ['nearest', 'up']
    """
    if format.scales_by_powers:
        return tuple(ScaleRule)
    return ScaleRule.NEAREST, ScaleRule.UP


def parse_rule(word: str | ScaleRule | None, format: BlockFormat) -> ScaleRule:
    """Return the rule of a name for a block format; None means the format's default. Raises ContextError.

    >>> parse_rule("rceil", parse_block_format("mxfp4")), parse_rule(None, parse_block_format("mxfp4"))
    (<ScaleRule.UP: 'up'>, <ScaleRule.FLOOR: 'floor'>)
    """
    known = [rule.value for rule in rules_for(format)]
    if word is None:
        return rules_for(format)[0]
    plain = word.value if isinstance(word, ScaleRule) else str(word).lower()
    plain = _SPELLINGS.get(plain, plain)
    if plain not in known:
        raise ContextError(
            f"scale is one of {' '.join(known)} for {format.name}, not {quoted(plain)}{guess(plain, known)}"
        )
    return ScaleRule(plain)


def element_context(context: Context, format: BlockFormat) -> Context:
    """Return the context that rounds elements: overflow saturates, as OCP MX 1.0 requires (section 6.3).

    Integer elements have no subnormal numbers, so `flush_results` is ignored for them. Raises ContextError for
    `flush_inputs`: an input has no format before it is scaled, so it cannot be subnormal.

    >>> element_context(Context(rounding="RTZ", flush_results=True), parse_block_format("mxint8"))
    Context(rounding='RTZ', overflow='saturate')
    """
    if context.flush_inputs:
        raise ContextError("flush_inputs is not for blocks: flush subnormal numbers before they are scaled")
    flushes = context.flush_results and not isinstance(format.element, TwosComplement)
    return context.replace(overflow=Overflow.SATURATE, flush_results=flushes)


class Element(Record):
    """One element: its value, the value divided by the scales, the rounding, the code, and the decoded value.

    `scaled`, `rounded` and `decoded` are None if the block's scale is NaN.
    """

    value: Value
    scaled: Ratio | None
    rounded: Rounded | None
    code: int
    flags: Flags
    decoded: Exact | None

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


class BlockDerivation(Answering, Record):
    """The derivation of a block, from values to codes.

    `amax` is None if a NaN or an infinity is among the values; the block's scale is then NaN. `exponent` is amax's
    exponent as the rule defines it (None for rules that use no exponent). `wanted` is the scale before it was rounded
    into the scale's format (None if amax is zero or None).
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

    _ASKS = ".flags or .elements"

    def __repr__(self) -> str:
        """Show the format, the scale and the number of elements."""
        return f"BlockDerivation({self.format.name}: {len(self.elements)} elements, scale {self.scale!r})"

    @property
    def flags(self) -> Flags:
        """The union of the elements' flags."""
        raised = Flags.NONE
        for element in self.elements:
            raised |= element.flags
        return raised

    @property
    def multiplier(self) -> Exact | None:
        """The factor that decodes an element: the product of both scales; None if it is NaN."""
        return None if self.scale.is_nan else _multiplier(self.scale, self.tensor)


def quantize_blocks(
    values: Sequence[object],
    format: BlockFormat | str,
    rule: ScaleRule | str | None = None,
    context: AnyContext = DEFAULT,
    tensor_scale: object = None,
) -> tuple[BlockDerivation, ...]:
    """Scale and round values in blocks of `format.block`, and record every step; the last block may be shorter.

    A value is anything that `read` accepts; text and fractions are used exactly, not rounded first. Of a derivation
    from `read`, the result is used. The default tensor scale is amax / (largest element · largest scale), rounded to
    nearest into its format. The random draw of a stochastic rounding has the index of its value. Raises LiteralError
    for values that are not numbers; UnsupportedError for numbers too long for exact arithmetic, and for an invalid
    tensor scale.

    >>> [block] = quantize_blocks(["957", "1"], "mxfp8_e4m3")
    >>> block.scale, [(hex(each.code), str(each.decoded.as_fraction())) for each in block.elements]
    (Datum(e8m0fnu 0x80 = 2), [('0x7e', '896'), ('0x30', '1')])
    """
    fmt = parse_block_format(format)
    chosen, rounding = parse_rule(rule, fmt), element_context(as_context(context), fmt)
    found = [_exactly(value) for value in values]
    literals = tuple(_typed(value) for value in values)
    blocks = [slice(first, first + fmt.block) for first in range(0, len(found), fmt.block)]
    tensor = _tensor_scale(fmt, [_largest(found[block]) for block in blocks], tensor_scale)
    return tuple(
        _one_block(fmt, chosen, rounding, found[block], literals[block], tensor, block.start) for block in blocks
    )


def _typed(value: object) -> str | None:
    """Return the typed text of a value (None if it was not text); text that was read into a format gets `@FORMAT`."""
    if isinstance(value, Derivation) and isinstance(value.operands[0], Literal):
        return f"{value.operands[0].text}@{short_name(value.result.format)}"
    return value if isinstance(value, str) else None


def _exactly(value: object) -> Value:
    """Return the exact value of anything that can be read, without rounding it."""
    given = value.result if isinstance(value, Derivation) else value
    operand = given if isinstance(given, Datum) else read(given, "binary64").operands[0]
    if isinstance(operand, Datum):
        if operand.is_nan:
            return NotANumber(bool(operand.sign_bit))
        if operand.is_infinite:
            return Infinity(bool(operand.sign_bit))
        return Ratio(operand.exact.negative, operand.exact.c, twos=operand.exact.q)
    number = operand.value if isinstance(operand, Literal) else operand
    if isinstance(number, Code):
        raise LiteralError(f"{quoted(str(value))} is a code without a format: write VALUE@FORMAT")
    if isinstance(number, Ratio) and not number.is_short(EXACT_ERROR_BITS):
        raise UnsupportedError(f"{quoted(str(value))} is too long for the exact arithmetic of blocks")
    return number


def _fraction(x: Exact | Ratio) -> Fraction:
    return x.as_fraction()


def _ratio(x: Fraction | int, negative: bool | None = None) -> Ratio:
    return Ratio(x < 0 if negative is None else negative, abs(x.numerator), x.denominator)


def _largest(values: list[Value]) -> Fraction | None:
    """Return the largest magnitude; None if a value is not a finite number."""
    if not all(isinstance(value, Ratio) for value in values):
        return None
    return max(abs(value.as_fraction()) for value in values if isinstance(value, Ratio))


def _tensor_scale(format: BlockFormat, largest: list[Fraction | None], given: object) -> TensorScale | None:
    kind = format.tensor
    if kind is None:
        if given is not None:
            raise UnsupportedError(f"tensor_scale: {format.name} has no scale for a whole tensor; nvfp4 has one")
        return None
    if given is not None:
        return TensorScale(None, read_tensor_scale(given, kind))
    amax = max((each for each in largest if each is not None), default=0)
    return TensorScale(_ratio(amax), tensor_scale_for(amax, format))


def read_tensor_scale(value: object, kind: Format) -> Datum:
    """Return the caller's tensor scale, rounded to nearest into its format; raises UnsupportedError if it is invalid.

    >>> from floatlab import parse_format
    >>> read_tensor_scale("0.1", parse_format("fp32"))
    Datum(binary32 0x3dcccccd = 0.1)
    """
    scale = encode(value.result if isinstance(value, Derivation) else value, kind)
    if not scale.is_finite or scale.sign_bit or not scale.magnitude:
        raise UnsupportedError(
            f"tensor_scale is a positive number of {kind.name}, not {quoted(_typed(value) or str(value))}"
        )
    return scale


def tensor_scale_for(amax: Fraction | int, format: BlockFormat) -> Datum:
    """Return the scale of a tensor with largest magnitude `amax`: 1 if `amax` is zero; never zero or ∞.

    >>> tensor_scale_for(2688, parse_block_format("nvfp4")), tensor_scale_for(0, parse_block_format("nvfp4"))
    (Datum(binary32 0x3f800000 = 1), Datum(binary32 0x3f800000 = 1))
    """
    kind = format.tensor
    assert kind is not None
    wanted = amax / (format.magnitudes.largest * format.scale.largest) if amax else 1
    return _positive(encode(wanted, kind, Context(overflow="saturate")))


def _positive(scale: Datum) -> Datum:
    """Return the scale, or the smallest positive number if it is zero: elements are divided by the scale."""
    kind = scale.format
    return scale if scale.magnitude or not kind.zero else Datum(kind, kind.smallest_magnitude)


def _multiplier(scale: Datum, tensor: TensorScale | None) -> Exact:
    return scale.exact if tensor is None else scale.exact * tensor.datum.exact


def exponent_of(x: Fraction) -> int:
    """Return ⌊log2 x⌋ of x > 0.

    >>> from fractions import Fraction
    >>> exponent_of(Fraction(957)), exponent_of(Fraction(1, 3))
    (9, -2)
    """
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if _fraction(Exact(False, 1, e)) <= x else e - 1


def _counted_exponent(amax: Fraction, rule: ScaleRule, precision: int) -> int:
    """Return the exponent of amax by the definition of a rule."""
    e = exponent_of(amax)
    digits = amax / _fraction(Exact(False, 1, e))
    if rule is ScaleRule.CEIL:
        return e + (digits > 1)
    # Rounding to p digits turns all values from 2 − 2^−p up to 2 into 2: the last digit kept is 1, so a tie goes up.
    return e + (rule is ScaleRule.EVEN and digits >= 2 - _fraction(Exact(False, 1, -precision)))


def _one_block(
    format: BlockFormat,
    rule: ScaleRule,
    context: Context,
    values: list[Value],
    literals: tuple[str | None, ...],
    tensor: TensorScale | None,
    first: int,
) -> BlockDerivation:
    amax, elements = _largest(values), format.magnitudes
    if amax is None:
        nan = Datum(format.scale, format.scale.nan_code)
        lost = tuple(Element(value, None, None, 0, Flags.NONE, None) for value in values)
        return BlockDerivation(format, rule, context, None, None, None, nan, tensor, lost, literals)
    exponent, wanted = None, None
    scale = Datum(format.scale, format.scale.smallest_magnitude)
    if amax and rule in BY_EXPONENT:
        exponent = _counted_exponent(amax, rule, elements.precision)
        wanted = _ratio(_fraction(Exact(False, 1, exponent - elements.emax)))
        scale = encode(wanted, format.scale, Context(overflow="saturate"))
    elif amax:
        wanted = _ratio(amax / elements.largest / (1 if tensor is None else _fraction(tensor.datum.exact)))
        direction = Direction.RTP if rule is ScaleRule.UP else Direction.RNE
        scale = _positive(encode(wanted, format.scale, Context(direction, overflow="saturate")))
    multiplier = _multiplier(scale, tensor)
    rounded = tuple(
        _element(value, multiplier, format, context, index)
        for index, value in enumerate(values, first)
        if isinstance(value, Ratio)
    )
    return BlockDerivation(format, rule, context, _ratio(amax), exponent, wanted, scale, tensor, rounded, literals)


def _element(value: Ratio, multiplier: Exact, format: BlockFormat, context: Context, index: int) -> Element:
    kind, numbers = format.element, format.magnitudes
    scaled = _ratio(value.as_fraction() / _fraction(multiplier), value.negative)
    exact, sticky = scaled.enclose(numbers)
    rounded = round_exact(exact, numbers, context, sticky, index)
    code, flags = rounded.code, rounded.flags
    if isinstance(kind, TwosComplement):
        code = kind.code(rounded.negative, numbers.magnitude(code))
        flags &= ~Flags.UNDERFLOW  # integers have no underflow
    return Element(value, scaled, rounded, code, flags, decode_element(code, format) * multiplier)


def decode_element(code: int, format: BlockFormat) -> Exact:
    """Return the value of an element's code without the scales; raises UnsupportedError for ∞ and NaN.

    >>> [decode_element(code, parse_block_format("mxint8")).as_fraction() for code in (0x7F, 0x80)]
    [Fraction(127, 64), Fraction(-2, 1)]
    """
    if isinstance(format.element, TwosComplement):
        n = format.element.integer(code)
        return Exact(n < 0, abs(n), format.element.quantum)
    return Datum(format.element, code).exact
