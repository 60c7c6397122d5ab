"""Practice: the right answer counts in any notation, and no question has its answer on the page already."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, parse_format
from floatlab.arith import add, contrast, fma, multiply_then_add
from floatlab.formats import CATALOG
from floatlab.numbers import Direction, Flags
from floatlab.page.text_layout import to_text
from floatlab.verbs.arithmetic.answer import ARITIES, compute, operands, operate
from floatlab.verbs.arithmetic.scenes import scenes_of
from floatlab.verbs.practice.exercises import Exercise, exercises, random_operands

FP16 = parse_format("fp16")
VERBS = sorted(set(ARITIES))


def asked(verb: str, *values: str, format=FP16, **choices) -> dict[str, Exercise]:
    answer = operate(verb, values, format, Context(**choices))
    names = [scene.name for scene in answer.scenes(True)]
    return {name: each for name, each in zip(names, exercises(answer.scenes(True)), strict=True) if each is not None}


def test_a_sum_is_asked_step_by_step():
    found = asked("add", "1.125", "0.12457275390625")
    assert {name: each.answers[0] for name, each in found.items()} == {
        "align": "4",
        "sum": "1.24957275390625",
        "round": "+1",
        "result": "1.25",
    }


@pytest.mark.parametrize(
    ("verb", "values", "choices", "name", "right", "wrong"),
    [
        ("add", ("1", "0.5"), {}, "align", ["1", " 1 ", "+1", "0x1", "2/2"], ["2", "", "one", "-1"]),
        ("sub", ("1", "3"), {}, "sum", ["-2", "−2", "-0x2", "-2.0", "- 2"], ["2", "-3", "nan"]),
        ("add", ("1", "1e-4"), {}, "round", ["keep", "KEEP "], ["+1", "no bits to discard", "1"]),
        ("add", ("1", "1e-4"), {"rounding": "RAZ"}, "round", ["+1", "1"], ["keep", "2"]),
        ("add", ("1", "2"), {}, "round", ["no bits to discard"], ["keep", "+1"]),
        ("add", ("1", "1e-4"), {"rounding": "SR"}, "round", ["0 0 1", "001", "G 0 R 0 S 1"], ["1 0 0", "101"]),
        ("add", ("1", "2"), {}, "result", ["0x4200", "bits:0x4200", "0 10000 1000000000"], ["0x4201", "3"]),
        ("div", ("1", "3"), {}, "quotient", ["no"], ["yes"]),
        ("div", ("1", "4"), {}, "quotient", ["yes"], ["no"]),
        ("div", ("1", "3"), {}, "result", ["0x3555", "0.333251953125", "0.3333", "0x1.554p-2"], ["1/3", "0x3556"]),
        ("div", ("1", "0"), {}, "rule", ["divide by zero", "Divide By Zero"], ["none", "invalid"]),
        ("mul", ("0", "inf"), {}, "rule", ["invalid"], ["none"]),
        ("rem", ("5", "3"), {}, "quotient", ["2"], ["1"]),
        ("rem", ("5", "3"), {}, "remainder", ["-1"], ["1", "2"]),
        ("rint", ("2.5",), {}, "to integer", ["2"], ["3", "2.5"]),
        ("add", ("60000", "60000"), {}, "result", ["0x7c00"], ["0x7c01", "65504"]),
        ("mul", ("300", "301.25"), {}, "result", ["inf", "∞", "Infinity"], ["-inf", "65504"]),
        ("mul", ("-1e-5", "1e-5"), {}, "result", ["-0", "−0", "0x8000"], ["0", "1"]),
    ],
)
def test_right_and_wrong(verb, values, choices, name, right, wrong):
    exercise = asked(verb, *values, **choices)[name]
    for text in right:
        assert exercise.is_right(text), (exercise, text)
    for text in wrong:
        assert not exercise.is_right(text), (exercise, text)


@given(
    st.sampled_from(VERBS),
    st.sampled_from([row.format for row in CATALOG]),
    st.sampled_from(list(Direction)),
    st.integers(0, 1 << 30),
)
@settings(max_examples=150, deadline=None)
def test_every_answer_is_accepted_and_none_stands_there_already(verb, fmt, direction, seed):
    texts = random_operands(verb, fmt, seed)
    assert len(texts) == ARITIES[verb]
    answer = operate(verb, texts, fmt, Context(direction))
    film = answer.scenes(True)
    found = exercises(film)
    assert len(found) == len(film)
    assert found[0] is None
    for before, exercise in zip(film, found[1:], strict=False):
        if exercise is None:
            continue
        assert exercise.prompt.endswith("?")
        assert all(exercise.is_right(each) for each in exercise.answers)
        assert not exercise.is_right("no such answer")
        if exercise.choices:
            assert [choice for choice in exercise.choices if exercise.is_right(choice)] == [exercise.answers[0]]
        elif len(exercise.answers[0]) > 3:
            assert exercise.answers[0] not in re.split(r"[ ,\n]", to_text(before.page, 400))


def test_operands_are_the_same_for_a_seed_and_show_something():
    kinds = {"special": 0, "overflow": 0, "inexact": 0, "cancelled": 0}
    for seed in range(120):
        texts = random_operands("add", FP16, seed)
        assert texts == random_operands("add", FP16, seed)
        d = compute("add", operands(texts, FP16), FP16, Context())
        kinds["special"] += d.rounded is None
        kinds["overflow"] += Flags.OVERFLOW in d.flags
        kinds["inexact"] += Flags.INEXACT in d.flags
        cancelled = "leading digit" in " ".join(to_text(operate("add", texts, FP16).page()).split())
        kinds["cancelled"] += cancelled
    assert 1 <= kinds["special"] <= 20
    assert 1 <= kinds["overflow"] <= 20
    assert kinds["inexact"] >= 60
    assert kinds["cancelled"] >= 10


def test_fma_asks_by_the_way():
    values = ("0.1", "10", "-1", "fp16")
    film = scenes_of(contrast(fma(*values), multiply_then_add(*values)))
    found = exercises(operate("fma", values[:3], FP16).scenes(True))
    assert len(found) == len(film)
    prompts = [each.prompt for each in found if each is not None]
    assert prompts[0] == "What is the exact product?"
    assert all(prompt.startswith(("Fused: ", "Separate: ")) for prompt in prompts[1:])
    assert found[-1] is None  # both results are on the page already


def test_pages_of_one_scene_ask_nothing():
    assert exercises(operate("cmp", ("1", "2"), FP16).scenes(True)) == (None,)
    assert exercises(operate("toint", ("2.5",), FP16).scenes(True)) == (None,)
    film = scenes_of(add("1", "1", "fp16"))
    assert len(exercises(film)) == len(film)
