"""Derivations through JSON and back, and replayed from their steps."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Direction, FileFormatError, Format, convert, decode, read
from floatlab.arith import add, divide, fma, multiply, multiply_then_add, remainder, round_to_integral, sqrt, subtract
from floatlab.formats import CATALOG, parse_format
from floatlab.numbers import round_exact
from floatlab.numbers.derivation import Combine, Divide, Encode, Read, Root, Round
from floatlab.vectors.generate import landmarks
from floatlab.verbs.from_json import answer_of_document, document_of

HANDMADE = Format("mine", 5, 4, bias=3, nans=0, infinities=False, subnormals=False)
NAMES = ("p3109_k8p1ue", "p3109_k6p3sf", "e5m0", "e19m236", "e3m1fnuz")
FORMATS = [*(row.format for row in CATALOG), *map(parse_format, NAMES), HANDMADE]
LITERALS = ["1/3", "1e-999999999", "nan", "-0", "1e400", "3*2^-70", "bits:0x1", "0x1p-99999999999", "2^99999999999"]


@st.composite
def contexts(draw):
    return Context(
        rounding=draw(st.sampled_from(list(Direction))),
        seed=draw(st.integers(0, 2**64 - 1)),
        overflow=draw(st.sampled_from(["native", "saturate", "propagate"])),
        absent=draw(st.sampled_from(["largest", "zero", "nan"])),
        tininess=draw(st.sampled_from(["after", "before"])),
        flush_inputs=draw(st.booleans()),
        flush_results=draw(st.booleans()),
        nan=draw(st.sampled_from(["first", "x86", "arm", "riscv"])),
        fma_invalid=draw(st.booleans()),
    )


@st.composite
def derivations(draw):
    fmt, context = draw(st.sampled_from(FORMATS)), draw(contexts())
    codes = st.one_of(st.integers(0, (1 << fmt.width) - 1), st.sampled_from(landmarks(fmt)))
    data = codes.map(lambda code: decode(code, fmt))
    typed = st.one_of(data, st.sampled_from(["0.1", " 1e5", "inf", "-0x1.8p1"]))
    operation = draw(st.sampled_from(["read", "number", "convert", "one", "two", "three"]))
    if operation == "read":
        return read(draw(st.sampled_from(LITERALS)), fmt, context)
    if operation == "number":
        return read(draw(st.one_of(st.integers(), st.fractions(), st.floats())), fmt, context)
    if operation == "convert":
        return convert(draw(data), draw(st.sampled_from(FORMATS)), context)
    if operation == "one":
        return draw(st.sampled_from([sqrt, round_to_integral]))(draw(data), fmt, context)
    if operation == "two":
        compute = draw(st.sampled_from([add, subtract, multiply, divide, remainder]))
        return compute(draw(data), draw(typed), fmt, context)
    return draw(st.sampled_from([fma, multiply_then_add]))(draw(data), draw(typed), draw(data), fmt, context)


@given(derivations())
@settings(max_examples=150, deadline=None)
def test_every_derivation_comes_back_from_its_json(derivation):
    assert answer_of_document(json.loads(json.dumps(document_of(derivation)))) == derivation


@given(derivations())
@settings(max_examples=100, deadline=None)
def test_replaying_the_steps_gives_the_result(derivation):
    """Rounding the last exact step again gives the same decision and the result's code."""
    exact = sticky = code = None
    for step in derivation.steps:
        if isinstance(step, Read | Combine):
            exact, sticky = step.exact, getattr(step, "sticky", False)
        elif isinstance(step, Divide) and derivation.operation != "remainder":
            exact, sticky = step.quotient, step.sticky
        elif isinstance(step, Root):
            exact, sticky = step.root, step.sticky
        elif isinstance(step, Round) and exact is not None:
            assert round_exact(exact, step.format, derivation.context, sticky) == step.rounded
            code, exact = step.rounded.code, None
        elif isinstance(step, Encode) and code is not None:
            assert step.datum.code == code
            code = None
    assert derivation.steps[-1].datum == derivation.result


def spoiled():
    good = document_of(add("1", "2", "fp16"))
    yield {}
    yield []
    yield "text"
    yield None
    yield good | {"schema": 2}
    yield good | {"steps": [{"step": "nonsense"}]}
    yield good | {"steps": [{"step": "align"}]}
    yield good | {"result": {"format": "nonsense", "code": "0x0"}}
    yield good | {"result": {"format": "fp16", "code": "xyz"}}
    yield good | {"operands": [{}]}
    yield good | {"flags": ["nonsense"]}
    yield good | {"context": {"rounding": "sideways", "seed": 0}}
    yield good | {"formats": {"x": {"name": "x", "precision": "1" * 9999}}}


@pytest.mark.parametrize("wire", list(spoiled()), ids=lambda wire: str(wire)[:30])
def test_what_is_no_derivation_is_refused_in_one_line(wire):
    with pytest.raises(ValueError, match=r"^[^\n]+$") as caught:
        answer_of_document(wire)
    assert isinstance(caught.value, FileFormatError | ValueError)
