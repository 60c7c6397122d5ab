"""The same terms in other orders, the steps of a node as questions, and orders taken over from a library."""

import numpy as np
import pytest

from floatlab import dot
from floatlab import sum as add_up
from floatlab.cli.parser import read_question
from floatlab.reduce.reveal.revelation import examine
from floatlab.verbs.question import Question
from floatlab.verbs.reduce.node import roundings_at
from floatlab.verbs.reduce.orders import compare_orders, taken_over, targets
from floatlab.verbs.registry import answer_question, command_of, words_of

RNG = np.random.default_rng(11)


COMMANDS = [
    "dot --preset forum",
    "dot --preset paper --fma",
    "sum random:normal:300:seed=4",
    "sum random:normal:20:seed=4 --adder kahan --fp16",
    "dot random:normal:40:seed=1 random:normal:40:seed=2 --machine hopper.f16.f32",
]
OPTIONS = [
    {},
    {"fma": True},
    {"format": "bf16", "accumulator": "fp32"},
    {"products": "fp16"},
    {"adder": "neumaier"},
    {"schedule": "pairwise", "fma": True},
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_row_of_the_table_is_what_its_options_give(command):
    question = read_question(command.split())
    found = answer_question(question)[0].found
    *_, rows = compare_orders(found)
    assert rows[0].result == found.result
    assert len(rows) > 5
    for row in rows:
        asked = question.having(**dict(row.options))
        made = answer_question(asked)[0].found
        if found.machine is None or asked.option("machine"):  # else terms are read in another format
            assert made.result == row.result, command_of(asked)
            assert made.error_ulps == row.error


def test_an_order_stands_once():
    *_, rows = compare_orders(add_up([1.0, 2.0, 3.0]))
    names = [name for row in rows for name in row.names]
    assert len(names) == len(set(names))
    assert {"numpy", "blocked(128)"} <= set(rows[0].names)


@pytest.mark.parametrize("options", OPTIONS)
def test_the_steps_of_a_node_are_questions_with_its_results(options):
    x, y = RNG.standard_normal((2, 9)).astype(np.float32)
    found = dot(x, y, **options)
    for node in found.nodes:
        rows = roundings_at(found, node.id)
        results = [each.result for each in reversed(node.derivations)]
        for row, result in zip(rows, results, strict=True):
            assert answer_question(row.question)[0].results[-1] == result, command_of(row.question)
            assert read_question(words_of(row.question)) == row.question
    for id in range(len(found)):
        assert all(answer_question(row.question) for row in roundings_at(found, id))


def test_nodes_that_add_several_numbers_have_a_page_instead():
    found = add_up([1.0, 2.0, 3.0, 4.0], "fused(4)")
    assert roundings_at(found, 4) == []


@pytest.mark.parametrize("target", ["numpy.sum", "numpy.dot"])
def test_an_order_that_was_taken_over_gives_what_the_library_gives(target):
    n = 100
    x = RNG.standard_normal(n).astype(np.float32)
    findings = examine(target, n)
    text = ",".join(map(repr, x.tolist()))
    operation = target.partition(".")[2]
    data = Question(operation, (text,) if operation == "sum" else (text, text))
    question, words = taken_over(findings, data, n)
    assert question.values == data.values
    if findings.claim is None:
        assert "no claim" in words
        return
    made = answer_question(question)[0].found
    if len(findings.replays[0].candidate.adders) == 1:
        real = np.sum(x) if operation == "sum" else np.dot(x, x)
        assert np.float32(float(made)) == real


def test_data_of_another_length_are_told():
    findings = examine("numpy.sum", 16)
    question, words = taken_over(findings, read_question(["sum", "1,2,3"]), 3)
    assert question.values == ("1,2,3",)
    assert "revealed for 16 terms" in words
    question, words = taken_over(findings, read_question(["dot", "1,2", "3,4"]), 2)
    assert words.startswith("numpy.sum takes one array")
    assert command_of(question) == "floatlab sum random:normal:16:seed=1 --fp32 --schedule numpy"


def test_an_order_without_a_name_goes_as_a_tree():
    findings = examine(lambda x: ((x[0] + x[3]) + (x[1] + x[2])) + x[4], 5)
    question, words = taken_over(findings, read_question(["sum", "1,2,3"]), 3)
    assert question.option("schedule") == findings.plan.text
    assert "random numbers" in words
    assert answer_question(question)


def test_targets_are_there():
    assert "numpy.sum" in targets()
