"""Inputs in two formats, in blocks with scales, results stored with a scale, and faults beside rounded inputs."""

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.input_changes.one_input import changes_of
from floatlab.reduce.explain.operations.joint import diagnose_operation
from tests.reduce import blind_inputs as blind
from tests.reduce import blind_ways as ways
from tests.reduce.blind_cases import INPUT_KINDS, cases
from tests.reduce.blind_trial import Trial

BF16 = ml_dtypes.bfloat16


@pytest.fixture
def factors():
    rng = np.random.default_rng(21)
    return rng.standard_normal((24, 64)).astype(np.float32), rng.standard_normal((64, 20)).astype(np.float32)


def made(x, y):
    return (ways.f64(x) @ ways.f64(y)).astype(np.float32)


def evidence_of(found):
    return dict(found.causes[0].evidence)


def test_two_formats_are_named(factors):
    x, y = factors
    found = diagnose(x, y, x @ y, made(ways.narrow(x, "bf16"), np.clip(y, -448, 448).astype(blind.E4M3)))
    assert (found.status, found.names) == ("rounding", ("inputs-rounded",))
    assert evidence_of(found) == {"x": "bfloat16", "y": "e4m3fn"}
    assert found.first.endswith("inputs rounded in B (first input bfloat16, second input e4m3fn).")


def test_two_formats_are_named_if_most_elements_of_a_bfloat16_result_are_right():
    rng = np.random.default_rng(5)
    x, y = rng.random((3, 404)).astype(np.float32), rng.random((404, 55)).astype(np.float32)
    narrow = blind.scaled(x, blind.E5M2, 57344.0, 1) @ blind.scaled(y.T, blind.E4M3, 448.0, 1).T
    rounded = narrow.astype(np.float32).astype(ml_dtypes.bfloat16).astype(np.float32)
    found = diagnose(x, y, x @ y, rounded)
    assert found.status == "rounding"
    assert set(found.names) == {"inputs-quantized", "output-rounded"}, found.first


@pytest.mark.parametrize(("name", "said"), [("mxfp8", "mxfp8_e4m3"), ("mxfp6", "mxfp6_e3m2"), ("nvfp4", "nvfp4")])
def test_blocks_are_named(factors, name, said):
    x, y = factors
    found = diagnose(x, y, x @ y, made(blind.MX[name](ways.f64(x)), blind.MX[name](ways.f64(y.T)).T))
    assert (found.status, found.names) == ("rounding", ("inputs-quantized",))
    assert evidence_of(found)["format"] == said


def test_a_result_stored_with_a_scale(factors):
    x, y = factors
    found = diagnose(x, y, x @ y, blind.integers(ways.f64(x @ y), 127).astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("output-rounded",))
    assert evidence_of(found) == {"format": "int8", "scale per": "tensor"}


def test_an_element_beyond_half_a_step_of_a_stored_result_is_wrong(factors):
    x, y = factors
    stored = blind.integers(ways.f64(x @ y), 127)
    step = np.abs(stored).max() / 127
    stored[3, 4] += 2 * step if stored[3, 4] < 0 else -2 * step
    found = diagnose(x, y, x @ y, stored.astype(np.float32))
    assert found.first.startswith("Yes: element (3, 4) of B is wrong")


def test_whole_numbers_are_not_stored_with_a_scale():
    x, y = np.full((6, 3), 7, np.float32), np.arange(18, dtype=np.float32).reshape(3, 6)
    wrong = x @ y
    wrong[2, 2] += 1
    assert diagnose(x, y, x @ y, wrong).status in ("bug", "unknown")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", ["tf32", "bf16"])
def test_faults_beside_rounded_inputs(factors, name):
    x, y = factors
    a, b = (ways.narrow(side, name).astype(np.float32) for side in (x, y))
    product = a @ b
    for fault, bad, where in (
        ("terms-missing", a[:, :-2] @ b[:-2], ((62, 64),)),
        ("rows-moved", product[[1, 0, *range(2, 24)]], ((0, 1), (1, 0))),
        ("columns-moved", np.roll(product, 1, 1), tuple((j, (j - 1) % 20) for j in range(20))),
    ):
        found = diagnose(x, y, x @ y, bad)
        assert (found.status, set(found.names)) == ("bug", {"inputs-rounded", fault})
        assert next(each.where for each in found.causes if each.name == fault) == where


def test_a_result_rounded_before_and_after_the_bias():
    rng = np.random.default_rng(3)
    x, w, bias = (rng.standard_normal(shape).astype(ways.BFLOAT16) for shape in ((30, 40), (20, 40), (20,)))
    product = x.astype(np.float32) @ w.astype(np.float32).T
    single = bias.astype(np.float32)
    once = (product + single).astype(ways.BFLOAT16)
    twice = (product.astype(ways.BFLOAT16).astype(np.float32) + single).astype(ways.BFLOAT16)
    found = diagnose_operation("linear", x, w, once, twice, bias=bias)
    assert (found.status, found.names) == ("rounding", ("output-rounded",))
    assert evidence_of(found)["rounding"] == "before and after the bias"


