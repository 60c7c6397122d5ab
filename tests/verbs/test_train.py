"""Questions of training: text is converted once, functions are found by name, and the answer keeps the model."""

import numpy as np
import pytest

from floatlab.cli.parser import read_question
from floatlab.errors import FloatlabError
from floatlab.numbers import Datum, encode
from floatlab.training.trace import UpdateTrace
from floatlab.training.trajectories import Training
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question
from floatlab.verbs.train.answer import numbers_named
from floatlab.verbs.train.functions import NAMES, function_of


def test_numbers_stay_as_they_were_typed(tmp_path):
    assert numbers_named("0.1") == "0.1"
    assert numbers_named("0.1, 1/3") == ["0.1", "1/3"]
    assert numbers_named("0.1@bf16") == encode("0.1", "bf16")
    np.save(tmp_path / "x.npy", np.float32([1, 2]))
    assert numbers_named(str(tmp_path / "x.npy")).tolist() == [1, 2]
    with pytest.raises(FloatlabError, match="is not a file, nor a list"):
        numbers_named("nowhere")


def test_answers_keep_their_models():
    (answer,) = answer_question(read_question(["train", "1.125", "--update", "0.00041999", "--steps", "3"]))
    assert isinstance(answer.found, Training)
    answer.found.advance(2)  # a screen continues from there
    assert answer.found.steps == 5
    (answer,) = answer_question(read_question(["train", "step", "1", "2^-11", "--fp16"]))
    assert isinstance(answer.found, UpdateTrace)
    assert isinstance(answer.results[0], Datum)


def test_work_is_told_before_it_starts():
    told = []

    def started(total, noun):
        told.append([total, noun, 0])
        return lambda done: told[-1].__setitem__(2, told[-1][2] + done)

    answer_question(read_question(["train", "1", "--update", "1", "--steps", "9", "--remedies", "plain,fp32"]), started)
    answer_question(
        read_question(["train", "1", "--grad", "1", "--lr", "1", "--optimizer", "adam", "--steps", "9"]), started
    )
    words = ["train", "network", "--problem", "linear", "--configs", "fp32,bf16", "--steps", "5", "--seeds", "3"]
    answer_question(read_question(words), started)
    assert [(total, noun) for total, noun, _ in told] == [(18, "steps"), (9 * 9, "steps"), (30, "steps")]
    assert [done for total, _, done in told] == [18, 81, 30]


def test_without_a_number_of_steps_a_sequence_is_gone_through():
    (answer,) = answer_question(read_question(["train", "1", "--update", "0.1,0.2,0.3"]))
    assert answer.found.steps == 3
    (answer,) = answer_question(read_question(["train", "1,2,3", "--update", "0.1,0.2,0.3"]))
    assert answer.found.steps == 100


@pytest.mark.parametrize("name", NAMES)
def test_shipped_functions_have_derivatives(name):
    (answer,) = answer_question(Question("train", ("check", name, "0.75")))
    curves, check = answer.found
    assert check is None
    assert [curve.best.relative < 1e-2 for curve in curves] == [True, True]


def test_functions_that_take_any_number_round_each_operation():
    assert function_of(f"{__name__}:cube", "1").round_all
    assert not function_of("math:sin", "1").round_all


def cube(x):
    return x * x * x


def test_steps_out_of_the_domain_are_left_out():
    (answer,) = answer_question(Question("train", ("check", "log", "0.25")))
    assert max(point.h for point in answer.found[0][1].points) < 0.25


@pytest.mark.parametrize(
    ("name", "x", "said"),
    [("sni", "1", "did you mean 'sin'"), ("math:pi", "1", "is not a function"), ("sqrt", "-1", "is not defined at -1")],
)
def test_what_is_no_function_there(name, x, said):
    with pytest.raises(FloatlabError, match=said):
        function_of(name, x)


def test_an_integer_beyond_binary64_is_no_value(tmp_path, monkeypatch):
    (tmp_path / "too_large.py").write_text("def power(x): return 10**400\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(FloatlabError, match="not defined at 1"):
        function_of("too_large:power", "1")
