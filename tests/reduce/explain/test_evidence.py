"""Pairs for which the diagnosis once named a cause without evidence, because that cause fits any result."""

from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.formats import parse_format
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.noise import multiply_exactly, noise_of
from floatlab.reduce.explain.operations.joint import diagnose_operation
from tests.reduce import blind_ways as ways
from tests.reduce.blind_cases import case

BF16 = ml_dtypes.bfloat16


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def flushing_sums(x, y):
    """Return x·y in binary32, added term by term; subnormal products and partial sums are flushed to zero."""
    total = np.zeros((x.shape[0], y.shape[1]), np.float32)
    for k in range(x.shape[1]):
        product = ways.flushed(x[:, k : k + 1] * y[k : k + 1], 2.0**-126).astype(np.float32)
        total = ways.flushed(total + product, 2.0**-126).astype(np.float32)
    return total


def test_sums_that_flush_are_simulated():
    x, y = normal(1, 12, 10) * np.float32(1e-19), normal(2, 10, 9) * np.float32(1e-19)
    found = diagnose(x, y, x @ y, flushing_sums(x, y))
    assert (found.status, found.names) == ("rounding", ("flush-to-zero",))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("fault", ["rolled", "noise", "zero", "tile", "ten times"])
def test_faults_of_tiny_products_are_not_flushing(fault):
    x, y = normal(1, 12, 10) * np.float32(1e-19), normal(2, 10, 9) * np.float32(1e-19)
    good = x @ y
    bad = {
        "rolled": np.roll(good, 1, 0),
        "noise": normal(3, 12, 9) * np.abs(good).mean(),
        "zero": 0 * good,
        "tile": np.where(np.arange(9) < 4, good[::-1], good),
        "ten times": 10 * good,
    }[fault]
    assert diagnose(x, y, good, bad).status in ("bug", "unknown")


@pytest.mark.parametrize("name", ["tf32", "bf16"])
def test_a_bias_keeps_its_digits_beside_rounded_inputs(name):
    x, w, bias = normal(4, 30, 40), normal(5, 20, 40), normal(6, 20)
    made = ways.narrow(x, name).astype(np.float32) @ ways.narrow(w, name).astype(np.float32).T + bias
    found = diagnose_operation("linear", x, w, x @ w.T + bias, made, bias=bias)
    assert (found.status, found.names) == ("rounding", ("inputs-rounded",))


def test_whole_numbers_are_no_sums_in_sixteen_bits():
    x, y = normal(7, 40, 360), normal(8, 360, 30)
    assert diagnose(x, y, x @ y, np.trunc(x @ y)).status != "rounding"


def test_one_number_does_not_prove_a_scale_or_digits():
    x, y = normal(9, 1, 1720), normal(10, 1720, 1)
    found = diagnose(x, y, x @ y, np.float32(1.01) * (x @ y))
    assert not {"inputs-quantized", "output-rounded"} & set(found.names)
    x, y = np.full((1, 6), 0.3), np.full((6, 49), 0.7)
    assert diagnose(x, y, x @ y, np.nextafter(x @ y, 9)).status != "bug"


def test_a_sum_of_zeros_is_zero():
    x, y = normal(11, 5, 40), normal(12, 40, 6)
    y[:, 5] = 0
    bad = x @ y
    bad[2, 5] = 2.0**-149
    assert diagnose(x, y, x @ y, bad).names == ("elements",)


def test_terms_that_cancel_leave_few_digits_without_any_rounding():
    x = np.concatenate([normal(13, 20, 1)] * 2, axis=1)
    y = np.concatenate([normal(14, 1, 30), -normal(14, 1, 30) * np.float32(1 + 2.0**-10)])
    assert "output-rounded" not in diagnose(x, y, x @ y, 2 * (x @ y)).names


def test_the_format_of_sums_is_named_where_two_results_are_of_two_formats():
    x, y = normal(15, 38, 32), normal(16, 32, 40)
    found = diagnose(x, y, x.astype(np.float64) @ y, x @ y)
    assert (found.status, found.names) == ("rounding", ("accumulator",))
    wide = x.astype(np.float64) @ y
    assert diagnose(x, y, wide, wide.astype(np.float32)).names == ("output-rounded",)


