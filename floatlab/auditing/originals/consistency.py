"""Finds weights whose original is doubtful because of the names or of the other weights.

Names of a checkpoint and of its original may differ; originals are then found by content. But suppose that the original
of a weight of layer 0 seems to be in layer 1, or that an up_proj seems to be the original of a gate_proj. Then two
tensors may be exchanged, and their content cannot tell where each belongs.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from floatlab.auditing.originals.arranged import Counterpart, few_names
from floatlab.auditing.originals.names import canonical
from floatlab.record import Record

Numbers = tuple[int, ...]
Kinds = defaultdict[str, Counter[tuple[str, ...]]]
_NUMBER = re.compile(r"(?<![A-Za-z0-9])((?:layers?|blocks?|blk|h|l)_?)?(\d{1,9})(?![A-Za-z0-9])")


class _Match(Record):
    """A weight and its original, by their names.

    `kind` is the name of the weight with # for each number, and `numbers` are these numbers. `kinds` are the names of
    the original's tensors, also with # for each number. `found` has the leading numbers that the names of all these
    tensors have in common, but at most as many as `numbers` has.
    """

    name: str
    kind: str
    numbers: Numbers
    kinds: tuple[str, ...]
    found: Numbers
    by_content: bool

    @property
    def is_straight(self) -> bool:
        """Whether the names of the weight and of its original have the same numbers, such as the same layer."""
        return self.found == self.numbers[: len(self.found)]


def numbered(name: str) -> tuple[str, Numbers]:
    """Replace the numbers in a name by #. Also return these numbers, such as the numbers of the layer and the expert.

    >>> numbered("layers.3.experts.11.w1.weight"), numbered("h7.up")
    (('layers.#.experts.#.w1.weight', (3, 11)), ('h#.up', (7,)))
    """
    return _NUMBER.sub(r"\1#", name), tuple(int(found[2]) for found in _NUMBER.finditer(name))


def contradictions(matches: Mapping[str, Counterpart], known: Iterable[str]) -> dict[str, str]:
    """Return the names of the weights whose original is doubtful, each with the reason as text.

    `matches` has the original of each weight. `known` has the names of all tensors of the original checkpoint. An
    original that was found by name is doubted only because of the order of its rows (`_of_another_order`).

    >>> found = {f"h.{i}.a": Counterpart("", lambda: None, (f"layers.{1 - i}.b",), by_content=True) for i in (0, 1)}
    >>> for name, reason in contradictions(found, ["layers.0.b", "layers.1.b"]).items():
    ...     print(name, reason)
    h.0.a it fits layers.1.b, but its name and the other weights suggest layer 0: are weights exchanged?
    h.1.a it fits layers.0.b, but its name and the other weights suggest layer 1: are weights exchanged?
    """
    names = list(known)
    there = {numbered(name) for name in names}
    available = {(kind, numbers[:count]) for kind, numbers in there for count in range(len(numbers) + 1)}
    each = [_match(name, found) for name, found in matches.items() if found.names]
    kinds: Kinds = defaultdict(Counter)
    for match in each:
        kinds[match.kind][match.kinds] += 1
    # If the weights have fewer kinds of names than their originals, a name does not say which part of a layer it is.
    is_vague = len(kinds) < len({match.kinds for match in each})
    tells = {kind for kind, found in kinds.items() if len(found) == 1 or not is_vague}
    wrong = _of_another_kind(each, {_last(name) for name in names}, {kind: kinds[kind] for kind in tells}, matches)
    rest = [match for match in each if match.name not in wrong and match.kind in tells]
    for match in _of_another_layer(rest, available):
        layer = f"layer {match.numbers[0]}" if _can_be_straight(match, available) else "another layer"
        said = f"it fits {few_names(matches[match.name].names)}, but its name and the other weights suggest {layer}"
        wrong[match.name] = f"{said}: are weights exchanged?"
    by_content = {match.name for match in each if match.by_content}
    return {name: reason for name, reason in wrong.items() if name in by_content} | _of_another_order(matches)


def _of_another_order(matches: Mapping[str, Counterpart]) -> dict[str, str]:
    """Return the weights of q and k whose rows are in an unusual order for this checkpoint, each with the reason.

    A checkpoint permutes these rows for rope in all layers, or in none. If half of the weights are permuted, all of
    them are doubtful.

    >>> found = {f"{at}.k": Counterpart("", lambda: None, rope_heads=heads) for at, heads in enumerate((8, 0, 8))}
    >>> _of_another_order(found)
    {'1.k': 'its rows are not permuted for rope, but those of other weights of q and k are'}
    """
    permuted = {name for name, found in matches.items() if found.rope_heads}
    straight = {name for name, found in matches.items() if found.rope_heads == 0}
    least = min(len(permuted), len(straight))
    reasons = dict[str, str]()
    for names, own, other in ((permuted, "are", "are not"), (straight, "are not", "are")):
        if 0 < len(names) == least:
            said = f"its rows {own} permuted for rope, but those of other weights of q and k {other}"
            reasons |= dict.fromkeys(sorted(names), said)
    return reasons


def _match(name: str, found: Counterpart) -> _Match:
    kind, numbers = numbered(name)
    parts = [numbered(each) for each in found.names]
    common = list(parts[0][1])
    for _, others in parts:
        same = (i for i, (x, y) in enumerate(zip(common, others, strict=False)) if x != y)
        del common[next(same, min(len(common), len(others))) :]
    kinds = tuple(dict.fromkeys(kind for kind, _ in parts))
    return _Match(name, kind, numbers, kinds, tuple(common[: len(numbers)]), found.by_content)


def _last(name: str) -> str:
    return canonical(name).rpartition(".")[2]


def _of_another_kind(
    each: list[_Match],
    lasts: set[str],
    kinds: Mapping[str, Counter[tuple[str, ...]]],
    matches: Mapping[str, Counterpart],
) -> dict[str, str]:
    """Return the weights whose names do not suit the names of their originals, each with a reason.

    `lasts` has the last words of the names in the original. For each kind of weights, `kinds` counts the kinds of their
    originals (see `_Match`).
    """
    wrong = {}
    for match in each:
        last, names = _last(match.name), matches[match.name].names
        found = f"it fits {few_names(names)}"
        counts = kinds.get(match.kind, Counter())
        usual = max(counts, key=lambda kind: counts[kind], default=match.kinds)
        if last in lasts and all(_last(name) != last for name in names):
            wrong[match.name] = f"{found}, but its name suggests {last}: are weights exchanged?"
        elif counts and 2 * counts[match.kinds] <= counts.total() and last not in map(_last, names):
            others = f"weights with similar names fit {few_names(usual)}" if usual != match.kinds else "others do not"
            wrong[match.name] = f"{found}, but {others}: are weights exchanged?"
    return wrong


def _can_be_straight(match: _Match, available: set[tuple[str, Numbers]]) -> bool:
    """Return whether the original has a tensor of each kind in `match.kinds` with the numbers of the weight."""
    return all((kind, match.numbers[: len(match.found)]) in available for kind in match.kinds)


def _of_another_layer(each: list[_Match], available: set[tuple[str, Numbers]]) -> list[_Match]:
    """Return the weights whose original seems to be of another layer.

    The right layer is inferred from the numbers in the names, and from the originals of the other weights of the layer.
    """
    numbered_ones = [match for match in each if match.found]
    votes: defaultdict[int, Counter[int]] = defaultdict(Counter)
    groups: defaultdict[tuple[str, tuple[str, ...]], list[_Match]] = defaultdict(list)
    for match in numbered_ones:
        votes[match.numbers[0]][match.found[0]] += 1
        groups[match.kind, match.kinds].append(match)

    def majority(match: _Match) -> int:
        """Return the sum of the votes of the layer's other weights.

        A vote is +1 if the originals of the other weight and of the match are in the same layer, and −1 otherwise.
        """
        counts = votes[match.numbers[0]]
        agree = counts[match.found[0]] - 1
        return agree - (counts.total() - 1 - agree)

    def is_supported(match: _Match) -> bool:
        return not match.by_content or majority(match) > 0

    wrong = []
    for group in groups.values():
        group.sort(key=lambda match: match.numbers)
        straight = all(_can_be_straight(match, available) for match in group)
        inverted = _inverted(group)
        blamed = [
            match for match in inverted if not (is_supported(match) or (straight and match.is_straight))
        ] or inverted
        wrong += blamed
        for match in group:
            is_moved = straight and not match.is_straight and not is_supported(match)
            if match not in blamed and (is_moved or majority(match) < 0):
                wrong.append(match)
    return wrong


def _inverted(group: list[_Match]) -> list[_Match]:
    """Return the matches that break the order: the originals' numbers should ascend, as the weights' numbers do.

    `group` is sorted by the numbers in the names of the weights.
    """
    found = []
    largest: list[Numbers] = [()]
    for match in group:
        largest.append(max(largest[-1], match.found))
    smallest: Numbers | None = None
    for at in range(len(group) - 1, -1, -1):
        own = group[at].found
        if (at and largest[at] >= own) or (smallest is not None and smallest <= own):
            found.append(group[at])
        smallest = own if smallest is None else min(smallest, own)
    return found[::-1]
