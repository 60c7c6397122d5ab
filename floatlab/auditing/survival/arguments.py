"""Checks the arguments of audits of recipes before the work begins."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from math import isfinite
from numbers import Real
from typing import TypedDict

from floatlab.auditing.survival.subjects import Place
from floatlab.errors import UnsupportedError, quoted


class RecipeOptions(TypedDict, total=False):
    """The keyword arguments of the functions that audit recipes; `audit_recipes` explains them."""

    min_sqnr: float | None
    activations: Place | None
    overflow: str
    executor: Executor | None
    resume: str | os.PathLike[str] | None
    notice: Callable[[str], None] | None


def check_options(places: Sequence[object], only: object, options: RecipeOptions) -> None:
    """Raise UnsupportedError for values that an audit cannot use, and TypeError for unknown keywords.

    >>> check_options([{}], None, {"min_sqnr": "20"})
    Traceback (most recent call last):
      ...
    floatlab.errors.UnsupportedError: min_sqnr must be a number of decibels, such as 20, not '20'
    """
    if unknown := [name for name in options if name not in RecipeOptions.__annotations__]:
        known = ", ".join(RecipeOptions.__annotations__)
        raise TypeError(f"audit() has no keyword {unknown[0]!r}; with to, it has {known}")
    if not places:
        raise UnsupportedError("at least one checkpoint is needed")
    for place in places:
        _check_place(place, "a checkpoint")
    if (activations := options.get("activations")) is not None:
        _check_place(activations, "activations")
    if only is not None and not isinstance(only, str):
        raise UnsupportedError(f"only must be a text such as '*.mlp.*', not {_kind(only)}")
    overflow, least = options.get("overflow", "native"), options.get("min_sqnr")
    if overflow not in ("native", "saturate"):
        raise UnsupportedError(f"overflow must be native or saturate, not {quoted(str(overflow))}")
    if least is not None and not _is_finite(least):
        raise UnsupportedError(f"min_sqnr must be a number of decibels, such as 20, not {least!r:.40}")
    executor, resume, notice = options.get("executor"), options.get("resume"), options.get("notice")
    if executor is not None and not hasattr(executor, "submit"):
        raise UnsupportedError(f"executor must be an executor of concurrent.futures or of Dask, not {_kind(executor)}")
    if resume is not None and not isinstance(resume, str | os.PathLike):
        raise UnsupportedError(f"resume must be the path of a file, not {_kind(resume)}")
    if notice is not None and not callable(notice):
        raise UnsupportedError(f"notice must be a function that takes a text, not {_kind(notice)}")


def _check_place(place: object, what: str) -> None:
    if isinstance(place, str | os.PathLike | Mapping):
        return
    hint = ": give its state_dict()" if hasattr(place, "state_dict") else ""
    hint = ": give {'name': array}" if hasattr(place, "__array__") else hint
    raise UnsupportedError(f"{what} must be a path or a mapping of names to arrays, not {_kind(place)}{hint}")


def _is_finite(number: object) -> bool:
    if isinstance(number, bool) or not isinstance(number, Real):
        return False
    try:
        return isfinite(number)
    except OverflowError:
        return False


def _kind(value: object) -> str:
    return f"{type(value).__module__.removesuffix('builtins')}.{type(value).__qualname__}".removeprefix(".")
