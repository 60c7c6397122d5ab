"""Tables of names on pages that are too narrow for them."""

import pytest

from floatlab.page.model import Page, Table
from floatlab.page.text_layout import to_text

HEADER = ("tensor", "shape", "e4m3/tensor", "mxfp4", "recommended")


def lines(names, width, header=HEADER):
    rows = [(name, "512 × 512", *(f"{place}.5" for _ in header[2:-1]), "mxfp4") for place, name in enumerate(names)]
    right = tuple(range(2, len(header) - 1))
    return to_text(Page((Table(header, rows, right, (1, len(header) - 1)),)), width).splitlines()


def test_a_wide_page_has_all_columns():
    found = lines(["model.norm.weight"], 80)
    assert len(found) == 2
    assert "recommended" in found[0]


def test_columns_are_left_out_and_titles_broken():
    names = [f"model.layers.{layer}.self_attn.q_proj.weight" for layer in range(3)]
    found = lines(names, 70)
    assert [each.split() for each in found[:2]] == [["e4m3/"], ["tensor", "tensor", "mxfp4", "recommended"]]
    assert [each.split()[0] for each in found[2:]] == names
    assert "512" not in "".join(found)


@pytest.mark.parametrize("width", range(26, 100))
def test_each_tensor_has_one_line_or_two_and_fits(width):
    names = [f"model.layers.{layer}.self_attn.q_proj.weight" for layer in range(12)] + ["x" * 3000]
    found = lines(names, width)
    assert max(map(len, found)) <= width
    assert len(found) <= 3 + 2 * len(names)
    if width >= 50:
        assert len(found) <= 2 + len(names)


def test_names_that_would_become_equal_have_their_own_line():
    names = [f"model.layers.0.mlp.experts.{expert:03}.up_proj_of_the_expert.weight" for expert in range(100, 103)]
    found = lines(names, 44)
    assert [each.strip() for each in found[3::2]] == [name[:20] + "…" + name[-21:] for name in names]


def test_names_are_shortened_where_they_remain_different():
    names = [f"{place}{'-' * 100}" for place in range(5)] + [f"{'-' * 100}{place}" for place in range(5)]
    found = [each.split()[0] for each in lines(names, 60)[2:]]
    assert len(set(found)) == len(names)
    assert all("…" in each for each in found)
