"""`convert`, asked from Python: the path, the direct rounding, and where they differ."""

import pytest

from floatlab import Context, decode, encode, parse_format
from floatlab.errors import FormatError, LiteralError
from floatlab.verbs.convert.answer import convert_through


def path(*names):
    return tuple(parse_format(name) for name in names)


def record(text, *names, **more):
    (found,) = convert_through(text, path(*names), **more).records()
    return found


@pytest.mark.parametrize(
    ("text", "names", "through", "direct"),
    [
        ("1.00048828126", ("fp32", "fp16"), "0x3c00", "0x3c01"),
        ("0x1.01000001p0", ("fp32", "bf16"), "0x3f80", "0x3f81"),
        ("-1.00048828126", ("fp32", "fp16"), "0xbc00", "0xbc01"),
    ],
)
def test_double_rounding_is_found(text, names, through, direct):
    found = record(text, *names)
    assert (found["result"]["code"], found["direct"]["result"]["code"]) == (through, direct)
    assert found["same"] is False
    assert [stage["format"] for stage in found["path"]] == [parse_format(name).name for name in names]


def test_a_wide_first_step_does_no_harm():
    # p >= 2p' + 2 makes double rounding of one operation innocuous, but not of every decimal:
    # binary64 cannot distinguish this decimal from the tie.
    assert record("0.1", "fp64", "fp32")["same"] is True
    assert record("1.00048828125000000000000000000001", "fp64", "fp16")["same"] is False


def test_rounding_to_odd_on_the_way_does_no_harm():
    # Boldo and Melquiond (2008): to odd with two more digits, then to nearest, equals to nearest directly.
    odd = encode("1.00048828126", "fp32", Context(rounding="RTO"))
    assert record(f"bits:{odd.code:#010x}", "fp32", "fp16")["result"]["code"] == "0x3c01"


@pytest.mark.parametrize("text", ["0.1", "-inf", "nan", "snan", "0", "-0", "65520", "1e-9", "1e999999999", "1/3"])
def test_a_path_of_one_format_is_the_direct_rounding(text):
    found = record(text, "fp16")
    assert found["same"] is True
    assert found["result"] == found["direct"]["result"]
    assert len(found["path"]) == 1


def test_a_code_is_of_the_first_format():
    found = record("bits:0x3f8f8f6d", "fp32", "fp16")
    assert found["path"][0]["result"]["code"] == "0x3f8f8f6d"
    assert found["direct"]["result"] == found["result"]
    assert record("0x3f8f8f6d", "fp32", "fp16", bits=True)["result"] == found["result"]


def test_a_number_is_exact_to_begin_with():
    found = record("1/3", "fp32", "fp16")
    assert found["operands"][0]["exact"] == "1/3"
    assert found["operands"][0]["literal"] == "1/3"
    # The error is of the whole path, not of its last step.
    assert found["error"] == found["direct"]["error"]


def test_a_signaling_nan_is_quieted_on_the_way_and_says_so():
    found = record("snan(0x155)", "fp16", "fp32")
    assert decode(int(found["result"]["code"], 16), "fp32").is_nan
    assert found["path"][0]["flags"] == []
    assert found["path"][1]["flags"] == ["invalid"]


def test_infinity_through_a_format_without_it():
    assert record("-inf", "fp16", "e4m3")["result"]["shortest"] == "-nan"
    saturated = record("-inf", "fp16", "e4m3", context=Context(overflow="saturate"))
    assert saturated["result"]["exact"] == "-448"


def test_the_context_holds_for_every_step():
    up = record("0.1", "fp32", "fp16", context=Context(rounding="RTP"))
    assert up["result"]["code"] == up["direct"]["result"]["code"] == "0x2e67"
    assert up["context"]["rounding"] == "RTP"


def test_the_steps_of_all_stages_are_there_in_order():
    kinds = [step["step"] for step in record("0.1", "fp64", "fp32", "fp16")["steps"]]
    assert kinds == ["read", "round", "encode", "decode", "round", "encode", "decode", "round", "encode"]


def test_one_answer_in_four_ways():
    answer = convert_through("0.1", path("fp32", "fp16"))
    assert (answer.words(), answer.codes()) == (["0.1"], ["0x2e66"])
    assert "binary32 → binary16" in answer.page().title


def test_what_cannot_be_converted():
    with pytest.raises(FormatError, match="needs a path"):
        convert_through("0.1", ())
    with pytest.raises(FormatError, match="16 bits"):
        convert_through("bits:0x10000", path("fp16", "fp32"))
    with pytest.raises(LiteralError, match="'abc'"):
        convert_through("abc", path("fp16"))
    with pytest.raises(LiteralError, match="formats of convert with --through"):
        convert_through("0.1@fp16", path("fp32"))
