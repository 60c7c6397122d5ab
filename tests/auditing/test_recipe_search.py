"""Which recipe made these codes: a recipe is named only if it gives every code and every scale."""

import io
import json
from contextlib import redirect_stderr, redirect_stdout
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import HeldSource, Source
from floatlab.auditing.recipe_search import matching
from floatlab.auditing.recipe_search.arrangements import SWIZZLED, Arrangement, arrangements
from floatlab.auditing.recipe_search.encoding import is_finite, magnitudes
from floatlab.auditing.recipe_search.search import search
from floatlab.auditing.recipe_search.sources import opened_evidence
from floatlab.cli.main import main
from floatlab.errors import FileFormatError, UnsupportedError
from floatlab.formats.recipes import parse_recipe
from tests.auditing.making import write_checkpoint, write_examples
from tests.differential.quantized import RECIPES, case, cases, results
from tests.differential.shared import FOLDER as ORACLE_FOLDER
from tests.differential.shared import needs_folder


def boundaries(rng, shape):
    """Return float32 numbers: few digits next to ties and powers of two, random ones, subnormals, zeros."""
    x = rng.integers(1, 64, shape) * 2.0 ** rng.integers(-9, 2, shape) * (1 + rng.integers(-2, 3, shape) * 2.0**-23)
    x[::4] = rng.standard_normal(x[::4].shape) * 0.02
    x[1::8] *= 2.0**-132
    x[5] = 0
    x[6] = 0.75
    return (x * rng.choice([-1.0, 1.0], shape)).astype(np.float32)


def quick(codes, original, scales=None, tensor=None):
    """Return the result without derivations and examples."""
    with opened_evidence(codes, original, scales, tensor) as (evidence, names):
        return search(evidence, names, explains=False)


def same_blocks(found, recipe):
    """Return whether a record has this recipe's rule and element."""
    named = parse_recipe(found.recipe)
    return named.rule is recipe.rule and named.format.element == recipe.format.element and not found.changes


MADE = [
    "mxfp4:torchao_floor", "mxfp4:modelopt", "mxfp4:ct", "mxfp8_e4m3:torchao_even", "mxfp8_e5m2:te", "mxfp4:up",
    "mxfp6_e2m3:microxcaling_nearest", "mxfp6_e3m2:torchao_ceil", "nvfp4:modelopt", "nvfp4:torchao", "nvfp4:te",
    "nvfp4:ct", "nvfp4:fouroversix_4", "nvfp4/16x16:te", "nvfp4/16/channel:te", "nvfp4:te_4over6_mse256",
    "nvfp4:4over6", "nvfp4:ggml", "e4m3/tensor:modelopt", "e4m3/channel:te", "e4m3/1x128:deepseek",
    "e4m3/128x128:deepseek_pow2", "e5m2/tensor:torchao_training", "int8/channel:ct", "int4/32:modelopt",
    "nf4/flat64:bnb", "q8_0:ggml", "q4_0:gguf",
]  # fmt: skip


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", MADE)
def test_a_recipe_is_found_among_those_that_give_its_codes(text):
    x = boundaries(np.random.default_rng(list(text.encode())), (128, 256))
    recipe = parse_recipe(text)
    made = fl.arrays.encode(x, recipe)
    found = quick(made.codes, x, made.scales, made.tensor_scale)
    assert any(same_blocks(each, recipe) for each in found.recipes), found
    for each in found.recipes:
        if "axis 0" not in dict(each.properties)["blocks"] and not each.changes:
            again, element = fl.arrays.encode(x, each.recipe), parse_recipe(each.recipe).format.element
            numbers = [matching.values_of(element)[codes] for codes in (made.codes, again.codes)]
            assert np.array_equal(*numbers, equal_nan=True), each.name


