"""Audits call sound weights sound, and broken weights broken; only true causes are named."""

import json
import shutil

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import HeldSource
from floatlab.auditing.fidelity import measure
from floatlab.auditing.judging import AuditedTensor
from floatlab.cli.main import main
from floatlab.page.text_layout import to_text
from floatlab.verbs.audit.answer import audit_page
from tests.auditing.making import nvfp4, write_checkpoint, write_examples
from tests.auditing.test_conventions import swizzled
from tests.auditing.test_libraries_checkpoints import BROKEN, FOLDER, SOUND

needs_checkpoints = pytest.mark.skipif(not BROKEN, reason="the checkpoints of the libraries are not on this machine")
# The broken weights of each checkpoint, and words that the reason contains.
CAUSES = {
    "broken_nvfp4_global_reciprocal": ("_proj", "weight_scale_2 is the reciprocal; corrected"),
    "broken_nvfp4_nibbles_gate": ("gate_proj", "the nibbles are in the other order; corrected"),
    "broken_nvfp4_scales_exchanged": ("mlp", "are exchanged; corrected"),
    "broken_nvfp4_scale_missing": ("q_proj", "weight_scale', which is missing"),
    "broken_nvfp4_swizzled_gate": ("gate_proj", "weight_scale is swizzled (128×4); corrected"),
    "broken_nvfp4_nan_scale": ("up_proj", "16 of 8,192 numbers are NaN"),
    "broken_deepseek_reciprocal": ("_proj", "weight_scale_inv is the reciprocal; corrected"),
    "broken_gptoss_bias128": ("gate_up", "gate_up_proj_scales has a bias of 128 instead of 127; corrected"),
}


@needs_checkpoints
@pytest.mark.parametrize("checkpoint", SOUND, ids=lambda each: each["name"])
def test_no_sound_checkpoint_is_called_broken(checkpoint):
    alone = fl.audit(FOLDER / checkpoint["name"])
    assert {each.verdict for each in alone.tensors} == {"cannot tell"}
    assert not any(each.reasons for each in alone.tensors)
    found = fl.audit(FOLDER / checkpoint["name"], FOLDER / "original.safetensors")
    assert found.is_sound
    assert not any(each.reasons for each in found.tensors)
    assert max(each.fidelity.relative_error for each in found.tensors) < 0.13
    is_renamed = checkpoint["name"] in ("gguf", "gptoss_mxfp4")
    found_by = ("by convention", "found by content")
    assert all(any(words in each.original for words in found_by) == is_renamed for each in found.tensors)


@needs_checkpoints
@pytest.mark.parametrize("checkpoint", SOUND, ids=lambda each: each["name"])
def test_no_sound_file_alone_is_called_broken(tmp_path, checkpoint):
    """Without its config.json; the versions of GPTQ cannot be told apart then."""
    source = next((FOLDER / checkpoint["name"]).glob("model.*"))
    shutil.copy(source, path := tmp_path / f"neutral{source.suffix}")
    found = fl.audit(path, FOLDER / "original.safetensors")
    assert {each.verdict for each in found.tensors} == {"cannot tell" if "gptq" in checkpoint["name"] else "sound"}


@needs_checkpoints
@pytest.mark.parametrize("name", CAUSES)
def test_broken_checkpoints_are_called_broken_with_the_cause(name):
    found = fl.audit(FOLDER / name, FOLDER / "original.safetensors")
    where, words = CAUSES[name]
    for each in found.tensors:
        is_broken = where in each.name
        assert each.verdict == ("broken" if is_broken else "sound"), each
        assert any(words in reason for reason in each.reasons) == is_broken
    alone = fl.audit(FOLDER / name)
    proven = {each.name for each in alone.tensors if each.verdict == "broken"}
    assert len(proven) == (1 if "nan" in name or "missing" in name else 0)
    assert all(where in each for each in proven)


# The same and other damage, on weights made here.

X = np.random.default_rng(1).normal(size=(256, 128)).astype(np.float32)
Y = np.random.default_rng(2).normal(size=(256, 128)).astype(np.float32)


def parts(**changed):
    """Return two layers in NVFP4, with some stored tensors changed."""
    found = {}
    for layer, x in (("x", X), ("y", Y)):
        codes, scales, whole = nvfp4(x)
        found |= {f"{layer}.weight": codes, f"{layer}.weight_scale": scales, f"{layer}.weight_scale_2": whole}
    return found | {name.replace("__", "."): value for name, value in changed.items()}


