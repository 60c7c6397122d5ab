"""The language of recipes, the formulas of scale rules, and their documentation."""

from pathlib import Path

import pytest

from floatlab import FormatError, arrays
from floatlab.arith.blocks import quantize_blocks
from floatlab.errors import ContextError, RecipeError
from floatlab.formats.blocks import parse_block_format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import (
    NAMED_RECIPES,
    RECIPE_FAMILIES,
    Recipe,
    is_recipe,
    parse_recipe,
    parse_recipes,
    rules_for,
)
from floatlab.formats.scale_rules import SCALE_RULES
from floatlab.formats.scaling import BLOCK, ELEMENT, TENSOR


@pytest.mark.parametrize(
    ("text", "element", "scale", "shape", "tensor", "rule", "name"),
    [
        ("mxfp4", "e2m1fn", "e8m0fnu", "32", None, "floor", "mxfp4"),
        ("MXFP8-E4M3:RCEIL", "e4m3fn", "e8m0fnu", "32", None, "up", "mxfp8_e4m3:up"),
        ("nvfp4/16x16", "e2m1fn", "e4m3fn", "16x16", "binary32", "nearest", "nvfp4/16x16"),
        ("nvfp4/16/row : te", "e2m1fn", "e4m3fn", "16", "binary32", "te", "nvfp4/16/channel:te"),
        ("e4m3", "e4m3fn", "binary32", "tensor", None, "none", "e4m3"),
        ("e4m3/tensor", "e4m3fn", "binary32", "tensor", None, "nearest", "e4m3/tensor"),
        ("e5m2/row", "e5m2", "binary32", "channel", None, "nearest", "e5m2/channel"),
        ("e4m3/1x128:te-pow2", "e4m3fn", "binary32", "128", None, "te_pow2", "e4m3/128:te_pow2"),
        ("e4m3/128x128", "e4m3fn", "binary32", "128x128", None, "nearest", "e4m3/128x128"),
        ("nf4/64", "nf4", "binary32", "64", None, "nearest", "nf4/64"),
        ("nf4/flat64:bnb", "nf4", "binary32", "flat64", None, "bnb", "nf4/flat64:bnb"),
        ("INT8/channel:ct", "int8", "binary32", "channel", None, "ct", "int8/channel:ct"),
        ("int4/32", "int4", "binary32", "32", None, "nearest", "int4/32"),
        ("q8_0", "int8", "binary16", "flat32", None, "nearest", "q8_0"),
        ("q4_0:gguf", "int4", "binary16", "flat32", None, "gguf", "q4_0:gguf"),
        ("Q4-1", "uint4", "binary16", "flat32", None, "range", "q4_1"),
        ("q4_k:ggml", "uint4", "uint6", "flat32", "binary16", "ggml", "q4_k"),
        ("block(e2m1,ue5m3,16)", "e2m1fn", "ue5m3", "16", None, "nearest", "block(e2m1, ue5m3, 16)"),
        ("block(e2m1,ue4m3,4x4,fp32)", "e2m1fn", "ue4m3", "4x4", "binary32", "nearest",
            "block(e2m1, ue4m3, 4x4, fp32)"),
        ("block(e2m1,e4m3,4,fp32):up", "e2m1fn", "e4m3fn", "4", "binary32", "up", "block(e2m1, e4m3, 4, fp32):up"),
        ("block(e4m3, ue8m0, row)", "e4m3fn", "e8m0fnu", "channel", None, "floor", "block(e4m3, e8m0fnu, channel)"),
    ],
)  # fmt: skip
def test_recipes_are_read(text, element, scale, shape, tensor, rule, name):
    recipe = parse_recipe(text)
    fmt = recipe.format
    found = (fmt.element.name, fmt.scale.name, fmt.shape, fmt.tensor and fmt.tensor.name, recipe.rule.name, recipe.name)
    assert found == (element, scale, shape, tensor, rule, name)
    assert parse_recipe(recipe.name) == recipe


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("mxfp4/", 6, "a shape must be N, RxC, tensor, channel or flatN"),
        ("mxfp4/0", 6, "from 1 to 1,048,576"),
        ("nf4/flat", 4, "a shape must be N, RxC, tensor, channel or flatN"),
        ("nf4/flat0", 4, "from 1 to 1,048,576"),
        ("q4_k/64", 5, "q4_k has one shape, blocks of 32 in groups of 256"),
        ("int8/channel:te", 13, "nearest up none for int8/channel"),
        ("nf4/64:torchao", 7, "nearest up none for nf4/64"),
        ("block(q8_0, fp16, 32)", 6, "is a block format"),
        ("e4m3/99999999", 5, "from 1 to 1,048,576"),
        ("e4m3/9999999", 5, "from 1 to 1,048,576"),
        ("mxfp4:flor", 6, "did you mean 'floor'"),
        ("mxfp4:up up", 9, "the recipe ends before 'up'"),
        ("e4m3/4/tensor", 7, "a second shape can only be channel"),
        ("e4m3/4/channel", 7, "for formats with a tensor scale"),
        ("block(e2m1, ue5m3", 17, "a shape is missing here, after a comma"),
        ("block(e2m1, ue5m3, 16", 21, "then ')'"),
        ("block(e2m1, mxfp4, 16)", 12, "is a block format"),
        ("", 0, "a recipe begins with a format"),
        ("mxfp5", 0, "did you mean 'mxfp4'"),
        ("mx", 0, "a family of block formats"),
        ("mxfp4/٣", 6, "a shape must be"),
        ("hif4/12", 5, "a multiple of 8"),
        ("hif4/channel", 5, "a multiple of 8"),
        ("takum_log8/32", 0, "powers of √e"),
        ("block(e2m1, takum_log8, 16)", 12, "powers of √e"),
        ("e4m3\x1b[31m", 4, "the recipe ends before"),
    ],
)
def test_errors_have_their_place(text, place, words):
    with pytest.raises(RecipeError) as caught:
        parse_recipe(text)
    first, shown, caret = str(caught.value).split("\n")
    assert words in first
    assert caret == f"  {' ' * place}^"
    assert shown.isprintable()
    assert len(shown) == len(text) + 2