@pytest.mark.parametrize("text", ["mxfp4:fouroversix_6", "mxfp4:torchao_floor", "e4m3/1x32:modelopt", "nvfp4:ct"])
@pytest.mark.parametrize("lost", [np.inf, np.nan])
def test_recipes_are_found_for_weights_with_infinities_and_nans(text, lost):
    """Some recipes give NaN as the scale of such a block; the other scales are still powers of two."""
    x = np.random.default_rng(8).standard_normal((16, 64)).astype(np.float32)
    x[[2, 9], [20, 40]] = lost
    recipe = parse_recipe(text)
    made = fl.arrays.encode(x, recipe)
    found = quick(made.codes, x, made.scales, made.tensor_scale)
    assert any(same_blocks(each, recipe) for each in found.recipes), found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("text", ["mxfp4:torchao_rceil", "nvfp4:te", "e4m3/channel:modelopt", "e4m3/tensor:te"])
@pytest.mark.parametrize("kind", ["bfloat16", "float16"])
def test_originals_in_narrow_formats(text, kind):
    rng = np.random.default_rng(7)
    x = rng.standard_normal((64, 128)).astype(np.float16)
    x = x.astype(ml_dtypes.bfloat16) if kind == "bfloat16" else x
    made = fl.arrays.encode(x, text)
    found = quick(made.codes, x, made.scales, made.tensor_scale)
    assert any(same_blocks(each, parse_recipe(text)) for each in found.recipes)
    assert found.format == {"bfloat16": "bfloat16", "float16": "binary16"}[kind]


SHAPES = [((64, 96), 0), ((4, 64, 96), 1), ((32, 4, 64), 0), ((4, 8, 64), -1), ((512,), 0)]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
@pytest.mark.parametrize("text", ["mxfp8_e4m3:torchao_rceil", "mxfp8_e4m3", "e4m3/channel:te"])
def test_blocks_along_any_axis(shape, axis, text):
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    made = fl.arrays.encode(x, text, axis=axis)
    found = quick(made.codes, x, made.scales)
    at = axis % len(shape)
    said = [each for each in found.recipes if same_blocks(each, parse_recipe(text))]
    words = dict(said[0].properties)["blocks"]
    assert f"along axis {at}" in words or words.startswith("the whole tensor")


def test_codes_made_by_ml_dtypes_are_found():
    x = np.random.default_rng(1).standard_normal((64, 128)).astype(np.float32)
    scales = np.abs(x).max(axis=1, keepdims=True) / np.float32(448)
    found = fl.find_recipe((x / scales).astype(ml_dtypes.float8_e4m3fn), x, scales)
    assert {"e4m3/channel:modelopt", "e4m3/channel:torchao"} <= {each.name for each in found.recipes}
    properties = dict(found.recipes[0].properties)
    assert properties["quotient"].endswith("(division)")
    assert properties["blocks"].startswith("each row along axis 1")
    assert fl.find_recipe((x / 1).astype(ml_dtypes.float8_e4m3fn), x).recipes[0].name == "e4m3:none"


def test_a_quotient_and_a_rounding_that_no_library_has_are_named():
    x = np.random.default_rng(1).standard_normal((64, 128)).astype(np.float32)
    scales = np.abs(x).max(axis=1, keepdims=True) / np.float32(127)
    found = quick(np.trunc(x * (np.float32(1) / scales)).astype(np.int8), x, scales)
    assert found.recipes
    for each in found.recipes:
        assert each.changes == ("scaled = x * (1 / scale)", "elements toward zero")
    scales = np.abs(x).max(axis=1, keepdims=True) / np.float32(448)
    codes = fl.arrays.encode(x * (np.float32(1) / scales), "e4m3", rounding="RTZ")
    assert quick(codes, x, scales).recipe == "e4m3/channel:deepgemm, elements toward zero"
    down = np.nextafter(scales, np.float32(0))
    quotient = np.abs(x).max(axis=1, keepdims=True).astype(np.float64) / 448
    truncated = np.where(scales > quotient, down, scales)
    found = quick((x / truncated).astype(ml_dtypes.float8_e4m3fn), x, truncated)
    assert any("scales rounded toward zero" in each.changes for each in found.recipes), found


def test_values_rounded_to_bfloat16_first():
    x = np.random.default_rng(5).standard_normal((32, 128)).astype(np.float32)
    half = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    scales = np.abs(half).max(axis=1, keepdims=True) / np.float32(448)
    found = quick((half / scales).astype(ml_dtypes.float8_e4m3fn), x, scales)
    assert found.recipes
    assert all("values rounded to bfloat16 first" in each.changes for each in found.recipes)


