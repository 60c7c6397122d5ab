"""Devices of NumPy and other libraries. A device makes arrays, waits for their computation, and fetches them.

Many libraries return an array before the device has computed it. Without waiting, a clock would measure only the time
of the call. Only timing needs `wait`, since `fetch` waits by itself.
"""

from __future__ import annotations

import ctypes
import os
import re
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted

Foreign = Any  # an array, a dtype or the value of a context manager, of any library

# The libraries' names for the formats in which they multiply.
DTYPES = {"binary16": "float16", "binary32": "float32", "binary64": "float64", "bfloat16": "bfloat16"}
_GPU_SETTINGS = ("NVIDIA_TF32_OVERRIDE",)
_THREAD_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class AbsentDeviceError(UnsupportedError):
    """Raised for a device that a library supports but this machine does not have."""


class Device:
    """The CPU as NumPy uses it; subclasses are the devices of other libraries.

    A device is named by its kind, such as `cuda`, or by kind and index, such as `cuda:1`. The default is `kinds[0]`.
    """

    library: ClassVar[str] = "numpy"
    install: ClassVar[str] = "numpy"  # the name of the package for pip
    kinds: ClassVar[tuple[str, ...]] = ("cpu",)

    def __init__(self, name: str = "") -> None:
        """Import the library and initialise the device; raises MissingPartError or AbsentDeviceError."""
        self.name = name or self.kinds[0]
        self.kind, _, index = self.name.partition(":")
        self.index = int(index or 0)
        self.module = _imported(self.library, self.install)
        try:
            self._touch()
        except Exception as trouble:
            raise AbsentDeviceError(f"{self.library}:{self.name}: no such device ({first_line(trouble)})") from None

    def _touch(self) -> None:
        """Initialise the device; if the device is missing, the library's exception propagates."""

    def dtype(self, name: str) -> Foreign:
        """Return the library's dtype for a name; raises UnsupportedError if no value of `DTYPES` has this name.

        Except for torch, bfloat16 needs ml_dtypes. Raises MissingPartError if it is not installed.
        """
        known = [*DTYPES.values()]
        if name not in known:
            raise UnsupportedError(f"dtype must be one of {' '.join(known)}, not {quoted(name)}{guess(name, known)}")
        if name == "bfloat16":
            try:
                return np.dtype(import_module("ml_dtypes").bfloat16)
            except ImportError:
                raise MissingPartError("NumPy needs ml_dtypes for bfloat16: pip install ml_dtypes") from None
        return np.dtype(name)

    def scope(self, dtype: Foreign) -> AbstractContextManager[Foreign]:
        """Return a context manager; arrays of the given dtype must be made and used within it."""
        return nullcontext()

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        """Return values as a new array on the device, in C order; all values must be numbers of the dtype."""
        return np.array(values, dtype, order="C")

    def wait(self, made: Foreign) -> None:
        """Wait until the computation of an array has finished."""

    def fetch(self, made: Foreign, name: str = "the result") -> Source:
        """Return an array's codes in NumPy's memory; error messages call the array `name`."""
        return source_of(made, name)

    def set_threads(self, count: int) -> int | None:
        """Set the number of threads that the library uses. Return the previous number, or None if this is not possible.

        For NumPy, only the OpenBLAS in NumPy's wheels is supported.
        """
        library = _openblas()
        if library is None:
            return None
        before = int(library.scipy_openblas_get_num_threads64_())
        library.scipy_openblas_set_num_threads64_(count)
        return before

    @property
    def words(self) -> str:
        """The name and the version of the library; for a device other than the CPU, also the device's name if known."""
        return f"NumPy {np.__version__}"

    def settings(self, dtype: str) -> tuple[str, ...]:
        """Return the settings of the library and the device that affect the bits or the time of a product."""
        found = np.show_config(mode="dicts").get("Build Dependencies", {}).get("blas", {})
        blas = " ".join(str(found[each]) for each in ("name", "version") if found.get(each))
        return (*([blas] if blas else []), *_environment(_THREAD_SETTINGS))


class _Torch(Device):
    library = install = "torch"
    kinds = ("cpu", "cuda", "mps", "xpu")

    def _touch(self) -> None:
        self.wait(self.module.zeros(1, device=self.name))

    def dtype(self, name: str) -> Foreign:
        super().dtype(name if name != "bfloat16" else "float32")
        return getattr(self.module, name)

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        return self.module.from_numpy(np.array(values, order="C")).to(dtype).to(self.name)

    def wait(self, made: Foreign) -> None:
        if self.kind == "mps":
            self.module.mps.synchronize()
        elif self.kind != "cpu":
            getattr(self.module, self.kind).synchronize(self.index)

    def set_threads(self, count: int) -> int | None:
        if self.kind != "cpu":
            return None
        before = int(self.module.get_num_threads())
        self.module.set_num_threads(count)
        return before

    @property
    def words(self) -> str:
        version = f"PyTorch {self.module.__version__}"
        return version if self.kind != "cuda" else f"{version} on {self.module.cuda.get_device_name(self.index)}"

    def settings(self, dtype: str) -> tuple[str, ...]:
        found = [f"{self.module.get_num_threads()} threads"] if self.kind == "cpu" else []
        if dtype == "float32":
            found.append(f"float32_matmul_precision {self.module.get_float32_matmul_precision()}")
        if self.kind != "cuda":
            return tuple(found)
        short = {"float32": "tf32", "float16": "fp16_reduced_precision_reduction"}
        name = f"allow_{short.get(dtype, 'bf16_reduced_precision_reduction')}"
        try:
            allowed = getattr(self.module.backends.cuda.matmul, name)
        except Exception as trouble:  # torch raises if both of its interfaces for this setting were used
            allowed = first_line(trouble)
        return (*found, *([] if dtype == "float64" else [f"{name} {allowed}"]), *_environment(_GPU_SETTINGS))


