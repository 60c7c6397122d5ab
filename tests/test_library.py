"""The library as users call it: types of numbers, order of arguments, display of answers."""

import json
import subprocess
import sys
import tempfile
from decimal import Decimal
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arith.blocks import quantize_blocks
from floatlab.cli.main import main
from floatlab.files import open_array
from floatlab.formats.recipes import parse_recipe
from floatlab.presenter import Answering, Drawn
from floatlab.reduce.results.products import matrix_product
from floatlab.reduce.reveal.invariance import invariance
from floatlab.reduce.reveal.revelation import examine
from floatlab.verbs.presenting import ROWS

# Answers without a truth value.


def test_a_comparison_of_arrays_has_no_truth_value_and_says_what_to_ask():
    same, apart = fl.compare([1.0], [1.0]), fl.compare([1.0], [2.0])
    assert (same.within, apart.within) == (True, False)
    for found in (same, apart):
        with pytest.raises(fl.TruthValueError, match=r"use \.within") as refusal:
            bool(found)
        assert "\n" not in str(refusal.value)
        assert isinstance(refusal.value, fl.FloatlabError | TypeError | ValueError)


def test_other_answers_have_none_either_and_relations_have_theirs():
    assert not fl.less("2", "1")
    assert fl.less("1", "2")
    fused, separate = fl.fma("1", "2", "3"), fl.multiply_then_add("1", "2", "3")
    for found in (fl.add("1", "-1"), fl.sum([1.0, -1.0]), fl.contrast(fused, separate), fl.to_integer("0")):
        with pytest.raises(TypeError, match="has no truth value: use"):
            bool(found)
    for several in (fl.FloatArray([1.0, 0.0], "fp16"), np.zeros(2)):
        with pytest.raises(ValueError, match="ambiguous"):
            bool(several)
    assert not fl.FloatArray([0.0], "fp16")


# One order of arguments; words or a Context.

_RTZ = fl.Context("RTZ")
_WITH_A_CONTEXT = {
    "encode": lambda c: fl.encode("0.1", "fp16", c),
    "read": lambda c: fl.read("0.1", "fp16", c),
    "convert": lambda c: fl.convert(fl.encode("0.1", "fp32"), "fp16", c),
    "add": lambda c: fl.add("0.1", "0.2", "fp16", c),
    "subtract": lambda c: fl.subtract("0.1", "1e-4", "fp16", c),
    "multiply": lambda c: fl.multiply("0.1", "0.3", "fp16", c),
    "divide": lambda c: fl.divide("1", "3", "fp16", c),
    "divide by zero": lambda c: fl.divide("1", "0", "fp16", c),
    "remainder": lambda c: fl.remainder("0.1", "0.3", "fp16", c),
    "sqrt": lambda c: fl.sqrt("2", "fp16", c),
    "fma": lambda c: fl.fma("0.1", "0.3", "1", "fp16", c),
    "multiply_then_add": lambda c: fl.multiply_then_add("0.1", "0.3", "1", "fp16", c),
    "less": lambda c: fl.less("0.1", "0.3", "fp16", c),
    "equal": lambda c: fl.equal("0.1", "0.3", "fp16", c),
    "less_equal": lambda c: fl.less_equal("0.1", "0.3", "fp16", c),
    "round_to_integral": lambda c: fl.round_to_integral("2.7", "fp16", c),
    "round ∞": lambda c: fl.round_to_integral("inf", "fp16", c),
    "to_integer": lambda c: fl.to_integer("2.7", 32, True, "fp16", c),
    "from_integer": lambda c: fl.from_integer(4099, "fp16", c),
    "sum": lambda c: fl.sum([0.1, 0.2], format="fp32", context=c).result,
    "dot": lambda c: fl.dot([0.1, 0.2], [1.0, 0.3], format="fp32", context=c).result,
    "matmul": lambda c: fl.matmul([[0.1, 0.2]], [[1.0], [0.3]], format="fp32", context=c).tolist(),
    "arrays.encode": lambda c: fl.arrays.encode([0.1], "fp16", c).tolist(),
    "arrays.encode by name": lambda c: fl.arrays.encode([0.1], "fp16", context=c).tolist(),
    "arrays.quantize": lambda c: fl.arrays.quantize([0.1], "fp16", c).tolist(),
    "arrays.add": lambda c: fl.arrays.add([0.1], [0.2], "fp16", c).tolist(),
    "arrays.fma": lambda c: fl.arrays.fma([0.1], [0.2], [0.7], "fp16", c).tolist(),
    "blocks": lambda c: fl.arrays.quantize([0.1] * 32, "mxfp4", c).tolist(),
    "scalar blocks": lambda c: quantize_blocks(["0.1", "7"], "mxfp4", None, c),
    "FloatArray": lambda c: repr(fl.FloatArray([0.1], "fp16", c)),
    "FloatArray.astype": lambda c: repr(fl.FloatArray([0.1], "fp32").astype("fp16", c)),
    "FloatArray.with_context": lambda c: repr(fl.FloatArray([0.1], "fp16").with_context(c) / 3),
    "attribute": lambda c: fl.attribute(["0.1"], ["0.3"], "0.03", context=c).context,
    "train": lambda c: fl.train("1.125", update="0.00041999", steps=3, remedies="plain", context=c)["plain"].final,
}


