"""Expected results of the operations, by the text of IEEE 754-2019, in exact rational arithmetic.

Every function takes the meanings of the operands and returns (kind, value, negative, flags): kind is
`finite` (a Fraction still to be rounded; `negative` is the sign of a zero), `infinite` or `nan`.
"""

from __future__ import annotations

from fractions import Fraction

from floatlab.formats import Format
from tests import oracle
from tests.oracle import Meaning, Rules

Truth = tuple[str, Fraction, bool, frozenset[str]]
NONE: frozenset[str] = frozenset()
INVALID: Truth = ("nan", Fraction(0), False, frozenset(["invalid"]))


def infinite(negative: bool, flags: frozenset[str] = NONE) -> Truth:
    return "infinite", Fraction(0), negative, flags


def add(a: Meaning, b: Meaning, rules: Rules) -> Truth:
    if a.kind == b.kind == "infinite":
        return INVALID if a.negative != b.negative else infinite(a.negative)
    for each in (a, b):
        if each.kind == "infinite":
            return infinite(each.negative)
    total = a.value + b.value
    # 6.3: an exact zero sum is +0, or −0 toward −∞, unless both terms had that sign
    negative = a.negative if a.negative == b.negative else rules.direction == "RTN"
    return "finite", total, negative, NONE


def negated(a: Meaning) -> Meaning:
    return Meaning(a.kind, not a.negative, None if a.value is None else -a.value)


def sub(a: Meaning, b: Meaning, rules: Rules) -> Truth:
    return add(a, negated(b), rules)


def mul(a: Meaning, b: Meaning, _: Rules) -> Truth:
    negative = a.negative != b.negative
    if "infinite" in (a.kind, b.kind):
        if a.value == 0 or b.value == 0:
            return INVALID
        return infinite(negative)
    return "finite", a.value * b.value, negative, NONE


def div(a: Meaning, b: Meaning, _: Rules) -> Truth:
    negative = a.negative != b.negative
    if a.kind == "infinite":
        return INVALID if b.kind == "infinite" else infinite(negative)
    if b.kind == "infinite":
        return "finite", Fraction(0), negative, NONE
    if b.value == 0:
        return INVALID if a.value == 0 else ("infinite", Fraction(0), negative, frozenset(["divide_by_zero"]))
    return "finite", a.value / b.value, negative, NONE


def fma(a: Meaning, b: Meaning, c: Meaning, rules: Rules) -> Truth:
    kind, value, negative, flags = mul(a, b, rules)
    if flags:
        return INVALID
    return add(Meaning(kind, negative, None if kind == "infinite" else value), c, rules)


def rem(a: Meaning, b: Meaning, _: Rules) -> Truth:
    if a.kind == "infinite" or b.value == 0:
        return INVALID
    if b.kind == "infinite":
        return "finite", a.value, a.negative, NONE
    rest = a.value - round(a.value / b.value) * b.value  # round() of a Fraction: ties to even
    return "finite", rest, a.negative, NONE


OPERATIONS = {"add": add, "sub": sub, "mul": mul, "div": div, "fma": fma, "rem": rem}


def nan_flags(operation: str, fmt: Format, codes: tuple[int, ...]) -> frozenset[str] | None:
    """Return the flags that an operation with a NaN operand raises; None if no operand is a NaN."""
    meanings = [oracle.decode(fmt, code) for code in codes]
    nans = [code for code, meaning in zip(codes, meanings, strict=True) if meaning.kind == "nan"]
    if not nans:
        return None
    t = fmt.precision - 1
    payloads = fmt.infinities and t > 1 and fmt.nans == (1 << t) - 1
    invalid = payloads and any(not code >> (t - 1) & 1 for code in nans)
    # 7.2 leaves fma(0, ∞, quiet NaN) open; floatlab's default raises invalid, as SoftFloat does
    if operation == "fma" and {meanings[0].kind, meanings[1].kind} == {"finite", "infinite"}:
        invalid = invalid or 0 in (meanings[0].value, meanings[1].value)
    return frozenset(["invalid"]) if invalid else NONE


def rounded(fmt: Format, exact: Truth, rules: Rules) -> tuple[int | None, frozenset[str]]:
    """Return the code (None: any NaN) and the flags of an exact result."""
    kind, value, negative, flags = exact
    if kind == "nan":
        return (None if oracle.nan_code(fmt) is not None else oracle.stand_in(fmt, rules)), flags
    if kind == "infinite":
        code, raised = oracle.project_infinity(fmt, negative, rules)
        return code, flags or raised
    return oracle.project(fmt, value, rules, negative)


def expected(operation: str, fmt: Format, codes: tuple[int, ...], rules: Rules) -> tuple[int | None, frozenset[str]]:
    """Return the result's code (None: any NaN) and flags of an operation on codes of one format."""
    flags = nan_flags(operation, fmt, codes)
    if flags is not None:
        return None, flags
    meanings = [oracle.decode(fmt, code) for code in codes]
    return rounded(fmt, OPERATIONS[operation](*meanings, rules), rules)
