"""The figures of audits against NumPy and ml_dtypes."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from floatlab.auditing.survival.figures import TensorFigures
from floatlab.auditing.survival.survey import audit_recipes
from tests.auditing.survival.plain_numpy import RECIPES, figures

COUNTS = ("elements", "exact", "flushed", "subnormal", "saturated", "lost")
SUMS = ("squares", "error_squares", "cosine", "mean_relative")
EXTREMES = ("largest_relative", "largest_error")


def model(seed: int) -> dict[str, np.ndarray]:
    """Return weights like those of trained models: channels of different magnitude, outliers, heavy tails."""
    rng = np.random.default_rng(seed)

    def normal(*shape: int) -> np.ndarray:
        return rng.standard_normal(shape)

    columns = normal(96, 160) * 0.02
    columns[:, 7] *= 300
    return {
        name: np.asarray(array, np.float32)
        for name, array in {
            "plain.weight": normal(64, 128) * 0.02,
            "channels.weight": normal(80, 96) * np.exp(normal(80, 1)),
            "outlier_columns.weight": columns,
            "heavy.weight": rng.standard_t(2, (50, 130)) * 0.05,
            "wide.weight": np.exp(6 * normal(40, 70)) * np.sign(normal(40, 70)),
            "conv.weight": normal(16, 8, 3, 3),
            "norm.weight": 1 + 0.1 * normal(100),
            "sparse.weight": np.where(normal(64, 64) > 1, normal(64, 64), 0),
        }.items()
    }


def compare(tensor: TensorFigures, x: np.ndarray) -> None:
    """Compare all figures: counts and extremes exactly, sums to 1e-12."""
    for found in tensor.recipes:
        expected = figures(x, found.recipe)
        where = f"{tensor.tensor} in {found.recipe}"
        for name in (*COUNTS, *EXTREMES):
            assert getattr(found, name) == expected[name], (where, name)
        for name in SUMS:
            assert getattr(found, name) == pytest.approx(expected[name], rel=1e-12, abs=0), (where, name)
        quantile = expected["relative_999"]
        assert quantile <= found.relative_999 <= max(quantile * (1 + 1 / 64), 1e-30), where
        at = found.largest_relative_at
        assert at is None or 0 <= at < x.size


@pytest.mark.parametrize("seed", range(3))
def test_generated_weights(seed: int) -> None:
    tensors = model(seed)
    found = audit_recipes(tensors, ",".join(RECIPES))
    assert [each.recipe for each in found.totals] == list(RECIPES)
    assert {each.tensor for each in found.tensors} == tensors.keys()
    for tensor in found.tensors:
        compare(tensor, tensors[tensor.tensor])


def test_totals_are_those_of_all_numbers() -> None:
    tensors = {name: x for name, x in model(5).items() if name != "wide.weight"}
    found = audit_recipes(tensors, ",".join(RECIPES))
    for total in found.totals:
        each = [figures(x, total.recipe) for x in tensors.values()]
        for name in COUNTS:
            assert getattr(total, name) == sum(one[name] for one in each), (total.recipe, name)
        for name in ("squares", "error_squares"):
            assert getattr(total, name) == pytest.approx(sum(one[name] for one in each), rel=1e-12)
        assert total.largest_error == max(one["largest_error"] for one in each)


def wheel() -> Path | None:
    """Return the weights that the package `silero-vad` carries, if it is installed."""
    spec = importlib.util.find_spec("silero_vad")
    path = Path(next(iter(spec.submodule_search_locations))) / "data" if spec is not None else None  # type: ignore[arg-type]
    return path / "silero_vad_16k.safetensors" if path is not None else None


@pytest.mark.skipif(wheel() is None, reason="pip install --no-deps silero-vad: a small trained model")
def test_a_trained_model() -> None:
    from safetensors.numpy import load_file

    path = wheel()
    assert path is not None
    tensors = {name: x for name, x in load_file(path).items() if x.dtype == np.float32}
    found = audit_recipes(path, ",".join(RECIPES))
    for tensor in found.tensors:
        if tensor.recipes:
            compare(tensor, tensors[tensor.tensor])
    assert sum(bool(each.recipes) for each in found.tensors) == len(tensors) > 10