@pytest.mark.parametrize("name", _WITH_A_CONTEXT)
def test_a_directions_name_stands_for_a_context_everywhere(name):
    call = _WITH_A_CONTEXT[name]
    assert call("RTZ") == call("minMag") == call(fl.Direction.RTZ) == call(_RTZ)
    with pytest.raises(fl.ContextError, match="unknown rounding direction 'RTX'"):
        call("RTX")
    with pytest.raises(fl.ContextError, match=r"context must be a floatlab\.Context, or a rounding|unknown rounding"):
        call(3)


def test_contexts_that_contradict_each_other_are_told():
    with pytest.raises(fl.UnsupportedError, match="rounding is a Context"):
        fl.arrays.encode([1.0], "e4m3", _RTZ, context=_RTZ)
    with pytest.raises(fl.UnsupportedError, match="overflow is saturate, but the context has native"):
        fl.arrays.encode([1.0], "e4m3", _RTZ, "saturate")


# How numbers are interpreted.


def bits(found):
    return found.result.format.name, found.result.code


def test_python_floats_are_binary64():
    for a, b in ((0.1, 0.2), (1e300, 1e300), (-0.0, 0.0), (5e-324, 1.0)):
        with np.errstate(over="ignore"):
            assert bits(fl.add(a, b)) == ("binary64", int(np.float64(a + b).view(np.uint64)))
            assert bits(fl.multiply(a, b)) == ("binary64", int(np.float64(a * b).view(np.uint64)))
    assert float(fl.add(0.1, 0.2).result) == 0.30000000000000004
    assert bits(fl.add(np.float64(0.1), 0.2)) == bits(fl.add(0.1, 0.2))
    assert bits(fl.sqrt(0.1)) == ("binary64", int(np.sqrt(np.float64(0.1)).view(np.uint64)))


def test_numpy_numbers_are_of_their_dtype_and_formats_mix_as_ever():
    a, b = np.float32(0.1), np.float16(0.2)
    assert bits(fl.add(a, b)) == ("binary32", int((a + np.float32(b)).view(np.uint32)))
    assert bits(fl.add(b, b)) == ("binary16", int((b + b).view(np.uint16)))
    assert bits(fl.add(a, 0.2)) == ("binary64", int((np.float64(a) + 0.2).view(np.uint64)))
    assert fl.add(ml_dtypes.bfloat16(1.5), ml_dtypes.float8_e4m3fn(2)).result == fl.encode("3.5", "bf16")
    assert fl.add(ml_dtypes.bfloat16(1.5), b).result.format.name == "binary32"
    assert fl.add(np.array(0.1, ">f4"), np.array(0.1, "<f4")).operands == (fl.encode(np.float32(0.1), "fp32"),) * 2
    nan = np.uint32(0x7FC12345).view(np.float32)
    assert fl.add(nan, np.float32(1)).result.code == 0x7FC12345


def test_longdoubles_are_what_this_machine_has():
    kinds = {52: "binary64", 63: "x87", 112: "binary128"}
    if (name := kinds.get(np.finfo(np.longdouble).nmant)) is None:
        pytest.skip("a longdouble of another kind")
    x = np.longdouble("0.1")
    datum = fl.equal(x, x).operands[0]
    assert datum.format == fl.parse_format(name)
    assert datum.as_integer_ratio() == x.as_integer_ratio()


