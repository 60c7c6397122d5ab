"""Finds, in an original checkpoint, the tensors from which each quantised weight was made.

Three searches follow each other: for a tensor of the same name, for names of known conventions, and for tensors with
similar content. If a convention allows several arrangements, such as transposed experts or rows permuted for rope, the
one most similar to the weight is taken. If a convention allows only one arrangement, the original is taken in this
arrangement. A weight whose rows are in another order then differs from its original, and counts as wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.originals.arranged import (
    Counterpart,
    GatheredRows,
    Reshaped,
    TransposedMatrices,
    few_names,
    rope_rows,
)
from floatlab.auditing.originals.names import FusedPart, canonical, parts_of, permutes_rope, stated_heads, wholes_of
from floatlab.auditing.originals.similarity import ContentIndex, best_of, is_numeric
from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.auditing.stored_parts import Weight
from floatlab.errors import FloatlabError, counted

Shape = tuple[int, ...]
# Where the numbers of attention heads are stated: the field of config.json, and the end of the key in GGUF files.
_HEADS = {
    "q_proj": ("num_attention_heads", ".attention.head_count"),
    "k_proj": ("num_key_value_heads", ".attention.head_count_kv"),
}
_HEAD_SIZES = (128, 64, 96, 80, 256, 192, 32, 48, 16, 8, 4)


class Originals:
    """The tensors of an original checkpoint. `counterpart` finds those from which a quantised weight was made."""

    def __init__(self, checkpoint: QuantizedCheckpoint, heads: Mapping[str, tuple[int, ...]]) -> None:
        """Take the original checkpoint, and the stated numbers of attention heads, as from `heads_of`."""
        self.checkpoint, self.heads = checkpoint, heads
        self._index: ContentIndex | None = None
        self.shapes: dict[str, Shape] = {}
        self.names: dict[str, str] = {}  # canonical name → name of the tensor; "" if several tensors have it
        for name in checkpoint.names:
            if name not in checkpoint.unreadable:
                stored = checkpoint.weights.get(name) or checkpoint.plain[name]
                self.shapes[name] = stored.shape
                key = canonical(name)
                self.names[key] = "" if key in self.names else name

    def counterpart(self, weight: Weight) -> Counterpart | None:
        """Return the original of a weight, or None if the original is found neither by name nor by content.

        Raises FloatlabError if the original cannot be read.
        """
        if self.shapes.get(weight.name) == weight.shape:
            return Counterpart("", partial(self.checkpoint.open, weight.name), (weight.name,))
        return best_of(weight, list(self._named(weight))) or self._by_content(weight)

    def _named(self, weight: Weight) -> Iterator[Counterpart]:
        """Yield the tensors whose names fit the weight, in all arrangements that the conventions allow."""
        if weight.name in self.shapes:
            yield from self._alone(weight, weight.name, "")
            return
        key = canonical(weight.name)
        if name := self.names.get(key):
            yield from self._alone(weight, name, "by convention")
        parts = [[self.names.get(part, "") for part in each] for each in parts_of(key, self.names)]
        if parts and all(all(each) for each in parts):
            yield from self._together(weight, parts, "mlp.experts" in key)
        for part in wholes_of(key):
            name = self.names.get(part.whole)
            if name and len(weight.shape) == 3:
                yield from self._halves(weight, name, part.at)
            elif name:
                yield from self._cut(weight, name, part)

    def _views(self, name: str, length: int) -> Iterator[tuple[str, Shape, Callable[[], ArraySource]]]:
        """Yield the tensor unchanged, and then transposed.

        Each of the two forms is left out if its rows do not have `length` elements. The transposed form is also left
        out if its matrices are too large to transpose.

        Each item has words for the arrangement, the shape, and a function that opens the tensor.
        """
        shape = self.shapes[name]
        opened = partial(self.checkpoint.open, name)
        if shape and shape[-1] == length:
            yield "", shape, opened
        if len(shape) > 1 and shape[-2] == length and shape[-1] * length <= MOST_AT_ONCE:
            turned = (*shape[:-2], shape[-1], shape[-2])
            yield ", transposed", turned, lambda: TransposedMatrices(opened())

    def _alone(self, weight: Weight, name: str, found: str) -> Iterator[Counterpart]:
        said = ", ".join(each for each in (name, found) if each)
        for turned, shape, opened in self._views(name, weight.shape[-1] if weight.shape else 1):
            if prod(shape) != prod(weight.shape):
                continue
            is_permuted = not turned and permutes_rope(weight.name) != permutes_rope(name)
            yield Counterpart(
                said + turned,
                partial(_reshaped, opened, weight.shape),
                (name,),
                rope_heads=0 if is_permuted else None,
            )
            if is_permuted:
                yield from self._permuted(weight, name, said, opened)

    def _permuted(
        self, weight: Weight, name: str, said: str, opened: Callable[[], ArraySource]
    ) -> Iterator[Counterpart]:
        """Yield a tensor of q or k with its rows in the order that the convention of the weight uses for rope.

        The order depends on the number of heads. One counterpart is yielded for each possible number, the stated number
        first. If a number is stated, counterparts with other numbers get a text in `doubt`.
        """
        rows = prod(weight.shape[:-1])
        stated = [each for each in stated_heads(self.heads, weight.name) if rows % (2 * each) == 0][:1]
        for heads in dict.fromkeys([*stated, *(rows // size for size in _HEAD_SIZES if rows % size == 0)]):
            order = rope_rows(rows, heads)
            permuted = f"permuted for rope with {counted(heads, 'head')}"
            doubt = (
                ""
                if not stated or heads == stated[0]
                else (f"its rows are {permuted}, but the stated number of heads is {stated[0]:,}")
            )
            yield Counterpart(
                words=f"{said}, its rows {permuted}",
                open=partial(
                    _gathered, weight.shape, (opened,), 0, order if permutes_rope(weight.name) else np.argsort(order)
                ),
                names=(name,),
                doubt=doubt,
                rope_heads=heads,
            )

    def _together(self, weight: Weight, parts: list[list[str]], is_stacked: bool) -> Iterator[Counterpart]:
        """Yield the possible originals of a fused or stacked weight; each is put together from several tensors.

        `parts` has the names of these tensors for each expert. The tensors are put one after the other. If
        `is_stacked`, the rows of an expert's tensors may also alternate.
        """
        length = weight.shape[-1]
        views = [next(self._views(name, length), None) for each in parts for name in each]
        if any(view is None for view in views):
            return
        heights = [prod(shape[:-1]) for _, shape, _ in (view for view in views if view is not None)]
        if sum(heights) != prod(weight.shape[:-1]):
            return
        opened = tuple(view[2] for view in views if view is not None)
        which = np.repeat(np.arange(len(heights)), heights)
        rows = np.concatenate([np.arange(height) for height in heights])
        names = tuple(name for each in parts for name in each)
        said = f"{few_names(names)}, by convention"
        yield Counterpart(said, partial(_gathered, weight.shape, opened, which, rows), names)
        if is_stacked and len(parts[0]) > 1 and len(set(heights)) == 1:
            step, many = heights[0], len(parts[0])
            turns = np.arange(step * many)
            which = np.concatenate([at * many + turns % many for at in range(len(parts))])
            rows = np.tile(turns // many, len(parts))
            words = f"{said}, with alternating rows"
            yield Counterpart(words, partial(_gathered, weight.shape, opened, which, rows), names)

    def _cut(self, weight: Weight, name: str, part: FusedPart) -> Iterator[Counterpart]:
        """Yield the parts of the original's fused or stacked tensor `name` that may be the weight.

        `part` says where in this tensor the weight should be.
        """
        at, count, expert = part.at, part.count, part.expert
        for turned, shape, opened in self._views(name, weight.shape[-1]):
            height, own = shape[-2] if len(shape) > 1 else 1, prod(weight.shape[:-1])
            first = (expert or 0) * height
            if expert is not None and (len(shape) != 3 or expert >= shape[0]):
                continue
            # The first part is q or gate, and the last one is v or up. The part before v is k, which has as many rows
            # as v.
            start = 0 if at == 0 else height - (count - at) * own
            if not (0 <= start <= height - own) or (count < 3 and height != count * own):
                continue
            which = "" if expert is None else f" of expert {expert}"
            orders = [(f"rows {start:,} to {start + own - 1:,}{which}", np.arange(own) + start)]
            if count == 2 and height == 2 * own and expert is not None:
                orders.append((f"every other row{which}, from {at} on", np.arange(own) * 2 + at))
            for words, rows in orders:
                said = f"{name}, by convention{turned}, {words}"
                yield Counterpart(said, partial(_gathered, weight.shape, (opened,), 0, rows + first), (name,))

    def _halves(self, weight: Weight, name: str, at: int) -> Iterator[Counterpart]:
        """Yield the gate_proj or up_proj of all experts: half of the rows of a tensor that has the rows of both.

        `at` is 0 for gate_proj and 1 for up_proj. The rows of an expert may be two halves, or may alternate.
        """
        experts, own, length = weight.shape
        for turned, shape, opened in self._views(name, length):
            if shape != (experts, 2 * own, length):
                continue
            start = np.repeat(np.arange(experts) * 2 * own, own)
            each = np.tile(np.arange(own), experts)
            for words, rows in (
                ("half of the rows", start + at * own + each),
                ("every other row", start + 2 * each + at),
            ):
                said = f"{name}, by convention{turned}, {words}"
                yield Counterpart(said, partial(_gathered, weight.shape, (opened,), 0, rows), (name,))

    def _by_content(self, weight: Weight) -> Counterpart | None:
        """Return the tensor that is similar to the weight, or a tensor made of rows similar to the weight's rows."""
        if weight.name in self.shapes or len(weight.shape) < 2 or not prod(weight.shape):
            return None
        name = self._content().same(weight)
        if name is None:
            return self._content().gathered(weight, self.heads)
        words = f"{name}, found by content" + ("" if self.shapes[name] == weight.shape else ", in another shape")
        opened = partial(_reshaped, partial(self.checkpoint.open, name), weight.shape)
        return Counterpart(words, opened, (name,), by_content=True)

    def resembling(self, weight: Weight) -> str | None:
        """Return the name of a tensor with the shape of the weight and similar numbers, or None if there is none."""
        name = self._content().same(weight)
        return name if name is not None and self.shapes[name] == weight.shape else None

    def dropped_biases(self, weights: list[str], stored: list[str]) -> list[str]:
        """Return the names of the original's biases whose weights are in `weights`, but which are missing in `stored`.

        `stored` has the names of all tensors of the checkpoint. Biases of zeros are skipped, because a checkpoint may
        omit them. Biases that are too long to be read at once are skipped, too.
        """
        layers, known = {canonical(name) for name in weights}, {canonical(name) for name in stored}
        found = []
        for name, shape in self.shapes.items():
            key = canonical(name)
            layer = key.removesuffix(".bias").removesuffix("_bias")
            if layer == key or layer not in layers or key in known or not 0 < prod(shape) <= MOST_AT_ONCE:
                continue
            if not is_numeric(self.checkpoint, name):
                continue
            with self.checkpoint.open(name) as source:
                if native(source.whole()).any():
                    found.append(name)
        return found

    def _content(self) -> ContentIndex:
        if self._index is None:
            long = [name for name, shape in self.shapes.items() if len(shape) > 1 and 0 not in shape]
            long = [name for name in long if is_numeric(self.checkpoint, name)]
            self._index = ContentIndex(self.checkpoint, {name: self.shapes[name] for name in long})
        return self._index