def audited(tmp_path, tensors, against=None):
    path = write_checkpoint(tmp_path / "m.safetensors", tensors)
    found = fl.audit(path, {"x.weight": X, "y.weight": Y} if against is None else against)
    return {each.name: each for each in found.tensors}


def test_sound_and_swizzled_and_exchanged(tmp_path):
    sound = audited(tmp_path, parts())
    assert {each.verdict for each in sound.values()} == {"sound"}
    assert repr(fl.audit(tmp_path / "m.safetensors")) == "Audit(cannot tell: 2)"
    (_, scales), (_, others) = nvfp4(X)[1], nvfp4(Y)[1]
    wrong = audited(tmp_path, parts(x__weight_scale=("F8_E4M3", swizzled(scales))))
    assert [each.verdict for each in wrong.values()] == ["broken", "sound"]
    assert wrong["x.weight"].reasons[0].startswith("x.weight_scale is swizzled (128×4); corrected, the relative")
    wrong = audited(tmp_path, parts(x__weight_scale=("F8_E4M3", others), y__weight_scale=("F8_E4M3", scales)))
    assert wrong["x.weight"].reasons[0].startswith("x.weight_scale and y.weight_scale are exchanged; corrected")
    assert wrong["y.weight"].reasons[0].startswith("y.weight_scale and x.weight_scale are exchanged; corrected")


@pytest.mark.parametrize("bias", [126, 128])
def test_a_bias_of_mx(tmp_path, bias):
    exponents = np.floor(np.log2(np.abs(X.reshape(256, -1, 32)).max(axis=2))) - 2
    scaled = X.reshape(256, -1, 32) / np.exp2(exponents)[..., None]
    codes = fl.arrays.encode(scaled.astype(np.float32), "e2m1", overflow="saturate").reshape(256, -1, 16, 2)
    octets = (codes[..., 0] | codes[..., 1] << 4).astype(np.uint8)
    for stored, verdict in ((127, "sound"), (bias, "broken")):
        tensors = {"x_blocks": ("U8", octets), "x_scales": ("U8", (exponents + stored).astype(np.uint8))}
        [found] = audited(tmp_path, tensors, {"x": X}).values()
        assert found.verdict == verdict
    assert found.reasons[0].startswith(f"x_scales has a bias of {bias} instead of 127; corrected")


def test_one_block_of_another_scale_is_found(tmp_path):
    _, scales = nvfp4(X)[1]
    scales = scales.copy()
    scales[7, 3] = 0x7E
    found = audited(tmp_path, parts(x__weight_scale=("F8_E4M3", scales)))["x.weight"]
    assert (found.verdict, found.fidelity.bad_blocks) == ("broken", 1)
    assert found.reasons[0].startswith("1 block of 16 in a row (row 7) is 2.2 times too large")


def test_a_block_that_vanishes_beside_the_others_is_sound(tmp_path):
    """The scale of a tiny block underflows to 0, and its codes do not count; that is no damage."""
    x = X.copy()
    x[:, :32] *= np.float32(2.0**-30)
    with np.errstate(divide="ignore", invalid="ignore"):
        (kind, codes), (_, scales), whole = nvfp4(x)
    codes, scales = codes.copy(), scales.copy()
    assert (scales[:, :2] == 0).all()
    codes[:, :16] = 0x77
    tensors = {"x.weight": (kind, codes), "x.weight_scale": ("F8_E4M3", scales), "x.weight_scale_2": whole}
    found = audited(tmp_path, tensors, {"x.weight": x})["x.weight"]
    assert found.verdict == "sound"
    assert found.reasons == ("512 scales in x.weight_scale are 0, though 8,192 codes of their blocks are not",)


def test_columns_that_were_rescaled_are_told_apart(tmp_path):
    factors = np.exp(np.random.default_rng(3).normal(size=128)).astype(np.float32)
    found = audited(tmp_path, parts(), {"x.weight": X / factors, "y.weight": Y})
    assert (found["x.weight"].verdict, found["y.weight"].verdict) == ("cannot tell", "sound")
    assert "as after AWQ or SmoothQuant" in found["x.weight"].reasons[0]


def test_another_original_is_not_explained(tmp_path):
    found = audited(tmp_path, parts(), {"x.weight": Y, "y.weight": X[:5], "z.weight": X})
    assert (found["x.weight"].verdict, found["y.weight"].verdict) == ("broken", "cannot tell")
    assert found["x.weight"].reasons == (
        "its numbers are those of z.weight of the original: are weights or files exchanged?",
    )
    assert "the shapes of the weight and of the original differ: 256×128 and 5×128" in found["y.weight"].reasons


