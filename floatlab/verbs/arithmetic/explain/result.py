"""What an operation ended in, in sentences: the result's code, its error, and how two ways compare."""

from __future__ import annotations

from floatlab.arith import Comparison, Contrast, IntegerResult, Relation
from floatlab.numbers import Context, Datum, Derivation, Flags, Overflow, Rounded
from floatlab.numbers.rounding import IN_WORDS
from floatlab.numbers.steps import Combine, Encode, Round, Rule
from floatlab.page.model import Line, line
from floatlab.page.words import bracketed, brief, integer_not_held, plain_error, replaced_words
from floatlab.verbs.arithmetic.explain.rounding import integral_reason, portion

_FAR = 1_000_000  # ulps past which an error is no longer thought of in ulps

# What the result of an operation is called, before it is rounded.
_NOUNS = {
    "add": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient", "sqrt": "root",
    "remainder": "remainder", "fma": "a × b + c", "multiply_then_add": "a × b + c", "read": "number",
}  # fmt: skip


def capital(words: str) -> str:
    """Let a sentence that starts with a word start with a capital; names of operands and formats stay."""
    return words[0].upper() + words[1:] if words.startswith(("the ", "beyond ", "an ")) else words


def encoding_reason(step: Encode, derivation: Derivation, index: int) -> list[str]:
    """Say how the result's code comes about, and how far it is from what it stands for."""
    before = derivation.steps[index - 1] if index else None
    last = index == len(derivation.steps) - 1
    datum, error = step.datum, _error(derivation) if last else ""
    rounded = before.rounded if isinstance(before, Round) else None
    if rounded is not None and rounded.overflowed:
        return [_overflowed(datum, derivation.context), error]
    if last and (replaced := replaced_words(derivation)):
        return [f"{capital(replaced)}.", error]
    return [_packed(datum, rounded), _lost(derivation) if last else "", error]


def _lost(derivation: Derivation) -> str:
    """Say that a term was lost: why small updates leave a weight where it was."""
    if derivation.operation not in ("add", "subtract") or Flags.INEXACT not in derivation.flags:
        return ""
    a, b = derivation.operands
    if derivation.result == a:
        return "The result is a again: b was too small to change it."
    if derivation.result == b and derivation.operation == "add":
        return "The result is b again: a was too small to change it."
    return ""


def _packed(datum: Datum, rounded: Rounded | None) -> str:
    """Say how a datum's fields come about."""
    fmt, field = datum.format, datum.biased_exponent
    if datum.is_nan:
        fields = ": all ones in the exponent, and a mantissa that is not zero" if fmt.ieee_nans else " of its own"
        return f"In {fmt.name} a NaN has a code{fields}."
    if datum.is_infinite:
        fields = ": all ones in the exponent, and zero in the mantissa" if fmt.ieee_nans else " of its own"
        return f"In {fmt.name} ∞ has a code{fields}."
    if not datum.is_finite:
        return "The code stands for no number."
    if not datum.exact:
        return "Zero is the code with nothing but zeros, or a sign before them."
    if datum.is_subnormal:
        return f"The exponent field is 0: no hidden 1, and the digits count from 2^{fmt.emin} on. It is subnormal."
    carry = "With the carry the exponent is one more. " * (rounded is not None and rounded.carried)
    e, bias = datum.exact.exponent, fmt.bias
    sums = f"{e} + {bracketed(bias)} = {field}"
    kept = "the mantissa field holds the digits after the point" if fmt.trailing_bits else "there is no mantissa field"
    return f"{carry}The exponent is stored with the bias, {sums}; {kept}."


def _overflowed(datum: Datum, context: Context) -> str:
    fmt, direction = datum.format, IN_WORDS[context.rounding]
    if datum.is_infinite:
        return f"Rounding {direction}, what passes the largest number becomes ∞."
    if datum.is_nan:
        return f"{fmt.name} has no ∞ to become, so a NaN marks what passes the largest number."
    if context.overflow is not Overflow.NATIVE:
        return f"The context asks for it ({context.overflow.value}): what passes the largest number stops there."
    if fmt.infinities or fmt.has_nan:
        return f"Rounding {direction} does not step past the largest number, so that is the result."
    return f"{fmt.name} has neither ∞ nor a NaN, so the largest number stands for what passes it."


def _error(derivation: Derivation) -> str:
    """Say how far the result lies from what it stands for."""
    result, ulps = derivation.result, derivation.nearby_error_ulps
    if ulps is None:
        return ""
    integer = integer_not_held(derivation)
    noun = f"exact {_NOUNS.get(derivation.operation, 'operand')}" if integer is None else f"integer {brief(integer)}"
    if not ulps:
        return "It is exact."
    raised = ": inexact" * (Flags.INEXACT in derivation.flags)
    if abs(ulps) > _FAR or not result.magnitude or derivation.operation == "round_to_integral":
        return f"It differs from the {noun} by {plain_error(ulps * result.ulp.as_fraction())}{raised}."
    return f"It lies {portion(abs(ulps))} ulp {'above' if ulps > 0 else 'below'} the {noun}{raised}."