def test_three_numbers_are_no_evidence_for_two_formats():
    rng = np.random.default_rng(5)
    x, y = rng.standard_normal((1, 6)).astype(np.float32), rng.standard_normal((6, 2)).astype(np.float32)
    noisy = (x @ y) * (1 + rng.uniform(-0.03, 0.03, (1, 2))).astype(np.float32)
    assert diagnose(x, y, x @ y, noisy).status != "rounding"


def test_every_change_applies_to_some_lines_as_to_the_whole_input():
    matrix = np.random.default_rng(8).standard_normal((150, 200))
    lines = np.array([0, 3, 127, 128, 149])
    for each in changes_of(matrix, fl.parse_format("fp32")):
        assert np.array_equal(each.lines_of(matrix, lines), each.change(matrix, matrix, 1)[lines]), each.text


def test_numbers_whose_scale_underflows_in_binary32_stay_finite():
    matrix = np.array([[1e-44, 0.0], [1.0, 2.0]]).astype(np.float32).astype(np.float64)
    for each in changes_of(matrix, fl.parse_format("fp32")):
        if each.text.startswith(("int8", "int4", "uint8")):
            assert np.isfinite(each.change(matrix, matrix, 1)).all(), each.text


def test_changes_agree_with_ml_dtypes():
    matrix = np.random.default_rng(9).standard_normal((5, 64)).astype(np.float32).astype(np.float64)
    found = {each.text: each.change(matrix, matrix, 1) for each in changes_of(matrix, fl.parse_format("fp32"))}
    for text, other in (
        ("bfloat16", matrix.astype(ml_dtypes.bfloat16)),
        ("e5m2", matrix.astype(ml_dtypes.float8_e5m2)),
        ("int8 with one scale per row", blind.integers(matrix, 127, 1)),
        ("uint7 with one scale per tensor with a zero", blind.integers(matrix, 127, zero=True)),
        ("mxfp4", blind.MX["mxfp4"](matrix)),
        ("mxfp8_e4m3", blind.MX["mxfp8"](matrix)),
    ):
        assert np.array_equal(found[text], ways.f64(other)), text


@pytest.mark.parametrize("seed", [1, 3, 5])
def test_one_wrong_element_is_no_tie_of_an_input(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((29, 27), (27, 33)))  # many ties in E4M3
    narrow = blind.scaled(x, blind.E4M3, 448.0, 1) @ blind.scaled(y.T, blind.E4M3, 448.0, 1).T
    bad = narrow.astype(np.float32)
    bad[7, 11] += 0.03 * bad.std()
    assert diagnose(x, y, x @ y, bad).status in ("bug", "unknown")
    bad[7, 11] += 0.5 * bad.std()
    found = diagnose(x, y, x @ y, bad)
    assert [each.where for each in found.causes if each.name == "elements"] == [((7, 11),)], found.first


def test_a_tie_of_an_input_changes_a_column():
    rng = np.random.default_rng(2)
    x, y = rng.standard_normal((19, 14)).astype(np.float32), rng.integers(-127, 128, (14, 15)).astype(np.float32)
    y[0, 0], y[3, 2] = 127, 2.5
    coarse = blind.integers(x, 127)
    narrow = coarse @ blind.integers(y, 127)
    narrow[:, 2] += coarse[:, 3]  # 2.5 becomes 3, not 2
    found = diagnose(x, y, x @ y, narrow.astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("inputs-quantized",)), found.first


@pytest.mark.parametrize("is_wrong", [False, True])
@pytest.mark.parametrize("seed", [3, 5, 16])
def test_ties_of_a_third_of_the_columns_are_no_wrong_elements(seed, is_wrong):
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(-8, 9, shape).astype(np.float32) for shape in ((42, 11), (11, 15)))
    largest = np.abs(y).max(axis=0)  # if it is 8, 4 is 3.5 times the scale
    single, double = (y / (largest.astype(number) / number(7)) for number in (np.float32, np.float64))
    for quotients in (single, double, double + 1e-6 * rng.choice([-1, 1], y.shape)):
        narrow = x @ (np.rint(quotients).astype(np.float32) * (largest / np.float32(7)))
        narrow[38, 11] += 40 * is_wrong
        found = diagnose(x, y, x @ y, narrow)
        assert set(found.names) == ({"inputs-quantized", "elements"} if is_wrong else {"inputs-quantized"})
        assert [each.where for each in found.causes if each.name == "elements"] == [((38, 11),)] * is_wrong


