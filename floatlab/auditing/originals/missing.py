"""Finds tensors of an original that a quantised checkpoint lacks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from floatlab.auditing.originals.arranged import Counterpart, Shape
from floatlab.auditing.originals.consistency import numbered
from floatlab.auditing.originals.names import canonical
from floatlab.auditing.quantized import QuantizedCheckpoint

_PART = re.compile(r"-\d+-of-\d+\b")


def missing_tensors(
    read: QuantizedCheckpoint,
    originals: Collection[str],
    judged: Iterable[str],
    matches: Mapping[str, Counterpart],
    are_renamed: bool,
) -> tuple[str, ...]:
    """Return the names of the original's tensors that the checkpoint lacks.

    `originals` has the names of the original's tensors. `judged` has the names of the weights with a verdict. `matches`
    has the original of each weight.

    If `are_renamed` is true, weights have other names than their originals. A tensor of the original then counts as
    missing under two conditions: the checkpoint lacks it, but has the same tensor of another layer or expert. (In the
    original, the names of these two tensors differ only in the numbers.) If `are_renamed` is true and the original of
    any weight is unknown, the result is empty.
    """
    if not are_renamed:
        there = {*read.names, *judged}
        return tuple(name for name in originals if name not in there)
    if read.unreadable or len(matches) < len(read.weights):
        return ()  # the originals of some weights are not known
    used = {name for each in matches.values() for name in each.names}
    kinds = {numbered(name)[0] for name in used}
    plain = {canonical(name) for name in read.plain}
    return tuple(
        name for name in originals if name not in used and numbered(name)[0] in kinds and canonical(name) not in plain
    )


def lost_weights(read: QuantizedCheckpoint, missing: Collection[str], originals: Mapping[str, Shape]) -> list[str]:
    """Return the tensors that `partly_there` finds, without tensors that have unreadable parts in the checkpoint.

    `originals` has the shapes of all tensors of the original. The result is empty for a single shard of a checkpoint (a
    file with a name such as "model-00001-of-00004").
    """
    if _PART.search(read.name):
        return []
    unread = tuple(read.unreadable)
    return [
        name
        for name in partly_there(missing, originals)
        if not any(each.startswith(name.removesuffix(".weight")) for each in unread)
    ]


def partly_there(missing: Collection[str], originals: Mapping[str, Shape]) -> list[str]:
    """Return the missing tensors of those layers of which other tensors are present.

    Only tensors of at least two axes count. Tensors whose names differ only in numbers belong together. A missing
    tensor is returned only if at least half of the tensors that belong together with it are present.

    >>> shapes = {f"h.{i}.{part}": (4, 4) for i in (0, 1) for part in ("up", "down")}
    >>> partly_there(["h.1.up"], shapes), partly_there(["h.1.up", "h.1.down"], shapes)
    (['h.1.up'], [])
    """
    absent = set(missing)
    there = [numbered(name) for name, shape in originals.items() if name not in absent and len(shape) > 1]
    kinds, layers = Counter(kind for kind, _ in there), {numbers[0] for _, numbers in there if numbers}
    lacking = Counter(numbered(name)[0] for name in missing)
    found = []
    for name in missing:
        kind, numbers = numbered(name)
        is_usual = numbers and kinds[kind] >= lacking[kind]
        if is_usual and numbers[0] in layers and len(originals.get(name, ())) > 1:
            found.append(name)
    return found
