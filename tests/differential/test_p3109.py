"""Every line of the shared oracle folder formats2/p3109: IEEE P3109's interim report 4.0."""

from fractions import Fraction

import pytest

from floatlab import Context, decode, encode, parse_format
from floatlab.arith import p3109
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
        if saturation == "SatNone":  # the result of the executable specification
            other = alternative[0].removeprefix("alt=") if alternative else code
            assert code_of(text, format, context.replace(overflow="none-nan")) == int(other, 16), line
        count += 1
    assert count >= 9_000


def block_of(scale_format, element_format, scale: str, elements: str) -> p3109.ScaledBlock:
    return p3109.ScaledBlock(decode(int(scale, 16), scale_format), data_of(element_format, elements))


def data_of(format, codes: str):
    return tuple(decode(int(code, 16), format) for code in codes.split(","))


def one_rounding(text: str) -> Context:
    rounding, saturation = text.rsplit(":", 1)
    return context_of(rounding, saturation)


def found(operation: str, given: list[str]) -> str:
    """Return the results of a record's operation as the record writes them."""
    formats = list(map(parse_format, [word for word in given if word.startswith("Binary")]))
    rest = given[len(formats) :]

    def written(*data) -> str:
        return ",".join(f"{each.code:0{-(-each.format.width // 4)}x}" for each in data)

    if operation == "ConvertToBlockMaxAbsFinite":
        of, scale, element = formats
        scaling, rounding, numbers = rest
        block = p3109.convert_to_block_max_abs_finite(
            data_of(of, numbers), element, scale, one_rounding(rounding), one_rounding(scaling)
        )
        return f"{written(block.scale)} {written(*block.elements)}"
    if operation == "ConvertToBlock":
        of, scale, element = formats
        rounding, numbers, by = rest
        block = p3109.convert_to_block(
            data_of(of, numbers), decode(int(by, 16), scale), element, one_rounding(rounding)
        )
        return written(*block.elements)
    if operation == "BlockDotProduct":
        scale, element, other_scale, other, result = formats
        rounding, by, numbers, other_by, others = rest
        left, right = block_of(scale, element, by, numbers), block_of(other_scale, other, other_by, others)
        return written(p3109.block_dot_product(left, right, result, one_rounding(rounding)).result)
    scale, element, result = formats
    rounding, by, numbers = rest
    block, context = block_of(scale, element, by, numbers), one_rounding(rounding)
    if operation == "ConvertFromBlock":
        return written(*p3109.convert_from_block(block, result, context))
    reduce = {"BlockReduceAdd": p3109.block_reduce_add, "BlockReduceMultiply": p3109.block_reduce_multiply}[operation]
    return written(reduce(block, result, context).result)


def test_blocks():
    count = 0
    for line in shared.lines("formats2/p3109/blocks.txt.gz"):
        given, _, results = line.partition(" -> ")
        operation, *words = given.split()
        assert found(operation, words) == results, line
        count += 1
    assert count >= 1000
