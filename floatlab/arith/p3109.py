"""Operations on blocks of IEEE P3109 (interim report 4.0): numbers that share a scale.

The value of an element is the exact product of its stored number and the scale; ∞ · 0 is a NaN. Every result is rounded
once. All formats of floatlab can be used, not only P3109's. A Context has the role of P3109's projection specification
(rounding direction and saturation).
"""

from __future__ import annotations

from collections.abc import Iterable

from floatlab.arith.operands import DerivationBuilder
from floatlab.arith.specials import default_nan, infinite
from floatlab.errors import FormatError
from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import Combination, Combine, Decode, Derivation, Rule
from floatlab.numbers.exact import Exact, Infinity, Ratio
from floatlab.numbers.projection import infinity_code, round_exact
from floatlab.numbers.rounding import DEFAULT, AnyContext, Context, Flags, as_context
from floatlab.record import Record

Extended = Exact | Infinity | None  # None: a NaN
_ZERO, _ONE = Exact(False, 0, 0), Exact(False, 1, 0)


class ScaledBlock(Record):
    """A scale and the elements that share it.

    >>> from floatlab import encode
    >>> block = convert_to_block_max_abs_finite(
    ...     [encode(x, "fp32") for x in ("1", "-3", "0.1")], "Binary8p4se", "Binary8p1ue"
    ... )
    >>> block.scale, [float(element) for element in block.elements]
    (Datum(p3109_k8p1ue 0x82 = 4), [0.25, -0.75, 0.025390625])
    """

    scale: Datum
    elements: tuple[Datum, ...]

    def __post_init__(self) -> None:
        """Raise FormatError if the elements have different formats."""
        if len({element.format for element in self.elements}) > 1:
            raise FormatError("the elements of a block must have one format")

    @property
    def values(self) -> tuple[Exact | Infinity | None, ...]:
        """The exact product of each element and the scale: a number, ∞, or None for a NaN."""
        scale = _value(self.scale)
        return tuple(_product(scale, _value(element)) for element in self.elements)


def convert_to_block(
    numbers: Iterable[Datum], scale: Datum, element: Format | str, context: AnyContext = DEFAULT
) -> ScaledBlock:
    """Divide numbers by a scale, and round the quotients into a format (ConvertToBlock).

    Parameters
    ----------
    numbers : iterable of Datum
        Numbers of any formats.
    scale : Datum
        The scale. NaNs stay NaN under every scale. A scale of 0 makes all other numbers 0; a scale of ±∞ makes nonzero
        numbers ±1, and zeros stay zeros. A NaN as the scale makes every element NaN.
    element : Format or str
        Format of the elements.
    context : Context or str, optional
        Rounding of the elements; in stochastic rounding, element i uses random draw i. Default: nearest even.

    Returns
    -------
    ScaledBlock

    Notes
    -----
    P3109 interim report 4.0, BlockProject. The executable specification of July 2026 differs for an infinite scale:
    every element that is not a NaN becomes 1.

    Examples
    --------
    >>> from floatlab import encode
    >>> block = convert_to_block([encode("6", "fp16")], encode("4", "Binary8p1ue"), "Binary4p2sf")
    >>> block.elements
    (Datum(p3109_k4p2sf 0x5 = 1.5),)
    """
    fmt, context = parse_format(element), as_context(context)
    by = _value(scale)
    return ScaledBlock(
        scale,
        tuple(
            Datum(fmt, _projected(_quotient(_value(number), by), fmt, context, index))
            for index, number in enumerate(numbers)
        ),
    )


