"""Verdicts that were wrong for unusual weights: few different numbers, tiny or infinite ones, scales of 0."""

import numpy as np
import pytest

import floatlab as fl
from tests.auditing.making import write_checkpoint
from tests.auditing.quantizing import pairs

INTEGERS = {"quant_method": "compressed-tensors"}
MX = {"quant_method": "modelopt"}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}


def audited(tmp_path, parts, config, x):
    path = write_checkpoint(tmp_path / "m.safetensors", parts, config)
    [found] = fl.audit(path, {"w.weight": x}).tensors
    return found


def int8(x, scale):
    codes = np.clip(np.rint(x / scale), -127, 127).astype(np.int8)
    return {"w.weight": ("I8", codes), "w.weight_scale": ("F32", scale)}


def in_nvfp4(x, rule):
    made = fl.arrays.encode(x, f"nvfp4:{rule}")
    divisor = np.float32({"te_4over6_mae448": 2688, "modelopt": 1}[rule])
    whole = np.float32(np.asarray(made.tensor_scale).reshape(-1)[0] / divisor)
    return {
        "w.weight": ("U8", pairs(made.codes)), "w.weight_scale": ("F8_E4M3", made.scales.reshape(len(x), -1)),
        "w.weight_scale_2": ("F32", whole),
    }  # fmt: skip


def in_mxfp8(x):
    made = fl.arrays.encode(x, "mxfp8_e4m3:torchao_floor")
    return {"w.weight": ("F8_E4M3", made.codes), "w.weight_scale": ("U8", made.scales.reshape(len(x), -1))}


def test_a_weight_whose_numbers_all_became_0_has_no_factor(tmp_path):
    x = np.random.default_rng(1).uniform(0.6, 0.9, (3, 5)).astype(np.float32)
    parts = {"w.weight": ("I8", np.zeros((3, 5), np.int8)), "w.weight_scale": ("F32", np.ones((3, 1), np.float32))}
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict == "cannot tell"
    assert "15 numbers (100 %) became 0" in found.reasons[0]


@pytest.mark.parametrize("lost", [np.nan, np.inf])
def test_nothing_is_lost_if_the_original_has_no_numbers(tmp_path, lost):
    x = np.full((1, 3), lost, np.float32)
    parts = {"w.weight": ("F8_E4M3", np.full((1, 3), 0x7F, np.uint8)), "w.weight_scale": ("F32", np.float32(1))}
    found = audited(tmp_path, parts, INTEGERS, x)
    assert (found.verdict, found.fidelity) == ("cannot tell", None)
    assert found.reasons[-1].startswith("3 of 3 numbers of the original are NaN or infinite")


def test_nans_of_the_original_are_not_the_damage(tmp_path):
    x = np.random.default_rng(2).normal(size=(16, 32)).astype(np.float32)
    parts = {"w.weight": ("F8_E4M3", fl.arrays.encode(x, "e4m3:none").codes), "w.weight_scale": ("F32", np.float32(1))}
    x[3, 7] = np.nan
    parts["w.weight"][1][3, 7] = 0x7F
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict == "cannot tell"
    assert found.reasons == ("1 of 512 numbers of the original is NaN or infinite, so they cannot be compared",)
    parts["w.weight"][1][5] = 0
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict == "broken"
    assert not any(words.startswith("1 of 512 numbers are NaN") for words in found.reasons)


def test_scales_of_blocks_that_are_tiny_beside_others_become_0(tmp_path):
    """Transformer Engine gives the largest code to such a block, but the scale 0."""
    x = np.random.default_rng(3).uniform(0.5, 1, (16, 64)).astype(np.float32)
    x[4:6] *= 2.0**-19.6
    x[7] *= 2.0**-17.8  # the smallest scale
    parts = in_nvfp4(x, "te_4over6_mae448")
    scales = parts["w.weight_scale"][1]
    assert (scales == 0).any()
    assert audited(tmp_path, parts, NVFP4, x).verdict == "sound"
    scales[9, 1] = 0
    assert audited(tmp_path, parts, NVFP4, x).verdict == "broken"


def test_a_scale_of_0_in_binary32_is_not_a_rounded_one(tmp_path):
    x = np.random.default_rng(4).uniform(0.5, 1, (3, 8)).astype(np.float32)
    x[1] *= 0.1
    parts = int8(x, np.abs(x).max(axis=1, keepdims=True) / np.float32(127))
    assert audited(tmp_path, parts, INTEGERS, x).verdict == "sound"
    parts["w.weight_scale"][1][1] = 0
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict != "sound"
    assert "1 scale in w.weight_scale is 0" in found.reasons[0]


def test_large_numbers_with_the_smallest_scale_are_far_from_their_codes(tmp_path):
    """1e5 divided by 2^−127 is infinite in binary32."""
    x = (np.random.default_rng(5).normal(size=(8, 96)) * 1e5).astype(np.float32)
    parts = in_mxfp8(x)
    assert audited(tmp_path, parts, MX, x).verdict == "sound"
    parts["w.weight_scale"][1][2, 1] = 0
    assert audited(tmp_path, parts, MX, x).verdict == "broken"


def test_scales_that_clip_most_numbers_are_doubtful(tmp_path):
    """If all numbers have the same size, half of the right scale looks like clipping."""
    x = np.random.default_rng(6).choice([-0.25, 0.25], (16, 64)).astype(np.float32)
    right = np.full((16, 1), 0.25 / 127, np.float32)
    for scale, verdict in ((right, "sound"), (right * np.float32(0.8), "sound"), (right / 2, "cannot tell")):
        parts = int8(x, right)
        parts["w.weight_scale"] = ("F32", scale)
        found = audited(tmp_path, parts, INTEGERS, x)
        assert found.verdict == verdict, found
    assert found.reasons == ("most numbers of 64 of 64 blocks are beyond the largest code: are the scales right?",)
    right[5] /= 2
    parts["w.weight_scale"] = ("F32", right)
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict == "cannot tell"
    assert found.reasons[0].startswith("most numbers of 4 of 64 blocks are beyond the largest code")
    parts = in_nvfp4(x, "modelopt")
    assert audited(tmp_path, parts, NVFP4, x).verdict == "sound"
    parts["w.weight_scale"][1][3, 2] -= 8
    assert audited(tmp_path, parts, NVFP4, x).verdict == "cannot tell"


def test_clipping_most_of_one_row_is_right_if_all_rows_share_a_scale(tmp_path):
    x = np.random.default_rng(7).normal(size=(32, 64)).astype(np.float32)
    x[4] *= 20
    found = audited(tmp_path, int8(x, np.float32(0.03)), INTEGERS, x)
    assert found.verdict == "sound", found


def test_two_exchanged_rows_that_resemble_each_other(tmp_path):
    """The error is small, and 298 of 300 rows are right, but nothing explains the codes of the other two."""
    x = np.sin(np.arange(300 * 700).reshape(300, 700) / 37).astype(np.float32)
    x += np.random.default_rng(8).normal(size=x.shape).astype(np.float32) * np.float32(0.01)
    parts = int8(x, np.abs(x).max(axis=1, keepdims=True) / np.float32(127))
    assert audited(tmp_path, parts, INTEGERS, x).verdict == "sound"
    likeness = x @ x[9] / np.linalg.norm(x, axis=1) / np.linalg.norm(x[9])
    other = int(np.abs(likeness - 0.92).argmin())
    codes = parts["w.weight"][1]
    codes[[9, other]] = codes[[other, 9]]
    found = audited(tmp_path, parts, INTEGERS, x)
    assert found.verdict != "sound", found
