"""The floating-point mode of a thread: the processor's rounding direction, and whether it flushes subnormals.

Other libraries can change the mode: `torch.set_flush_denormal(True)`, `fesetround`, or loading code that was compiled
with -ffast-math. floatlab's computations with hardware floats must not depend on the mode. Therefore public functions
are decorated with `in_default_mode`, and our own threads run inside `DefaultMode()`. The decorator and `DefaultMode()`
check the mode first; the check takes about 0.1 µs. If the mode is the default, they do nothing else.

The C extension sets the mode; if it is not installed, the C library does. UnsupportedError is raised if this fails.
"""

from __future__ import annotations

import sys
from functools import wraps
from types import FunctionType

from floatlab.errors import UnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, ParamSpec, Self, TypeVar

    Given = ParamSpec("Given")
    Found = TypeVar("Found")
    Kind = TypeVar("Kind", bound=type)
    # Two functions: one sets the default mode and returns the previous mode, the other restores a previous mode.
    Setter = tuple[Callable[[], object], Callable[[object], object]]


def _float(bits: int) -> float:
    """Return a float from its bits. A decimal literal would be rounded, and this module may be imported in any mode."""
    return memoryview(bits.to_bytes(8, sys.byteorder)).cast("d")[0]


# 1 + 3/4 ulp + 1/4 ulp gives 1 + 1 ulp if rounded to nearest, 1 + 2 ulp upward, and 1 downward or toward zero.
_ONE, _NEXT = _float(0x3FF << 52), _float((0x3FF << 52) + 1)
_THREE_QUARTERS, _QUARTER = _float((0x3FF - 53 << 52) + (1 << 51)), _float(0x3FF - 54 << 52)
# _NORMAL − _LEAST equals _BELOW, unless subnormal operands or results are flushed to zero.
_NORMAL, _LEAST, _BELOW = _float(1 << 52), _float(1), _float((1 << 52) - 1)
_GENERATOR = 0x20  # inspect.CO_GENERATOR


def rounds_to_nearest() -> bool:
    """Return whether this thread rounds to nearest. Flushing of subnormal numbers does not affect the result."""
    return _ONE + _THREE_QUARTERS + _QUARTER == _NEXT


def is_default() -> bool:
    """Return whether this thread rounds to nearest and keeps subnormal numbers."""
    return _ONE + _THREE_QUARTERS + _QUARTER == _NEXT and _NORMAL - _LEAST == _BELOW


class DefaultMode:
    """Context manager: within it, this thread rounds to nearest and keeps subnormals.

    The exit restores the previous mode.
    Raises UnsupportedError if another mode is active and cannot be changed.

    >>> with DefaultMode():
    ...     print(2.0**-1073 / 2)
    5e-324
    """

    __slots__ = ("_before",)
    _before: object  # the caller's mode; None if it is the default one

    def __enter__(self) -> Self:
        self._before = None if is_default() else _set_default()
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            _setter()[1](self._before)

    def outside(self, call: Callable[Given, Found]) -> Callable[Given, Found]:
        """Wrap `call` so that it runs in the floating-point mode that was active before this context was entered.

        `reveal` uses this to call a library in the user's own mode. If `call` changes the mode, the change
        persists after the context exits.
        """

        def called(*given: Given.args, **options: Given.kwargs) -> Found:
            self.__exit__()
            try:
                return call(*given, **options)
            finally:
                self.__enter__()

        return called


def in_default_mode(call: Callable[Given, Found]) -> Callable[Given, Found]:
    """Make a function run inside `DefaultMode`. Generator functions are rejected: their body runs after the call.

    >>> @in_default_mode
    ... def half(x):
    ...     return x / 2
    >>> half(2.0**-1073)
    5e-324
    """
    assert not call.__code__.co_flags & _GENERATOR

    @wraps(call)
    def guarded(*given: Given.args, **options: Given.kwargs) -> Found:
        # `is_default` is inlined here: a call would take as long as the check itself.
        if _ONE + _THREE_QUARTERS + _QUARTER == _NEXT and _NORMAL - _LEAST == _BELOW:
            return call(*given, **options)
        with DefaultMode():
            return call(*given, **options)

    return guarded