@pytest.mark.parametrize("steps", [128, 127.5])
def test_integers_of_other_scales(steps):
    x, y = normal(17, 30, 40), normal(18, 40, 30)
    made = [np.clip(np.rint(v / np.abs(v).max() * steps), -128, 127) * (np.abs(v).max() / steps) for v in (x, y)]
    found = diagnose(x, y, x @ y, (made[0] @ made[1]).astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("inputs-quantized",))


def test_a_zero_point():
    x, y = np.abs(normal(19, 30, 40)), normal(20, 40, 30)
    scale = x.max() / 255
    made = np.rint(x / scale) * scale, ways.quantized(y, 0)
    found = diagnose(x, y, x @ y, (made[0] @ made[1]).astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("inputs-quantized",))


def test_zeros_are_listed_and_not_a_rectangle_with_right_numbers():
    x, y = normal(21, 30, 20), normal(22, 20, 25)
    bad = x @ y
    bad[4:10, 5:9] = np.where(np.arange(24).reshape(6, 4) % 5, 0, bad[4:10, 5:9])
    found = diagnose(x, y, x @ y, bad)
    assert (found.names, found.causes[0].where) == (("elements",), tuple(map(tuple, np.argwhere(bad == 0).tolist())))


def test_one_zero_item_of_a_batch():
    x, y = normal(23, 4, 1), normal(24, 4, 5)
    bad = x[:, :, None] * y[:, None]
    bad[1] = 0
    found = diagnose_operation("einsum:bi,bj->bij", x, y, bad, x[:, :, None] * y[:, None])
    assert (found.names, found.causes[0].where) == (("region",), (((1, 2), (0, 1), (0, 5)),))


def test_a_narrow_file_of_one_number():
    x, y = normal(25, 1, 34), normal(26, 34, 1)
    assert diagnose(x, y, x @ y, (x @ y).astype(ml_dtypes.bfloat16)).names == ("output-rounded",)


@pytest.mark.parametrize("operation", ["dot", "sum"])
def test_one_exact_sum_that_is_off_by_rounding(operation):
    ones = np.ones(3, np.float32)
    off = np.nextafter(np.float32(3), np.float32(4))
    # No order of addition gives this number. A sum of ones that were divided and multiplied again may give it.
    found = diagnose_operation(operation, ones, None if operation == "sum" else ones, np.float32(3), off)
    assert found.status == "unknown"


def test_a_product_beyond_binary64():
    x, y = (abs(normal(seed, *shape)) * np.float64(1e300) for seed, shape in ((27, (4, 5)), (28, (5, 3))))
    with np.errstate(all="ignore"):
        found = diagnose(x, y, x @ y, np.zeros((4, 3)))
    assert found.causes[0].name == "nan"
    assert dict(found.causes[0].evidence)["product"] == "over 1.79769e+308"


def test_agreement_within_rounding_is_said():
    x, y = normal(29, 40, 50), normal(30, 50, 30)
    bad = x[:, :25] @ y[:25] + x[:, 25:] @ y[25:]
    bad[3, 4] += 1
    assert diagnose(x, y, x @ y, bad).first == "Yes: element (3, 4) of B is wrong; all others agree within rounding."
    joint = diagnose_operation("matmul", x[None], y[None], (x @ y)[None], bad[None])
    assert joint.first == "Yes: element (0, 3, 4) of B is wrong; all others agree within rounding."


def test_a_column_at_the_edge_that_no_order_makes():
    x, y = normal(31, 3, 8), normal(32, 8, 6)
    bad = x @ y
    bad[:, 4] += 50 * np.spacing(bad[:, 4])
    found = diagnose(x, y, bad, x @ y)
    assert found.first == "Yes: elements (0, 4), (1, 4), (2, 4) of A are wrong; all others agree."


