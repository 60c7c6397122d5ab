"""An operation on all pairs of codes of a format, compared with the oracle."""

from __future__ import annotations

from itertools import product

from floatlab import Context, arith
from floatlab.formats import Format, parse_format
from floatlab.numbers import Datum
from tests import oracle
from tests.arith import truth
from tests.oracle import DIRECTIONS, Rules

FUNCTIONS = {"add": arith.add, "sub": arith.subtract, "mul": arith.multiply, "div": arith.divide, "fma": arith.fma,
             "rem": arith.remainder}  # fmt: skip


def p3109_names(widths: range) -> list[str]:
    return [
        f"p3109_k{k}p{p}{sign}{domain}"
        for k in widths
        for sign in "su"
        for p in range(1, k if sign == "s" else k + 1)
        for domain in "ef"
    ]


def pattern_names(width: int) -> list[str]:
    """Return every e<W>m<T> of a width that has a normal number left."""
    names = []
    for w, suffix in product(range(1, width), ("", "fn", "f", "fnuz")):
        name = f"e{w}m{width - 1 - w}{suffix}"
        try:
            parse_format(name)
        except ValueError:
            continue
        names.append(name)
    return names


def wrong(fmt: Format, operation: str, operands, direction: str) -> list[str]:
    """Return the operands for which floatlab and the oracle differ, with both results."""
    context, rules = Context(rounding=direction), Rules(direction)
    compute = FUNCTIONS[operation]
    data = [Datum(fmt, code) for code in range(1 << fmt.width)]
    known: dict = {}
    differ = []
    for codes in operands:
        want = _expected(operation, fmt, codes, rules, known)
        done = compute(*[data[code] for code in codes], fmt, context)
        got = done.result.code
        agrees = done.result.is_nan if want[0] is None else got == want[0]
        if not agrees or frozenset(done.flags.names) != want[1]:
            differ.append(f"{fmt.name} {operation} {direction} {codes}: {got} {done.flags}, not {want}")
    return differ


def _expected(operation, fmt, codes, rules, known):
    """Return the oracle's result, cached by exact value, since the sums of a small format repeat thousands of times."""
    flags = truth.nan_flags(operation, fmt, codes)
    if flags is not None:
        return None, flags
    exact = truth.OPERATIONS[operation](*[_meaning(fmt, code, known) for code in codes], rules)
    if exact not in known:
        known[exact] = truth.rounded(fmt, exact, rules)
    return known[exact]


def _meaning(fmt, code, known):
    if code not in known:
        known[code] = oracle.decode(fmt, code)
    return known[code]


__all__ = ["DIRECTIONS", "FUNCTIONS", "p3109_names", "pattern_names", "wrong"]
