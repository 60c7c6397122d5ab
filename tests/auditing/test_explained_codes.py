"""Weights whose errors are small: sound if a known way of rounding gives their codes, otherwise not."""

import ml_dtypes
import numpy as np
import pytest

from tests.auditing.quantizing import CONVENTIONS, words
from tests.auditing.test_damage import audited, changed

RNG = np.random.default_rng(21)
X = RNG.normal(size=(96, 128)).astype(np.float32)


def verdict(tmp_path, parts, config, x=X, name="x.weight"):
    [found] = audited(tmp_path, parts, config, {name: x}).values()
    return found


@pytest.mark.parametrize("share", [0.02, 0.05, 0.1])
@pytest.mark.parametrize("convention", ["fp8 rows", "deepseek", "ct int4", "modelopt nvfp4", "gptq", "bitsandbytes"])
def test_another_version_that_is_near_is_not_sound(tmp_path, convention, share):
    """Noise of a few per cent leaves errors like those of rounding, but other codes."""
    make, config = CONVENTIONS[convention]
    found = verdict(tmp_path, make("x", X), config)
    assert (found.verdict, found.reasons) == ("sound", ())
    noise = np.random.default_rng(4).normal(size=X.shape).astype(np.float32)
    found = verdict(tmp_path, make("x", X * (1 + share * noise)), config)
    assert found.verdict in ("cannot tell", "broken")
    if convention in ("ct int4", "modelopt nvfp4") and share == 0.05:
        assert "no known rounding explains them: is this the original" in found.reasons[0]


def int4(codes, scale):
    return {
        "x.weight_packed": ("I32", words((codes.reshape(X.shape) + 8).astype(np.uint8))),
        "x.weight_scale": ("F32", scale.astype(np.float32)), "x.weight_shape": ("I64", np.int64(X.shape)),
    }  # fmt: skip


def rounded(kind):
    """Return codes of groups of 32 and their scales, from a quantiser that does not round to nearest."""
    blocks = X.reshape(len(X), -1, 32)
    scale = np.abs(blocks).max(axis=2) / 7
    place = blocks / scale[..., None]
    if kind == "truncated":
        return np.trunc(place), scale
    if kind == "stochastic":
        return np.floor(place + np.random.default_rng(2).random(place.shape)), scale
    codes = np.rint(place)
    fitted = (codes * blocks).sum(axis=2) / np.square(codes).sum(axis=2)  # the least squares
    return codes, fitted if kind == "fitted" else scale


@pytest.mark.parametrize("kind", ["nearest", "truncated", "stochastic", "fitted"])
def test_other_roundings_are_sound(tmp_path, kind):
    assert verdict(tmp_path, int4(*rounded(kind)), None).verdict == "sound"


def test_scales_that_were_rounded_after_the_codes_are_sound(tmp_path):
    blocks = X.reshape(len(X), -1, 16)
    whole = np.float32(np.abs(X).max() / 2688)
    exact = np.abs(blocks).max(axis=2) / 6
    codes = (blocks / exact[..., None]).astype(ml_dtypes.float4_e2m1fn).reshape(X.shape).view(np.uint8)
    scales = (exact / whole).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    parts = {
        "x.weight": ("U8", codes[:, ::2] & 15 | codes[:, 1::2] << 4), "x.weight_scale": ("F8_E4M3", scales),
        "x.weight_scale_2": ("F32", whole),
    }  # fmt: skip
    assert verdict(tmp_path, parts, None).verdict == "sound"


def test_a_block_whose_scale_is_half_as_large_again_is_broken(tmp_path):
    """In e2m1, all its codes are next to the original, so only the block as a whole shows the mistake."""
    make, config = CONVENTIONS["modelopt nvfp4"]
    x = RNG.uniform(-1, 1, size=X.shape).astype(np.float32)
    x[0, 0] = 2  # the other scales are at most half the largest one

    def larger(scales):
        values = scales.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
        values[5, 3] *= 1.5
        return values.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)

    found = verdict(tmp_path, changed(make("x", x), "x.weight_scale", larger), config, x)
    assert found.verdict == "broken"
    assert "1 of 768 blocks is a multiple of the original's" in found.reasons[0]


def feedback(x, scale, order):
    """Return the codes of GPTQ, for inputs with a strong common part."""
    rng = np.random.default_rng(8)
    inputs = rng.normal(size=(512, x.shape[1])) + 2 * rng.normal(size=(512, 1))
    factor = np.linalg.cholesky(np.linalg.inv((inputs.T @ inputs)[np.ix_(order, order)])).T
    left, codes = x[:, order].astype(np.float64), np.zeros(x.shape)
    for at, column in enumerate(order):
        own = scale[:, column // 32]
        codes[:, column] = np.clip(np.rint(left[:, at] / own), -8, 7)
        left[:, at:] -= np.outer((left[:, at] - codes[:, column] * own) / factor[at, at], factor[at, at:])
    return codes


@pytest.mark.parametrize("rows", [32, 96])
@pytest.mark.parametrize("is_ordered", [True, False])
def test_codes_of_gptq_are_sound(tmp_path, rows, is_ordered):
    x = X[:rows]
    scale = np.abs(x.reshape(rows, -1, 32)).max(axis=2) / 7.5
    order = np.arange(128) if is_ordered else np.random.default_rng(3).permutation(128)
    codes = feedback(x, scale, order)
    parts = {
        "x.weight_packed": ("I32", words((codes + 8).astype(np.uint8))), "x.weight_scale": ("F32", scale),
        "x.weight_shape": ("I64", np.int64(x.shape)),
    }  # fmt: skip
    assert verdict(tmp_path, parts, None, x).verdict == "sound"


def test_exchanged_nibbles_of_gptq_are_the_cause(tmp_path):
    """Even with the nibbles in the right order, many codes are not the nearest ones."""
    scale = np.abs(X.reshape(len(X), -1, 32)).max(axis=2) / 7.5
    parts = int4(feedback(X, scale, np.random.default_rng(3).permutation(128)), scale)
    swapped = changed(
        parts, "x.weight_packed", lambda found: (found.view("u1") >> 4 | found.view("u1") << 4).view("<i4")
    )
    found = verdict(tmp_path, swapped, None)
    assert found.verdict == "broken"
    assert found.reasons[0].startswith("the nibbles are in the other order; corrected")
