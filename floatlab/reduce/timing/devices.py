"""Devices of other libraries: arrays are made there, multiplied there, waited for, and fetched.

A device returns an array before it has computed it, so that a clock read without waiting measures only the call.
`wait` is therefore for timing; `fetch` waits by itself.
"""

from __future__ import annotations

import os
import re
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any, ClassVar

import numpy as np

from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.types import Array
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted

Foreign = Any  # an array, a dtype or a context manager's value of any library

# What libraries call the formats in which they multiply.
DTYPES = {"binary16": "float16", "binary32": "float32", "binary64": "float64", "bfloat16": "bfloat16"}
_GPU_SETTINGS = ("NVIDIA_TF32_OVERRIDE",)
_THREAD_SETTINGS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")


class AbsentDeviceError(UnsupportedError):
    """A device that a library supports, but that this machine does not have."""


class Device:
    """NumPy's memory, and what the devices of all libraries have in common. The first of `kinds` is the usual one."""

    library: ClassVar[str] = "numpy"
    install: ClassVar[str] = "numpy"  # what pip calls it
    kinds: ClassVar[tuple[str, ...]] = ("cpu",)

    def __init__(self, name: str = "") -> None:
        """Import the library and touch the device; raises MissingPartError or UnsupportedError."""
        self.name = name or self.kinds[0]
        self.kind, _, index = self.name.partition(":")
        self.index = int(index or 0)
        self.module = _imported(self.library, self.install)
        try:
            self._touch()
        except Exception as trouble:
            raise AbsentDeviceError(f"{self.library}:{self.name}: no such device ({first_line(trouble)})") from None

    def _touch(self) -> None:
        """Raise anything where the device is not there; what it needs at first is started on the way."""

    def dtype(self, name: str) -> Foreign:
        """Return the library's dtype of a name; raises UnsupportedError where it has none."""
        known = [*DTYPES.values()]
        if name not in known:
            raise UnsupportedError(f"dtype is one of {' '.join(known)}, not {quoted(name)}{guess(name, known)}")
        if name == "bfloat16":
            try:
                return np.dtype(import_module("ml_dtypes").bfloat16)
            except ImportError:
                raise MissingPartError("NumPy has no bfloat16 of its own: pip install ml_dtypes") from None
        return np.dtype(name)

    def scope(self, dtype: Foreign) -> AbstractContextManager[Foreign]:
        """Return the context in which arrays of a dtype are made and used here."""
        return nullcontext()

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        """Return values, which the dtype holds, as an array of the library, on the device."""
        return values.astype(dtype)

    def wait(self, made: Foreign) -> None:
        """Return when an array that was asked for is there."""

    def fetch(self, made: Foreign, name: str = "the result") -> Source:
        """Return an array's codes, in the memory of NumPy; raises UnsupportedError, which calls it by its name."""
        return source_of(made, name)

    @property
    def words(self) -> str:
        """What the library and the device are called."""
        return f"NumPy {np.__version__}"

    def settings(self, dtype: str) -> tuple[str, ...]:
        """Return what is set here and decides about the bits of a product, or about its time."""
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
        return self.module.from_numpy(np.ascontiguousarray(values)).to(dtype).to(self.name)

    def wait(self, made: Foreign) -> None:
        if self.kind == "mps":
            self.module.mps.synchronize()
        elif self.kind != "cpu":
            getattr(self.module, self.kind).synchronize(self.index)

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
        except Exception as trouble:  # torch refuses to say where both its ways to set it were used
            allowed = first_line(trouble)
        return (*found, *([] if dtype == "float64" else [f"{name} {allowed}"]), *_environment(_GPU_SETTINGS))


class _Jax(Device):
    library = install = "jax"
    kinds = ("cpu", "gpu", "cuda", "rocm", "tpu")

    def _touch(self) -> None:
        self.device = self.module.devices(self.kind)[self.index]

    def scope(self, dtype: Foreign) -> AbstractContextManager[Foreign]:
        # Without being told, jax makes float32 of float64.
        if np.dtype(dtype) != np.float64:
            return nullcontext()
        enable = getattr(self.module, "enable_x64", None) or import_module("jax.experimental").enable_x64
        wide: AbstractContextManager[Foreign] = enable(True)
        return wide

    def array(self, values: Array, dtype: Foreign) -> Foreign:
        return self.module.device_put(values.astype(dtype), self.device)

    def wait(self, made: Foreign) -> None:
        made.block_until_ready()

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
        return self.module.asarray(values.astype(dtype))

    def wait(self, made: Foreign) -> None:
        self.module.cuda.Device(self.index).synchronize()

    def fetch(self, made: Foreign, name: str = "the result") -> Source:
        return source_of(made.get(), name)

    @property
    def words(self) -> str:
        name = self.module.cuda.runtime.getDeviceProperties(self.index)["name"]
        return f"CuPy {self.module.__version__} on {name.decode() if isinstance(name, bytes) else name}"

    def settings(self, dtype: str) -> tuple[str, ...]:
        return _environment(("CUPY_TF32", "CUPY_ACCELERATORS", *_GPU_SETTINGS))


DEVICES: dict[str, type[Device]] = {each.library: each for each in (Device, _Torch, _Jax, _CuPy)}


def check_device(library: str, name: str = "") -> None:
    """Raise UnsupportedError for a device that a library does not know, whether or not either is here."""
    kinds, kind = DEVICES[library].kinds, name.partition(":")[0]
    if name and not (kind in kinds and re.fullmatch(r"\w+(:\d{1,3})?", name, re.ASCII)):
        known = [*kinds, *(f"{each}:1" for each in kinds if each != "cpu")]
        raise UnsupportedError(
            f"{library} has no device {quoted(name)}; there may be {' '.join(known)}{guess(kind, [*kinds])}"
        )


def device_of(library: str, name: str = "") -> Device:
    """Return a library's device: its usual one, or one by name, such as `cuda` or `cuda:1`.

    Raises MissingPartError for a library that is not installed, UnsupportedError for a device that it does not know,
    and AbsentDeviceError, one of these, for one that is not here.

    >>> device = device_of("numpy")
    >>> device.fetch(device.array(np.ones(2), device.dtype("float16"))).format.name
    'binary16'
    """
    check_device(library, name)
    return DEVICES[library](name)


def _imported(library: str, install: str) -> Foreign:
    try:
        return import_module(library)
    except Exception as trouble:  # also a library of the driver that is not there, or a version that does not fit
        if isinstance(trouble, ModuleNotFoundError) and trouble.name in (library, None):
            raise MissingPartError(f"{library} is not installed: pip install {install}") from None
        raise MissingPartError(f"{library} cannot be imported: {first_line(trouble)}") from None


def first_line(trouble: BaseException, limit: int = 120) -> str:
    """Return what an error of a library says first; its name, where it says nothing but a word.

    >>> first_line(ValueError("it is so. And more")), first_line(KeyError("code"))
    ('it is so', "KeyError: 'code'")
    """
    said = str(trouble).strip().partition("\n")[0].partition(". ")[0].rstrip(".")
    text = said if " " in said else ": ".join(filter(None, (type(trouble).__name__, said)))
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def _environment(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"{name} {os.environ[name]}" for name in names if name in os.environ)
