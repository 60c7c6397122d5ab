"""Real implementations of sums and products, by name, in any installed library."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from importlib import import_module

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.confinement import confined
from floatlab.errors import FloatlabError, FormatError, RefusedError, UnsupportedError, guess, quoted
from floatlab.formats import parse_format
from floatlab.record import Record
from floatlab.reduce.timing.devices import DEVICES, DTYPES, Device, Foreign, device_of, first_line

# What a function takes: a vector, two of them, a matrix and a vector, two matrices.
KINDS = ("sum", "dot", "matvec", "matmul")
_KNOWN = {
    "sum": "sum", "nansum": "sum", "dot": "dot", "vdot": "dot", "inner": "dot", "vecdot": "dot",
    "einsum": "dot", "mv": "matvec", "matvec": "matvec", "matmul": "matmul", "mm": "matmul",
}  # fmt: skip
LIBRARIES = tuple(DEVICES)
# The product that is asked for has so many rows and columns, and its inner length is the number of terms.
ROWS = COLUMNS = 64


class Target(Record):
    """A function under examination: what it is called, what it takes, and where its library makes arrays."""

    name: str
    call: Callable[..., Foreign]
    kind: str
    device: Device

    def dtype(self, name: str) -> Foreign:
        """Return the library's dtype of a name, a format's or its own; raises UnsupportedError where it has none."""
        with suppress(FormatError):  # of other names the device says what it knows
            name = DTYPES.get(parse_format(name).name, name)
        return self.device.dtype(name)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of what it is asked to return: one number, or the product of matrices of fixed sizes.

        >>> target_of("numpy.sum").shape, target_of("numpy.matmul").shape
        ((), (64, 64))
        """
        return {"matvec": (ROWS,), "matmul": (ROWS, COLUMNS)}.get(self.kind, ())

    def sums(self, x: Array, y: Array, dtype: Foreign, places: Array | None = None) -> Source:
        """Return what the target makes of each row of x (sums, terms) with y (terms,), as codes.

        Of a product one element is read per row of x: that at `places` (elements, dimensions), by default the first
        element only. Rows of x go to the rows of these elements, as many at a time as there are places, no two of
        which may be in one row. Raises UnsupportedError for a target that raises, or returns another shape.
        """
        if not self.shape:
            with self.device.scope(dtype), np.errstate(all="ignore"):  # masks overflow in what is no sum
                return self._numbers(x, y, dtype)
        if places is None:
            places = np.zeros((1, len(self.shape)), np.intp)
        parts, format = [], None
        for low in range(0, len(x), len(places)):
            some = x[low : low + len(places)]
            chosen = tuple(places[: len(some)].T)
            rows = np.ones((ROWS, x.shape[1]))
            rows[chosen[0]] = some
            made = self.product(rows, y, dtype)
            parts.append(made.codes[chosen])
            format = made.format
        assert format is not None
        return Source(np.concatenate(parts), format)

    def product(self, x: Array, y: Array, dtype: Foreign) -> Source:
        """Return the codes (see `shape`) of the target's product of x (rows, terms) and y, which stands in each column.

        Raises what `sums` raises.
        """
        # Both in C order: a library may add the terms of transposed matrices in other orders.
        left, right = (np.ascontiguousarray(each) for each in (x, y if self.kind == "matvec" else _repeated(y)))
        with self.device.scope(dtype), np.errstate(all="ignore"):
            made = self._fetched(self._called(*(self.device.array(each, dtype) for each in (left, right))))
        if made.codes.shape != self.shape:
            raise UnsupportedError(f"{self.name} returns the shape {made.codes.shape}, not {self.shape}")
        return made

    def _numbers(self, x: Array, y: Array, dtype: Foreign) -> Source:
        # Arrays are made for each call: a target may write into what it is given.
        others = () if self.kind == "sum" else (y,)
        array = self.device.array
        results = [self._called(*(array(each, dtype) for each in (row, *others))) for row in x]
        if isinstance(results[0], np.generic) and len({type(each) for each in results}) == 1:
            return self._fetched(np.array(results))  # one array is read sooner than many numbers
        found = [self._scalar(each) for each in results]
        return Source(np.concatenate([each.codes.reshape(1) for each in found]), found[0].format)

    def _called(self, *given: Foreign) -> Foreign:
        try:
            return self.call(*given)
        except KeyboardInterrupt:
            raise
        except BaseException as trouble:  # sys.exit, too: it is the target that leaves, not we
            raise UnsupportedError(f"{self.name} raises {_told(trouble)}") from trouble

    def _fetched(self, found: Foreign) -> Source:
        try:
            return self.device.fetch(found, f"the result of {self.name}")
        except (KeyboardInterrupt, FloatlabError):
            raise
        except BaseException as trouble:  # what was computed late, or only looks like an array
            raise UnsupportedError(f"the result of {self.name} cannot be read: {_told(trouble)}") from trouble

    def _scalar(self, found: Foreign) -> Source:
        made = self._fetched(found)
        if made.codes.size != 1:
            raise UnsupportedError(f"{self.name} returns the shape {made.codes.shape}, not one number")
        return made