def heads_of(*checkpoints: QuantizedCheckpoint) -> dict[str, tuple[int, ...]]:
    """Return the numbers of attention heads that the metadata of a GGUF file or config.json states.

    The keys of the result are "q_proj" and "k_proj". Numbers of the first checkpoint come first.
    """
    found: dict[str, tuple[int, ...]] = {}
    for part, (field, end) in _HEADS.items():
        named: list[object] = []
        for each in checkpoints:
            named += [number for key, number in each.checkpoint.metadata.items() if key.endswith(end)]
            named.append(each.checkpoint.configs.get("config.json", {}).get(field))
        found[part] = tuple(dict.fromkeys(each for each in named if type(each) is int and 0 < each < 1 << 16))
    return found


def _reshaped(opened: Callable[[], ArraySource], shape: Shape) -> ArraySource:
    source = opened()
    return source if source.shape == shape else Reshaped(source, shape)


def _gathered(
    shape: Shape, opened: tuple[Callable[[], ArraySource], ...], which: Array | int, rows: Array
) -> ArraySource:
    found: list[ArraySource] = []
    try:
        for each in opened:
            found.append(each())  # noqa: PERF401 — those opened before an error are closed
    except FloatlabError:
        for source in found:
            source.close()
        raise
    return GatheredRows(shape, tuple(found), np.broadcast_to(np.asarray(which), rows.shape), rows)
