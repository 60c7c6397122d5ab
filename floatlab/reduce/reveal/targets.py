"""Find a real implementation of a sum or a product by its name, in a supported library or any other module."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder
from inspect import iscoroutinefunction
from typing import TypeVar

from floatlab.arrays.sources import Source
from floatlab.errors import FloatlabError, FormatError, RefusedError, UnsupportedError, guess, printable, quoted
from floatlab.formats import parse_format
from floatlab.record import Record
from floatlab.reduce.timing.devices import DEVICES, DTYPES, Device, Foreign, device_of, first_line
from floatlab.sandbox import confined

Found = TypeVar("Found")
# The kinds of functions. Their operands are a vector, two vectors, a matrix and a vector, or two matrices.
KINDS = ("sum", "dot", "matvec", "matmul")
_KNOWN = {
    "sum": "sum", "nansum": "sum", "dot": "dot", "vdot": "dot", "inner": "dot", "vecdot": "dot",
    "einsum": "dot", "mv": "matvec", "matvec": "matvec", "matmul": "matmul", "mm": "matmul",
}  # fmt: skip
LIBRARIES = tuple(DEVICES)
# A product has this many rows and columns if no shape is given. Its inner dimension is the number of terms.
ROWS = COLUMNS = 64


class Target(Record):
    """A function that is examined: its name, the kind of its operands, and the device of its arrays."""

    name: str
    call: Callable[..., Foreign]
    kind: str
    device: Device

    def dtype(self, name: str) -> Foreign:
        """Return the library's dtype for the name of a format or a dtype; raises UnsupportedError if there is none."""
        with suppress(FormatError):  # for other names, the device raises an error that lists its dtypes
            name = DTYPES.get(parse_format(name).name, name)
        return self.device.dtype(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The default shape of the results: () for sums and dot products, (64,) for matvec, and (64, 64) for matmul.

        >>> target_of("numpy.sum").shape, target_of("numpy.matmul").shape
        ((), (64, 64))
        """
        return {"matvec": (ROWS,), "matmul": (ROWS, COLUMNS)}.get(self.kind, ())

    def attempt(self, work: Callable[[], Found], what: str = "{} raises {}") -> Found:
        """Return the result of `work`, which calls the target; raises UnsupportedError if the target fails.

        `what` is the message, in which the braces stand for the target's name and the reason. KeyboardInterrupt and
        floatlab's own errors propagate.
        """
        process = os.getpid()
        try:
            made = work()
        except (KeyboardInterrupt, FloatlabError):
            raise
        except BaseException as trouble:  # catch SystemExit too: the target must not end floatlab
            raise UnsupportedError(what.format(self.name, _reason(trouble))) from trouble
        if os.getpid() != process:
            raise UnsupportedError(f"{self.name} forks, and returns in the new process too; it must end that process")
        return made

    def fetch(self, made: Foreign) -> Source:
        """Return the codes of a result; raises UnsupportedError if it is not an array of numbers."""
        device = self.device
        # Lazily computed results, and objects that only resemble arrays, may raise an exception here.
        return self.attempt(
            lambda: device.fetch(made, f"the result of {self.name}"), "the result of {} cannot be read: {}"
        )


def target_of(what: object, kind: str | None = None, device: str = "cpu") -> Target:
    """Return the target for a function or its name (`numpy.sum`, `torch.matmul`, `module:function`).

    `kind` is one of KINDS. By default, the name determines it. A function with an unknown name is taken as a sum.
    Raises UnsupportedError if `what` is not a function or the device does not exist, and MissingPartError if the
    library is not installed.

    >>> target_of("numpy.dot").kind
    'dot'
    """
    if not isinstance(device, str):
        raise UnsupportedError(f"device must be a name such as cuda:1, not {type(device).__name__}")
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        raise UnsupportedError(
            f"kind must be one of {' '.join(KINDS)}, not {quoted(str(kind))}{guess(str(kind), [*KINDS])}"
        )
    call, name = (import_target(what), what) if isinstance(what, str) else (what, _name_of(what))
    if not callable(call):
        raise UnsupportedError(f"{quoted(name)} is not a function, but {type(call).__name__}")
    if iscoroutinefunction(call):
        raise UnsupportedError(f"{quoted(name)} is asynchronous: give a function that returns its result")
    last = name.replace(":", ".").rpartition(".")[2]
    library = name.replace(":", ".").partition(".")[0]
    known = _KNOWN.get(last, "sum")
    if library in LIBRARIES and last in _KNOWN and kind is not None and (kind == "sum") != (known == "sum"):
        takes = "one array" if known == "sum" else "two arrays"
        raise UnsupportedError(f"{name} takes {takes}, so it cannot be examined as a {kind}")
    # For "cpu", the default device of the library is used: it is the CPU in most libraries, but cupy has no CPU device.
    place = device_of(library if library in LIBRARIES else "numpy", "" if device == "cpu" else device)
    if last == "einsum":
        whole = call
        call = lambda *given: whole(_SPECIFICATIONS[tuple(map(_axes, given))], *given)  # noqa: E731
    return Target(name, call, kind or known, place)


# The subscripts for `einsum`, by the number of axes of each operand.
_SPECIFICATIONS = {(1,): "i->", (1, 1): "i,i", (2, 1): "ij,j", (2, 2): "ij,jk"}


def _axes(operand: Foreign) -> int:
    return int(operand.ndim)


def _name_of(call: object) -> str:
    module, name = getattr(call, "__module__", None), getattr(call, "__name__", None)
    parts = (module.partition(".")[0] if isinstance(module, str) else "", name if isinstance(name, str) else "")
    return ".".join(filter(None, (parts[0], parts[1] or type(call).__name__)))


def _reason(trouble: BaseException) -> str:
    """Return the type of an error and the beginning of its message."""
    kind = type(trouble).__name__
    try:
        said = first_line(trouble)
    except Exception:  # even its message may raise an exception
        return kind
    return said if said.startswith(kind) else f"{kind}: {said}"


def import_target(name: str) -> Foreign:
    """Return the object with this name in a library or a module, which may lie in the current folder.

    Raises UnsupportedError if the name is not found, and MissingPartError if the library is not installed. In a
    sandboxed process, raises RefusedError for all names except the usual functions of the libraries. Other names could
    import code, or reach any module that a library has imported.
    """
    module, _, path = name.partition(":") if ":" in name else name.partition(".")
    if not module or not path:
        raise UnsupportedError(f"a target must be library.function or module:function, not {quoted(name)}")
    if confined() and (":" in name or path.removeprefix("numpy.") not in _KNOWN):
        raise RefusedError(
            f"{quoted(name)} is refused here: visitors of a served explorer can use only functions like numpy.sum "
            f"({' '.join(_KNOWN)} of {' '.join(LIBRARIES)})"
        )
    if ":" not in name and module not in LIBRARIES:
        raise UnsupportedError(
            f"{quoted(name)}: the libraries are {' '.join(LIBRARIES)}; functions of others are named module:function"
        )
    if module in LIBRARIES:
        device_of(module)  # raises an error that says what to install
    found = _imported("jax.numpy" if module == "jax" else module)
    if module == "jax":
        path = path.removeprefix("numpy.")
    for each in path.split("."):
        try:
            found = getattr(found, each)
        except AttributeError:
            raise UnsupportedError(f"{quoted(module)} has no {quoted(path)}{_near(each, found)}") from None
        except Exception as trouble:
            raise UnsupportedError(f"{quoted(module)} does not provide {quoted(path)}: {_reason(trouble)}") from None
    return found


def _imported(module: str) -> Foreign:
    """Import a module. If it is not installed, look for it in the current folder.

    Raises UnsupportedError if it cannot be imported.
    """
    top = module.partition(".")[0]
    if module.endswith(".py") or os.sep in module:
        stem = os.path.basename(module).removesuffix(".py")
        raise UnsupportedError(
            f"{quoted(module)} is a file: give its module in the current folder, as in {printable(stem)[:40]}:function"
        )
    try:
        try:
            return import_module(module)
        except ModuleNotFoundError as missing:
            if missing.name != top:
                raise
        folder = _current_folder(top)
        if not folder:
            raise UnsupportedError(f"{quoted(module)} cannot be imported: no module of this name is {_searched()}")
        sys.path.append(folder)  # at the end: files of this folder replace no installed module
        return import_module(module)
    except (KeyboardInterrupt, FloatlabError):
        raise
    except BaseException as trouble:  # a module may do anything while it is imported
        raise UnsupportedError(f"{quoted(module)} cannot be imported: {_reason(trouble)}") from None


def _current_folder(module: str) -> str:
    """Return the current folder if it has the module, is not yet in `sys.path`, and may be added to it; else ""."""
    if sys.flags.safe_path:
        return ""
    with suppress(OSError):  # the folder may have been deleted
        folder = os.getcwd()
        if folder not in sys.path and PathFinder.find_spec(module, [folder]) is not None:
            return folder
    return ""


def _searched() -> str:
    if sys.flags.safe_path:
        return "installed (the current folder is not searched, because of PYTHONSAFEPATH or -P)"
    return "installed or in the current folder"


def _near(word: str, where: object) -> str:
    with suppress(Exception):  # a module may define a __dir__ that raises
        return guess(word, [each for each in dir(where) if not each.startswith("_")])
    return ""
