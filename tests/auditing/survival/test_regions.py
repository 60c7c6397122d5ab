"""Regions: they cover a tensor, and rounding them one by one gives the figures of the whole tensor."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from floatlab.arrays.round_trips.round_trip import check_supported
from floatlab.auditing.survival import regions, subjects
from floatlab.auditing.survival.figures import TensorFigures
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.errors import FloatlabError
from floatlab.formats.recipes import NAMED_RECIPES, parse_recipe

OTHERS = (
    "bf16", "e4m3", "fp64", "int8", "nf4", "nvfp4/16/channel", "nvfp4/16x16/channel", "block(e2m1, ue5m3, 24)",
    "e5m2/flat100", "nvfp4:te", "nvfp4:ct", "nvfp4:4over6", "e4m3/tensor:te", "e4m3/channel:torchao_training",
    "mxfp4:even", "q8_0:ggml", "q4_0:ggml", "e4m3/3x7", "int8/tensor", "mxfp8_e4m3/2x16",
)  # fmt: skip


def supported() -> list[str]:
    found = []
    for name in (*NAMED_RECIPES, *OTHERS):
        try:
            check_supported(parse_recipe(name))
        except FloatlabError:
            continue
        found.append(name)
    return found


SHAPES = ((37, 200), (3, 20, 96), (1000,), (1, 700), (50, 1), ())


def test_named_recipes_are_supported() -> None:
    assert set(NAMED_RECIPES) | set(OTHERS) == set(supported())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("whole_rows", [False, True])
def test_regions_cover_a_tensor_once(shape: tuple[int, ...], whole_rows: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recipes = tuple(map(parse_recipe, supported()))
    monkeypatch.setattr(regions, "_MOST", 500)
    for usual in (64, 1000):
        groups = regions.cuts(shape, recipes, usual, whole_rows)
        assert sorted(i for which, _ in groups for i in which) == list(range(len(recipes)))
        for _, parts in groups:
            seen = np.zeros(int(np.prod(shape, dtype=int)), int)
            for part in parts:
                rows = seen.reshape(-1, part.width)
                rows[part.row : part.row + part.rows, part.column : part.column + part.columns] += 1
            assert (seen == 1).all()


def _close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return a == b or abs(a - b) <= 1e-12 * abs(a)
    return a == b


def agree(one: TensorFigures, other: TensorFigures) -> None:
    for name in ("zeros", "nonfinite", "largest", "smallest", "exponents"):
        assert getattr(one, name) == getattr(other, name), name
    for a, b in zip(one.recipes, other.recipes, strict=True):
        for name in a._fields:
            if name != "largest_relative_at":  # one of several elements with this error
                assert _close(getattr(a, name), getattr(b, name)), (a.recipe, name, getattr(a, name), getattr(b, name))


@pytest.mark.parametrize(("most", "each"), [pytest.param(400, 1, marks=pytest.mark.slow), (10_000, 3)])
def test_small_regions_give_the_same_figures(most: int, each: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(most)
    tensors = {}
    for shape in SHAPES:
        x = rng.standard_normal(shape) * np.exp(rng.standard_normal((*shape[:-1], 1)) if shape else 1)
        tensors[str(shape)] = np.asarray(x, np.float32)
    tensors["zeros"] = np.zeros((5, 90), np.float32)
    tensors["half"] = tensors["(37, 200)"].astype(np.float16)
    tensors["double"] = tensors["(37, 200)"] * np.float64(1 / 3)
    special = tensors["(37, 200)"].copy()
    special[3, 150], special[20, 3] = np.nan, -np.inf
    tensors["special"] = special
    for name in supported()[::each]:
        whole = audit_recipes(tensors, name)
        with monkeypatch.context() as patched:
            patched.setattr(regions, "_MOST", most)
            patched.setattr(subjects, "cuts", partial(regions.cuts, usual=100))
            parts = audit_recipes(tensors, name)
        found = {each.tensor: each for each in parts.tensors}
        for one in whole.tensors:
            agree(one, found[one.tensor])