@pytest.mark.parametrize("axis", [0, 1])
def test_one_line_far_off_beside_another_order(axis):
    x, y = normal(33, 32, 32), normal(34, 32, 40)
    good = x[:, :16] @ y[:16] + x[:, 16:] @ y[16:]
    bad = good.copy()
    line = (13, slice(None)) if axis == 0 else (slice(None), 13)
    # From 16 u·|x||y| on, no kernel's sums leave room for the errors of a rearranged product.
    bad[line] += 20 * 2.0**-24 * (np.sign(normal(37, 32, 40)) * (np.abs(x) @ np.abs(y)))[line]
    found = diagnose(x, y, x @ y, bad)
    assert (found.status, found.causes[0].side) == ("bug", "expected")
    assert found.causes[0].where == ((((13, 14), (0, 40)) if axis == 0 else ((0, 32), (13, 14))),)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("terms", [32, 700])
@pytest.mark.parametrize("line", [13, 31])
def test_one_line_in_another_order_is_right(line, terms):
    x, y = normal(35, 32, terms), normal(36, terms, 40)
    mixed = x @ y
    total = np.zeros(40, np.float32)
    for k in range(terms):
        total = total + x[line, k] * y[k]
    mixed[line] = total
    assert diagnose(x, y, sum(x[:, i::4] @ y[i::4] for i in range(4)), mixed).status == "rounding"


def test_quantised_terms_that_cancel_are_not_exact():
    totals = multiply_exactly(np.array([[3.0, -5.0, 1.0]]), np.array([[5.0], [3.0], [7.0]]), False)
    noise = noise_of(parse_format("fp32"))
    assert noise.is_exact(totals).all()
    assert noise.is_exact(totals, np.full((1, 1), 7.0)).all()
    # The terms of other inputs, whose sum is 0, need not be whole numbers.
    assert not noise.is_exact(totals, np.zeros((1, 1))).any()


def test_a_factor_needs_no_parts_of_inputs():
    made = case(8004, "small scale")
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert found.status == "unknown" or found.names == ("scale",)


def test_a_function_of_the_product_is_not_only_a_matter_of_precision():
    x, y = normal(41, 58, 56) / 7, normal(42, 56, 61) * 2
    tanh = diagnose(x, y, x @ y, np.tanh(x @ y))
    assert tanh.first == "Yes: B is tanh of the product."
    noise = diagnose(x, y, x @ y, x @ y * (1 + np.float32(0.02) * normal(43, 58, 61)))
    assert "function" not in noise.first


def waves(seed, m, k, n, kind):
    """Return factors whose sums resonate in a few elements."""
    draw = np.random.default_rng(seed)
    x = np.cos(np.outer(np.arange(m), np.arange(k)) * draw.uniform(0.02, 0.4))
    return x.astype(kind), np.sin(np.outer(np.arange(k), np.arange(n) + 1) * draw.uniform(0.1, 1)).astype(kind)


@pytest.mark.parametrize(("seed", "kind"), [(3, np.float64), (8, np.float32)])
def test_elements_of_sums_that_resonate_are_not_wrong(seed, kind):
    x, y = waves(seed, 90, 256, 60, kind)
    serial = np.zeros((90, 60), kind)
    for k in range(256):
        serial += x[:, k : k + 1] * y[k]
    panels = x[:, :128] @ y[:128] + x[:, 128:] @ y[128:]
    assert diagnose(x, y, panels, serial).status == "rounding"
    serial[40, 30] += 200 * np.finfo(kind).eps * float(np.abs(x[40]) @ np.abs(y[:, 30]))
    found = diagnose(x, y, panels, serial)
    assert (found.status, [cause.where for cause in found.causes]) == ("bug", [((40, 30),)])


def test_equal_products_of_other_inputs_are_off_by_more_than_rounding():
    x, y = normal(1, 20, 64), normal(2, 64, 30)
    same = (x * (1 + np.float32(1e-3) * normal(3, 20, 64))) @ y
    said = "All numbers are equal, but both are off by more than rounding, as with quantised inputs."
    assert diagnose(x, y, same, same.copy()).first == said