def test_quotients_rounded_to_bfloat16_are_those_of_modelopt_exports():
    """A binary32 scale without axes leaves the quotient in bfloat16, as torch computes it."""
    rng = np.random.default_rng(9)
    for top in (1.0, 1.25, 0.0371):  # powers of two and 5·2^n give quotients on ties of bfloat16
        x = (rng.standard_normal((32, 64)) * 0.1).astype(ml_dtypes.bfloat16)
        x[3, 5] = top
        scale = np.float32(np.abs(x.astype(np.float32)).max() / np.float32(448))
        quotients = (x.astype(np.float32) / scale).astype(ml_dtypes.bfloat16)
        codes = quotients.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
        found = quick(codes, x, np.float32([scale]))
        assert "e4m3/tensor:modelopt_export" in [each.name for each in found.recipes]
        assert (fl.arrays.encode(x, "e4m3/tensor:modelopt_export").codes == codes).all()
        assert (codes != (x.astype(np.float32) / scale).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)).any()


def test_a_few_changed_codes_are_counted_and_located():
    x = np.random.default_rng(2).standard_normal((256, 256)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp4:torchao_floor")
    codes = made.codes.copy()
    for place, flip in (((3, 7), 4), ((100, 9), 4), ((200, 200), 4)):
        codes[place] ^= flip
    found = fl.find_recipe(codes, x, made.scales)
    assert not found.recipes
    best = found.nearest[0]
    assert (best.recipe, best.codes, best.codes_tried, best.first_code) == ("mxfp4:torchao_floor", 65533, 65536, (3, 7))
    assert found.element.index == (3, 7)
    assert found.element.code == codes[3, 7]
    assert found.element.derivations[0].code == made.codes[3, 7]
    assert "mxfp4:torchao_floor gives all but 3 of 65,536 codes" in found.page().title
    assert any("no rounding explains" in each for each in found.remarks)


def test_a_wrong_scale_is_compared_with_the_recipe_that_stores_such_scales():
    """Some recipes store the reciprocal; a scale that is 37.9 times too large is far from it."""
    x = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32) / 50
    made = fl.arrays.encode(x, "e4m3/tensor")
    scales = made.scales.reshape(-1).view(np.float32) * np.float32(37.9)
    with opened_evidence(made.codes, x, scales) as (evidence, names):
        found = search(evidence, names)
    assert not found.is_found
    assert "all codes agree; the stored scales are 37.9 times the recipe's" in found.remarks


def test_random_codes_have_no_recipe():
    rng = np.random.default_rng(9)
    x = rng.standard_normal((32, 64)).astype(np.float32)
    codes, scales = rng.integers(0, 16, (32, 64)).astype(np.uint8), rng.integers(110, 130, (32, 2)).astype(np.uint8)
    found = fl.find_recipe(codes, x, scales)
    assert not found.is_found
    assert found.nearest[0].share < 0.5
    assert any("no recipe gives half" in each for each in found.remarks)


