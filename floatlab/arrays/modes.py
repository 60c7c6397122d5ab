"""The processor's mode: other libraries may have it flush subnormal numbers, or round in another direction.

`torch.set_flush_denormal(True)` does, and anything that was compiled with -ffast-math. Where floatlab lets the
processor add, the mode is to be the default one. The extension sets it, a thread at a time; without it, it can only be
asked for.
"""

from __future__ import annotations

from contextlib import ContextDecorator

import numpy as np

from floatlab.arrays import compiled
from floatlab.errors import UnsupportedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Self

_LEAST = np.full(1, 2.0**-149, np.float32)
_TIES = np.array([1, 1 + 2.0**-23, -1], np.float32)
_HALF = np.full(3, 2.0**-24, np.float32)


class DefaultMode(ContextDecorator):
    """As a context, or around a function: this thread rounds to nearest and keeps subnormal numbers.

    Raises UnsupportedError where it does not and there is no extension to make it.

    >>> with DefaultMode():
    ...     print(np.float32(2**-149) + np.float32(2**-149) == np.float32(2**-148))
    True
    """

    def __enter__(self) -> Self:
        """Set the mode, or look whether it is set."""
        self._before = compiled.reset_mode()
        if self._before is None and not _is_default():
            raise UnsupportedError(
                "this thread flushes subnormal numbers or does not round to nearest: set it back "
                "(torch.set_flush_denormal?), or install floatlab where there is a C compiler"
            )
        return self

    def _recreate_cm(self) -> DefaultMode:
        """Give each call of a decorated function its own, since calls of several threads may overlap."""
        return DefaultMode()

    def __exit__(self, *_: object) -> None:
        """Set it back to what it was."""
        if self._before is not None:
            compiled.restore_mode(self._before)


def _is_default() -> bool:
    sums = (_TIES + _HALF).view(np.uint32).tolist()
    return int((_LEAST + _LEAST).view(np.uint32)[0]) == 2 and sums == [0x3F800000, 0x3F800002, 0xBF7FFFFF]