def convert_to_block_max_abs_finite(
    numbers: Iterable[Datum],
    element: Format | str,
    scale: Format | str,
    context: AnyContext = DEFAULT,
    scale_context: AnyContext = DEFAULT,
) -> ScaledBlock:
    """Convert numbers to a block. The scale is the largest finite magnitude of the numbers, rounded into `scale`.

    Parameters
    ----------
    numbers : iterable of Datum
        Numbers of any formats.
    element, scale : Format or str
        Formats of the elements and of the scale.
    context, scale_context : Context or str, optional
        The rounding of the elements, and the rounding of the scale. Default: nearest even.

    Returns
    -------
    ScaledBlock

    Notes
    -----
    P3109 interim report 4.0, ConvertToBlockMaxAbsFinite. If no number is finite, the scale is ∞; but
    if all numbers are NaNs, the scale is a NaN.

    Examples
    --------
    >>> from floatlab import encode
    >>> numbers = [encode(x, "fp16") for x in ("1", "inf", "-5")]
    >>> convert_to_block_max_abs_finite(numbers, "Binary8p4se", "Binary8p1ue").scale
    Datum(p3109_k8p1ue 0x82 = 4)
    """
    data = tuple(numbers)
    values = [_value(number) for number in data]
    finite = [abs(value) for value in values if isinstance(value, Exact)]
    infinite = Infinity(False) if any(isinstance(value, Infinity) for value in values) else None
    fmt = parse_format(scale)
    code = _projected(max(finite) if finite else infinite, fmt, as_context(scale_context), 0)
    return convert_to_block(data, Datum(fmt, code), element, context)


def convert_from_block(block: ScaledBlock, format: Format | str, context: AnyContext = DEFAULT) -> tuple[Datum, ...]:
    """Return the values of a block, each rounded into a format (ConvertFromBlock).

    Parameters
    ----------
    block : ScaledBlock
        A block.
    format : Format or str
        Format of the results.
    context : Context or str, optional
        Rounding of the results; in stochastic rounding, result i uses random draw i. Default: nearest even.

    Returns
    -------
    tuple of Datum

    Examples
    --------
    >>> from floatlab import encode
    >>> block = ScaledBlock(encode("4", "Binary8p1ue"), (encode("1.5", "Binary4p2sf"),))
    >>> convert_from_block(block, "fp16")
    (Datum(binary16 0x4600 = 6),)
    """
    fmt, context = parse_format(format), as_context(context)
    return tuple(Datum(fmt, _projected(value, fmt, context, index)) for index, value in enumerate(block.values))