@pytest.mark.parametrize("fault", [None, "row", "factor"])
def test_stochastic_rounding_is_no_fault(fault):
    x, y = normal(31, 30, 25), normal(32, 25, 40)
    exact = x.astype(np.float64) @ y
    step = 2.0 ** (np.frexp(exact)[1] - 8)
    made = step * np.floor(exact / step + np.random.default_rng(33).random(exact.shape))
    if fault == "row":
        made[7] = step[7] * np.round((exact[7] + 0.02 * normal(34, 40) * np.abs(exact).mean()) / step[7])
    if fault == "factor":
        made = step * np.floor(1.01 * exact / step + np.random.default_rng(33).random(exact.shape))
    found = diagnose(x, y, x @ y, made.astype(np.float32))
    assert (found.status == "rounding") == (fault is None)


def test_elements_beside_others_that_are_right_to_the_last_bits():
    x, y = normal(35, 9, 30), normal(36, 30, 1)
    bad = (x @ y).copy()
    bad[:5] += 0.05 * np.abs(bad).mean() * (1 + np.arange(5))[:, None].astype(np.float32) ** 2
    found = diagnose(x, y, x @ y, bad)
    assert (found.status, found.causes[0].side) == ("bug", "expected")
    rounded = x + np.float32(0.01) * normal(37, 9, 30)  # as if the inputs were less precise
    assert diagnose(x, y, x @ y, rounded @ y).status == "unknown"


def test_a_column_of_zeros_among_subnormal_numbers_is_not_flushed():
    x, y = normal(38, 20, 12) * np.float32(1e-19), normal(39, 12, 9) * np.float32(1e-20)
    bad = (x @ y).copy()
    bad[:, 4] = 0
    assert diagnose(x, y, x @ y, bad).first == "Yes: rows 0–19, column 4 of B are zero; all others agree."


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("size", [16, 32, 50])
def test_sums_that_are_stored_after_each_block(dtype, size):
    rng = np.random.default_rng([80, size])
    x, y = (rng.standard_normal(shape).astype(dtype) for shape in ((20, 200), (200, 20)))
    a, b = x.astype(np.float32), y.astype(np.float32)
    total = np.zeros((20, 20), np.float32)
    for low in range(0, 200, size):
        total = (total + a[:, low : low + size] @ b[low : low + size]).astype(dtype).astype(np.float32)
    found = diagnose(x, y, (a @ b).astype(dtype), total.astype(dtype))
    assert (found.status, found.names) == ("rounding", ("accumulator",)), found.first
    assert "stored after each block" in dict(found.causes[0].evidence)


@pytest.mark.parametrize(("shape", "size"), [((5, 146, 10), 16), ((30, 128, 30), 32)])
def test_sums_of_blocks_in_bfloat16_that_are_added_in_binary32(shape, size):
    m, k, n = shape
    rng = np.random.default_rng([81, size])
    x, y = rng.standard_normal((m, k)).astype(BF16), rng.standard_normal((k, n)).astype(BF16)
    a, b = x.astype(np.float32), y.astype(np.float32)
    total = sum((a[:, i : i + size] @ b[i : i + size]).astype(BF16).astype(np.float32) for i in range(0, k, size))
    found = diagnose(x, y, (a @ b).astype(BF16), total.astype(BF16))
    assert (found.status, found.names) == ("rounding", ("partials",)), found.first


def test_all_sums_or_those_of_blocks_are_named_together():
    rng = np.random.default_rng(82)
    x, y = rng.standard_normal((20, 173)).astype(BF16), rng.standard_normal((173, 20)).astype(BF16)
    a, b = x.astype(np.float32), y.astype(np.float32)
    order, edges, total = rng.permutation(173), (0, 11, 47, 120, 173), 0
    for low, high in pairwise(edges):  # blocks of different lengths, in an unusual order
        terms = order[low:high]
        total = total + (a[:, terms] @ b[terms]).astype(BF16).astype(np.float32)
    found = diagnose(x, y, (a @ b).astype(BF16), total.astype(BF16))
    assert found.status in ("rounding", "unknown")
    if found.status == "rounding":
        assert set(found.names) == {"accumulator", "partials"}
        assert "all sums of B, or those of blocks, in bfloat16" in found.first


