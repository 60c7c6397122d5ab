"""Audits of recipes: what they take, what they leave out, verdicts, recommendations, outputs, and the command line."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.survival.figures import DAMAGED, OVERFLOWS, SURVIVES, RecipeAudit, RecipeFigures
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.cli.main import main
from floatlab.errors import FileFormatError, RecipeError, UnsupportedError
from floatlab.verbs.from_json import document_of, from_json
from tests.auditing.making import QUANTIZED, write_checkpoint

RNG = np.random.default_rng(11)
NORMAL = (RNG.standard_normal((64, 96)) * 0.02).astype(np.float32)


def only(found: RecipeAudit, recipe: int = 0) -> RecipeFigures:
    [tensor] = found.tensors
    return tensor.recipes[recipe]


def test_tensors_that_are_no_floats_are_left_out_and_said_so():
    found = audit_recipes({"ids": np.arange(5), "mask": np.array([True]), "w": NORMAL}, "e4m3")
    rows = {each.tensor: (each.left_out, each.is_readable, len(each.recipes)) for each in found.tensors}
    assert rows == {
        "w": ("", True, 1),
        "ids": ("integers, not floats", True, 0),
        "mask": ("truth values, not floats", True, 0),
    }
    assert "ids: left out, integers, not floats" in found.page().text()


@pytest.mark.parametrize(
    "recipe", ["e4m3", "e4m3/tensor", "e4m3/channel", "mxfp4", "nvfp4", "e4m3/128x128", "int8/channel"]
)
def test_arrays_of_all_kinds(recipe):
    tensors = {
        "empty": np.zeros((0, 32), np.float32),
        "no columns": np.zeros((3, 0), np.float32),
        "scalar": np.float32(3),
        "row": np.ones(40, np.float32),
        "zeros": np.zeros((4, 40), np.float32),
        "double": np.float64([[1 / 3, 1e-300, 1e300]]),
        "half": NORMAL.astype(np.float16),
        "bf16": NORMAL.astype(ml_dtypes.bfloat16),
        "fp8": np.float32([[1, 2, 4]]).astype(ml_dtypes.float8_e4m3fn),
        "NaN": np.float32([[1, np.nan, np.inf, -1]]),
    }
    found = {each.tensor: each for each in audit_recipes(tensors, recipe).tensors}
    assert found.keys() == tensors.keys()
    for name, x in tensors.items():
        values = np.asarray(x, np.float64)
        assert found[name].elements == values.size
        assert found[name].shape == values.shape
        assert found[name].zeros == (values == 0).sum()
        assert found[name].nonfinite == (~np.isfinite(values)).sum()
        [figures] = found[name].recipes
        assert figures.elements == values.size
        assert figures.exact + figures.flushed <= values.size
    assert found["zeros"].recipes[0].exact == 160
    assert found["zeros"].recipes[0].sqnr is None
    assert found["empty"].largest is None
    assert found["bf16"].kind == "bfloat16"
    assert found["scalar"].largest == found["scalar"].smallest == 3


def test_the_source_format_decides_what_a_library_rule_computes_with():
    # compressed-tensors computes in the format of the values.
    x = NORMAL.astype(ml_dtypes.bfloat16)
    narrow, wide = (audit_recipes({"x": each}, "nvfp4:ct") for each in (x, x.astype(np.float32)))
    assert only(narrow).error_squares != only(wide).error_squares
    y = fl.arrays.quantize(x, "nvfp4:ct").astype(np.float64)
    assert only(narrow).error_squares == pytest.approx(float(np.square(y - x.astype(np.float64)).sum()), rel=1e-12)


def test_overflow_without_scales_is_the_formats_own_unless_it_saturates():
    x = {"w": np.float32([1, 465, 1e6, -1e6])}
    assert (only(audit_recipes(x, "e4m3")).lost, only(audit_recipes(x, "e5m2")).lost) == (3, 2)
    found = only(audit_recipes(x, "e4m3", overflow="saturate"))
    assert (found.lost, found.saturated, found.largest_error) == (0, 3, 1e6 - 448)


def test_verdicts():
    large, tiny = NORMAL.copy(), NORMAL * np.float32(1e-4)
    large[3, 5] = 1000
    assert only(audit_recipes({"w": NORMAL}, "e4m3")).verdict == SURVIVES
    assert only(audit_recipes({"w": large}, "e4m3")).verdict == OVERFLOWS
    assert only(audit_recipes({"w": tiny}, "e4m3")).verdict == DAMAGED
    assert "become 0" in only(audit_recipes({"w": tiny}, "e4m3")).reason
    # One large number hides the loss of all others from the SQNR.
    found = only(audit_recipes({"w": large}, "int8/tensor"))
    assert found.sqnr > 40
    assert found.flushed > 0.9 * NORMAL.size
    assert found.verdict == DAMAGED
    assert "a few large numbers set the scales" in found.reason


def test_recommendation_is_the_cheapest_recipe_that_a_tensor_survives():
    large = NORMAL.copy()
    large[3, 5] = 1000
    found = audit_recipes(
        {"a": NORMAL, "b": NORMAL[:32], "large": large, "none": np.float32([np.inf])}, "e4m3/tensor,int8/channel,nvfp4"
    )
    plan = dict(found.recommendation.plan)
    assert plan["a"] == plan["b"] == "nvfp4"
    assert plan["large"] != "e4m3/tensor"
    assert found.recommendation.base == "nvfp4"
    assert "nvfp4 for all but" in str(found.recommendation)
    chosen = [next(r for r in t.recipes if r.recipe == t.choice) for t in found.tensors if t.choice]
    noise, signal = (sum(getattr(each, name) for each in chosen) for name in ("error_squares", "squares"))
    assert found.recommendation.sqnr == pytest.approx(10 * np.log10(signal / noise))


def test_an_sqnr_just_below_the_limit_is_not_shown_as_the_limit():
    x = np.random.default_rng(0).normal(size=(8, 64)).astype(np.float32)
    [found] = audit_recipes({"w": x}, "nvfp4").tensors[0].recipes
    asked = np.ceil(found.sqnr * 1000) / 1000
    [damaged] = audit_recipes({"w": x}, "nvfp4", min_sqnr=asked).tensors[0].recipes
    said, _, rest = damaged.reason.removeprefix("it has ").partition(" dB, ")
    assert float(said) < asked
    assert rest.startswith(f"{asked:g} dB are asked for")


def test_min_sqnr_decides():
    x = {"w": NORMAL}
    assert audit_recipes(x, "nvfp4,e4m3", min_sqnr=25).tensors[0].choice == "e4m3"
    assert audit_recipes(x, "nvfp4", min_sqnr=25).failing
    assert not audit_recipes(x, "nvfp4", min_sqnr=15).failing


def test_quantised_weights_are_read_as_numbers(tmp_path):
    path = write_checkpoint(tmp_path / "m.safetensors", QUANTIZED)
    found = {each.tensor: each for each in fl.audit(path, to="bf16").tensors}
    weight = found["model.layers.0.mlp.down_proj.weight"]
    assert weight.convention.startswith("e4m3") or "FP8" in weight.convention
    assert weight.recipes[0].exact == weight.elements


def outputs(x, w, y):
    a, b = x.astype(np.float64) @ w.astype(np.float64).T, x.astype(np.float64) @ y.astype(np.float64).T
    return 10 * np.log10(np.square(a).sum() / np.square(b - a).sum()), np.abs(b - a).max()


@pytest.mark.parametrize("name", ["l", "l.weight", "l.input"])
@pytest.mark.parametrize("recipe", ["mxfp4", "e4m3/tensor", "q8_0", "nvfp4/16x16"])
def test_errors_of_outputs(name, recipe):
    x = RNG.standard_normal((2, 5, 96)).astype(np.float32)
    x[..., 7] *= 100
    found = audit_recipes({"l.weight": NORMAL, "other": NORMAL}, recipe, activations={name: x})
    weight = next(each for each in found.tensors if each.tensor == "l.weight").recipes[0]
    sqnr, largest = outputs(x.reshape(10, 96), NORMAL, fl.arrays.quantize(NORMAL, recipe))
    assert weight.output_sqnr == pytest.approx(sqnr, rel=1e-9)
    assert weight.output_error == pytest.approx(largest, rel=1e-9)
    assert weight.decisive_sqnr == weight.output_sqnr
    assert next(each for each in found.tensors if each.tensor == "other").recipes[0].output_sqnr is None


def test_activations_must_fit():
    with pytest.raises(FileFormatError, match=r"has the shape 3×95, but inputs of .l.weight. .64×96. have 96 columns"):
        audit_recipes({"l.weight": NORMAL}, "mxfp4", activations={"l": np.zeros((3, 95), np.float32)})
    with pytest.raises(UnsupportedError, match=r"has no inputs of these tensors that are matrices; it has .x."):
        audit_recipes({"l.weight": NORMAL}, "mxfp4", activations={"x": np.zeros((3, 96), np.float32)})
    samples = {"l": np.ones((3, 96), np.float32), "norm": np.ones(96, np.float32)}
    found = audit_recipes({"l.weight": NORMAL, "norm.weight": NORMAL[0]}, "bf16", activations=samples)
    assert {each.tensor: each.recipes[0].output_sqnr is not None for each in found.tensors} == {
        "l.weight": True,
        "norm.weight": False,
    }


def test_json_is_read_back():
    found = audit_recipes({"w": NORMAL, "ids": np.arange(3)}, "mxfp4,e4m3,bf16")
    for tensor in found.tensors:
        assert from_json(json.dumps(document_of(tensor))) == tensor
    *tensors, whole = map(json.loads, found.to_json().splitlines())
    assert [each["tensor"] for each in tensors] == ["w", "ids"]
    assert whole["recommendation"]["base"] == "mxfp4"
    assert [each["recipe"] for each in whole["totals"]] == ["mxfp4", "e4m3", "bf16"]


def test_bad_arguments_name_the_culprit():
    with pytest.raises(RecipeError, match=r"did you mean 'mxfp4'\?"):
        fl.audit({"w": NORMAL}, to="nvfp4,mxpf4")
    with pytest.raises(RecipeError, match="missing between commas"):
        fl.audit({"w": NORMAL}, to="nvfp4,,mxfp4")
    with pytest.raises(UnsupportedError, match="matches no tensor"):
        fl.audit({"w": NORMAL}, to="nvfp4", only="x*")
    with pytest.raises(UnsupportedError, match="give one"):
        fl.audit({"w": NORMAL}, {"w": NORMAL}, to="nvfp4")
    with pytest.raises(UnsupportedError, match="min_sqnr is for audits of recipes"):
        fl.audit({"w": NORMAL}, min_sqnr=3)
    with pytest.raises(UnsupportedError, match="overflow must be native or saturate"):
        fl.audit({"w": NORMAL}, to="nvfp4", overflow="wrap")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_checkpoint(tmp_path / "a.safetensors", {"w": ("F32", NORMAL), "n": ("F32", np.ones(64, np.float32))})
    write_checkpoint(tmp_path / "b.safetensors", {"w": ("F32", NORMAL * np.float32(1e-4))})
    np.savez("x.npz", w=RNG.standard_normal((4, 96)).astype(np.float32))
    return tmp_path


def test_command_line(files, capsys):
    assert main(["audit", "a.safetensors", "--to", "mxfp4,block(e2m1, ue5m3, 16)", "--quiet"]) == 0
    assert "mxfp4 for both tensors" in capsys.readouterr().out
    assert main(["audit", "a.safetensors", "--to", "nvfp4", "--min-sqnr", "30dB", "--only", "w", "--quiet"]) == 1
    assert main(["audit", "a.safetensors", "--to", "nvfp4", "--min-sqnr", "20", "--only", "w", "--quiet"]) == 0
    assert main(["audit", "a.safetensors", "--to", "nvfp4", "--activations", "x.npz"]) == 0
    assert "outputs      of 1 layer, for the inputs in x.npz" in capsys.readouterr().out


def test_several_files_and_a_plan(files, capsys):
    assert main(["audit", "a.safetensors", "b.safetensors", "--to", "e4m3", "--plan", "plan.json", "--json"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each["source"], each["tensor"]) for each in lines[:-1]] == [
        ("b.safetensors", "w"), ("a.safetensors", "w"), ("a.safetensors", "n"),
    ]  # fmt: skip
    plan = json.loads((files / "plan.json").read_text())
    assert plan["tensors"] == {"a.safetensors::w": "e4m3", "a.safetensors::n": "e4m3", "b.safetensors::w": None}
    assert plan["sources"] == ["a.safetensors", "b.safetensors"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["a.safetensors", "--to", "mxpf4"], "did you mean 'mxfp4'?"),
        (["a.safetensors", "--to", "e4m3/0"], "from 1 to"),
        (["a.safetensors", "--to", "e4m3", "--against", "b.safetensors"], "exclude each other"),
        (["a.safetensors", "--min-sqnr", "3"], "needs --to"),
        (["a.safetensors", "--to", "e4m3", "--min-sqnr", "high"], "takes a number of decibels"),
        (["a.safetensors", "--to", "e4m3", "--only", "zz"], "matches no tensor"),
        (["a.safetensors", "--to", "e4m3", "--plan", "no/plan.json"], "'no/plan.json' cannot be written"),
        (["a.safetensors", "--to", "e4m3", "--activations", "a.safetensors", "--only", "n"], "that are matrices"),
        (["--to", "e4m3"], "needs a checkpoint"),
        (["a.safetensors", "b.safetensors"], "takes one checkpoint"),
        (["nowhere.safetensors", "--to", "e4m3"], "nowhere.safetensors"),
    ],
)
def test_bad_commands(files, capsys, words, said):
    assert main(["audit", *words]) == 2
    out, err = capsys.readouterr()
    assert said in err
    assert not out
    assert err.count("\n") in (1, 3)  # a recipe is shown with a caret below it


def test_nothing_wider_than_the_tensor_is_recommended():
    x = np.random.default_rng(3).standard_normal((4, 64)).astype(np.float16)
    found = audit_recipes({"w": x}, "fp32,bf16,int8/channel")
    assert found.tensors[0].choice == "int8/channel"
    assert audit_recipes({"w": x}, "fp32,bf16").recommendation.words == (
        "none of these recipes: the tensor should stay as stored"
    )


@pytest.mark.parametrize("size", [1e300, 1e-300])
def test_numbers_whose_squares_binary64_lacks(size):
    found = audit_recipes({"w": np.full((2, 32), size), "v": np.ones((2, 32))}, "mxfp4,bf16")
    [w] = [each for each in found.tensors if each.tensor == "w"]
    assert w.choice == ""
    assert audit_recipes({"w": np.full((2, 32), size)}, "mxfp4", min_sqnr=20).failing
    assert all(each.verdict != "survives" for each in w.recipes)
    assert "nan" not in str(found)
    for line in found.to_json().splitlines():
        json.loads(line, parse_constant=pytest.fail)  # NaN and Infinity are not JSON


def test_a_tensor_without_finite_numbers_stays():
    assert audit_recipes({"w": np.full(64, np.nan, np.float32)}, "bf16,mxfp4").tensors[0].choice == ""


def test_a_quantised_weight_is_not_stored_again_in_as_many_bits():
    codes = np.random.default_rng(5).integers(-127, 128, (64, 64)).astype(np.int8)
    model = {"l.weight": codes, "l.weight_scale": np.float32([1 / 64])}
    [found] = audit_recipes(model, "int8/tensor,e4m3/tensor,bf16").tensors
    assert (found.convention != "", found.choice) == (True, "")
    assert audit_recipes(model, "int8/tensor,mxfp4", min_sqnr=10).tensors[0].choice == "mxfp4"