def test_tensors_that_no_verdict_is_about_are_counted():
    x = np.random.default_rng(5).normal(size=(4, 32)).astype(np.float32)
    codes = np.round(x / 0.02).astype(np.int8)  # at most 2.5 / 0.02 = 125
    checkpoint = {
        "a.weight": codes,
        "a.weight_scale": np.float32([0.02]),
        "norm": x[0],
        "b.weight": x.astype(ml_dtypes.float8_e4m3fn),
    }
    found = fl.audit(checkpoint)
    assert [each.verdict for each in found.tensors] == ["cannot tell"]
    assert ([count for _, count in found.unchecked], [count for _, count in found.unscaled]) == ([1], [1])
    found = fl.audit(checkpoint, {"a.weight": x, "b.weight": x, "c.weight": x, "norm": x[0]})
    assert [(each.name, each.verdict) for each in found.tensors] == [("b.weight", "sound"), ("a.weight", "sound")]
    assert ([count for _, count in found.unchecked], found.unscaled) == ([1], ())
    assert found.missing == ("c.weight",)
    page = to_text(audit_page(found), 90)
    assert "1 tensor is not quantised: 1 of" in page
    assert "the original also has c.weight" in page


def test_the_measures_are_those_of_numpy():
    read = X + np.float32(0.01) * Y
    found = measure(HeldSource(read), HeldSource(X))
    q, x = read.astype(np.float64), X.astype(np.float64)
    error = q - x
    assert found.relative_error == pytest.approx(np.linalg.norm(error) / np.linalg.norm(x), rel=1e-12)
    assert found.sqnr == pytest.approx(-20 * np.log10(found.relative_error), rel=1e-12)
    assert found.mse == pytest.approx((error**2).mean(), rel=1e-12)
    assert found.cosine == pytest.approx((q * x).sum() / np.linalg.norm(q) / np.linalg.norm(x), rel=1e-12)
    assert (found.largest_error, found.largest) == (np.abs(error).max(), np.abs(x).max())
    assert (found.elements, found.blocks, found.nans) == (X.size, X.size // 32, 0)
    read[3, 4] = np.nan
    assert measure(HeldSource(read), HeldSource(X)).nans == 1
    zero = measure(HeldSource(0 * X), HeldSource(X))
    assert (zero.relative_error, zero.sqnr, zero.cosine, zero.fits) == (1.0, 0.0, 0.0, False)
    same = measure(HeldSource(X), HeldSource(X))
    assert (same.relative_error, same.sqnr, same.fits) == (0.0, np.inf, True)
    assert measure(HeldSource(X[:0]), HeldSource(X[:0])).fits


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path)
    assert main(["audit", "model.safetensors", "--against", "original.safetensors", "--json"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["verdict"] for line in lines] == ["sound", "sound"]
    for line in lines:
        assert isinstance(fl.from_json(line), AuditedTensor)
        assert fl.from_json(line).fidelity.fits
    write_checkpoint(tmp_path / "w.safetensors", parts(x__weight_scale_2=("F32", np.float32(3))))
    write_checkpoint(tmp_path / "o.safetensors", {"x.weight": ("F32", X), "y.weight": ("F32", Y)})
    assert main(["audit", "w.safetensors", "--against", "o.safetensors"]) == 1
    assert "of 2 weights, 1 is broken and 1 is sound" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", "w.safetensors", "--against", "o.safetensors", "--only", "y*", "--quiet"]) == 0
    assert main(["audit", "w.safetensors", "--against", "o.safetensors", "--worst", "1"]) == 1
    assert "1 more weight: 1 is sound; --worst all lists them" in " ".join(capsys.readouterr().out.split())
    assert main(["audit", "w.safetensors", "--against", "o.safetensors", "--csv", "-"]) == 1
    assert [line.split(",")[:2] for line in capsys.readouterr().out.splitlines()[1:]] == [
        ["x.weight", "broken"],
        ["y.weight", "sound"],
    ]
    for words, message in (
        (["w.safetensors::x.weight"], "names one tensor: give 'w.safetensors', and --only 'x.weight'"),
        (["o.safetensors"], "has no quantised weights in a format that floatlab reads"),
        (["w.safetensors", "--only", "z*"], "--only 'z*' matches no tensor"),
        (["w.safetensors", "o.safetensors"], "audit takes one checkpoint, not 2"),
        (["w.safetensors", "--against", "nowhere.safetensors"], "does not exist"),
    ):
        assert main(["audit", *words]) == 2
        said = capsys.readouterr().err
        assert message in said
        assert said.count("\n") == 1