@pytest.mark.slow
def test_exchanged_terms_are_no_rounding_in_sixteen_bits():
    claims = []
    for seed in range(3):
        rng = np.random.default_rng([83, seed])
        x, y = (1 + rng.random(shape) / 8 for shape in ((40, 30), (30, 40)))
        x, y = x.astype(BF16), y.astype(BF16)
        a, b = x.astype(np.float32), y.astype(np.float32)
        swapped = a.copy()
        swapped[:, [3, 7]] = swapped[:, [7, 3]]
        claims.append(diagnose(x, y, (a @ b).astype(BF16), (swapped @ b).astype(BF16)).names)
    assert not any("accumulator" in names or "partials" in names for names in claims)


@pytest.mark.parametrize("seed", range(6))
def test_a_few_outputs_that_are_cut_off(seed):
    rng = np.random.default_rng([84, seed])
    x, y = rng.standard_normal((5, 12)).astype(np.float32), rng.random((12, 3), np.float32)
    x[:, 0] += 1
    cut = ((x @ y).view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    found = diagnose(x, y, x @ y, cut)
    assert (found.status, found.names) == ("rounding", ("output-rounded",)), found.first
    assert ("rounding", "RTZ") in found.causes[0].evidence


@pytest.mark.slow
def test_selected_rows_of_quantised_weights_have_no_wrong_elements():
    rng = np.random.default_rng(85)
    weights = rng.integers(-9, 10, (90, 47)).astype(np.float32)
    grid = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6]) * 2.0
    nearest = np.abs(np.abs(weights)[..., None] - grid).argmin(axis=-1)
    quantised = (np.sign(weights) * grid[nearest]).astype(BF16)
    x = np.zeros((54, 90), BF16)
    x[np.arange(54), rng.permutation(90)[:54]] = 1
    good, made = (x.astype(np.float32) @ y.astype(np.float32) for y in (weights, quantised))
    assert diagnose(x, weights.astype(BF16), good.astype(BF16), made.astype(BF16)).status in ("unknown", "rounding")


def test_flushing_cannot_make_a_sum_of_positive_terms_larger():
    rng = np.random.default_rng(86)
    x, y = (np.exp(rng.standard_normal(shape) - 3).astype(np.float16) for shape in ((8, 31), (31, 7)))
    y = (y / 64).astype(np.float16)
    good = (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)
    bad = good.copy()
    bad[3, 6] *= np.float16(1.02)
    found = diagnose(x, y, good, bad)
    assert (found.status, found.names, found.causes[0].where) == ("bug", ("elements",), ((3, 6),)), found.first


def test_a_product_of_other_inputs_with_a_few_far_errors():
    rng = np.random.default_rng(87)
    x, y, other = np.exp(rng.standard_normal((12, 98))), rng.random((98, 33)), np.exp(rng.standard_normal((12, 98)))
    other[6] *= 40
    x, y, other = (each.astype(np.float32) for each in (x, y, other))
    found = diagnose(x, y, x @ y, other @ y)
    assert found.status in ("bug", "unknown")
    assert not {"region", "elements"} & set(found.names), found.first


def test_a_lookup_of_rounded_rows_is_an_output_rounding():
    rng = np.random.default_rng(88)
    x = np.eye(54, dtype=np.float32)[rng.integers(0, 54, 9)]
    y = np.exp(normal(88, 54, 16))
    found = diagnose(x, y, x @ y, x @ y.astype(np.float16).astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("output-rounded",)), found.first


def test_rounded_inputs_are_proved_by_the_bits_of_a_coarse_output():
    x, y = np.abs(normal(89, 21, 8)), normal(90, 8, 37)
    coarse = [each.astype(BF16).astype(np.float32) for each in (x, y)]
    found = diagnose(x, y, x @ y, (coarse[0] @ coarse[1]).astype(BF16).astype(np.float32))
    assert (found.status, found.names) == ("rounding", ("inputs-rounded", "output-rounded")), found.first


@pytest.mark.parametrize(
    ("low", "name"),
    [
        (lambda x, y: x.astype(BF16).astype(np.float32) @ y, "inputs-rounded"),
        (lambda x, y: (x @ y).astype(BF16), "output-rounded"),
    ],
)
def test_rows_in_another_precision_are_not_called_wrong(low, name):
    x, y = normal(91, 17, 30), normal(92, 30, 40)
    mixed = x @ y
    mixed[:8] = low(x[:8], y)
    found = diagnose(x, y, x @ y, mixed)
    assert (found.status, found.names, found.causes[0].where) == ("rounding", (name,), (((0, 8), (0, 40)),)), (
        found.first
    )
    assert "in rows 0–7, columns 0–39 of B" in found.first
    mixed[:8] *= np.float32(1.05)
    assert diagnose(x, y, x @ y, mixed).status == "bug"


