"""Witnesses: their results differ, a seed determines them, and None is a proof if all operands were tried."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, parse_format
from floatlab.arith import contrast, fma, multiply_then_add
from floatlab.arith.witness import find_witness
from floatlab.errors import FloatlabError
from floatlab.formats import CATALOG
from floatlab.numbers import Datum, Direction, encode
from floatlab.numbers.reading import read
from floatlab.verbs.arithmetic.answer import witness
from tests.strategies import small_formats

FP16 = parse_format("fp16")


def differ(a: Datum, b: Datum, c: Datum, context: Context) -> bool:
    """Return whether fma and multiply-then-add differ for these operands, using `contrast` only."""
    try:
        both = contrast(fma(a, b, c, a.format, context), multiply_then_add(a, b, c, a.format, context))
    except FloatlabError:
        return False
    finite = all(each.is_finite for each in (a, b, c, both.fused.result, both.separate.result))
    return finite and not both.same


@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("fmt", [row.format for row in CATALOG if row.format.precision > 1], ids=lambda fmt: fmt.name)
def test_every_format_with_a_significand_has_a_witness(fmt, direction):
    context = Context(direction)
    found = find_witness(fmt, context, tries=2000)
    assert found is not None
    assert differ(*found, context)
    assert find_witness(fmt, context, tries=2000) == found


@given(
    small_formats,
    st.builds(
        Context,
        st.sampled_from(list(Direction)),
        overflow=st.sampled_from(["native", "saturate"]),
        flush_inputs=st.booleans(),
        flush_results=st.booleans(),
        absent=st.sampled_from(["largest", "error"]),
    ),
    st.integers(0, 9),
)
@settings(max_examples=25, deadline=None)
def test_what_is_found_differs(fmt, context, seed):
    found = find_witness(fmt, context, seed, tries=200)
    assert found is None or differ(*found, context)


@pytest.mark.one_in(6)
@pytest.mark.parametrize(
    "name", ["e2m1f", "p3109_k3p1se", "p3109_k3p2se", "p3109_k3p1ue", "p3109_k4p1ue", "p3109_k4p3se"]
)
@pytest.mark.parametrize("direction", ["RNE", "RTZ", "RTP", "RTN", "SR"])
@pytest.mark.parametrize("flush", [False, True])
def test_none_is_a_proof_in_small_formats(name, direction, flush):
    fmt, context = parse_format(name), Context(direction, flush_inputs=flush)
    data = [Datum(fmt, code) for code in range(1 << fmt.width)]
    there_is_one = any(differ(a, b, c, context) for a, b, c in product(data, repeat=3))
    assert (find_witness(fmt, context) is not None) == there_is_one


def test_some_formats_have_none():
    assert find_witness("p3109_k4p1ue", Context("RTP")) is None


def test_given_operands_are_kept_as_far_as_they_serve():
    near = tuple(encode(text, FP16) for text in ("0.1", "10", "5"))
    found = find_witness(FP16, near=near)
    assert found is not None
    assert found[:2] == near[:2]
    assert differ(*found, Context())
    again = find_witness(FP16, near=found)
    assert again == found
    exact = tuple(encode(text, FP16) for text in ("2", "3", "5"))
    assert find_witness(FP16, near=exact) not in (None, find_witness(FP16))
    infinite = tuple(encode(text, FP16) for text in ("inf", "3", "5"))
    assert find_witness(FP16, near=infinite) == find_witness(FP16)


def test_given_operands_of_other_formats_are_converted():
    near = (encode("0.1", "fp32"), encode("10", "bf16"), encode("1", "fp16"))
    found = find_witness(FP16, near=near)
    assert found is not None
    assert [each.format for each in found] == [FP16] * 3
    assert found[1] == encode("10", FP16)


def test_progress_is_told_and_can_end_the_search():
    hopeless, told = parse_format("p3109_k16p1se"), []
    assert find_witness(hopeless, tries=2000, progress=lambda *words: told.append(words) or True) is None
    assert told[0] == (0, 2000)
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] > 1000
    told.clear()
    assert find_witness(hopeless, tries=2000, progress=lambda *words: bool(told.append(words))) is None
    assert len(told) == 1


@pytest.mark.parametrize("fmt", [row.format for row in CATALOG], ids=lambda fmt: fmt.name)
def test_texts_read_back_as_the_witness(fmt):
    found, texts = find_witness(fmt), witness(fmt)
    assert found is not None
    assert texts is not None
    assert tuple(read(text, fmt).result for text in texts) == found


def test_texts_to_start_from_may_be_anything():
    assert witness(FP16, near=("", "x", "1")) == witness(FP16)
    assert witness(FP16, near=("1", "2")) == witness(FP16)
    assert witness(FP16, near=("0.1@fp32", "10", "bits:0xbc00")) == ("0.0999755859375", "10", "-1")
    assert witness(parse_format("p3109_k4p1ue"), Context("RTP")) is None