def test_results_of_a_named_format_are_rounded_once_from_the_operands_as_they_are():
    exact = Fraction(0.1) + Fraction(0.2)
    assert fl.add(0.1, 0.2, "fp16").result == fl.encode(exact, "fp16")
    assert fl.arrays.add([0.1], [0.2], "fp16").tolist() == [float(fl.encode(exact, "fp16"))]
    # 1 + 2^-11 + 2^-30 lies above the middle of two binary16 numbers, and 2^-11 + 2^-30 alone is read down.
    assert float(fl.add(1.0, 2**-11 + 2**-30, "fp16").result) == 1 + 2**-10
    assert fl.arrays.add(1.0, 2**-11 + 2**-30, "fp16").item() == 1 + 2**-10


def test_integers_are_exact_or_refused_and_rounded_where_that_is_asked_for():
    assert bits(fl.add(1, 0.5)) == bits(fl.add(1.0, 0.5))
    assert fl.add(1, 2).result == fl.encode("3", "fp32")
    assert fl.add(np.int64(3), np.float16(0.5)).result == fl.encode("3.5", "fp16")
    assert fl.add(2**100, 2**100).result == fl.encode("2^101", "fp32")
    for call in (
        lambda: fl.add(2**60 + 1, 0.5),
        lambda: fl.add(2**24 + 1, 1),
        lambda: fl.sqrt(np.int64(2**24 + 1)),
        lambda: fl.add(2049, 1, "fp16"),
        lambda: fl.sum([2**24 + 1, 1]),
        lambda: fl.sum([2**60 + 1, 0.5]),
        lambda: fl.sum([2049, 0.5], format="fp16"),
        lambda: fl.sum([np.int64(2049), 0.5], format="fp16"),
        lambda: fl.sum(np.array([2**24 + 1, 1])),
        lambda: fl.arrays.add(np.float16([1]), 2049, "fp16"),
        lambda: fl.add(10**400, 1.0),
    ):
        with pytest.raises(fl.UnsupportedError, match=r"is not a number of binary.*floatlab\.encode\(") as refusal:
            call()
        assert "\n" not in str(refusal.value)
        assert len(str(refusal.value)) < 250
    assert fl.encode(2**60 + 1, "fp64") == fl.encode("2^60", "fp64")
    assert fl.add(fl.encode(2**60 + 1, "fp64"), 0.5).result == fl.encode("2^60", "fp64")


@pytest.mark.parametrize("truth", [True, False, np.True_])
def test_truth_values_are_no_numbers(truth):
    for call in (lambda: fl.add(truth, 1.0), lambda: fl.encode(truth, "fp16"), lambda: fl.sum([truth, 1.0])):
        with pytest.raises(fl.FloatlabError, match=r"truth value|array of bool"):
            call()


def test_text_fractions_and_decimals_take_the_format_asked_for_or_that_of_the_others():
    for one, third in (("1", "1/3"), (Fraction(1), Fraction(1, 3)), (Decimal(1), "1/3")):
        assert fl.add(one, third).result == fl.add("1", "1/3", "fp32").result
        assert fl.add(one, third, "fp16").result == fl.add("1", "1/3", "fp16").result
        assert fl.add(third, 1.0).result == fl.add("1", "1/3", "fp64").result
    assert fl.sum(["0.1", "0.2"]).result.format.name == "binary32"


def test_lists_of_floats_are_binary64_and_what_a_named_format_makes_of_them_is_told():
    assert float(fl.sum([0.1] * 10)) == np.cumsum([0.1] * 10)[-1] == 0.9999999999999999
    found = fl.sum([0.1, 0.2, 0.5], format="fp32")
    assert found.x.codes.tolist() == np.float32([0.1, 0.2, 0.5]).view(np.uint32).tolist()
    assert found.exact == sum(map(Fraction, np.float32([0.1, 0.2, 0.5]).tolist()))
    shown = str(found)
    assert "terms        3 binary64 numbers rounded into binary32, 2 of them inexactly" in shown
    assert "of the terms after they were read" in shown
    assert json.loads(found.to_json())["read"] == [{"from": "binary64", "inexact": 2}]
    assert "of the terms as read" not in str(fl.sum([0.1, 0.2]))
    mixed = fl.dot([np.float32(0.5), 2], ["0.1", Fraction(1, 2)], format="fp16")
    assert "a            2 numbers read into binary16, all exactly" in str(mixed)
    assert "b            2 numbers read into binary16, 1 of them inexactly" in str(mixed)
    assert "terms        3 numbers read into binary16, all inexactly" in str(
        fl.sum(["0.1", "0.2", "0.3"], format="fp16")
    )


