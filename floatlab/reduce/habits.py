"""Habits of the libraries on this machine: the orders in which they add so many terms, found by probing them."""

from __future__ import annotations

import sys
from functools import lru_cache

from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.record import Record
from floatlab.reduce.devices import DTYPES
from floatlab.reduce.matching import schedule_of
from floatlab.reduce.orders import ByHand, Schedule
from floatlab.reduce.plan import Plan
from floatlab.reduce.revelation import reveal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

# What usually makes a result of each kind. Other libraries are asked where they are loaded already.
_USUAL: dict[str, dict[str, tuple[str, ...]]] = {
    "sum": {"numpy": ("numpy.sum",), "torch": ("torch.sum",), "jax": ("jax.numpy.sum",)},
    "dot": {"numpy": ("numpy.dot", "numpy.einsum"), "torch": ("torch.dot",), "jax": ("jax.numpy.dot",)},
    "matvec": {"numpy": ("numpy.matmul",), "torch": ("torch.mv",), "jax": ("jax.numpy.matmul",)},
    "matmul": {"numpy": ("numpy.matmul",), "torch": ("torch.matmul",), "jax": ("jax.numpy.matmul",)},
}
_LONG = 1 << 12  # terms; of more, no library is probed that was not named
_NAMED = 1 << 10  # terms; of more, an order is not searched for among those that have an expression


class Habit(Record):
    """The order in which a library was seen to add; `name` is what it is called in words."""

    name: str
    schedule: Schedule


def habits(kind: str, terms: int, format_name: str, targets: Sequence[Any] | None) -> Iterator[Habit]:
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
        yield _habit(each, reveal(each, terms, dtype, kind=kind))


def _usual(names: tuple[str, ...], kind: str, terms: int, dtype: str) -> Iterator[Habit]:
    for name in names:
        try:
            plan = _revealed(name, terms, dtype, kind)
        except FloatlabError:  # it is no sum along a tree, or does not take this dtype
            continue
        yield _habit(name, plan)


@lru_cache(maxsize=32)
def _revealed(name: str, terms: int, dtype: str, kind: str) -> Plan:
    return reveal(name, terms, dtype, kind=kind)


def _habit(target: Any, plan: Plan) -> Habit:
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    known = schedule_of(plan) if plan.terms <= _NAMED else None
    if known is not None:
        return Habit(f"{known.text} ({name} here)", known)
    return Habit(f"{name}'s order here", ByHand(plan))
