"""Every line of the shared oracle folders tables/, convert/ and parse/."""

from collections import Counter
from fractions import Fraction

import pytest

from floatlab import Context, convert, decode, encode, parse_format
from tests import oracle
from tests.differential import shared

pytestmark = shared.needs_folder

FILE_FORMAT = {"e4m3": "e4m3_ieee", "f16": "binary16", "bf16": "bfloat16", "e8m0": "e8m0fnu"}


def format_of(word: str):
    return parse_format(FILE_FORMAT.get(word, word))


def meaning(datum) -> tuple[str, bool, Fraction | None]:
    """Return the kind, the sign (meaningless for a NaN) and the value of a datum."""
    if datum.is_nan:
        return "nan", False, None
    if datum.is_infinite:
        return "infinite", bool(datum.sign_bit), None
    return "finite", bool(datum.sign_bit), datum.exact.as_fraction()


def meaning_of_text(text: str) -> tuple[str, bool, Fraction | None]:
    """Parse C's hexadecimal notation without using a Python float."""
    negative, body = text.startswith("-"), text.lstrip("-")
    if body == "nan":
        return "nan", False, None
    if body == "inf":
        return "infinite", negative, None
    digits, power = body.removeprefix("0x").split("p")
    whole, _, fraction = digits.partition(".")
    value = Fraction(int(whole + fraction, 16)) * Fraction(2) ** (int(power) - 4 * len(fraction))
    return "finite", negative, -value if negative else value


def check_table(rows) -> int:
    count = 0
    for fmt, code_text, text in rows:
        code = int(code_text, 16)
        want = meaning_of_text(text)
        datum = decode(code, fmt)
        assert meaning(datum) == want, (fmt.name, code_text)
        kind, negative, value = oracle.decode(fmt, code)
        assert (kind, negative and kind != "nan", value) == want, (fmt.name, code_text)
        if not datum.is_nan:
            assert encode(text, fmt).code == code, (fmt.name, code_text, text)
        count += 1
    return count


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", [n for n in shared.names("tables/*.txt.gz") if "p3109" not in n])
def test_tables_of_codes_and_values(name):
    fmt = format_of(name.removeprefix("tables/").removesuffix(".txt.gz"))
    count = check_table((fmt, *line.split()) for line in shared.lines(name))
    assert count >= 1 << min(fmt.width, 14)


@pytest.mark.parametrize(
    "width", [3, 4, 5, 6, 7, 8, 10, *(pytest.param(each, marks=pytest.mark.slow) for each in (12, 16))]
)
def test_tables_of_the_p3109_formats(width):
    rows = (line.split() for line in shared.lines("tables/p3109.txt.gz") if line.startswith(f"k{width}p"))
    assert check_table((parse_format(f"p3109_{name}"), code, value) for name, code, value in rows) >= 2 << width


# One line of the e8m0 file follows both of its sources, which take the subnormal's leading bit for a guard bit.
WRONG = {("f32_to_e8m0.nosat.near_even.txt.gz", "00400001"): "01"}


def is_excepted(name: str, operand: str, answer: str) -> bool:
    """Return whether a line is the known wrong line, with a proof that the other neighbour is strictly nearer."""
    if WRONG.get((name, operand)) != answer:
        return False
    # binary32's subnormal 0x00400001 is 0x400001 · 2^−149 = 2^−127·(1 + 2^−22).
    x = Fraction(int(operand, 16)) / (1 << 149)
    assert x == Fraction(1, 1 << 127) * (1 + Fraction(1, 1 << 22))
    # e8m0's code k is 2^(k − 127): code 00 lies 2^−149 away, and code 01 nearly 2^−127.
    distances = [abs(Fraction(2) ** (k - 127) - x) for k in (0, 1)]
    assert distances[0] == Fraction(1, 1 << 149) < distances[1]
    return True


@pytest.mark.parametrize("path", shared.names("convert/*.txt.gz"))
def test_conversions_from_binary32(path):
    name = path.removeprefix("convert/")
    target, policy = name.removeprefix("f32_to_").split(".")[:2]
    fmt = format_of(target)
    context = Context(overflow="saturate" if policy == "sat" else "native")
    source = parse_format("binary32")
    excepted = count = 0
    for line in shared.lines(path):
        operand, answer = line.split()
        result = convert(decode(int(operand, 16), source), fmt, context).result
        count += 1
        if answer == "nan":
            assert result.is_nan, line
        elif is_excepted(name, operand, answer):
            excepted += 1
            assert result.code == 0, line
        else:
            assert result.code == int(answer, 16), line
    assert count > 800
    assert excepted == (target == "e8m0")


WIDTHS = ("binary16", "binary32", "binary64", "binary128")


@pytest.mark.one_in(4)
@pytest.mark.parametrize("path", shared.names("parse/*.txt.gz"))
def test_decimal_strings_into_four_formats(path):
    wrong = Counter()
    count = 0
    for line in shared.lines(path):
        *answers, text = line.split(" ", 4)
        for name, answer in zip(WIDTHS, answers, strict=True):
            count += 1
            if encode(text, name).code != int(answer, 16):
                wrong[line[:200], name] += 1
    assert not wrong
    assert count > 100