def test_a_format_in_the_place_of_a_schedule_is_told_where_it_goes():
    with pytest.raises(fl.PlanError, match=r"^'fp16' is a format, not a schedule: format='fp16' \(-f fp16\)\n"):
        fl.sum([1.0], "fp16")


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64", "e4m3"])
def test_what_reading_text_changed_is_counted_exactly(name):
    words = ["0.1", "0.5", "1/3", "0x1.8p-3", "0.30000000000000004", "448", "449", "1e-30", "65504", "0", "-0", "inf"]
    words += ["1e400", "2.50", "16777217", "2^-24", "0.1000000000000000055511151231257827021181583404541015625"]
    fmt = fl.parse_format(name)
    changed = sum(not {"inexact", "invalid"}.isdisjoint(fl.read(word, fmt).flags.names) for word in words * 2)
    with open_array(",".join(words * 2), fmt) as source:
        assert source.origin.inexact == changed


# What answers show.


def written_numbers():
    with tempfile.TemporaryDirectory() as folder:
        return fl.dequantize({"x": np.float32([1])}, f"{folder}/x.safetensors")


def answers():
    x, y = np.float32([[1, 2], [3, 4.1]]), np.float32([[0.1], [0.2]])
    fused, separate = fl.fma("0.1", "10", "-1", "fp16"), fl.multiply_then_add("0.1", "10", "-1", "fp16")
    return [
        fl.add(0.1, 0.2), fl.read("0.1", "fp16"), fl.convert(fl.encode("0.1", "fp32"), "e4m3"),
        fl.encode("0.1", "fp16"), fused, separate, fl.contrast(fused, separate), fl.less("1", "2"),
        fl.to_integer("2.5"),
        *quantize_blocks(["957", "1"], "mxfp8_e4m3"), fl.sum([0.1, 0.2]), matrix_product(x, y), fl.reveal(np.sum, n=6),
        matrix_product([[1, 2]], [[3], [1]], machine="b200.mxf4.f32", scales=([[1]], [[1]])),
        examine(np.sum, 6), fl.reveal("numpy.matmul", shape=(12, 8, 20)), invariance("numpy.matmul", (8, 12, 6)),
        fl.attribute(["1", "2^-24"], ["1", "1"], "1.0", machines=[], targets=[]),
        fl.compare([1.0, 2.0], [1.0, 2.5]), fl.train("1.125", update="0.00041999", steps=3, remedies="plain"),
        fl.training.step("1.125", "0.00041999"), fl.training.learn("linear", "fp32", steps=3, samples=4)[0][0],
        fl.training.measure_underflow(x, "fp16"), fl.compare_checkpoints({"x": x}, {"x": x[:1], "y": y}),
        written_numbers(), fl.audit({"a_blocks": np.zeros((1, 1, 16), np.uint8), "a_scales": np.uint8([[127]])}),
        fl.audit({"x": x}, to="mxfp4"), parse_recipe("mxfp4"),
        fl.find_recipe(np.int8([[127, -64]]), np.float32([[1, -0.5]])),
    ]  # fmt: skip


def test_every_answer_has_a_page_a_picture_json_and_one_line():
    met = set()
    for found in answers():
        met.add(type(found).__name__)
        page = found.page()
        assert found.svg() == page.svg()
        assert found.svg().startswith("<svg")
        assert found._repr_html_() == found.svg()
        assert "\n" not in repr(found)
        assert max(len(repr(found)), len(repr(page))) < 400
        for row in found.to_json().splitlines():
            assert json.loads(row)["schema"] == 1
        assert isinstance(found, Drawn)
        assert str(found) == (str(page) if isinstance(found, Answering) else repr(found))
        assert max(map(len, page.text(50).splitlines())) <= max(50, max(map(len, page.text(80).splitlines())))
    assert met <= set(ROWS)
    assert len(set(ROWS) - met) <= 3  # these take longer: a judgement, timings, and a curve