class _Jax(Device):
    library = install = "jax"
    kinds = ("cpu", "gpu", "cuda", "rocm", "tpu")

    def _touch(self) -> None:
        self.device = self.module.devices(self.kind)[self.index]

    def scope(self, dtype: Foreign) -> AbstractContextManager[Foreign]:
        # By default, jax converts float64 to float32.
        if np.dtype(dtype) != np.float64:
            return nullcontext()
        source = self.module if hasattr(self.module, "enable_x64") else import_module("jax.experimental")
        wide: AbstractContextManager[Foreign] = source.enable_x64(True)
        return wide

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        return self.module.device_put(np.array(values, dtype, order="C"), self.device)

    def wait(self, made: Foreign) -> None:
        made.block_until_ready()

    def set_threads(self, count: int) -> int | None:
        return None

    @property
    def words(self) -> str:
        version = f"jax {self.module.__version__}"
        return version if self.kind == "cpu" else f"{version} on {self.device.device_kind}"

    def settings(self, dtype: str) -> tuple[str, ...]:
        precision = self.module.config.jax_default_matmul_precision or "default"
        return (f"default_matmul_precision {precision}", *_environment(() if self.kind == "cpu" else _GPU_SETTINGS))


class _CuPy(Device):
    library, install = "cupy", "cupy-cuda12x"
    kinds = ("cuda",)

    def _touch(self) -> None:
        if self.index >= (count := self.module.cuda.runtime.getDeviceCount()):
            raise LookupError(f"there are {count}")
        with self.scope(None):
            self.wait(self.module.zeros(1))

    def scope(self, dtype: Foreign) -> AbstractContextManager[Foreign]:
        found: AbstractContextManager[Foreign] = self.module.cuda.Device(self.index)
        return found

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        return self.module.asarray(np.array(values, dtype, order="C"))

    def wait(self, made: Foreign) -> None:
        self.module.cuda.Device(self.index).synchronize()

    def fetch(self, made: Foreign, name: str = "the result") -> Source:
        return source_of(made.get(), name)

    @property
    def words(self) -> str:
        name = self.module.cuda.runtime.getDeviceProperties(self.index)["name"]
        return f"CuPy {self.module.__version__} on {name.decode() if isinstance(name, bytes) else name}"

    def set_threads(self, count: int) -> int | None:
        return None

    def settings(self, dtype: str) -> tuple[str, ...]:
        return _environment(("CUPY_TF32", "CUPY_ACCELERATORS", *_GPU_SETTINGS))


DEVICES: dict[str, type[Device]] = {each.library: each for each in (Device, _Torch, _Jax, _CuPy)}


def check_device(library: str, name: str = "") -> None:
    """Raise UnsupportedError for a device that the library does not support; the library need not be installed."""
    kinds, kind = DEVICES[library].kinds, name.partition(":")[0]
    if name and not (kind in kinds and re.fullmatch(r"\w+(:\d{1,3})?", name, re.ASCII)):
        known = [*kinds, *(f"{each}:1" for each in kinds if each != "cpu")]
        raise UnsupportedError(
            f"{library} has no device {quoted(name)}; it knows {' '.join(known)}{guess(kind, [*kinds])}"
        )


def device_of(library: str, name: str = "") -> Device:
    """Return a library's device: the default one, or the named one, such as `cuda` or `cuda:1`.

    Raises MissingPartError for a library that is not installed, and UnsupportedError for a device that the library does
    not support. Raises AbsentDeviceError, a subclass of UnsupportedError, if this machine does not have the device.

    >>> device = device_of("numpy")
    >>> device.fetch(device.array(np.ones(2), device.dtype("float16"))).format.name
    'binary16'
    """
    check_device(library, name)
    return DEVICES[library](name)


@cache
def _openblas() -> Foreign | None:
    """Return the OpenBLAS of NumPy's wheel, or None if NumPy uses another library."""
    for path in (Path(np.__file__).parents[1] / "numpy.libs").glob("*scipy_openblas*"):
        with suppress(OSError):
            library = ctypes.CDLL(str(path))
            if hasattr(library, "scipy_openblas_set_num_threads64_"):
                return library
    return None


def _imported(library: str, install: str) -> Foreign:
    try:
        return import_module(library)
    except Exception as trouble:  # for example, a missing or incompatible driver library
        if isinstance(trouble, ModuleNotFoundError) and trouble.name in (library, None):
            raise MissingPartError(f"{library} is not installed: pip install {install}") from None
        raise MissingPartError(f"{library} cannot be imported: {first_line(trouble)}") from None


def first_line(trouble: BaseException, limit: int = 120) -> str:
    """Return the first sentence in the first line of an error's message, cut to `limit` characters.

    If the sentence is a single word, the error's type precedes it. If it is empty, only the type is returned.

    >>> first_line(ValueError("it is so. And more")), first_line(KeyError("code"))
    ('it is so', "KeyError: 'code'")
    """
    said = str(trouble).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    text = said if " " in said else ": ".join(filter(None, (type(trouble).__name__, said)))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _environment(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name} {os.environ[name]}" for name in names if name in os.environ)
