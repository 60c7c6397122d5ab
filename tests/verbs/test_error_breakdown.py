"""The errors of all roundings of a short sum, in ulps of the format of each."""

from fractions import Fraction

import pytest

from floatlab import dot
from floatlab.reduce.results.presets import PRESETS
from floatlab.verbs.reduce.error_breakdown import error_contributions


@pytest.mark.parametrize(
    ("products", "accumulator"),
    [("fp16", "fp32"), ("bf16", "fp32"), ("fp32", "fp32"), ("fp32", "fp64"), ("bf16", "fp16"), ("fp16", "fp64")],
)
def test_a_product_rounded_alone_misses_half_an_ulp_of_its_own_format_at_most(products, accumulator):
    found = dot(*PRESETS["forum"].data, format="fp32", products=products, accumulator=accumulator)
    entries = error_contributions(found)
    assert {each.value.format for each in entries[:4]} == {found.adder.products}
    assert all(abs(each.error) <= each.value.ulp.as_fraction() * Fraction(1, 2) for each in entries)
    assert sum(each.error for each in entries) == found.error


def test_a_product_that_the_accumulator_does_not_hold_is_what_the_accumulator_makes_of_it():
    found = dot([3], [0.1], format="fp16", products="fp32"), dot([3, 0], [0.1, 0], format="fp16", products="fp32")
    assert [error_contributions(each)[0].value.format.name for each in found] == ["binary16", "binary16"]
