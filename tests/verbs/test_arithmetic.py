"""The verbs of arithmetic, asked from Python: operands, formats, and one answer in four ways."""

import pytest

from floatlab import Context, Datum, Derivation, FloatlabError, parse_format
from floatlab.errors import LiteralError
from floatlab.page.model import text_of
from floatlab.verbs.arithmetic.answer import ARITIES, operands, operate
from floatlab.verbs.registry import VERBS

FP16 = parse_format("fp16")


def test_text_stays_text_and_what_has_a_format_is_read():
    reading, code, text = operands(("0.1@fp16", "bits:0x3f80@bf16", " 2 "), None)
    assert isinstance(reading, Derivation)
    assert (reading.result.format.name, reading.flags.names) == ("binary16", ["inexact"])
    assert code == Datum(parse_format("bf16"), 0x3F80)
    assert text == " 2 "


def test_codes_belong_to_the_format_asked_for():
    assert operands(("bits:0x3c00", "0x3c00"), FP16)[0] == Datum(FP16, 0x3C00)
    assert operands(("0x3c00",), FP16, bits=True) == (Datum(FP16, 0x3C00),)
    assert operands(("0x3c@e5m2",), FP16, bits=True) == (Datum(parse_format("e5m2"), 0x3C),)
    with pytest.raises(FloatlabError, match="a code needs a format"):
        operands(("bits:0x3c00",), None)


def test_operands_are_read_to_nearest_by_the_range_rules_of_the_context():
    up = Context(rounding="RTP", overflow="saturate")
    (reading,) = operands(("0.1@fp16",), None, context=up)
    assert reading.result.code == 0x2E66
    (reading,) = operands(("1e9@fp16",), None, context=up)
    assert reading.result.code == 0x7BFF


@pytest.mark.parametrize("text", ["@fp16", " @fp16", "1@", "1@ ", "@"])
def test_both_sides_of_the_at_sign_are_needed(text):
    with pytest.raises(LiteralError, match=r"VALUE@FORMAT needs a (value|format)"):
        operands((text,), None)


@pytest.mark.parametrize("verb", ARITIES)
def test_every_verb_counts_its_operands(verb):
    for count in {0, 1, 2, 3, 4} - {ARITIES[verb]}:
        with pytest.raises(FloatlabError, match=f"^{verb} takes .*, but got {count or 'none'}"):
            operate(verb, ("1",) * count)
    assert verb in VERBS
    assert len(operate(verb, ("1",) * ARITIES[verb]).words()) == 1


@pytest.mark.parametrize(
    ("verb", "texts", "word", "code"),
    [
        ("add", ("1", "2"), "3", "0x4200"),
        ("sub", ("1", "2"), "-1", "0xbc00"),
        ("mul", ("3", "2"), "6", "0x4600"),
        ("div", ("1", "2"), "0.5", "0x3800"),
        ("rem", ("5", "3"), "-1", "0xbc00"),
        ("sqrt", ("4",), "2", "0x4000"),
        ("fma", ("2", "3", "1"), "7", "0x4700"),
        ("rint", ("1.5",), "2", "0x4000"),
        ("cmp", ("1", "2"), "less", "less"),
        ("toint", ("-1",), "-1", "0xffffffff"),
    ],
)
def test_one_answer_in_four_ways(verb, texts, word, code):
    answer = operate(verb, texts, FP16)
    assert (answer.words(), answer.codes()) == ([word], [code])
    (record,) = answer.records()
    assert len(record["operands"]) == len(texts)
    assert answer.page().title


def test_the_result_has_the_format_asked_for_or_the_one_that_holds_all():
    def format_of(*texts, format=None):
        (record,) = operate("add", texts, format).records()
        return record["format"]

    assert format_of("1", "2") == "binary32"
    assert format_of("1@fp16", "2") == "binary16"
    assert format_of("1@fp16", "2@bf16") == "binary32"
    assert format_of("1@e4m3", "2@e2m1") == "binary16"
    assert format_of("1@fp64", "2@fp64", format=FP16) == "binary16"
    with pytest.raises(FloatlabError, match="name the result's format with -f"):
        format_of("1@e19m236", "1@fp16")


def test_integer_types_and_their_inexactness():
    assert operate("toint", ("300",), integer="ui8").words() == ["255"]
    assert operate("toint", ("-2.5",), integer="i8").codes() == ["0xfe"]
    assert operate("toint", ("2.5",)).records()[0]["flags"] == ["inexact"]
    assert operate("toint", ("2.5",), exact=False).records()[0]["flags"] == []
    assert operate("rint", ("2.5",), exact=False).records()[0]["flags"] == []
    with pytest.raises(FloatlabError, match="not 'i7'"):
        operate("toint", ("1",), integer="i7")


def test_signaling_comparisons():
    assert operate("cmp", ("nan", "1")).records()[0]["flags"] == []
    assert operate("cmp", ("nan", "1"), signaling=True).records()[0]["flags"] == ["invalid"]


def test_steps_and_brief():
    whole = operate("add", ("0.1", "0.2"), FP16)
    part = operate("add", ("0.1", "0.2"), FP16, steps=2)
    assert part.records()[0]["steps"] == whole.records()[0]["steps"][:2]
    assert len(str(part.page())) < len(str(whole.page()))
    assert operate("add", ("0.1", "0.2"), FP16, brief=True).page() != whole.page()


def test_fused_and_separate_are_one_record():
    x = "1.0009765625"
    (record,) = operate("fma", (x, x, "-1.001953125"), FP16).records()
    assert (record["result"]["code"], record["separate"]["result"]["code"]) == ("0x0010", "0x0000")
    assert record["same"] is False


def test_nothing_is_drawn_before_it_is_asked_for(monkeypatch):
    from floatlab.verbs.arithmetic import page as derivations

    def drawn(*_):
        raise AssertionError("drawn")

    monkeypatch.setattr(derivations, "derivation_page", drawn)
    answer = operate("add", ("1", "2"), FP16)
    assert answer.words() == ["3"]
    with pytest.raises(AssertionError, match="drawn"):
        answer.page()


@pytest.mark.parametrize(
    ("typed", "format", "said"),
    [
        ("0.1", "fp64", "≈ 0.1000000000000000056 is"),
        ("0.1", "fp32", "≈ 0.1000000015 is"),
        ("1/3", "fp64", "≈ 0.3333333333333333 is"),  # it differs from 1/3 in the digits that are shown
        ("0.1", "fp16", "0.0999755859375 is"),
        ("0.1", "fp128", "≈ 0.1 (4.8e-36 more) is"),
    ],
)
def test_the_reason_tells_the_number_from_the_typed_one(typed, format, said):
    answer = operate("add", (typed, "1"), parse_format(format), Context())
    assert f"cannot represent {typed}, and {said} the nearest number." in text_of(answer.scenes(False)[0].reason)