def methods_in_default_mode(kind: Kind) -> Kind:
    """Make the methods and properties of a class run inside `DefaultMode`.

    Private, static and inherited methods stay unchanged. Special methods that are not in `_SPECIAL` stay unchanged,
    too.

    >>> @methods_in_default_mode
    ... class Length:
    ...     def __init__(self, metres): self.metres = metres
    ...     @property
    ...     def half(self): return self.metres / 2
    >>> Length(2.0**-1073).half
    5e-324
    """
    for name, found in list(vars(kind).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(found, property):
            assert found.fget is not None
            wrapped: object = property(in_default_mode(found.fget))
        elif isinstance(found, classmethod):
            wrapped = classmethod(in_default_mode(found.__func__))
        elif isinstance(found, FunctionType):
            wrapped = in_default_mode(found)
        else:
            continue
        setattr(kind, name, wrapped)
    return kind


_SPECIAL = {"__init__", "__post_init__", "__call__", "__float__", "__repr__", "__str__"}


def _set_default() -> object:
    """Set the default mode and return the previous one; raises UnsupportedError if that fails."""
    deviation = _description()
    try:
        reset, restore = _setter()
        before = reset()
        if is_default():
            return before
        restore(before)
    except (ImportError, OSError, AttributeError, ValueError):  # no suitable C library, or ctypes cannot open it
        pass
    raise UnsupportedError(
        f"this thread {deviation}, and floatlab cannot set the default floating-point mode here: set it first "
        "(torch.set_flush_denormal(False), fesetround(FE_TONEAREST)), or install a C compiler and reinstall floatlab"
    )


def _description() -> str:
    """Return words that say how this thread's mode differs from the default; "" if it does not differ."""
    total = _ONE + _THREE_QUARTERS + _QUARTER
    deviations = [] if total == _NEXT else ["rounds upward" if total > _NEXT else "rounds downward or toward zero"]
    if _NORMAL - _LEAST != _BELOW:
        deviations.append("flushes subnormal numbers to zero")
    return " and ".join(deviations)


_known_setter: Setter | None = None


def _setter() -> Setter:
    """Return the functions that set and restore the mode; the first call finds them.

    Raises ImportError, OSError, AttributeError or ValueError if there are no such functions.
    """
    global _known_setter
    if _known_setter is None:
        from importlib import import_module

        try:
            kernels = import_module("floatlab._kernels")
            _known_setter = kernels.reset_mode, kernels.restore_mode
        except ImportError:  # floatlab was installed without a compiler
            _known_setter = _setter_of_the_c_library()
    return _known_setter


def _setter_of_the_c_library() -> Setter:
    """Return functions that set and restore the mode through ctypes.

    Raises ImportError, OSError, AttributeError or ValueError if there are no such functions.
    """
    import ctypes  # imported here: it takes 10 ms, and only this case needs it
    import os

    if sys.platform == "win32":
        return _setter_of_windows(ctypes.CDLL("ucrtbase"))
    library = ctypes.CDLL(None)  # fegetenv is in the C library or in libm; Python is linked to both
    if not hasattr(library, "fesetenv"):
        library = ctypes.CDLL("libm.so.6")
    default: object = None
    for name in ("_FE_DFL_ENV", "__fe_dfl_env"):  # the first on macOS; the second on the BSDs, and with glibc on POWER
        if hasattr(library, name):
            default = ctypes.byref(ctypes.c_char.in_dll(library, name))
    if default is None and sys.platform == "linux" and os.uname().machine in _LINUX:
        default = ctypes.c_void_p(-1)
    if default is None:
        raise OSError("the default environment of this C library is not known")

    def reset() -> object:
        before = (ctypes.c_longdouble * 32)()  # larger and better aligned than any fenv_t
        if library.fegetenv(before) or library.fesetenv(default):
            raise OSError("the C library refuses")
        return before

    return reset, library.fesetenv


# Machines on which glibc and musl define FE_DFL_ENV as (const fenv_t *) -1.
_LINUX = {"x86_64", "i386", "i486", "i586", "i686", "aarch64", "armv7l", "armv8l", "riscv64", "s390x", "loongarch64"}


def _setter_of_windows(library: Any) -> Setter:
    import ctypes

    directions, denormals = 0x300, 0x03000000  # _MCW_RC and _MCW_DN; 0 is the default in both

    def change(new: int, mask: int) -> int:
        now = ctypes.c_uint()
        if library._controlfp_s(ctypes.byref(now), ctypes.c_uint(new), ctypes.c_uint(mask)):
            raise OSError("the C library refuses")
        return now.value

    def reset() -> object:
        before = change(0, 0)
        change(0, directions | denormals)
        return before

    return reset, lambda mode: change(mode, directions | denormals)
