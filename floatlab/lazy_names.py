"""Public names of packages: each is imported from its module when it is first used (PEP 562)."""

from __future__ import annotations

import sys
from importlib import import_module

from floatlab.fpmode import DefaultMode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import ModuleType


def open_module(name: str) -> ModuleType:
    """Import a module in the default floating-point mode, since the mode affects rounded constants."""
    try:
        with DefaultMode():
            return import_module(name)
    except ValueError:  # the mode cannot be set; the functions that depend on the mode report this later
        return import_module(name)


def lazy_names(
    package: str, modules: Mapping[str, str]
) -> tuple[list[str], Callable[[str], object], Callable[[], list[str]]]:
    """Return `__all__`, `__getattr__` and `__dir__` of a package; `modules` maps each module to its public names.

    The names of a module are one text, separated by spaces. For type checkers, a stub (`__init__.pyi`) in the package
    declares the same names.
    """
    home = {name: f"{package}.{module}" for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(open_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return sorted(home), get, lambda: sorted({*home, *vars(sys.modules[package])})