def verdict_reason(contrast: Contrast) -> Line:
    """Say why the two ways give the same bits or different ones."""
    return line(" ".join(_verdict(contrast)))


def _verdict(contrast: Contrast) -> list[str]:
    product, parting = contrast.product, contrast.parting
    exact = next((step.exact for step in contrast.fused.steps if isinstance(step, Combine)), None)
    if exact is None or product is None:
        return ["A rule decided, so there was no product to round."]
    if parting is None:
        if contrast.same:
            return ["The product was exact, so both ways added the same numbers and rounded once."]
        return ["The product was exact but subnormal, and counted as zero when it was read again."]
    if not product.is_finite:
        same = " Here both end in the same bits." * contrast.same
        return [f"The rounded product was {brief(product)} already; the fused way went on with its digits.{same}"]
    lost = f"Rounding the product moved it by {plain_error((product.exact - exact).as_fraction())}."
    if contrast.same:
        return [lost, "The second rounding led to the same number all the same."]
    return [lost, "The sum started from there, and the second rounding did not make up for it."]


def comparison_reason(found: Comparison) -> Line:
    """Say why two data stand as they do."""
    a, b = found.operands
    if found.relation is Relation.UNORDERED:
        return line("A NaN is no number: it is neither less than another, nor equal to it, nor greater.")
    if not a.is_finite or not b.is_finite:
        return line("∞ lies beyond every number, −∞ below every one, and each equals itself.")
    flushed = found.context.flush_inputs and (a.is_subnormal or b.is_subnormal)
    zero = " A subnormal operand counts as zero (--daz)." * flushed
    return line(f"The values are compared, not the codes, and exactly: nothing is rounded.{zero}")


def integer_reason(found: IntegerResult) -> Line:
    """Say why a datum becomes this integer."""
    words = [] if found.rounded is None else integral_reason(found.rounded, found.context.rounding)
    kind = found.kind
    if Flags.INVALID in found.flags:
        outside = "That is" if found.rounded is not None else "The operand is no number, or"
        words.append(
            f"{outside} outside {kind.least} to {kind.greatest}, where the integers of this type lie: invalid."
        )
    return line(" ".join(words))


SENTENCES: dict[Rule, tuple[str, str]] = {
    Rule.INFINITY: ("an infinity converts to an infinity", "5.4.2"),
    Rule.NAN: ("a NaN converts to a quiet NaN", "6.2.3"),
    Rule.FLUSHED_INPUT: ("a subnormal operand is read as zero (--daz)", "not in the standard"),
    Rule.NAN_OPERAND: ("a quiet NaN operand makes the result a quiet NaN", "6.2.3"),
    Rule.SIGNALING_OPERAND: ("a signaling NaN operand is invalid, and becomes quiet", "7.2 a"),
    Rule.UNSUPPORTED_OPERAND: ("the operand's code is no number: invalid", "Intel SDM 1, 8.2.2"),
    Rule.INFINITY_MINUS_INFINITY: ("∞ − ∞ has no useful value: invalid", "7.2 d"),
    Rule.ZERO_TIMES_INFINITY: ("0 × ∞ has no useful value: invalid", "7.2 b, c"),
    Rule.ZERO_OVER_ZERO: ("0 / 0 has no useful value: invalid", "7.2 e"),
    Rule.INFINITY_OVER_INFINITY: ("∞ / ∞ has no useful value: invalid", "7.2 e"),
    Rule.REMAINDER_INVALID: ("the remainder of ∞, or by 0, is invalid", "7.2 f"),
    Rule.NEGATIVE_ROOT: ("a negative number has no real square root: invalid", "7.2 g"),
    Rule.DIVISION_BY_ZERO: ("a finite number over zero is exactly ∞: divide by zero", "7.3"),
    Rule.INFINITE_RESULT: ("an operation on ∞ is exact", "6.1"),
    Rule.OVER_INFINITY: ("a finite number over ∞ is zero, exactly", "6.1"),
    Rule.REMAINDER_BY_INFINITY: ("the remainder by ∞ is the dividend", "5.3.1"),
    Rule.ZERO_SUM: ("an exact zero sum of opposite signs is +0, toward −∞ −0", "6.3"),
    Rule.ZERO_ROOT: ("the root of ±0 is ±0", "5.4.1, 6.3"),
}


def sentence(rule: Rule) -> str:
    """Return a rule in words with its clause.

    >>> sentence(Rule.ZERO_TIMES_INFINITY)
    '0 × ∞ has no useful value: invalid (7.2 b, c)'
    """
    words, clause = SENTENCES[rule]
    return f"{words} ({clause})"
