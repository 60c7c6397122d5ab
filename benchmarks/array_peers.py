"""Implementations of array tasks for `arrays.py`: floatlab, and other libraries with types or rounding functions.

A function takes a task, a format and a number of elements. It returns two calls: one creates a new result, the other
writes into an existing array. It raises an exception of `ABSENT` if the library is not installed or lacks the task.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

import floatlab.arrays as ours
from floatlab.errors import FloatlabError

FORMATS = ("fp16", "bf16", "e4m3", "e5m2", "e3m2", "e2m1", "fp32")
TABLES = ("hif8", "nf4", "posit8", "posit16", "takum_linear16", "takum_log16")  # no peer has them
TASKS = ("encode", "encode RTZ", "encode SR", "encode flags", "decode", "quantize", "quantize RTZ", "quantize SR")
OPERATIONS = ("add", "multiply", "fma")  # the other libraries have no fma
KINDS = {
    "fp16": "float16", "bf16": "bfloat16", "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "e3m2": "float6_e3m2fn",
    "e2m1": "float4_e2m1fn", "fp32": "float32",
}  # fmt: skip
FIELDS = {"fp16": (5, 10), "bf16": (8, 7), "e5m2": (5, 2), "fp32": (8, 23)}
# Exceptions if a library or a lane of floatlab is not installed, or lacks the task.
ABSENT = (AttributeError, FloatlabError), (ImportError, KeyError, AttributeError, RuntimeError, TypeError)
Call = Callable[[], object]
Calls = tuple[Call | None, Call | None]  # with a new result; into an existing array
THREADS = [1]  # number of threads that the libraries may use


@cache
def values(format: str, count: int, which: int = 0) -> np.ndarray:
    """Return the numbers to be rounded to a format."""
    drawn = np.random.default_rng(which).standard_normal(count)
    return drawn if format == "fp32" else drawn.astype(np.float32)


@cache
def codes(format: str, count: int) -> np.ndarray:
    return ours.encode(values(format, count), format)


@cache
def buffer(dtype: object, count: int, which: int = 0) -> np.ndarray:
    return np.empty(count, dtype)


def numpy_kind(format: str) -> np.dtype:
    home = np if format in ("fp16", "fp32") else importlib.import_module("ml_dtypes")
    return np.dtype(getattr(home, KINDS[format]))


@cache
def operands(format: str, count: int) -> list[np.ndarray]:
    return [values(format, count, which).astype(numpy_kind(format)) for which in range(3)]


def floatlab(lane: str, task: str, format: str, count: int) -> Calls:
    """Return the calls of floatlab for a task in one lane."""
    x, how = values(format, count), {"lane": lane, "threads": THREADS[0]}
    verb, _, rule = task.partition(" ")
    if verb in OPERATIONS:
        given = operands(format, count)[: 3 if verb == "fma" else 2]
        into = buffer(given[0].dtype, count)
        work = getattr(ours, verb)
        return lambda: work(*given, format, **how), lambda: work(*given, format, out=into, **how)
    if verb == "decode":
        read, into = codes(format, count), buffer(ours.decode(codes(format, 1), format).dtype, count)
        return lambda: ours.decode(read, format, **how), lambda: ours.decode(read, format, out=into, **how)
    work, into = getattr(ours, verb), buffer(x.dtype if verb == "quantize" else codes(format, 1).dtype, count)
    how |= {"return_flags": True} if rule == "flags" else {"rounding": rule or "RNE"}
    return lambda: work(x, format, **how), lambda: work(x, format, out=into, **how)


def casts(
    task: str, x: Any, read: Any, operands: list[Any], middle: Any, into: Any, home: Any, cast: Any, copy: Any
) -> Calls:
    """Return the calls of a library that has a type for the format.

    `x` has the numbers and `read` the codes to decode. `middle` and `into` are arrays for results, `middle` of the type
    of the format. `cast` returns a new array, `copy(out, given)` writes into one; `copy` is None if the library cannot.
    """
    if task in OPERATIONS:
        work, (a, b, _) = getattr(home, task), operands
        return lambda: work(a, b), copy and (lambda: work(a, b, out=middle))
    there, back = (middle.dtype, x.dtype)
    calls = {
        "encode": (lambda: cast(x, there), lambda: copy(middle, x)),
        "decode": (lambda: cast(read, back), lambda: copy(into, read)),
        "quantize": (lambda: cast(cast(x, there), back), lambda: copy(into, copy(middle, x))),
    }
    return calls[task] if copy else (calls[task][0], None)


def numpy(task: str, format: str, count: int) -> Calls:
    """Return NumPy's casts, also to the types of ml_dtypes."""
    kind, x = numpy_kind(format), values(format, count)

    def copy(out: np.ndarray, given: np.ndarray) -> np.ndarray:
        np.copyto(out, given, casting="unsafe")
        return out

    read, middle, into = codes(format, count).view(kind), buffer(kind, count), buffer(x.dtype, count)
    return casts(task, x, read, operands(format, count), middle, into, np, np.ndarray.astype, copy)


