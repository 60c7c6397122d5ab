"""More damage to stored tensors, in every convention that has such tensors: the cause is named."""

import json

import numpy as np
import pytest

import floatlab as fl
from tests.auditing.making import write_checkpoint
from tests.auditing.quantizing import CONVENTIONS, changed, codes_name, pairs, scale_names
from tests.auditing.test_damage import audited, named, weights

X, Y = weights((64, 128))


def made(convention, x=X):
    make, config = CONVENTIONS[convention]
    return make("x", x), make("y", Y), config


def check(tmp_path, convention, parts, words, config=None, x=X, y=Y):
    """Check that x is broken with these words as the cause, and y is sound."""
    _, other, known = made(convention)
    found = audited(tmp_path, other | parts, config or known, named(convention, x, y))
    assert found["x"].verdict == "broken", words
    assert words in found["x"].reasons[0]
    assert found["y"].verdict == "sound"


@pytest.mark.parametrize("step", [3, -4])
@pytest.mark.parametrize("convention", ["ct int4", "gptq", "awq"])
def test_zero_points_that_are_off_by_several(tmp_path, convention, step):
    own, _, _ = made(convention)
    name = next(name for name in own if name.endswith(("qzeros", "weight_zero_point")))

    def off(words):
        octets = np.ascontiguousarray(words).view(np.uint8).astype(int)
        return (
            ((octets + step & 15) | ((octets >> 4) + step & 15) << 4).astype(np.uint8).view("<i4").reshape(words.shape)
        )

    words = f"in {name}, zero points are too {'large' if step > 0 else 'small'} by {abs(step)}; corrected"
    check(tmp_path, convention, changed(own, name, off), words)


@pytest.mark.parametrize("convention", ["ct int4", "gptq", "awq"])
def test_exchanged_zero_points(tmp_path, convention):
    own, other, config = made(convention)
    first = next(name for name in own if name.endswith(("qzeros", "weight_zero_point")))
    second = first.replace("x", "y", 1)
    found = audited(tmp_path, own | other | {first: other[second], second: own[first]}, config, named("", X, Y))
    for name in "xy":
        assert found[name].verdict == "broken"
        assert "are exchanged; corrected" in found[name].reasons[0]


@pytest.mark.parametrize("by", [2, -3, 5])
@pytest.mark.parametrize("convention", ["modelopt mxfp4", "gpt-oss", "modelopt mxfp8"])
def test_any_wrong_bias_of_exponents(tmp_path, convention, by):
    own, _, _ = made(convention)
    scale = scale_names(own)[0]
    parts = changed(own, scale, lambda found: (found.astype(int) + by).astype(np.uint8))
    check(tmp_path, convention, parts, f"has a bias of {127 + by} instead of 127")


def test_reciprocal_exponents(tmp_path):
    own, _, _ = made("modelopt mxfp4")
    parts = changed(own, "x.weight_scale", lambda found: 254 - found)
    check(tmp_path, "modelopt mxfp4", parts, "x.weight_scale has the reciprocal powers of two")


def test_codes_in_the_order_of_another_library(tmp_path):
    own, _, _ = made("awq")
    order = [0, 4, 1, 5, 2, 6, 3, 7]

    def plain(words):
        nibbles = words.view(np.uint32)[..., None] >> np.uint32(4) * np.arange(8, dtype=np.uint32) & np.uint32(15)
        return pairs(nibbles[..., order].reshape(len(words), -1).astype(np.uint8)).view("<i4")

    check(
        tmp_path, "awq", changed(own, "x.qweight", plain), "the codes of a word are in the usual order instead of AWQ's"
    )


@pytest.mark.parametrize("kind", ["ordered", "other"])
def test_groups_of_columns_that_are_not_those_of_the_codes(tmp_path, kind):
    order = np.random.default_rng(6).permutation(128)
    own, _, _ = made("gptq", X[:, order] if kind == "other" else X)
    if kind == "other":  # the codes were made with groups of columns in another order, and the file names the usual one
        back = np.argsort(order)
        nibbles = own["x.qweight"][1].view(np.uint32)[:, None] >> np.uint32(4) * np.arange(8, dtype=np.uint32)[:, None]
        codes = np.ascontiguousarray((nibbles & np.uint32(15)).reshape(128, 64)[back].T.astype(np.uint8))
        own = own | {"x.qweight": ("I32", np.ascontiguousarray(pairs(codes)).view("<i4").T)}
    else:
        own = changed(own, "x.g_idx", lambda groups: groups[order])
    check(tmp_path, "gptq", own, "x.g_idx names other groups of columns than those that the codes were made with")


@pytest.mark.parametrize("convention", ["fp8 rows", "modelopt nvfp4", "int8 rows", "ct int4", "gptq", "bitsandbytes"])
def test_two_rows_or_columns_are_exchanged(tmp_path, convention):
    for axis, noun in enumerate(("rows", "columns")):
        x = np.moveaxis(X.copy(), axis, 0)
        x[[5, 9]] = x[[9, 5]]
        own, _, _ = made(convention, np.ascontiguousarray(np.moveaxis(x, 0, axis)))
        check(tmp_path, convention, own, f"its {noun} 5 and 9 are exchanged; the rest fits")


@pytest.mark.parametrize("convention", ["fp8 rows", "modelopt nvfp4", "modelopt mxfp4", "modelopt mxfp8", "int8 rows"])
def test_blocks_with_the_opposite_sign(tmp_path, convention):
    x = X.copy().reshape(-1, 16)
    x[7::29] *= -1
    own, _, _ = made(convention, x.reshape(X.shape))
    count = len(x[7::29])
    check(tmp_path, convention, own, f"{count} of 512 blocks of 16 in a row have the opposite sign")


