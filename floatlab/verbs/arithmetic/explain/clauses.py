"""The rules that take the place of arithmetic, in words, each with its clause of IEEE 754-2019."""

from __future__ import annotations

from floatlab.numbers.steps import Rule

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