def _repeated(y: Array) -> Array:
    return np.broadcast_to(y[:, None], (len(y), COLUMNS))


def target_of(what: object, kind: str | None = None, device: str = "cpu") -> Target:
    """Return the target that a name (`numpy.sum`, `torch.matmul`, `module:function`) or a function stands for.

    `kind` says what it takes where its name does not: one of KINDS. Raises UnsupportedError for what is no function
    and for a device that is not there, and MissingPartError for a library that is not installed.

    >>> target_of("numpy.dot").kind
    'dot'
    """
    if not isinstance(device, str):
        raise UnsupportedError(f"device is a name such as cuda:1, not {type(device).__name__}")
    if kind is not None and (not isinstance(kind, str) or kind not in KINDS):
        raise UnsupportedError(f"kind is one of {' '.join(KINDS)}, not {quoted(str(kind))}{guess(str(kind), [*KINDS])}")
    call, name = (import_target(what), what) if isinstance(what, str) else (what, _name_of(what))
    if not callable(call):
        raise UnsupportedError(f"{quoted(name)} is no function, but {type(call).__name__}")
    last = name.replace(":", ".").rpartition(".")[2]
    library = name.replace(":", ".").partition(".")[0]
    # The usual device of most libraries is the processor, and cupy has none such.
    place = device_of(library if library in LIBRARIES else "numpy", "" if device == "cpu" else device)
    if last == "einsum":
        whole = call
        call = lambda *given: whole("i,i" if len(given) == 2 else "i->", *given)  # noqa: E731
    return Target(name, call, kind or _KNOWN.get(last, "sum"), place)


def _name_of(call: object) -> str:
    module, name = getattr(call, "__module__", None), getattr(call, "__name__", None)
    parts = (module.partition(".")[0] if isinstance(module, str) else "", name if isinstance(name, str) else "")
    return ".".join(filter(None, (parts[0], parts[1] or type(call).__name__)))


def _told(trouble: BaseException) -> str:
    """Return what kind of error it is, and what it says first."""
    kind = type(trouble).__name__
    try:
        said = first_line(trouble)
    except Exception:  # it cannot even say
        return kind
    return said if said.startswith(kind) else f"{kind}: {said}"


def import_target(name: str) -> Foreign:
    """Return what a library's or a module's name stands for; raises UnsupportedError and MissingPartError.

    Raises RefusedError in a confined process for all but the usual functions of the libraries: other names import code,
    or lead through a library to whatever it has imported itself.
    """
    module, _, path = name.partition(":") if ":" in name else name.partition(".")
    if not module or not path:
        raise UnsupportedError(f"a target is library.function or module:function, not {quoted(name)}")
    if confined() and (":" in name or path.removeprefix("numpy.") not in _KNOWN):
        raise RefusedError(
            f"{quoted(name)} is not asked here, where visitors are served: only functions such as numpy.sum are "
            f"({' '.join(_KNOWN)} of {' '.join(LIBRARIES)})"
        )
    if ":" not in name and module not in LIBRARIES:
        raise UnsupportedError(
            f"{quoted(name)}: the libraries are {' '.join(LIBRARIES)}; functions of others go as module:function"
        )
    if module in LIBRARIES:
        device_of(module)  # it says what to install
    try:
        found: Foreign = import_module("jax.numpy" if module == "jax" else module)
    except KeyboardInterrupt:
        raise
    except BaseException as trouble:  # a module may do anything while it is imported
        raise UnsupportedError(f"{quoted(module)} cannot be imported: {_told(trouble)}") from None
    if module == "jax":
        path = path.removeprefix("numpy.")
    for each in path.split("."):
        try:
            found = getattr(found, each)
        except AttributeError:
            raise UnsupportedError(f"{quoted(module)} has no {quoted(path)}{_near(each, found)}") from None
        except Exception as trouble:
            raise UnsupportedError(f"{quoted(module)} does not give {quoted(path)}: {_told(trouble)}") from None
    return found


def _near(word: str, where: object) -> str:
    with suppress(Exception):  # modules may have any __dir__
        return guess(word, [each for each in dir(where) if not each.startswith("_")])
    return ""