def test_other_things_are_refused():
    with pytest.raises(FormatError, match="a recipe must be text"):
        parse_recipe(7)
    with pytest.raises(FormatError, match="at most 200 characters"):
        parse_recipe("e" * 201)
    recipe = parse_recipe("mxfp4")
    assert parse_recipe(recipe) is recipe
    assert parse_recipe(parse_block_format("nvfp4")) == Recipe(parse_block_format("nvfp4"), parse_recipe("nvfp4").rule)
    assert not is_recipe("fp16")


def test_every_rule_is_well_formed():
    known = {"amax", "tensor_amax", "x", "grow", "largest", "emax", "p", "top", "input_max", "input_eps", "tensor"}
    known |= {"low", "high", "peak", "amax8", "amax4"}
    searched = {"step", "depth", "tensor_step", "tensor_depth", "found"}
    for rule in SCALE_RULES:
        names, levels = known | (searched if rule.search else set()), []
        for line in rule.steps():
            assert line.formula.names() <= names, f"{rule.name}: {line} uses a name before its line"
            names.add(line.name)
            levels.append(line.level)
        assert levels == sorted(levels), f"{rule.name}: lines of the tensor come first, those of elements last"
        assert {"scale", "scaled"} <= names
        assert rule.source
        if rule.choice is not None:
            assert parse_formula(rule.choice.error).names() <= names | {"q"}
        stored = {line.name for line in rule.steps()} & {"minimum", "tensor_minimum"}
        assert parse_formula(rule.value).names() <= {"q", "scale", "tensor", "micro8", "micro4"} | stored
    assert {TENSOR, BLOCK, ELEMENT} == {line.level for rule in SCALE_RULES for line in rule.steps()}


def test_every_format_of_a_family_finds_its_rules():
    for text in NAMED_RECIPES:
        fmt = parse_recipe(text).format
        names = [rule.name for rule in rules_for(fmt)]
        assert len(names) == len(set(names))
        for name in names:
            assert parse_recipe(f"{text}:{name}").rule.name == name


def test_every_rule_is_documented_with_its_formulas():
    page = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
    for rule in SCALE_RULES:
        rows = [line for line in page.splitlines() if line.startswith(f"| `{rule.name}` |")]
        formulas = [str(line) for line in rule.steps() if line.name == "scale"]
        assert any(all(formula in row for formula in formulas) and rule.source in row for row in rows), rule.name


@pytest.mark.parametrize("text", ["amax /", "(amax", "min(a, b", "2 amax", "", "a ** b", "$"])
def test_broken_formulas_are_refused(text):
    with pytest.raises(FormatError):
        parse_formula(text)


@pytest.mark.parametrize("text", ["a - (b - c)", "a / (b * c)", "(a + b) * c", "f(a, g(b + c)) / 2^-9", "a - b - c"])
def test_formulas_are_written_with_the_brackets_that_they_need(text):
    assert str(parse_formula(text)) == text


def test_a_recipe_has_one_rule():
    message = "mxfp4:up names the scale rule up, so scale cannot be ceil"
    with pytest.raises(ContextError, match=message):
        arrays.encode([1.0], "mxfp4:up", scale="ceil")
    with pytest.raises(ContextError, match=message):
        quantize_blocks(["1"], "mxfp4:up", "ceil")
    assert parse_recipe("mxfp4:up").with_rule("rceil") == parse_recipe("mxfp4:up")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fp8", "fp8 is not one recipe: name e4m3/tensor, "),
        ("mxfp4, FP4", "FP4 is not one recipe: name mxfp4, nvfp4, nf4/64, bnb_fp4/64 or e2m1 (no scales)"),
        ("float6", "e2m3 (no scales) or e3m2 (no scales)"),
        ("fp8/tensor:ct", "fp8 is not one format: name e4m3/tensor:ct or e5m2/tensor:ct"),
        (["e4m3", "fp8"], "fp8 is not one recipe"),
        ("e4m3,,mxfp4", "a recipe is missing between commas"),
        ("", "at least one recipe is needed"),
        (5, "recipes must be a text such as 'e4m3,mxfp4' or a list, not int"),
        ([None], "a recipe must be text, a BlockFormat or a Recipe, not NoneType"),
    ],
)
def test_lists_that_do_not_name_recipes(text, said):
    with pytest.raises(FormatError) as refused:
        parse_recipes(text)
    assert said in str(refused.value).partition("\n")[0]


def test_words_of_families_name_recipes_of_their_width():
    for formats, recipes in RECIPE_FAMILIES.values():
        widths = {parse_recipe(name).format.element.width for name in (*formats, *recipes)}
        assert len(widths) == 1
    assert [each.name for each in parse_recipes("fp4/32,fp4:none")] == ["e2m1/32", "e2m1"]


def test_rules_of_libraries_apply_to_the_formats_that_the_libraries_have():
    names = {text: {rule.name for rule in rules_for(parse_recipe(text).format)} for text in ("mxfp4", "mxfp8_e4m3")}
    assert "fouroversix_6" in names["mxfp4"] - names["mxfp8_e4m3"]
    assert "modelopt" in names["mxfp4"] & names["mxfp8_e4m3"]
    assert "modelopt" not in {rule.name for rule in rules_for(parse_recipe("mxfp8_e5m2").format)}
