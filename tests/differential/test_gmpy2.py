"""MPFR, through gmpy2, against floatlab and the oracle: five directions, IEEE formats, many ties and boundaries."""

from fractions import Fraction

import pytest

from floatlab import Context, Exact, parse_format
from floatlab.numbers import round_exact
from floatlab.numbers.exact import Ratio
from tests import oracle

gmpy2 = pytest.importorskip("gmpy2")

DIRECTIONS = {
    "RNE": gmpy2.RoundToNearest,
    "RTZ": gmpy2.RoundToZero,
    "RTP": gmpy2.RoundUp,
    "RTN": gmpy2.RoundDown,
    "RAZ": gmpy2.RoundAwayZero,
}
# e5m2 and similar formats are IEEE formats of one byte; x87 rounds like an interchange format of 64 digits.
NAMES = ["binary16", "binary32", "binary64", "binary128", "bfloat16", "tf32", "x87", "e5m2", "e3m4", "e9m20", "e2m30"]
CASES = 2000  # cases per format and direction: 110,000 in all


def mpfr_context(fmt, direction):
    """Return MPFR's context for a format; its significands lie in [1/2, 1), so exponents are one higher."""
    return gmpy2.context(
        precision=fmt.precision,
        emin=2 - fmt.bias - (fmt.precision - 1),
        emax=(1 << fmt.exponent_bits) - 1 - fmt.bias,
        subnormalize=True,
        round=DIRECTIONS[direction],
    )


def by_mpfr(x: Fraction, context) -> tuple:
    """Return (value or "inf", sign, overflow, underflow, inexact)."""
    context.clear_flags()
    with gmpy2.context(context) as active:
        result = gmpy2.mpfr(gmpy2.mpq(x.numerator, x.denominator))
        # gmpy2 raises underflow for exact subnormals too; the default handling of 7.5 does not.
        flags = active.overflow, active.underflow and active.inexact, active.inexact
    value = "inf" if gmpy2.is_infinite(result) else Fraction(*map(int, result.as_integer_ratio()))
    return value, gmpy2.is_signed(result), *flags


def described(fmt, code: int, flags) -> tuple:
    meaning = oracle.decode(fmt, code)
    value = "inf" if meaning.kind == "infinite" else meaning.value
    return value, meaning.negative, *(name in flags for name in ("overflow", "underflow", "inexact"))


def draw_case(fmt, generator) -> Fraction:
    """Return a rational on, beside or halfway between numbers of the format, more often near its boundaries."""
    t, last = fmt.precision - 1, oracle.largest_magnitude(fmt)
    edge = generator.choice([0, 1 << t, last, None, None, None])
    m = generator.randrange(last + 1) if edge is None else max(edge + generator.randrange(-3, 4), 0)
    low, high = oracle.value_of(fmt, m), oracle.value_of(fmt, m + 1)
    place = generator.choice(
        [Fraction(0), Fraction(1, 2), Fraction(1, 2), Fraction(1, 3), Fraction(1, 4),
         Fraction(generator.getrandbits(40), 1 << 40)]
    )  # fmt: skip
    place += generator.choice([0, 0, 1, -1]) * Fraction(1, 1 << generator.choice([20, 60, 130]))
    x = abs(low + (high - low) * place)
    if generator.random() < 0.02:  # far outside
        x *= Fraction(2) ** generator.choice([-300, -70, 70, 300])
    return -x if generator.random() < 0.5 else x


def by_floatlab(fmt, x: Fraction, direction: str) -> tuple[int, list[str]]:
    context = Context(rounding=direction)
    if x.denominator & (x.denominator - 1) == 0:
        rounded = round_exact(Exact(x < 0, abs(x.numerator), 1 - x.denominator.bit_length()), fmt, context)
    else:
        exact, sticky = Ratio(x < 0, abs(x.numerator), x.denominator).enclose(fmt)
        rounded = round_exact(exact, fmt, context, sticky)
    return rounded.code, rounded.flags.names


@pytest.mark.one_in(20)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_mpfr_floatlab_and_the_oracle_agree(name, direction, generator):
    fmt = parse_format(name)
    context = mpfr_context(fmt, direction)
    rules = oracle.Rules(direction)
    for _ in range(CASES):
        x = draw_case(fmt, generator)
        if not x:
            continue
        code, flags = by_floatlab(fmt, x, direction)
        assert (code, frozenset(flags)) == oracle.project(fmt, x, rules), x
        assert described(fmt, code, flags) == by_mpfr(x, context), x


def test_the_mpfr_context_has_the_formats_extremes():
    for name in NAMES:
        fmt = parse_format(name)
        context = mpfr_context(fmt, "RTZ")
        assert by_mpfr(fmt.largest * 3, context)[0] == fmt.largest
        assert by_mpfr(fmt.smallest, context)[0] == fmt.smallest
        assert by_mpfr(fmt.smallest / 2, context)[0] == 0