def torch(task: str, format: str, count: int) -> Calls:
    home = importlib.import_module("torch")
    kind, x = getattr(home, KINDS[format]), home.from_numpy(values(format, count))
    given = [home.from_numpy(values(format, count, which)).to(kind) for which in range(3)]
    read, middle = home.from_numpy(codes(format, count)).view(kind), home.empty(count, dtype=kind)
    cast, copy = home.Tensor.to, home.Tensor.copy_
    return casts(task, x, read, given, middle, home.empty(count, dtype=x.dtype), home, cast, copy)


def jax(task: str, format: str, count: int) -> Calls:
    if format == "fp32":
        raise KeyError("jax has float64 only with JAX_ENABLE_X64")
    home = importlib.import_module("jax.numpy")
    kind, x = getattr(home, KINDS[format]), home.asarray(values(format, count))
    ready = {
        name: lambda a, b, name=name: getattr(home, name)(a, b).block_until_ready() for name in ("add", "multiply")
    }
    given = [home.asarray(each) for each in operands(format, count)]
    read = home.asarray(codes(format, count).view(np.dtype(kind)))

    def cast(array: Any, to: Any) -> Any:
        return array.astype(to).block_until_ready()

    return casts(task, x, read, given, given[0], None, SimpleNamespace(**ready), cast, None)


def gfloat(task: str, format: str, count: int) -> Calls:
    library, formats = importlib.import_module("gfloat"), importlib.import_module("gfloat.formats")
    names = {"fp16": "binary16", "bf16": "bfloat16", "fp32": "binary32"}
    info, x = getattr(formats, f"format_info_{names.get(format, f'ocp_{format}')}"), values(format, count)
    verb, _, rule = task.partition(" ")
    mode = {"": "TiesToEven", "RTZ": "TowardZero", "SR": "StochasticFastest"}[rule]

    def rounded() -> np.ndarray:
        bits = {"srbits": np.random.default_rng(0).integers(0, 1 << 24, count), "srnumbits": 24} if rule == "SR" else {}
        return library.round_ndarray(info, x, library.RoundMode[mode], sat=True, **bits)

    read = codes(format, count).astype(np.int64) if verb == "decode" else None
    calls = {
        "encode": lambda: library.encode_ndarray(info, rounded()),
        "decode": lambda: library.decode_ndarray(info, read),
        "quantize": rounded,
    }
    return calls[verb], None


def pychop(task: str, format: str, count: int) -> Calls:
    library = importlib.import_module("pychop")
    chop = library.Chop(*FIELDS[format], rmode={"quantize": 1, "quantize RTZ": 4, "quantize SR": 5}[task])
    x = values(format, count)
    return lambda: chop(x), None


def apytypes(task: str, format: str, count: int) -> Calls:
    library = importlib.import_module("apytypes")
    fields, x = FIELDS[format], values(format, count)
    library.reset_thread_pool(THREADS[0])
    make, whole = library.APyFloatArray.from_array, (11, 52) if x.dtype == np.float64 else (8, 23)
    verb, _, rule = task.partition(" ")
    mode = {"": None, "RTZ": library.QuantizationMode.TO_ZERO, "SR": library.QuantizationMode.STOCH_WEIGHTED}[rule]
    read = codes(format, count) if verb == "decode" else None
    made = (lambda: make(x, *fields)) if mode is None else lambda: make(x, *whole).cast(*fields, quantization=mode)
    calls = {
        "encode": lambda: made().to_bits(numpy=True),
        "decode": lambda: library.APyFloatArray.from_bits(read, *fields).to_numpy(),
        "quantize": lambda: made().to_numpy(),
    }
    return calls[verb], None


PEERS = {"numpy": numpy, "torch": torch, "jax": jax, "gfloat": gfloat, "pychop": pychop, "apytypes": apytypes}
