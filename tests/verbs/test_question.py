"""Questions: the question of a command can be written as an equivalent command."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Context, parse_format
from floatlab.cli.parser import read_question
from floatlab.errors import FloatlabError
from floatlab.formats.catalog import SHORTHANDS
from floatlab.numbers import Direction
from floatlab.verbs.arithmetic.answer import ARITIES
from floatlab.verbs.question import Question
from floatlab.verbs.registry import VERBS, answer_question, asks, command_of, verb_named
from tests.auditing.making import write_examples

values = st.sampled_from(
    ["1.5", "-3e-5", "1/3", "-inf", "nan(0x1)", "bits:0x3c7c@fp16", "0.1@e4m3", "-0", ".5", "2^-24"]
)
named = st.sampled_from([parse_format(name) for name in (*SHORTHANDS, "e3m4", "p3109_k8p4se", "e5m10", "x87")])
contexts = st.builds(
    Context,
    rounding=st.sampled_from(list(Direction)),
    seed=st.sampled_from([0, 7, 2**64 - 1]),
    overflow=st.sampled_from(["native", "saturate", "propagate"]),
    absent=st.sampled_from(["largest", "zero", "nan", "error"]),
    tininess=st.sampled_from(["after", "before"]),
    flush_inputs=st.booleans(),
    flush_results=st.booleans(),
    nan=st.sampled_from(["first", "x86", "arm", "riscv"]),
)
OPTIONS = {
    "show": [{}, {"interval": True}, {"directions": True}, {"bits": True}, {"like": ("numpy", "torch")}],
    "convert": [{}, {"bits": True}],
    "toint": [{}, {"integer": "ui8"}, {"exact": False}],
    "cmp": [{}, {"signaling": True}],
    "add": [{}, {"steps": 3}, {"brief": True}],
    "sum": [{}, {"schedule": "blocked(2, serial)", "adder": "kahan"}, {"accumulator": parse_format("fp64")}],
    "dot": [{}, {"fma": True, "products": parse_format("e5m10")}, {"observed": "1,2", "difference": "1"}],
    "matmul": [{}, {"ways": True, "runs": 3}, {"machine": "hopper.f16.f32"}, {"observed": "c.npy"}],
    "reveal": [{}, {"terms": 9, "dtype": "float64"}, {"kind": "sum", "device": "cuda", "seed": 3}],
    "compare": [
        {},
        {"rtol": 0.01, "atol": 1e-30, "equal_nan": True},
        {"inputs": ("1,2", "b c"), "op": "dot"},
        {"only": "a b"},
    ],
    "train": [
        {"update": "1e-3", "steps": 7, "remedies": ("plain", "bf16+kahan")},
        {"grad": "-0.5", "lr": "0.1", "optimizer": "adam", "weights": "mxfp4", "state": "fp32"},
    ],
    "audit": [
        {},
        {"against": "a b.npz", "only": "*.mlp.*"},
        {"to": ("mxfp4", "block(e2m1, ue5m3, 16)"), "min_sqnr": 20.5, "activations": "a b.npz", "saturate": True},
    ],
    "dequantize": [{}, {"to": "bf16", "only": "*.mlp.[ab]*"}],
    "block": [{"to": "mxfp4"}, {"to": "mxint8", "scale": "up"}, {"to": "nvfp4", "tensor_scale": "0.5"}],
}


@st.composite
def questions(draw):
    verb = draw(st.sampled_from([verb for verb in filter(asks, VERBS) if verb not in ("formats", "practice")]))
    arity = ARITIES.get(verb) or {"audit": 1, "sum": 1, "reveal": 1, "train": 1}.get(verb, 2)
    several = verb in ("show", "convert")
    most = 0 if verb in ("audit", "block", "dequantize", "reveal", "train") else 3 if several else 1
    found = draw(st.lists(named, min_size=int(verb == "convert"), max_size=most, unique=True))
    context = draw(contexts)
    if verb == "block":  # elements always saturate; only the direction is free
        context = Context(context.rounding, context.seed)
    if verb in ("audit", "compare", "dequantize", "reveal"):  # nothing is rounded
        context = Context()
    if verb != "train" and not context.rounding.is_stochastic:  # networks have a seed of their own
        context = context.replace(seed=0)
    if verb == "fma":
        context = context.replace(fma_invalid=draw(st.booleans()))
    options = draw(st.sampled_from(OPTIONS.get(verb, [{}])))
    if "ways" in options:  # NumPy's own products are timed
        context = Context()
    question = Question(verb, tuple(draw(values) for _ in range(arity)), tuple(found), context)
    return question.having(**options)


@given(questions())
def test_the_command_asks_the_same_question(question):
    program, *words = shlex.split(command_of(question))
    assert program == "floatlab"
    assert read_question(words) == question


@pytest.mark.parametrize("example", [e for verb in filter(asks, VERBS) for e in verb_named(verb).examples])
def test_examples_are_questions_that_have_answers(example, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path)  # files that examples name
    question = read_question(shlex.split(example))
    assert read_question(shlex.split(command_of(question))[1:]) == question
    assert all(answer.page().blocks for answer in answer_question(question))


def test_only_what_has_an_answer_is_a_question():
    with pytest.raises(FloatlabError, match="vectors has no answers: it can only be run on the command line"):
        answer_question(Question("vectors"))


def test_options_can_be_taken_back():
    question = Question("show", ("1",)).having(interval=True)
    assert question.option("interval") is True
    assert question.having(interval=None) == Question("show", ("1",))


CODES = ["0x3c7c", "0_01111_0001111100", "bits:0x3c7c", "0x3c7c@fp16", " bits:0x3c7c @ bf16", "0011110001111100", "inf"]


@pytest.mark.parametrize("value", CODES)
def test_codes_that_say_so_themselves_need_no_option(value):
    asked = Question("show", (value,), (parse_format("fp16"),)).having(bits=True, interval=True)
    spelled = asked.spelled_out()
    assert spelled.options == (("interval", True),)
    assert answer_question(spelled)[0].codes() == answer_question(asked)[0].codes()


@pytest.mark.parametrize("value", CODES[:-1])
def test_bytes_in_their_right_order_need_no_option(value):
    asked = Question("show", (value,), (parse_format("fp16"),)).having(bits=True, little_endian=True)
    spelled = asked.spelled_out()
    assert not spelled.options
    assert answer_question(spelled)[0].codes() == answer_question(asked)[0].codes()
    assert spelled.spelled_out() is spelled


def test_what_cannot_be_read_as_a_code_cannot_be_spelled_out():
    with pytest.raises(FloatlabError, match="--little-endian takes a code"):
        Question("show", ("1.5",)).having(little_endian=True).spelled_out()
    with pytest.raises(FloatlabError, match="a code must be hexadecimal"):
        Question("add", ("1.5", "0x3c00")).having(bits=True).spelled_out()
