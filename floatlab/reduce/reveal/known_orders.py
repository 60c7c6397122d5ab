"""Find the orders in which the libraries on this machine add, by probing them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, lru_cache

from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.record import Individual
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.schedules import ExplicitTree, Schedule
from floatlab.reduce.reveal.revelation import prober_of
from floatlab.reduce.reveal.targets import target_of
from floatlab.reduce.timing.devices import DTYPES

# For each kind, the usual functions of each library. A library is probed only if it is already imported.
_USUAL: dict[str, dict[str, tuple[str, ...]]] = {
    "sum": {"numpy": ("numpy.sum",), "torch": ("torch.sum",), "jax": ("jax.numpy.sum",)},
    "dot": {"numpy": ("numpy.dot", "numpy.einsum"), "torch": ("torch.dot",), "jax": ("jax.numpy.dot",)},
    "matvec": {"numpy": ("numpy.matmul",), "torch": ("torch.mv",), "jax": ("jax.numpy.matmul",)},
    "matmul": {"numpy": ("numpy.matmul",), "torch": ("torch.matmul",), "jax": ("jax.numpy.matmul",)},
}
_LONG = 1 << 12  # above this many terms, only named targets are probed
_NAMED = 1 << 10  # orders of more terms than this are not described by a schedule


class KnownOrder(Individual):
    """The order in which a library adds, found by probing. For a matrix product, it is the order of the first element.

    `name` describes the order in words. `fused` makes further probes and returns the terms whose products are added by
    FMA.
    """

    name: str
    schedule: Schedule
    fused: Callable[[], tuple[int, ...]]


def find_known_orders(
    kind: str, terms: int, format_name: str, targets: Sequence[object] | None
) -> Iterator[KnownOrder]:
    """Yield the orders in which the functions in `targets` add. A name may stand for a function (see `reveal`).

    If `targets` is None, the usual functions of this kind in imported libraries are probed, unless there are more than
    2^12 terms. Usual functions that do not add along a tree or cannot be probed are left out. If `targets` is given,
    raises the errors of `reveal`, and UnsupportedError if no library adds in the format.
    """
    dtype = DTYPES.get(format_name)
    if targets is not None:
        if dtype is None:
            raise UnsupportedError(f"targets can add {', '.join(DTYPES.values())}, but the result is {format_name}")
        yield from (_probe(target, terms, dtype, kind) for target in targets)
    elif dtype is not None and terms <= _LONG:
        for library, names in _USUAL[kind].items():
            for name in names if library in sys.modules else ():
                with suppress(FloatlabError):  # the function does not add along a tree, or does not take this dtype
                    yield _probe_usual(name, terms, dtype, kind)


def _probe(target: object, terms: int, dtype: str, kind: str) -> KnownOrder:
    name = target if isinstance(target, str) else getattr(target, "__name__", type(target).__name__)
    prober = prober_of(target_of(target, kind), terms, dtype)
    plan = prober.plan()
    where = "here" if prober.alike.all() else "here, first element"
    schedule = schedule_of(plan) if plan.terms <= _NAMED else None
    words = f"{name}'s order {where}" if schedule is None else f"{schedule.text} ({name} {where})"
    return KnownOrder(words, schedule or ExplicitTree(plan), cache(lambda: prober.reader.fused(plan)))


_probe_usual = lru_cache(maxsize=32)(_probe)