def block_reduce_add(block: ScaledBlock, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Return the sum of a block's values, computed exactly and rounded once (BlockReduceAdd).

    Parameters
    ----------
    block : ScaledBlock
        A block; the sum of no elements is 0.
    format : Format or str
        Format of the result.
    context : Context or str, optional
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`; the operands in the derivation are the scale and the elements.

    Examples
    --------
    >>> from floatlab import encode
    >>> block = ScaledBlock(encode("2", "e8m0"), (encode("1.5", "e2m1"), encode("-6", "e2m1")))
    >>> block_reduce_add(block, "fp16").result
    Datum(binary16 0xc880 = -9)
    """
    return _reduced("block_reduce_add", (block,), block.values, Combination.TOTAL, format, context)


def block_reduce_multiply(block: ScaledBlock, format: Format | str, context: AnyContext = DEFAULT) -> Derivation:
    """Return the product of a block's values, computed exactly and rounded once (BlockReduceMultiply).

    Parameters
    ----------
    block : ScaledBlock
        A block; the product of no elements is 1.
    format : Format or str
        Format of the result.
    context : Context or str, optional
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`; the operands in the derivation are the scale and the elements.

    Examples
    --------
    >>> from floatlab import encode
    >>> block = ScaledBlock(encode("2", "e8m0"), (encode("1.5", "e2m1"), encode("-6", "e2m1")))
    >>> block_reduce_multiply(block, "fp16").result
    Datum(binary16 0xd080 = -36)
    """
    return _reduced("block_reduce_multiply", (block,), block.values, Combination.PRODUCT, format, context)


def block_dot_product(
    left: ScaledBlock, right: ScaledBlock, format: Format | str, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the sum of the products of two blocks' values, computed exactly and rounded once (BlockDotProduct).

    Parameters
    ----------
    left, right : ScaledBlock
        Blocks of equal length.
    format : Format or str
        Format of the result.
    context : Context or str, optional
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`; the operands in the derivation are the scale and the elements of `left`, then those of `right`.

    Raises
    ------
    FormatError
        The blocks have different lengths.

    Examples
    --------
    >>> from floatlab import encode
    >>> block = ScaledBlock(encode("2", "e8m0"), (encode("1.5", "e2m1"), encode("-6", "e2m1")))
    >>> block_dot_product(block, block, "fp16").result
    Datum(binary16 0x58c8 = 153)
    """
    if len(left.elements) != len(right.elements):
        lengths = f"{len(left.elements)} and {len(right.elements)}"
        raise FormatError(f"the blocks of a dot product must have equal lengths, not {lengths}")
    products = tuple(_product(a, b) for a, b in zip(left.values, right.values, strict=True))
    return _reduced("block_dot_product", (left, right), products, Combination.TOTAL, format, context)


def _value(datum: Datum) -> Extended:
    if datum.is_infinite:
        return Infinity(bool(datum.sign_bit))
    return datum.finite_value


def _product(a: Extended, b: Extended) -> Extended:
    if a is None or b is None:
        return None
    if isinstance(a, Exact) and isinstance(b, Exact):
        return a * b
    if any(isinstance(each, Exact) and not each for each in (a, b)):
        return None
    return Infinity(a.negative != b.negative)


def _sum(a: Extended, b: Extended) -> Extended:
    if a is None or b is None:
        return None
    if isinstance(a, Exact) and isinstance(b, Exact):
        return a + b
    first, second = (each if isinstance(each, Infinity) else None for each in (a, b))
    if first is not None and second is not None:
        return first if first == second else None
    return first or second


def _quotient(x: Extended, by: Extended) -> Extended | Ratio:
    """Return an element before it is rounded: x / by, with the rules of P3109 for scales that are 0, ∞ or NaN."""
    if x is None or by is None:
        return None
    negative = x.negative != by.negative
    if isinstance(by, Infinity):
        return Exact(negative, int(isinstance(x, Infinity) or bool(x)), 0)
    if not by:
        return _ZERO
    if isinstance(x, Infinity):
        return Infinity(negative)
    return Ratio(negative, x.c, by.c, x.q - by.q)


def _projected(value: Extended | Ratio, format: Format, context: Context, index: int) -> int:
    """Return the code of a value rounded into a format."""
    if value is None:
        return default_nan(format, context)
    if isinstance(value, Infinity):
        return infinity_code(format, context, value.negative)[0]
    exact, sticky = value.enclose(format) if isinstance(value, Ratio) else (value, False)
    return round_exact(exact, format, context, sticky, index).code


def _reduced(
    operation: str,
    blocks: tuple[ScaledBlock, ...],
    values: tuple[Extended, ...],
    kind: Combination,
    format: Format | str,
    context: AnyContext,
) -> Derivation:
    """Add or multiply `values` exactly, as `kind` says, and round the result once. `blocks` are the operands."""
    fmt, context = parse_format(format), as_context(context)
    data = tuple(datum for block in blocks for datum in (block.scale, *block.elements))
    work = DerivationBuilder(operation, data, (), fmt, context, [Decode(datum) for datum in data])
    combine, total = (_sum, _ZERO) if kind is Combination.TOTAL else (_product, _ONE)
    result: Extended = total
    for value in values:
        result = combine(result, value)
    if isinstance(result, Exact):
        work.steps.append(Combine(kind, result))
        return work.finish(result, result)
    if isinstance(result, Infinity):
        return infinite(work, result.negative)
    given = any(datum.is_nan for datum in data)
    rule = (
        Rule.NAN_OPERAND if given else Rule.INFINITY_MINUS_INFINITY if None not in values else Rule.ZERO_TIMES_INFINITY
    )
    return work.special(rule, default_nan(fmt, context), Flags.NONE if given else Flags.INVALID)
