"""Habits of the libraries on this machine: the orders in which they add so many terms, found by probing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any

from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.record import Individual, Record
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.orders import ByHand, Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.classes import Prober
from floatlab.reduce.reveal.revelation import prober_of
from floatlab.reduce.reveal.targets import target_of
from floatlab.reduce.timing.devices import DTYPES

# What usually makes a result of each kind. Other libraries are asked where they are loaded already.
_USUAL: dict[str, dict[str, tuple[str, ...]]] = {
    "sum": {"numpy": ("numpy.sum",), "torch": ("torch.sum",), "jax": ("jax.numpy.sum",)},
    "dot": {"numpy": ("numpy.dot", "numpy.einsum"), "torch": ("torch.dot",), "jax": ("jax.numpy.dot",)},
    "matvec": {"numpy": ("numpy.matmul",), "torch": ("torch.mv",), "jax": ("jax.numpy.matmul",)},
    "matmul": {"numpy": ("numpy.matmul",), "torch": ("torch.matmul",), "jax": ("jax.numpy.matmul",)},
}
_LONG = 1 << 12  # terms; of more, no library is probed that was not named
_NAMED = 1 << 10  # terms; of more, an order is not searched for among those that have an expression


class KnownOrder(Individual):
    """The order in which a library was seen to add; `name` is what it is called in words.

    Of a matrix product it is the order of its first element. `fused` probes which of its products are fused.
    """

    name: str
    schedule: Schedule
    fused: Callable[[], tuple[int, ...]]


def find_known_orders(kind: str, terms: int, format_name: str, targets: Sequence[Any] | None) -> Iterator[KnownOrder]:
    """Give the orders of targets (see `reveal`), or of the usual ones of a kind that add along a tree at all.

    Raises UnsupportedError for formats that no library adds, and what `reveal` raises, where targets are named.
    """
    dtype = DTYPES.get(format_name)
    if targets is None:
        if dtype is None or terms > _LONG:
            return
        for library, names in _USUAL[kind].items():
            if library in sys.modules:
                yield from _usual(names, kind, terms, dtype)
        return
    if dtype is None:
        raise UnsupportedError(f"targets add {', '.join(DTYPES.values())}, and the result is {format_name}")
    for each in targets:
        yield _habit(_seen(each, terms, dtype, kind))


class _Seen(Record):
    """A plan that a prober found, and the prober."""

    name: str
    plan: Plan
    prober: Prober


def _usual(names: tuple[str, ...], kind: str, terms: int, dtype: str) -> Iterator[KnownOrder]:
    for name in names:
        try:
            seen = _usually_seen(name, terms, dtype, kind)
        except FloatlabError:  # it is no sum along a tree, or does not take this dtype
            continue
        yield _habit(seen)


def _seen(target: Any, terms: int, dtype: str, kind: str) -> _Seen:
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    prober = prober_of(target_of(target, kind), terms, dtype)
    return _Seen(name, prober.plan(), prober)


_usually_seen = lru_cache(maxsize=32)(_seen)


def _habit(seen: _Seen) -> KnownOrder:
    name, plan = seen.name, seen.plan
    where = "here" if seen.prober.alike.all() else "here, first element"
    known = schedule_of(plan) if plan.terms <= _NAMED else None
    fused = cache(lambda: seen.prober.fused(plan))
    if known is not None:
        return KnownOrder(f"{known.text} ({name} {where})", known, fused)
    return KnownOrder(f"{name}'s order {where}", ByHand(plan), fused)
