"""Faults that equal bits elsewhere confirm, and factors that every row and column shows."""

import ml_dtypes
import numpy as np
import pytest

from floatlab.reduce.explain import grid
from floatlab.reduce.explain.diagnosis import diagnose
from tests.reduce.blind_cases import case

BF16 = ml_dtypes.bfloat16


def single(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def tall():
    rng = np.random.default_rng(0)
    return np.abs(single(rng, 200, 8)), np.abs(single(rng, 8, 7))


def test_an_element_beside_equal_bits_is_wrong_and_no_rearranged_product():
    x, y = tall()
    bad = x @ y
    bad[34, 1] *= np.float32(1 + 1e-5)
    found = diagnose(x, y, x @ y, bad)
    assert (found.status, found.causes[0].where) == ("bug", ((34, 1),))


def test_a_rearranged_product_changes_other_elements_too():
    x, y = tall()
    mean = x.mean(axis=0, keepdims=True)
    assert diagnose(x, y, x @ y, (x - mean) @ y + mean @ y).status != "bug"


@pytest.mark.parametrize("seed", [830008, 830010, 830024, 830041])
def test_a_factor_within_the_bounds_of_all_elements_is_named(seed):
    made = case(seed, "small scale")
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert (found.status, found.names) == ("bug", ("scale",))
    assert dict(found.causes[0].evidence)["factor"] != "1"


@pytest.mark.parametrize("seed", [830011, 830012])
def test_terms_that_are_too_large_for_flushing_exclude_it(seed):
    made = case(seed, "small element")
    assert diagnose(made.x, made.y, made.actual, made.expected).names == ("elements",)


def test_inputs_that_overflow_in_a_narrow_format_are_not_replayed(monkeypatch):
    finite = []
    ways = grid.CandidateGrid.ways

    def counted(self, sides):
        finite.extend(np.isfinite(grid.decode(each.codes, each.format)).all() for each in self.sides)
        return ways(self, sides)

    monkeypatch.setattr(grid.CandidateGrid, "ways", counted)
    made = case(820008, "eight_bits")
    assert diagnose(made.x, made.y, made.actual, made.expected).names == ("inputs-quantized",)
    assert all(finite)


@pytest.mark.parametrize("factor", [1 + 1e-6, 1 + 1e-4])
def test_a_factor_of_the_other_result_is_seen_bit_for_bit(factor):
    rng = np.random.default_rng(3)
    x, y = single(rng, 12, 20), single(rng, 20, 10)
    good = x @ y
    found = diagnose(x, y, good, good * np.float32(factor))
    assert (found.status, found.names, found.causes[0].side) == ("bug", ("scale",), "expected")


def test_a_bias_of_the_other_result_is_seen_bit_for_bit():
    rng = np.random.default_rng(4)
    x, y = single(rng, 3, 200), single(rng, 200, 30)
    good = x @ y
    found = diagnose(x, y, good + 2e-5 * single(rng, 1, 30), good)
    assert (found.status, found.names, found.causes[0].side) == ("bug", ("bias",), "actual")


def test_a_product_in_the_other_memory_order_is_found():
    rng = np.random.default_rng(7)
    x, y = single(rng, 7, 30), single(rng, 30, 12)
    made = (x @ y).ravel(order="F").reshape(7, 12)
    found = diagnose(x, y, (x[:, ::-1] @ y[::-1]), made)
    assert (found.status, found.names) == ("bug", ("transposed-output",))
    assert found.first == "Yes: B is the product with its columns stored one after the other, as if they were rows."


@pytest.mark.parametrize("offset", [100, 0])
def test_equal_bits_of_a_coarse_result_exclude_a_fast_product(offset):
    rng = np.random.default_rng(9)
    x = (offset + rng.standard_normal((40, 900))).astype(ml_dtypes.bfloat16).astype(np.float32)
    y = np.rint(5 * rng.standard_normal((900, 60))).astype(np.float32)  # the sums are exact
    good = (x @ y).astype(ml_dtypes.bfloat16)
    at = np.unravel_index(np.argmin(np.abs(good.astype(np.float32)) / (np.abs(x) @ np.abs(y))), good.shape)
    bad = good.copy()
    bad[at] = np.float32(good[at]) * 2 + 1
    found = diagnose(x.astype(ml_dtypes.bfloat16), y.astype(ml_dtypes.bfloat16), good, bad)
    assert (found.status, found.causes[0].where) == ("bug", (tuple(map(int, at)),)), found.first


def test_equal_rows_show_no_bias():
    rng = np.random.default_rng(8)
    x, y = 5 + rng.random((28, 40), np.float32), single(rng, 40, 20)
    found = diagnose(x, y, x @ y, np.full((28, 40), 4, np.float32) @ y)
    assert "bias" not in found.names


def test_sums_of_zeros_show_no_factor():
    x = np.float32([[0, 0], [0, 2.2517], [0.2997, 0], [0, 0], [0.0855, 0]])
    y = np.float32([[0.010447, 0.99973, 0.97631, 0.73757, 0.13782, 0.86718],
                    [0.98955, 0.00026685, 0.023693, 0.26243, 0.86218, 0.13282]])  # fmt: skip
    changed = x * np.float32([1, 1, 0.9798, 1, 0.8591])[:, None]
    assert "scale" not in diagnose(x, y, x @ y, changed @ y).names


def test_a_small_transposed_product_is_found():
    rng = np.random.default_rng(5)
    x, y = single(rng, 2, 300), single(rng, 300, 2)
    assert diagnose(x, y, x @ y, np.ascontiguousarray((x[:, ::-1] @ y[::-1]).T)).names == ("transposed-output",)


@pytest.mark.parametrize(
    ("kind", "seed", "names"),
    [
        ("tf32 and region", 810013, {"inputs-rounded", "region"}),  # most sums are zeros
        ("inputs_rounded", 820006, {"inputs-rounded"}),  # beyond the largest number, toward zero
        ("small bias", 830001, {"bias"}),  # the zeros of sparse inputs show it
        # One number of X is the middle between two of TF32, so one row depends on the rounding of ties.
        ("narrow_and_fault", 1900017, {"inputs-rounded", "rows-moved"}),
        ("unrelated", 940002, {"not-the-product"}),  # 15 of 209 elements are right by chance
        ("unrelated", 950003, {"not-the-product"}),  # the zeros of sparse inputs are right
        ("region", 1030000, {"region"}),  # one element of the rectangle is right by chance
        ("region", 1200033, {"region"}),  # four sums of one term are right by chance
        ("small_blocks", 940007, {"inputs-quantized"}),  # in all rows but one, the blocks round as e4m3 does
        ("small scale", 10900032, {"scale"}),  # many exact zeros make the median error small
        ("tf32 and bias", 11000032, {"bias", "inputs-rounded"}),  # tf32 matters only in the rows of large numbers
        ("two_formats", 1030000, {"inputs-rounded"}),  # only one column has subnormal numbers of binary16
    ],
)
def test_blind_cases_that_were_missed(kind, seed, names):
    made = case(seed, kind)
    assert set(diagnose(made.x, made.y, made.actual, made.expected).names) == names


@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("order", 1300006),  # the permuted terms of one element have large partial sums
        ("inputs_rounded", 1300035),  # numbers of binary16 that differ by 0 or 1 ulp
        ("dynamic", 1700034),  # ten numbers fit int8 with one scale per row by chance
        ("small_blocks", 1700030),  # three numbers
        ("stored_with_scale", 1400017),  # only two numbers are not 0
        ("stored_with_scale", 10000022),  # only the largest number of each row is not 0
        ("stored_with_scale", 11000013),  # the other column of each row is far smaller, and became 0
        ("single", 1300126),  # all numbers but one are 0
        ("inputs_rounded", 10300003),  # a bias of each row, which has two numbers, leaves smaller errors than the model
        (
            "small scale",
            10700026,
        ),  # beside inputs of another precision, a bias explains the errors, but so does a factor
        ("two_formats", 1300033),  # two rows of bfloat16 numbers are below the normal numbers of binary16
    ],
)
def test_blind_cases_that_were_called_a_bug(kind, seed):
    made = case(seed, kind)
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert found.status != "bug", found.first


