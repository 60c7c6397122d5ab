"""Recipes of integers with zero points, of scales that are codes, and of codes beside wrong scales."""

import numpy as np
import pytest

import floatlab as fl
from tests.auditing.making import write_checkpoint
from tests.auditing.quantizing import CONVENTIONS, bitsandbytes, changed, doubled, scale_names

X = np.random.default_rng(3).normal(size=(64, 128)).astype(np.float32)


@pytest.fixture
def search(tmp_path):
    def search(parts, config):
        write_checkpoint(tmp_path / "o.safetensors", {"x.weight": ("F32", X)})
        path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
        return fl.find_recipe(f"{path}::x.weight", str(tmp_path / "o.safetensors"))

    return search


@pytest.mark.parametrize("convention", ["ct int4", "gptq", "awq"])
def test_zero_points(search, convention):
    make, config = CONVENTIONS[convention]
    found = search(parts := make("x", X), config)
    assert found.recipes[0].recipe == "uint4/32 with zero points, scale (max(high, 0) − min(low, 0)) / 15"
    assert (found.recipes[0].codes, found.recipes[0].scales) == (X.size, X.size // 32)
    codes = next(name for name in parts if name.endswith(("weight_packed", "qweight")))
    wrong = search(changed(parts, codes, flipped), config)
    assert not wrong.is_found
    best = wrong.nearest[0]
    assert (best.codes, best.scales) == (X.size - 1, X.size // 32)
    assert "are the nearest ones for the stored scales: the others make up for errors" in wrong.remarks[0]
    wrong = search(changed(parts, scale_names(parts)[0], lambda scale: scale * 2), config)
    assert not wrong.is_found
    assert (wrong.nearest[0].codes, wrong.nearest[0].scales) == (X.size, 0)  # codes and scales are judged apart


def test_progress_with_zero_points(tmp_path):
    make, config = CONVENTIONS["gptq"]
    write_checkpoint(tmp_path / "o.safetensors", {"x.weight": ("F32", X)})
    path = write_checkpoint(tmp_path / "m.safetensors", make("x", X), config)
    seen = []
    original = str(tmp_path / "o.safetensors")
    fl.find_recipe(f"{path}::x.weight", original, progress=lambda total: [seen.append(total), seen.append][1])
    assert seen[0] == sum(seen[1:]) == X.size
    assert len(seen) > 2


def flipped(words):
    words = words.copy()
    words.reshape(-1)[7] ^= 1
    return words


def test_scales_that_are_codes(search):
    parts, config = doubled(bitsandbytes("x", X)), CONVENTIONS["bitsandbytes"][1]
    found = search(parts, config)
    assert found.recipes[0].recipe == "nf4/64:bnb"
    assert found.remarks[-1].startswith("absmax is stored in codes of 8 bits: all 128 are the nearest ones")
    wrong = search(changed(parts, "x.weight.absmax", lambda codes: np.where(np.arange(128) == 9, 255, codes)), config)
    assert "127 of 128" in wrong.remarks[-1]


@pytest.mark.parametrize(
    "convention",
    [pytest.param("modelopt nvfp4", marks=pytest.mark.slow), "fp8 tensor", "fp8 rows", "int8 rows", "bitsandbytes"],
)
def test_scales_that_are_multiples(search, convention):
    make, config = CONVENTIONS[convention]
    parts = make("x", X)
    found = search(changed(parts, scale_names(parts)[-1], lambda scale: scale * np.float32(3.75)), config)
    assert not found.is_found
    assert found.nearest[0].codes == X.size
    assert any(words.endswith("3.75 times the recipe's") for words in found.remarks)


def test_codes_that_fit_scales_of_another_rule(search):
    """The scales leave out the largest number of each row; each code is the nearest one for its scale."""
    scale = (np.sort(np.abs(X), axis=1)[:, -9:-8] / 127).astype(np.float32)
    codes = np.clip(np.rint(X / scale), -127, 127).astype(np.int8)
    found = search({"x.weight": ("I8", codes), "x.weight_scale": ("F32", scale)}, CONVENTIONS["int8 rows"][1])
    assert not found.is_found
    assert any("the nearest ones for the stored scales, which have another rule" in each for each in found.remarks)
