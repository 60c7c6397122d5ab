"""Every line of the shared oracle folder formats2/p3109: IEEE P3109's interim report 4.0."""

from fractions import Fraction

import pytest

from floatlab import Context, decode, encode, parse_format
from floatlab.numbers import Exact, round_exact
from floatlab.numbers.projection import infinity_code
from tests import oracle
from tests.differential import shared

pytestmark = shared.needs_folder

DIRECTIONS = {
    "NearestTiesToEven": "RNE", "NearestTiesToAway": "RNA", "TowardZero": "RTZ", "TowardPositive": "RTP",
    "TowardNegative": "RTN", "ToOdd": "RTO", "StochasticA": "SRA", "StochasticB": "SRB", "StochasticC": "SRC",
}  # fmt: skip
SATURATION = {"SatFinite": "saturate", "SatPropagate": "propagate", "SatNone": "none"}


def exact_of(text: str) -> Exact | None:
    """Read [-]0xNp±E; None for ∞ and NaN."""
    if not text.lstrip("-").startswith("0x"):
        return None
    digits, power = text.lstrip("-").removeprefix("0x").split("p")
    return Exact(text.startswith("-"), int(digits, 16), int(power))


def context_of(rounding: str, saturation: str) -> Context:
    name, *numbers = rounding.split(":")
    fields = dict(zip(("random_bits", "draw"), map(int, numbers), strict=False))
    return Context(DIRECTIONS[name], overflow=SATURATION[saturation], **fields)


def rules_of(context: Context) -> oracle.Rules:
    return oracle.Rules(
        context.rounding.value, context.overflow.value, drawn=context.draw or 0, bits=context.random_bits
    )


def code_of(text: str, format, context: Context) -> int:
    """Project with floatlab and with the slow oracle, which must agree."""
    negative, rules = text.startswith("-"), rules_of(context)
    if text == "nan":
        return format.nan_code
    x = exact_of(text)
    if x is None:
        (code, flags), slow = infinity_code(format, context, negative), oracle.project_infinity(format, negative, rules)
    else:
        rounded = round_exact(x, format, context)
        code, flags = rounded.code, rounded.flags
        slow = oracle.project(format, Fraction(*x.as_integer_ratio()), rules, negative)
    assert (code, set(flags.names)) == slow, (text, format.name, context)
    return code


def test_values():
    count = 0
    for line in shared.lines("formats2/p3109/values.txt.gz"):
        name, code_text, text = line.split()
        format, code = parse_format(name), int(code_text, 16)
        datum = decode(code, format)
        x = exact_of(text)
        if x is None:
            assert datum.is_nan if text == "nan" else datum.is_infinite and datum.sign_bit == text.startswith("-"), line
        else:
            assert datum.exact == x, line
            assert round_exact(x, format).code == code, line
        assert encode(text, format).code == code, line
        count += 1
    assert count >= 15_000


@pytest.mark.parametrize("third", range(3))
def test_projections(third):
    count = 0
    for line in list(shared.lines("formats2/p3109/project.txt.gz"))[third::3]:
        name, rounding, saturation, text, code, *alternative = line.split()
        format, context = parse_format(name), context_of(rounding, saturation)
        assert code_of(text, format, context) == int(code, 16), line
        if saturation == "SatNone":  # what the executable specification gives
            other = alternative[0].removeprefix("alt=") if alternative else code
            assert code_of(text, format, context.replace(overflow="none-nan")) == int(other, 16), line
        count += 1
    assert count >= 9_000