def test_one_number_that_is_off_by_an_ulp_does_not_show_flushing():
    made = case(11800061, "stored")  # sums stored in binary16; a simulation with flushing gives the same number
    assert "flush-to-zero" not in diagnose(made.x, made.y, made.actual, made.expected).names


def test_int4_that_loses_a_term_may_also_be_a_missing_term():
    made = case(10600019, "terms_missing")  # int4 also changes x, but only the factors of the lost term
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert found.status == "unknown", found.first


def test_zeros_exclude_a_fast_product():
    made = case(810013, "small scale")
    assert "fast-product" not in diagnose(made.x, made.y, made.actual, made.expected).names


def test_inputs_that_lose_only_whole_terms_may_also_lack_them():
    rng = np.random.default_rng(6)
    x, y = rng.choice([-7, 7], (30, 40)).astype(np.float32), single(rng, 40, 20)
    x[:, 0] = rng.uniform(-0.2, 0.2, 30)
    found = diagnose(x, y, x @ y, x[:, 1:] @ y[1:])
    assert (found.status, found.names) == ("unknown", ())
    assert "missing terms in B, or inputs quantised" in found.first


def test_the_last_row_of_each_of_many_tiles_is_a_region():
    rng = np.random.default_rng(7)
    x, y = single(rng, 170, 30), single(rng, 30, 12)
    bad = x @ y
    bad[7::8] = 0
    found = diagnose(x, y, x @ y, bad)
    assert (found.names, len(found.causes[0].where)) == (("region",), 21)


def test_a_rounded_result_plus_a_bias_is_related_to_the_product():
    rng = np.random.default_rng(8)
    x, y = np.abs(single(rng, 20, 8)), np.abs(single(rng, 8, 21))
    bad = (x @ y).astype(BF16).astype(np.float32) + 5 * single(rng, 1, 21)
    assert diagnose(x, y, x @ y, bad).names in ((), ("bias",), ("bias", "output-rounded"))


def test_zero_rows_are_neither_evidence_nor_a_warning():
    rng = np.random.default_rng(9)
    x, y = single(rng, 30, 40), single(rng, 40, 20)
    x[[1, 29]], y[:, 0] = 0, 0
    with np.errstate(all="raise"):
        assert diagnose(x, y, x @ y, x[:, ::-1] @ y[::-1]).names == ("order",)
        bad = x @ y
        bad[1, 1] = 1e-3
        assert diagnose(x, y, x @ y, bad).causes[0].where == ((1, 1),)


def test_one_flushed_number_is_no_bias_of_a_row_of_two():
    made = case(8900013, "stored_with_scale")  # the other number of the row is too large to show such a bias
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert "bias" not in found.names, found.first