def test_another_scale_of_one_block_is_not_called_the_recipe():
    x = np.random.default_rng(2).standard_normal((16, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp4:torchao_floor")
    scales = made.scales.copy()
    scales[4, 1] += 1
    found = fl.find_recipe(made.codes, x, scales)
    assert not found.is_found
    assert found.nearest[0].first_scale == (4, 1)
    assert "gives all codes, but not 1 scale" in found.page().title


@pytest.mark.parametrize("high_first", [False, True])
def test_packed_codes_and_the_order_of_nibbles(high_first):
    x = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "nvfp4:torchao")
    first, second = made.codes[:, ::2], made.codes[:, 1::2]
    packed = first << 4 | second if high_first else second << 4 | first
    found = quick(packed, x, made.scales, made.tensor_scale)
    assert any(each.name == "nvfp4:torchao" for each in found.recipes)
    assert ("high nibble" in found.recipes[0].layout[0]) is high_first


def test_six_bit_codes_four_in_three_bytes():
    x = np.random.default_rng(4).standard_normal((32, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp6_e2m3:ct")
    word = sum(made.codes[:, at::4].astype(np.uint32) << 6 * at for at in range(4))
    packed = np.stack([word >> 8 * at & 255 for at in range(3)], axis=-1).astype(np.uint8).reshape(32, 48)
    found = quick(packed, x, made.scales)
    assert any(each.name == "mxfp6_e2m3:ct" for each in found.recipes)


def swizzled(scales):
    """Return scales in the layout of 128×4 tiles, as torchao's to_blocked: 32 rows of 4 × 4."""
    rows, columns = scales.shape
    high, wide = -(-rows // 128), -(-columns // 4)
    padded = np.zeros((high * 128, wide * 4), scales.dtype)
    padded[:rows, :columns] = scales
    tiles = padded.reshape(high, 128, wide, 4).transpose(0, 2, 1, 3).reshape(-1, 4, 32, 4)
    return tiles.transpose(0, 2, 1, 3).reshape(-1)


def test_swizzled_transposed_and_repeated_scales():
    x = np.random.default_rng(4).standard_normal((160, 192)).astype(np.float32)
    made = fl.arrays.encode(x, "nvfp4:torchao")
    found = quick(made.codes, x, swizzled(made.scales), made.tensor_scale)
    assert found.is_found
    assert any("swizzled" in words for words in found.recipes[0].layout)
    tile = fl.arrays.encode(x, "e4m3/32x32:modelopt")
    found = quick(tile.codes, x, np.ascontiguousarray(tile.scales.T))
    assert found.is_found
    assert any("transposed" in words for words in found.recipes[0].layout)
    tile = fl.arrays.encode(x, "nvfp4/16x16:te")
    found = quick(tile.codes, x, np.repeat(tile.scales, 16, axis=0), tile.tensor_scale)
    assert any(each.name == "nvfp4/16x16:te" for each in found.recipes)


def test_reciprocal_scales_and_the_forms_of_the_tensor_scale():
    x = np.random.default_rng(4).standard_normal((32, 128)).astype(np.float32)
    made = fl.arrays.encode(x, "e4m3/channel:modelopt")
    inverse = np.float32(1) / made.scales.view(np.float32)
    found = quick(made.codes, x, inverse)
    assert "reciprocal" in found.recipes[0].layout[1]
    made = fl.arrays.encode(x, "nvfp4:te")
    amax = np.float32(np.abs(x).max())
    for stored, words in ((amax, "as in the recipe"), (amax / np.float32(2688), "the largest magnitude / 2688")):
        found = quick(made.codes, x, made.scales, np.float32([stored]))
        assert [each.tensor_scale for each in found.recipes if each.name == "nvfp4:te"] == [words]


def test_a_tensor_scale_that_was_taken_from_another_tensor():
    x = np.random.default_rng(4).standard_normal((32, 128)).astype(np.float32)
    given = np.float32(np.abs(x).max() * 1.75 / 2688)
    made = fl.arrays.encode(x, "nvfp4:modelopt", tensor_scale=given)
    found = quick(made.codes, x, made.scales, given)
    assert any(each.recipe == "nvfp4:modelopt" for each in found.recipes)
    assert all(each.changes == ("the tensor's scale as stored",) for each in found.recipes)


LARGE = ["nvfp4:te", "e4m3/tensor:modelopt", "e4m3/128x128:ct", "q8_0:ggml", "nvfp4/16/channel:te"]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("text", LARGE)
def test_large_tensors_are_sampled_and_then_compared_whole(text, monkeypatch):
    monkeypatch.setattr(matching, "SMALL", 1 << 10)
    monkeypatch.setattr(matching, "_PART", 1 << 12)
    monkeypatch.setattr(matching, "_SAMPLE", 1 << 9)
    x = boundaries(np.random.default_rng(6), (512, 64))
    made = fl.arrays.encode(x, text)
    found = quick(made.codes, x, made.scales, made.tensor_scale)
    [each] = [each for each in found.recipes if same_blocks(each, parse_recipe(text))]
    assert (each.codes, each.scales) == (x.size, made.scales.size)
    wrong = made.codes.copy()
    wrong[500, 3] ^= 4
    found = quick(wrong, x, made.scales, made.tensor_scale)
    assert not found.is_found
    assert (found.nearest[0].codes, found.nearest[0].first_code) == (x.size - 1, (500, 3))


@pytest.mark.parametrize("axis", [0, 1])
def test_columns_of_large_tensors(axis, monkeypatch):
    monkeypatch.setattr(matching, "SMALL", 1 << 10)
    monkeypatch.setattr(matching, "_PART", 1 << 10)
    x = np.random.default_rng(6).standard_normal((256, 64)).astype(np.float32)
    for text in ("e4m3/channel:te", "mxfp4:torchao_even"):
        made = fl.arrays.encode(x, text, axis=axis)
        assert any(each.name == text for each in quick(made.codes, x, made.scales).recipes)


def test_the_element_that_tells_two_recipes_apart_is_derived():
    x = np.float32([[0.02392577938735485, 0.08203125, *[0] * 14, 2688, *[0] * 15]])
    made = fl.arrays.encode(x, "nvfp4:te")
    found = fl.find_recipe(made.codes, x, made.scales, made.tensor_scale)
    assert found.recipe == "nvfp4:te"
    names = [each.name for each in found.recipes]
    assert "nvfp4:modelopt" not in names
    one, other = found.element.derivations
    assert (one.recipe, one.code) == ("nvfp4:te", 4)
    assert other.code == 3
    assert found.element.index == (0, 0)
    assert (one.steps[-1].name, one.steps[-1].value) == ("scaled", Fraction(7, 4))  # a tie, which goes to even
    assert other.steps[-1].value < Fraction(7, 4)


def test_examples_tell_the_recipes_of_a_class_apart():
    x = np.full((2, 32), 0.5, np.float32)
    made = fl.arrays.encode(x, "mxfp4:torchao_rceil")
    found = fl.find_recipe(made.codes, x, made.scales)
    assert found.verdict == "several"
    assert found.examples
    for example in found.examples:
        one, other = example.derivations
        assert (one.code, one.scale) != (other.code, other.scale)
        assert one.recipe == found.recipe


def test_json_is_read_back():
    x = np.random.default_rng(2).standard_normal((4, 32)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp4:ct")
    found = fl.find_recipe(made.codes, x, made.scales)
    assert fl.from_json(found.to_json()) == found
    assert found.svg().startswith("<svg")
    assert repr(found).startswith("RecipeSearch(codes: ")
    with pytest.raises(fl.TruthValueError):
        bool(found)


def command(*words):
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main([*map(str, words)])
    return status, out.getvalue(), err.getvalue()


def test_the_command_finds_scales_beside_the_codes(tmp_path):
    write_examples(tmp_path)
    name = "model.layers.0.mlp.down_proj.weight"
    model, original = f"{tmp_path}/model.safetensors::{name}", f"{tmp_path}/original.safetensors"
    status, out, _ = command("audit", model, "--from", original, "--json")
    wire = json.loads(out)
    assert (status, wire["recipes"][0]["recipe"]) == (0, "nvfp4:modelopt")
    assert wire["recipes"][0]["tensor_scale"] == "as in the recipe"
    status, out, _ = command(
        "audit", model, "--from", f"{original}::{name}", "--scales",
        f"{tmp_path}/model.safetensors::{name}_scale,{tmp_path}/model.safetensors::{name}_scale_2", "--quiet",
    )  # fmt: skip
    assert (status, out.split()[0]) == (0, "nvfp4:modelopt")
    x = np.float32(np.arange(64 * 128).reshape(64, 128))
    np.save(tmp_path / "other.npy", x)
    status, out, _ = command("audit", model, "--from", tmp_path / "other.npy")
    assert status == 1
    assert "no recipe" in out


def test_hostile_files_get_one_line(tmp_path):
    x = np.random.default_rng(2).standard_normal((32, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "e4m3/channel:modelopt")
    scales = made.scales.view(np.float32)
    path = tmp_path / "a.safetensors"
    write_checkpoint(
        path,
        {
            "w": ("F8_E4M3", made.codes), "w_scale": ("F32", scales), "v": ("F8_E4M3", made.codes),
            "v_scale": ("F32", scales[:5]), "i": ("I64", np.zeros((32, 64), np.int64)), "x": ("F32", x),
            "t": ("F32", np.ascontiguousarray(x.T)), "u": ("F8_E4M3", made.codes), "u_scale": ("I32", scales),
            "e": ("F8_E4M3", made.codes[:0]), "z": ("F32", x[:0]),
        },
    )  # fmt: skip
    assert command("audit", f"{path}::w", "--from", f"{path}::x", "--quiet")[0] == 0
    for codes, original, words in (
        ("v", "x", "the scales of"),
        ("v", "x", "fits no blocks of 32×64 numbers"),
        ("missing", "x", "has no tensor 'missing'"),
        ("w", "missing", "has no tensor 'missing'"),
        ("i", "x", "are no codes for 32×64 numbers"),
        ("x", "x", "are no codes"),
        ("w", "i", "has integers (int64), but an original has floats"),
        ("w", "t", "transpose one of them"),
        ("w", "z", "has no elements"),
        ("e", "x", "are no codes"),
        ("u", "x", "is int32, but scales are"),
    ):
        status, out, err = command("audit", f"{path}::{codes}", "--from", f"{path}::{original}")
        assert (status, out) == (2, ""), (codes, original, out)
        assert words in err
        assert err.count("\n") == 1
    for words in (
        ("audit", f"{path}::w", "--from", f"{path}::x", "--against", path),
        ("audit", f"{path}::w", "--scales", f"{path}::w_scale"),
        ("audit", f"{path}", "--from", f"{path}::x"),
        ("audit", f"{path}::w", "--from", tmp_path / "nowhere.safetensors"),
    ):
        status, out, err = command(*words)
        assert (status, out, err.count("\n")) == (2, "", 1)


def test_arrays_of_other_types_are_refused():
    x = np.ones((4, 32), np.float32)
    with pytest.raises(FileFormatError, match="are no codes for 4×32 numbers"):
        fl.find_recipe(np.ones((4, 31), np.uint8), x)
    with pytest.raises(UnsupportedError, match="has integers"):
        fl.find_recipe(np.ones((4, 32), np.uint8), np.ones((4, 32), np.int32))
    with pytest.raises(FileFormatError, match="fits no blocks"):
        fl.find_recipe(np.ones((4, 32), np.uint8), x, np.ones((3, 5), np.float32))


def test_arrangements_that_cut_the_same_blocks_are_joined():
    found = arrangements((16, 64), (16, 1))[0]
    assert found == Arrangement("channel", 1, same=found.same)
    assert {"64", "128", "flat64"} <= set(found.same)
    assert {each.order for each in arrangements((128, 64), (512,), powers=True)} == {"", SWIZZLED}


def test_progress_counts_the_elements(monkeypatch):
    monkeypatch.setattr(matching, "SMALL", 1 << 8)
    x = np.random.default_rng(2).standard_normal((64, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp4")
    seen = []
    fl.find_recipe(made.codes, x, made.scales, progress=lambda total: [seen.append(total), seen.append][1])
    assert seen[0] == sum(seen[1:]) == x.size


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e4m3fnuz", "float8_e8m0fnu", "float4_e2m1fn"])
def test_originals_of_at_most_8_bits(kind):
    x = np.abs(np.random.default_rng(3).standard_normal((16, 64))).astype(getattr(ml_dtypes, kind))
    made = fl.arrays.encode(x.astype(np.float32), "nvfp4:te")
    found = fl.find_recipe(made.codes, x, made.scales, made.tensor_scale)
    assert "nvfp4:te" in [each.recipe for each in found.recipes]
    codes = made.codes.copy()
    codes[2, 5] ^= 1
    wrong = fl.find_recipe(codes, x, made.scales, made.tensor_scale)
    assert not wrong.is_found
    assert (wrong.element.index, wrong.element.number) == ((2, 5), Fraction(float(x[2, 5])))


@pytest.mark.parametrize("name", ["e4m3", "e4m3fnuz", "e5m2", "e8m0", "fp4"])
def test_magnitudes_are_in_order(name):
    """The largest result belongs to a NaN, if there is one, or else to the largest magnitude."""
    fmt = fl.parse_format(name)
    codes = np.arange(1 << fmt.width, dtype=np.uint8)
    values = np.abs(fl.arrays.decode(codes, fmt))
    ranks = magnitudes(codes, fmt)
    finite = np.isfinite(values)
    assert is_finite(int(ranks[finite].max()), fmt)
    assert not any(is_finite(each, fmt) for each in ranks[~finite].tolist())
    assert (np.argsort(ranks[finite], kind="stable") == np.argsort(values[finite], kind="stable")).all()


# Codes computed by the libraries themselves.

ORACLES = [(name, found[0]) for name in cases() if name != "no folder" for found in results(name)]


@needs_folder
@pytest.mark.one_in(120)
@pytest.mark.parametrize(("name", "identity"), ORACLES or [("no folder", "")])
def test_the_recipe_of_a_library_is_named_or_its_class(name, identity):
    stored = case(name)["input"]
    x = Source(stored, fl.parse_format("bf16")) if stored.dtype == np.uint16 else stored
    [(_, _, codes, scales, tensor)] = [each for each in results(name) if each[0] == identity]
    tensor = None if tensor is None or np.isnan(tensor).all() else np.asarray(tensor).reshape(-1)
    found = quick(codes, x, scales, tensor)
    wanted = parse_recipe(RECIPES[identity])
    assert any(same_blocks(each, wanted) for each in found.recipes), found


def test_sources_may_be_streams():
    x = np.random.default_rng(2).standard_normal((8, 64)).astype(np.float32)
    made = fl.arrays.encode(x, "mxfp4:te")
    assert quick(HeldSource(made.codes), HeldSource(x), HeldSource(made.scales)).is_found


MODELS = ORACLE_FOLDER / "quantized" / "checkpoints"
DOWN = "model.layers.0.mlp.down_proj.weight"
CHECKPOINTS = {
    "modelopt_nvfp4": "nvfp4:modelopt", "ct_nvfp4": "nvfp4:ct", "torchao_nvfp4": "nvfp4:torchao",
    "ct_mxfp4": "mxfp4:ct", "torchao_mxfp4": "mxfp4:torchao_floor", "modelopt_mxfp8": "mxfp8_e4m3:modelopt",
    "bnb_nf4": "nf4/64:bnb", "modelopt_fp8": "e4m3/tensor:modelopt",
}  # fmt: skip


@needs_folder
@pytest.mark.parametrize("folder", CHECKPOINTS)
def test_the_recipes_of_checkpoints_are_found_with_their_scales(folder):
    with opened_evidence(f"{MODELS / folder}::{DOWN}", MODELS / "original.safetensors") as (evidence, names):
        found = search(evidence, names, explains=False)
    assert CHECKPOINTS[folder] in [each.name for each in found.recipes]
    first = "high" if folder == "bnb_nf4" else "low"
    assert "two codes" not in found.recipes[0].layout[0] or f"{first} nibble" in found.recipes[0].layout[0]


@pytest.mark.one_in(2)
@needs_folder
@pytest.mark.parametrize("layer", ["mlp.up_proj", "self_attn.q_proj"])
def test_modelopt_exports_fp8_with_quotients_in_bfloat16(layer):
    place = f"{MODELS}/modelopt_fp8::model.layers.0.{layer}.weight"
    with opened_evidence(place, MODELS / "original.safetensors") as (evidence, names):
        found = search(evidence, names, explains=False)
    assert [each.name for each in found.recipes] == ["e4m3/tensor:modelopt_export"]


@needs_folder
@pytest.mark.parametrize(
    ("name", "original", "recipe"),
    [
        ("attn_q", "self_attn.q_proj", "q8_0:ggml"), ("attn_output", "self_attn.o_proj", "q4_0:ggml"),
        ("ffn_gate", "mlp.gate_proj", "mxfp4:ggml"), ("ffn_up", "mlp.up_proj", "nvfp4:ggml"),
        ("ffn_down", "mlp.down_proj", "q4_1:ggml"),
    ],
)  # fmt: skip
def test_the_recipes_of_gguf_files_are_found(name, original, recipe):
    codes = f"{MODELS}/gguf/model.gguf::blk.0.{name}.weight"
    with opened_evidence(codes, f"{MODELS}/original.safetensors::model.layers.0.{original}.weight") as (
        evidence,
        names,
    ):
        found = search(evidence, names, explains=False)
    assert [each.name for each in found.recipes] == [recipe]