@pytest.mark.parametrize("output", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("seed", range(4))
def test_one_wrong_element_is_told_from_rows_that_depend_on_ties(seed, output):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16) for shape in ((30, 70), (70, 25)))
    narrow = [np.rint(each / (scale := np.abs(each).max(axis=axis, keepdims=True) / np.float32(127))) * scale
              for each, axis in ((x.astype(np.float32), 1), (y.astype(np.float32), 0))]  # fmt: skip
    bad = (narrow[0] @ narrow[1]).astype(output)
    bad[9, 2] *= -1.5
    found = diagnose(x, y, x.astype(np.float32) @ y.astype(np.float32), bad)
    assert [each.where for each in found.causes if each.name == "elements"] == [((9, 2),)], found.first


def test_truncated_sums_are_no_quantisation_whose_ties_explain_the_rest():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((100, 800)) + 3, np.abs(rng.standard_normal((800, 1)))
    x, y = x.astype(np.float32), y.astype(np.float32)
    total = np.zeros((100, 1), np.float32)
    for k in rng.permutation(800):
        exact = total + x[:, k : k + 1].astype(np.float64) * y[k : k + 1].astype(np.float64)
        near = exact.astype(np.float32)
        total = np.where(np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, np.float32(0)), near)
    assert "inputs-quantized" not in diagnose(x, y, x @ y, total).names


@pytest.mark.parametrize("fault", ["bias", "scale", "rows-moved"])
@pytest.mark.parametrize("seed", range(2))
def test_a_fault_of_all_elements_beside_quantised_numbers_of_16_bits(seed, fault):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(shape).astype(ml_dtypes.bfloat16).astype(np.float32) for shape in ((20, 96), (96, 25)))
    scales = np.abs(x).max(axis=1)[:, None] / np.float32(127), np.abs(y).max(axis=0) / np.float32(127)
    bad = (np.rint(x / scales[0]) * scales[0]) @ (np.rint(y / scales[1]) * scales[1])  # some quotients are ties
    made = {"bias": bad + rng.standard_normal(25).astype(np.float32) * 9, "scale": bad / 2}
    found = diagnose(x, y, x @ y, made.get(fault, bad[[1, 0, *range(2, 20)]]))
    assert (found.status, set(found.names)) == ("bug", {"inputs-quantized", fault}), found.first


@pytest.mark.parametrize("bits", [8, 4])
@pytest.mark.parametrize("seed", range(3))
def test_blocks_of_local_models_are_named(seed, bits):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((14, 96)).astype(np.float32), rng.standard_normal((96, 20)).astype(np.float32)
    blocks = y.reshape(3, 32, 20)
    largest = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
    scale = np.abs(largest) / np.float32(127) if bits == 8 else largest / np.float32(-8)
    codes = np.rint(blocks / scale) if bits == 8 else np.minimum(np.floor(blocks / scale + np.float32(8.5)), 15) - 8
    stored = (codes * scale.astype(np.float16).astype(np.float32)).reshape(y.shape)
    found = diagnose(x, y, x @ y, x @ stored)
    assert (found.status, found.names) == ("rounding", ("inputs-quantized",)), found.first
    assert evidence_of(found)["format"] == f"q{bits}_0:ggml"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_blind_inputs(kind):
    trial = Trial()
    for case in cases(3, start=700, kind=kind):
        trial.add(case)
    assert not trial.wrong
    assert trial.status >= 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", INPUT_KINDS)
def test_many_blind_inputs(kind):
    trial = Trial()
    for case in cases(40, start=300_000, kind=kind):
        trial.add(case)
    assert len(trial.wrong) <= 1, trial.summary()
    assert trial.status >= 0.85 * trial.cases, (trial.summary(), trial.missed)


def int8_per_column(values):
    scale = np.abs(values).max(axis=0) / np.float32(127)
    return np.rint(values / scale) * scale


@pytest.mark.parametrize("seed", [1, 5, 7])
def test_missing_terms_beside_weights_in_int8(seed):
    rng = np.random.default_rng([90, seed])
    x = rng.standard_normal((16, 64)).astype(BF16).astype(np.float32)
    y = rng.standard_normal((64, 32)).astype(BF16).astype(np.float32)  # a few numbers are ties of int8
    weights = int8_per_column(y)
    found = diagnose(x.astype(BF16), y.astype(BF16), x @ weights, x[:, :-8] @ weights[:-8])
    causes = {each.name: each for each in found.causes}
    assert (found.status, set(causes)) == ("bug", {"inputs-quantized", "terms-missing"}), found.first
    assert causes["terms-missing"].where == ((56, 64),)
    assert dict(causes["inputs-quantized"].evidence)["inputs"] == "y"