@pytest.mark.parametrize("convention", ["fp8 rows", "modelopt nvfp4", "modelopt mxfp4", "bitsandbytes"])
def test_codes_of_another_weight(tmp_path, convention):
    """With the codes of y and the scales of x, a weight resembles neither of the originals."""
    sizes = np.exp2(np.random.default_rng(3).integers(-6, 6, (2, 64, 2))).repeat(64, axis=2)
    x, y = X * sizes[0], Y * sizes[1]
    make, config = CONVENTIONS[convention]
    own, other = make("x", x.astype(np.float32)), make("y", y.astype(np.float32))
    codes = codes_name(own)
    parts = own | other | {codes: other[codes.replace("x", "y", 1)]}
    found = audited(tmp_path, parts, config, named(convention, x, y))
    assert found["x"].verdict == "broken"
    assert "its codes are those of y" in found["x"].reasons[0]
    assert found["y"].verdict == "sound"


def test_columns_in_another_order(tmp_path):
    order = np.random.default_rng(4).permutation(128)
    for convention in ("fp8 rows", "gptq", "awq", "modelopt mxfp4"):
        own, _, _ = made(convention, X[:, order])
        check(tmp_path, convention, own, "its columns are the original's in another order")


def test_the_missing_scale_of_quanto(tmp_path):
    parts = {"x.weight._data": ("I8", np.ones((4, 8), np.int8))}
    [found] = audited(tmp_path, parts, None).values()
    assert found.reasons == ("'x.weight._data' needs the tensor 'x.weight._scale', which is missing",)


def mlx(name, x):
    """Return a weight of MLX: codes of 4 bits in groups of 64, with scales and biases."""
    blocks = x.reshape(len(x), -1, 64)
    low, high = blocks.min(axis=2), blocks.max(axis=2)
    scale = (high - low) / 15
    codes = np.rint((blocks - low[..., None]) / scale[..., None]).astype(np.uint8).reshape(x.shape)
    return {
        f"{name}.weight": ("U32", pairs(codes).view("<u4")), f"{name}.scales": ("F32", scale.astype(np.float32)),
        f"{name}.biases": ("F32", low.astype(np.float32)),
    }  # fmt: skip


def test_the_codes_of_mlx_are_compared(tmp_path):
    write_checkpoint(tmp_path / "m.safetensors", {})
    noise = np.random.default_rng(9).normal(size=X.shape).astype(np.float32)
    own, other = mlx("x", X), mlx("y", Y)
    cases = (
        (own, "sound", ""),
        (mlx("x", X * (1 + 0.08 * noise)), "cannot tell", "no known rounding explains them"),
        (changed(own, "x.biases", np.negative), "broken", "x.biases has the opposite sign"),
        (own | {"x.biases": other["y.biases"], "y.biases": own["x.biases"]}, "broken", "are exchanged"),
    )
    for parts, verdict, words in cases:
        path = write_checkpoint(tmp_path / "m.safetensors", other | parts)
        (tmp_path / "config.json").write_text(json.dumps({"quantization": {"group_size": 64, "bits": 4}}))
        found = {each.name[0]: each for each in fl.audit(path, named("", X, Y)).tensors}
        assert found["x"].verdict == verdict, words
        assert not words or words in found["x"].reasons[0]
        assert found["y"].verdict == ("broken" if words == "are exchanged" else "sound")


@pytest.mark.parametrize("convention", ["fp8 rows", "int8 rows", "modelopt nvfp4", "modelopt mxfp4", "ct int4"])
def test_scales_that_are_shifted_by_one_row(tmp_path, convention):
    x = X * np.exp2(np.random.default_rng(5).integers(-4, 4, (64, 1)))
    own, other, config = made(convention, x.astype(np.float32))
    name = scale_names(own)[0]
    parts = other | changed(own, name, lambda scales: np.roll(scales, 1, axis=0))
    found = audited(tmp_path, parts, config, named(convention, x, Y))
    assert found["x"].verdict == "broken"
    assert f"{name} is shifted by one row; corrected" in found["x"].reasons[0]
    assert found["y"].verdict == "sound"


def test_a_scale_that_is_off_by_2_per_cent(tmp_path):
    """The error hardly grows, but one factor makes all codes nearest."""
    own, _, _ = made("fp8 tensor")
    parts = changed(own, "x.weight_scale", lambda scale: scale * np.float32(1.02))
    check(tmp_path, "fp8 tensor", parts, "its numbers are 1.02 times too large")


def test_a_scale_of_nan_that_most_numbers_share_is_broken(tmp_path):
    """The numbers that are left fit, but are too few to look like those of rounding."""
    x = np.random.default_rng(8).normal(size=(96, 192)).astype(np.float32)
    make, config = CONVENTIONS["deepseek"]
    parts = make("x", x)
    parts["x.weight_scale_inv"][1][0, 0] = np.nan
    [found] = audited(tmp_path, parts, config, {"x.weight": x}).values()
    assert found.verdict == "broken"
    assert found.reasons[0] == "12,288 of 18,432 numbers are NaN or infinite"


def test_negative_scales_of_mlx_are_not_remarkable(tmp_path):
    parts = mlx("x", X) | mlx("y", Y)
    # The same numbers: each code is counted from the other end.
    parts["x.biases"] = ("F32", parts["x.biases"][1] + 15 * parts["x.scales"][1])
    parts["x.scales"] = ("F32", -parts["x.scales"][1])
    parts["x.weight"] = ("U32", ~parts["x.weight"][1])
    path = write_checkpoint(tmp_path / "m.safetensors", parts)
    (tmp_path / "config.json").write_text(json.dumps({"quantization": {"group_size": 64, "bits": 4}}))
    found = fl.audit(path, named("", X, Y)).tensors
    assert {(each.verdict, each.reasons) for each in found} == {("sound", ())}