def test_every_kind_of_answer_has_a_row():
    def kinds(base):
        return {kind for each in base.__subclasses__() for kind in (each, *kinds(each))}

    answers()
    own = [kind for kind in kinds(Drawn) if kind is not Answering and kind.__module__.startswith("floatlab.")]
    assert {kind.__name__ for kind in own} <= set(ROWS)
    assert len({kind.__name__ for kind in own}) == len(own)  # rows are found by the name of the class


@pytest.mark.parametrize(
    ("found", "command"),
    [
        (lambda: fl.add("1.125", "0.12457275390625", "fp16"), "add 1.125 0.12457275390625 --fp16"),
        (lambda: fl.read("0.1", "fp16"), "show 0.1 --fp16"),
        (lambda: fl.less("1", "2", "fp16"), None),
        (lambda: fl.to_integer("2.5", format="fp16"), "toint 2.5 --fp16"),
        (lambda: fl.contrast(fl.fma("0.1", "10", "-1"), fl.multiply_then_add("0.1", "10", "-1")), "fma 0.1 10 -1"),
        (lambda: fl.sum(["2048", "1", "3"], format="fp16"), "sum 2048,1,3 --fp16"),
        (lambda: fl.attribute(["1", "0x1p-24"], None, "1.0"), "sum 1,0x1p-24 --observed 1.0"),
    ],
)
def test_pages_and_json_are_the_command_lines(found, command, capsys):
    answer = found()
    if command is None:
        assert json.loads(answer.to_json())["result"] == {"relation": "less", "holds": True}
        return
    for options, shown in (([], str(answer)), (["--json"], answer.to_json()), (["--svg", "-"], answer.svg())):
        main([*command.split(), *options])
        assert capsys.readouterr().out.rstrip("\n") == shown.rstrip("\n")


def test_derivations_come_back_from_their_json():
    for found in (fl.add(0.1, 0.2), fl.sqrt("2", "fp16", "RTZ"), fl.read("1/3", "e4m3")):
        assert fl.from_json(found.to_json()) == found
    for text in ("", "{}", "[1]", '{"schema": 1}'):
        with pytest.raises(fl.FileFormatError):
            fl.from_json(text)


def test_summaries_are_not_read_back():
    trained = fl.train("1.125", update="0.00041999", steps=3, remedies="plain")
    for answer in (trained, fl.attribute(["1", "2^-24"], ["1", "1"], "1.0", machines=[], targets=[])):
        with pytest.raises(fl.FileFormatError, match="is a summary, which cannot be read back"):
            fl.from_json(answer.to_json())


def test_printing_a_derivation_imports_no_numpy():
    script = (
        "import sys, floatlab as fl; print(fl.add(0.1, 0.2)); fl.less('1', '2').svg(); print('numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"
    assert "0.30000000000000004" in done.stdout


# What other libraries take.


@pytest.mark.parametrize("name", ["e4m3", "bf16", "fp32"])
def test_jax_takes_float_arrays(name):
    jnp = pytest.importorskip("jax.numpy")
    for shape in ((3,), (1, 3), ()):
        x = fl.FloatArray(np.resize([0.1, 3.3, 448.0], shape), name)
        for found in (jnp.asarray(x), jnp.array(x)):
            assert np.array_equal(np.asarray(found), x.values)
            assert found.dtype == np.float32


def test_torch_takes_float_arrays():
    torch = pytest.importorskip("torch")
    x = fl.FloatArray([0.1, 3.3, 448.0], "e4m3")
    for found in (torch.as_tensor(x), torch.asarray(x), torch.tensor(x)):
        assert found.tolist() == x.tolist()


def test_tensors_without_axes_are_numbers_of_their_dtype():
    torch = pytest.importorskip("torch")
    assert bits(fl.add(torch.tensor(0.1), torch.tensor(0.2)))[0] == "binary32"
    assert (
        bits(fl.add(torch.tensor(0.1, dtype=torch.bfloat16), torch.tensor(1.0, dtype=torch.bfloat16)))[0] == "bfloat16"
    )
    assert fl.add(torch.tensor(3), 0.5).result == fl.encode("3.5", "fp64")
    assert fl.sum(torch.tensor([1, 2])).result == fl.encode("3", "fp32") == fl.sum(np.array([1, 2])).result
    with pytest.raises(fl.LiteralError, match="truth value"):
        fl.add(torch.tensor(True), 0.5)
