"""Floating-point modes that other libraries may set, set here through the C library; and results as exact text."""

import ctypes
import platform
import struct
import sys
from contextlib import contextmanager
from fractions import Fraction

import numpy as np
import pytest

from floatlab.record import Record

# The position in fenv_t (of glibc and musl) of the control word that determines the mode, and its bits.
_WORDS = {"x86_64": 7, "aarch64": 0}
_BITS = {
    "x86_64": {
        "upward": 0x4000, "downward": 0x2000, "toward zero": 0x6000,
        "flushed results": 0x8000, "flushed inputs": 0x40, "both flushed": 0x8040, "upward and flushed": 0xC040,
    },
    "aarch64": {"upward": 1 << 22, "downward": 2 << 22, "toward zero": 3 << 22, "both flushed": 1 << 24},
}  # fmt: skip
_MASK = {"x86_64": 0xE040, "aarch64": 7 << 22}
_MACHINE = platform.machine()
MODES = list(_BITS.get(_MACHINE, _BITS["x86_64"]))
FLUSHING = [name for name in MODES if "flushed" in name]
settable = pytest.mark.skipif(
    sys.platform != "linux" or _MACHINE not in _WORDS, reason="where fenv_t has the mode is known of Linux only"
)


def library():
    """Return the C library, which Python is linked to, or its part that has fegetenv."""
    found = ctypes.CDLL(None)
    return found if hasattr(found, "fegetenv") else ctypes.CDLL("libm.so.6")


def mode():
    """Return the bits of this thread's mode."""
    environment = (ctypes.c_uint32 * 64)()
    library().fegetenv(environment)
    return environment[_WORDS[_MACHINE]] & _MASK[_MACHINE]


def bits_of(name):
    """Return the bits of a mode."""
    return _BITS[_MACHINE][name]


def set_mode(bits):
    """Set the mode of this thread."""
    environment = (ctypes.c_uint32 * 64)()
    library().fegetenv(environment)
    word = _WORDS[_MACHINE]
    environment[word] = environment[word] & ~_MASK[_MACHINE] | bits
    library().fesetenv(environment)


@contextmanager
def foreign(name):
    """Context manager: this thread computes in a mode, and its old mode is restored at the end."""
    before = mode()
    set_mode(bits_of(name))
    try:
        yield
    finally:
        set_mode(before)


def exactly(found):
    """Return a result as text with all bits, without times. Call it in the default mode."""
    if isinstance(found, float):
        return struct.pack(">d", found).hex()
    if type(found).__name__ == "FloatArray":  # by name, so that the class is not imported here
        return f"{found.format.name} {exactly(found.codes)}"
    if isinstance(found, np.generic | np.ndarray):
        return f"{found.dtype} {np.shape(found)} {found.tobytes().hex()}"
    if isinstance(found, Record):
        return {name: exactly(getattr(found, name)) for name in found._fields if name not in ("seconds", "call")}
    if isinstance(found, dict):
        return {str(key): exactly(each) for key, each in found.items()}
    if isinstance(found, tuple | list):
        return [exactly(each) for each in found]
    if found is None or isinstance(found, str | bytes | int | Fraction):
        return repr(found)
    if hasattr(found, "_value_"):
        return str(found)
    return type(found).__name__
