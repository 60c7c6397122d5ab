"""How one input may have been changed before it was multiplied: rounded, quantised, or stored in blocks with scales.

Two changes, one of each input, make a model of the product (see `pairs`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.formats.recipes import parse_recipe
from floatlab.record import Record
from floatlab.reduce.explain.quantisers import (
    clipped,
    fixed_point,
    in_blocks,
    in_groups,
    quantized,
    rounded,
    saturated,
    scaled,
    ternary,
    with_zero,
)
from floatlab.reduce.explain.stages import Change, Known

_ROUNDED = (
    *(("tf32", direction) for direction in ("RNE", "RNA", "RTZ")),
    *(("bf16", direction) for direction in ("RNE", "RTZ")),
    *(("fp16", direction) for direction in ("RNE", "RTZ")),
    *(("fp32", "RNE"), ("e4m3", "RNE"), ("e5m2", "RNE")),
)
_FP8 = (("e4m3", 448.0, 2), ("e5m2", 57344.0, 2), ("e4m3", 240.0, 4))  # FP8 format, largest scaled number, weight
_SCOPES = ((False, "tensor"), (True, "row"))
_SIZES = (32, 64, 128)  # numbers of terms that share a scale
_BLOCKS = (
    *("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4"),
    *("e4m3/1x128", "e4m3/128x128", "e5m2/1x128", "e5m2/128x128", "nf4/64", "nvfp4/16x16"),
)
# Block formats with the scale rules of libraries, and NVFP4 without the scale of the tensor.
_RULES = (
    *("mxfp8_e4m3:up", "mxfp4:up", "mxfp8_e4m3:torchao_even", "mxfp4:torchao_even", "mxfp8_e4m3:nearest"),
    *("nvfp4:te", "nvfp4:modelopt", "nvfp4:torchao", "nvfp4:torchao_single", "block(e2m1, e4m3, 16)"),
    *("q8_0:ggml", "q4_0:ggml"),
)
_SIZED = {"nf4/64": (64, 32, 128)}
_TILE, _GROUP = 2, 3  # weights of one scale per tile, and of one scale per group of terms
_MOST_TABLED = 1 << 22  # NF4, whose numbers are found in a table, is tried for inputs up to this size


class InputChange(Record):
    """A possible change of an input.

    `name` is the cause that is reported, `evidence` holds its details as pairs (name, text), and `change` is the
    function that changes the input.
    """

    name: str
    evidence: Known
    weight: int  # the complexity; changes with a lower weight are preferred
    change: Change
    tile: int = 1  # this many rows share a scale; if it is above 1, `change` needs whole tiles

    @property
    def text(self) -> str:
        """The change in a few words, such as "int8 with one scale per row"."""
        known = dict(self.evidence)
        if not known:
            return "unchanged"
        words = known["format"]
        if "rounding" in known:
            words += {"RNE": "", "RNA": ", ties away", "RTZ": ", toward zero"}[known["rounding"]]
        if "scale per" in known:
            words += f" with one scale per {known['scale per']}"
        words += f", {known['scale']}" if "scale" in known else ""
        return words + (f", quotients {known['quotients']}" if "quotients" in known else "")

    def lines_of(self, matrix: Array, lines: Array) -> Array:
        """Return the rows `lines` of an input after this change. The terms lie along the rows."""
        if self.tile == 1:
            return self.change(matrix[lines], matrix, 1)
        rows = np.concatenate([
            np.arange(first, min(first + self.tile, len(matrix)))
            for first in np.unique(lines // self.tile) * self.tile
        ])  # fmt: skip
        return self.change(matrix[rows], matrix, 1)[np.searchsorted(rows, lines)]


AS_IS = InputChange("", (), 0, lambda part, whole, axis: part)


def changes_of(matrix: Array, format: Format) -> Iterator[InputChange]:
    """Yield the changes of an input, the unchanged input first.

    The terms lie along the rows of `matrix`, and `format` is the format of its numbers.
    """
    yield AS_IS
    for name, direction in _ROUNDED:
        narrow = parse_format(name)
        if not holds(narrow, format):
            known: Known = (("format", narrow.name), ("rounding", direction))
            weight = 1 + (direction != "RNE") + (narrow.precision < 8)
            yield InputChange("inputs-rounded", known, 10 * weight, partial(rounded, name, direction))
    for name in ("e4m3", "e5m2"):
        if (np.abs(matrix) > float(parse_format(name).largest)).any():
            known = (("format", parse_format(name).name), ("rounding", "RNE"), ("scale", "saturated"))
            yield InputChange("inputs-rounded", known, 30, partial(saturated, name))
    for known, weight, change in _quantised(matrix.shape[1]):
        yield InputChange("inputs-quantized", known, 10 * weight + _scales(dict(known)["scale per"]), change)
    for recipe in (*_BLOCKS, *_RULES):
        if recipe.startswith("nf4") and matrix.size > _MOST_TABLED:
            continue
        for name in (recipe.replace("/64", f"/{size}") for size in _SIZED.get(recipe, (64,))):
            rows = parse_recipe(name).format.rows or 1
            weight = 10 * (2 + (recipe in _RULES)) + (_TILE if rows > 1 else _GROUP)
            yield InputChange("inputs-quantized", (("format", name),), weight, partial(in_blocks, name), rows)


def _scales(per: str) -> int:
    """Return a weight that grows with the number of scales. `per` says which numbers share a scale."""
    return 0 if per.startswith("tensor") else 1 if per.startswith("row") else _GROUP


def _in_both(known: Known, weight: int, change: Callable[..., Array]) -> Iterator[tuple[Known, int, Change]]:
    """Yield a quantisation with quotients in binary32, if binary32 holds the numbers, and the same in binary64."""
    yield known, weight, change
    yield (*known, ("quotients", "in binary64")), weight + 1, partial(change, is_double=True)


def _quantised(terms: int) -> Iterator[tuple[Known, int, Change]]:
    """Yield the quantisations with scales. Each item has the evidence, the complexity, and the change of an input."""
    known: Known
    for by_row, words in _SCOPES:
        per = ("scale per", words)
        for name, most, weight in _FP8:
            detail: Known = () if weight == 2 else (("scale", f"largest / {most:g}"),)
            known = (("format", parse_format(name).name), per, *detail)
            yield known, weight, partial(scaled, name, most, by_row)
            yield (
                (*known, ("scale", "computed in binary32")),
                weight + 1,
                partial(scaled, name, most, by_row, stored="binary32"),
            )
        yield from _in_both((("format", "int8"), per), 2, partial(quantized, by_row))
        yield from _in_both((("format", "int4"), per), 3, partial(quantized, by_row, steps=7))
        for steps in (127.5, 128.0):
            known = (("format", "int8"), per, ("scale", f"largest / {steps:g}"))
            yield from _in_both(known, 3, partial(quantized, by_row, steps=steps))
        for stored in ("binary16", "bfloat16", "a power of two"):
            known = (("format", "int8"), per, ("scale", f"stored as {stored}"))
            yield known, 4, partial(quantized, by_row, stored=stored)
        yield (
            (("format", parse_format("e4m3").name), per, ("scale", "a power of two")),
            4,
            partial(scaled, "e4m3", 448.0, by_row, stored="a power of two"),
        )
        for name, steps in (("uint8", 255), ("uint7", 127), ("uint4", 15)):
            known = (("format", name), ("scale per", f"{words} with a zero"))
            yield from _in_both(known, 3, partial(with_zero, by_row, steps=steps))
    for size in _SIZES:
        if size >= 2 * max(terms, _SIZES[0]):
            continue  # a smaller size already puts all terms into one group
        for name, steps, zero in (("int4", 7, False), ("int8", 127, False), ("int4", 7, True), ("int8", 127, True)):
            if size < terms or zero:
                known = (("format", name), ("scale per", f"group of {size} terms{' with a zero' * zero}"))
                yield from _in_both(known, 3, partial(in_groups, size, steps, zero))
                if zero or steps == 7:
                    yield (
                        (*known, ("scale", "stored as binary16")),
                        4,
                        partial(in_groups, size, steps, zero, stored="binary16"),
                    )
    for share in (0.999, 0.9999):
        known = (("format", "int8"), ("scale per", "tensor"), ("scale", f"{100 * share:g} % quantile / 127"))
        yield known, 4, partial(clipped, share)
    yield (("format", "int3"), ("scale per", "group of 64 terms")), 4, partial(in_groups, 64, 3, False)
    yield (("format", "ternary"), ("scale per", "tensor"), ("scale", "mean magnitude")), 4, ternary
    for bits in (16, 12):
        known = (("format", f"fixed point of {bits} bits"), ("scale per", "tensor"))
        yield known, 4, partial(fixed_point, bits)