def test_a_batch_of_which_one_half_is_in_another_precision():
    x, y = normal(93, 3, 17, 30), normal(94, 3, 30, 40)
    mixed = x @ y
    mixed[1, :8] = (x[1, :8] @ y[1]).astype(BF16)
    found = fl.compare(x @ y, mixed, inputs=(x, y)).diagnosis
    assert (found.status, found.names) == ("rounding", ("output-rounded",)), found.first
    assert found.causes[0].where == (((1, 2), (0, 8), (0, 40)),)


@pytest.mark.parametrize("factors", [np.sqrt(40.0), np.linspace(1, 9, 30)[:, None] / 7])
def test_factors_of_binary64_widen_a_result_in_binary32(factors):
    x, y = normal(95, 30, 12), normal(96, 12, 36)
    found = diagnose(x, y, x @ y, (x @ y) * factors)
    assert (found.status, found.names) == ("bug", ("scale",)), found.first


@pytest.mark.parametrize("part", [np.s_[30:], np.s_[:, 20:]])
def test_a_missing_bias_is_not_a_tie_of_a_product_that_is_rounded_before_the_bias(part):
    rng = np.random.default_rng(99)
    x = np.exp(rng.standard_normal((60, 22))).astype(BF16)
    w = (rng.standard_normal((46, 22)) * 10.0 ** rng.uniform(-4, 4, 22)).astype(BF16)
    bias = rng.standard_normal(46).astype(BF16)
    rounded = (x.astype(np.float32) @ w.astype(np.float32).T).astype(BF16)
    added = np.broadcast_to(bias, rounded.shape).copy()
    good = (rounded.astype(np.float32) + added.astype(np.float32)).astype(BF16)
    added[part] = 0
    bad = (rounded.astype(np.float32) + added.astype(np.float32)).astype(BF16)
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    assert found.status == "bug", found.first
    wrong = [cause for cause in found.causes if cause.name == "elements"]
    assert wrong
    assert all(added[each] == 0 for each in wrong[0].where)


@pytest.mark.parametrize("dtype", [BF16, np.float16, np.float32])
@pytest.mark.parametrize("moved", [False, True])
def test_half_of_the_rows_with_another_bias_are_not_another_product(dtype, moved):
    x, w, bias = (
        (normal(98, 60, 40) * 0.02).astype(dtype),
        normal(99, 24, 40).astype(dtype),
        normal(100, 24).astype(dtype),
    )
    rounded = (x.astype(np.float32) @ w.astype(np.float32).T).astype(dtype).astype(np.float32)
    good = (rounded + bias.astype(np.float32)).astype(dtype)
    bad = good.copy()
    bad[30:] = (rounded[30:] + np.roll(bias.astype(np.float32), 1) * moved).astype(dtype)
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    assert found.status == "bug", found.first
    assert "rows 30–59" in found.first
    assert "not-the-product" not in found.names


@pytest.mark.parametrize("shape", [((30, 50), (50,)), ((50,), (50, 30))])
def test_numbers_of_a_vector_are_moved(shape):
    x, y = (normal(101 + i, *each) for i, each in enumerate(shape))
    for moved in (np.roll(x @ y, 3), (x @ y)[::-1].copy(), np.random.default_rng(1).permutation(x @ y)):
        found = fl.compare(x @ y, moved, inputs=(x, y)).diagnosis
        assert found.names in (("rows-moved",), ("columns-moved",)), found.first


def test_images_in_another_order_after_a_convolution():
    x, w = normal(106, 2, 8, 12, 12), normal(107, 14, 8, 1, 1)
    made = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
    found = fl.compare(made, made[::-1].copy(), inputs=(x, w), op="conv2d").diagnosis
    assert (found.status, found.names) == ("bug", ("rows-moved",)), found.first
