"""`audit --to` as CSV, as charts, and as an HTML report with heat maps of the layers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import isfinite

from floatlab.auditing.survival.figures import RecipeAudit, RecipeFigures, TensorFigures
from floatlab.page.chart import curve
from floatlab.page.csv_text import as_csv, csv_cell
from floatlab.page.html_report import HeatCell, HeatMap, report
from floatlab.page.model import Chart
from floatlab.verbs.audit.recipes_page import recipes_page
from floatlab.verbs.audit.tensor_columns import decibels

_LISTED = 5000  # the table of the report lists at most this many tensors
_CELLS = 10_000  # a heat map with more cells than this is omitted: the numbers in the names are probably not layers
_FULL_HEAT = 10.0  # dB below or above the recipe's usual SQNR at which the colour is strongest

_TENSOR = ("source", "tensor", "kind", "shape", "elements", "zeros", "nonfinite", "largest", "smallest")
_RECIPE = (
    "recipe", "bits", "exact", "flushed", "subnormal", "saturated", "lost", "mean_relative", "relative_999",
    "largest_relative", "largest_error", "mse", "sqnr", "cosine", "output_sqnr", "output_error", "verdict", "reason",
)  # fmt: skip
_SCALES = ("blocks", "smallest", "largest", "clipped", "underflowed")


def recipes_csv(found: RecipeAudit) -> str:
    """Return an audit as CSV: a row for each tensor and recipe, and one row for a tensor that was left out.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> text = recipes_csv(audit_recipes({"w": np.float32([1, 1000])}, "e4m3"))
    >>> text.splitlines()[1].split(",")[:11]
    ['the mapping', 'w', 'float32', '2', '2', '0', '0', '1000.0', '1.0', 'e4m3', '8.0']
    """
    header = (*_TENSOR, *_RECIPE, *(f"scale_{name}" for name in _SCALES), "choice", "left_out")
    return as_csv(header, _csv_rows(found.tensors))


def _csv_rows(tensors: Iterable[TensorFigures]) -> Iterator[list[object]]:
    for tensor in tensors:
        first = [csv_cell(getattr(tensor, name)) for name in _TENSOR]
        last = [tensor.choice, tensor.left_out]
        for each in tensor.recipes:
            scales = [csv_cell(getattr(each.scales, name, None)) for name in _SCALES]
            yield [*first, *(csv_cell(getattr(each, name)) for name in _RECIPE), *scales, *last]
        if not tensor.recipes:
            yield [*first, *[""] * (len(_RECIPE) + len(_SCALES)), *last]


def sqnr_chart(found: RecipeAudit) -> Chart:
    """Return a chart with a curve for each recipe: the finite SQNRs of the tensors, the worst first."""
    curves = []
    for place, name in enumerate(found.recipes):
        levels = sorted(
            each.decisive_sqnr
            for tensor in found.tensors
            for each in tensor.recipes
            if each.recipe == name and each.decisive_sqnr is not None and isfinite(each.decisive_sqnr)
        )
        curves.append(curve(place, name, range(1, len(levels) + 1), levels))
    return Chart(tuple(curves), "tensors, the worst first", "SQNR in dB")


def recipes_report(found: RecipeAudit, remark: str) -> str:
    """Return the HTML report: the page, heat maps of the layers, charts, and `remark` as the last line."""
    measured = [each for each in found.tensors if each.recipes]
    layers = [layer_of(each.tensor) for each in measured]
    maps = ((name, _heat_map(place, measured, layers)) for place, name in enumerate(found.recipes))
    more: list[tuple[str, HeatMap | Chart]] = [
        (f"{name}: SQNR of each layer in dB", drawn) for name, drawn in maps if drawn is not None
    ]
    charts = (("SQNR of the tensors", sqnr_chart(found)), *histograms(measured, found.totals))
    more += [(title, chart) for title, chart in charts if any(len(each.points) > 1 for each in chart.curves)]
    return report(recipes_page(found, _LISTED), more, remark)


def histograms(tensors: Sequence[TensorFigures], recipes: Sequence[RecipeFigures]) -> tuple[tuple[str, Chart], ...]:
    """Return titled histograms: of the relative errors in each recipe, of the magnitudes, and of the scales."""
    errors = [(each.recipe, each.error_exponents) for each in recipes]
    return (
        ("Relative errors", _histograms(errors, "relative error")),
        ("Magnitudes of the numbers", _histograms([("as stored", _magnitudes(tensors))], "magnitude")),
        ("Scales of the blocks", _histograms(_scale_exponents(recipes), "scale", "scales")),
    )


def _magnitudes(tensors: Sequence[TensorFigures]) -> tuple[tuple[int, int], ...]:
    counts: Counter[int] = Counter()
    for tensor in tensors:
        counts.update(dict(tensor.exponents))
    return tuple(sorted(counts.items()))


def _scale_exponents(totals: Iterable[RecipeFigures]) -> list[tuple[str, tuple[tuple[int, int], ...]]]:
    return [(each.recipe, each.scales.exponents) for each in totals if each.scales is not None]


def _histograms(
    found: Iterable[tuple[str, tuple[tuple[int, int], ...]]], across: str, counted: str = "numbers"
) -> Chart:
    """Return a chart of histograms. Each curve has the percentage of the numbers at each exponent."""
    curves = []
    for place, (label, counts) in enumerate(found):
        total, known = sum(count for _, count in counts), dict(counts)
        if not known:
            continue
        exponents = range(min(known) - 1, max(known) + 2)
        shares = [100 * known.get(exponent, 0) / total for exponent in exponents]
        curves.append(curve(place, label, exponents, shares, len(exponents)))
    return Chart(tuple(curves), "exponent (base 2)", f"% of the {counted}", named=True)


def _heat_map(place: int, tensors: list[TensorFigures], layers: list[tuple[int | None, str]]) -> HeatMap | None:
    """Return the heat map of a recipe, with a row for each layer and a column for each tensor of a layer.

    `place` is the index of the recipe; `layers` has, for each tensor, its layer and the rest of its name. Returns None
    if no tensor belongs to a layer, or if the map would have too many cells.
    """
    cells: dict[tuple[int, str], HeatCell] = {}
    for tensor, (layer, part) in zip(tensors, layers, strict=True):
        if layer is not None:
            cells.setdefault((layer, part), _heat(tensor.recipes[place]))
    if not cells:
        return None
    parts = list(dict.fromkeys(part for _, part in sorted(cells)))
    numbers = sorted({layer for layer, _ in cells})
    if len(parts) * len(numbers) > _CELLS:
        return None
    rows = [(str(layer), tuple(cells.get((layer, part), HeatCell("")) for part in parts)) for layer in numbers]
    recipe = tensors[0].recipes[place].recipe
    usual = (
        f"White is the SQNR of {recipe} on normally distributed numbers. {_FULL_HEAT:g} dB less is the darkest orange, "
        f"{_FULL_HEAT:g} dB more the darkest blue."
    )
    return HeatMap(usual, tuple(parts), tuple(rows))


def layer_of(name: str) -> tuple[int | None, str]:
    """Split the name of a tensor into the number of its layer and the part after this number.

    The ending `.weight` is dropped. If the name has no number of a layer, return None and the whole name without the
    ending.

    >>> layer_of("model.layers.12.mlp.up_proj.weight"), layer_of("lm_head.weight")
    ((12, 'mlp.up_proj'), (None, 'lm_head'))
    """
    parts = name.removesuffix(".weight").split(".")
    for place, part in enumerate(parts):
        if part.isascii() and part.isdigit() and len(part) < 9 and place + 1 < len(parts):
            return int(part), ".".join(parts[place + 1 :])
    return None, ".".join(parts)


def _heat(figures: RecipeFigures) -> HeatCell:
    level = figures.decisive_sqnr
    if figures.lost:
        return HeatCell("NaN", -1.0)
    if level is None:
        return HeatCell("·")
    return HeatCell(decibels(level), max(-1.0, min(1.0, (level - figures.expected) / _FULL_HEAT)))
