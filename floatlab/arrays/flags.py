"""The flags of a whole array, as they were asked for."""

from __future__ import annotations

import numpy as np

from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.numbers import Flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]


class Raised:
    """Flags not at all (False), of each element (True or "each"), or how many elements raised each ("counts")."""

    def __init__(self, how: bool | str, shape: tuple[int, ...]) -> None:
        """Make room; raises UnsupportedError for what is no way of telling them."""
        if not isinstance(how, bool) and how not in ("each", "counts"):
            known = 'False, True or "each", or "counts"'
            raise UnsupportedError(
                f"return_flags is {known}, not {quoted(str(how))}{guess(str(how), ['each', 'counts'])}"
            )
        self.is_wanted = how is not False
        self.each = np.empty(shape, np.uint8) if how in (True, "each") else None
        self._counts: list[Array] = []

    def room(self, count: int) -> Array | None:
        """Return room for the flags of a block that are only counted."""
        return np.empty(count, np.uint8) if self.is_wanted else None

    def count(self, flags: Array | None) -> None:
        """Count the flags of a block, if that was asked for."""
        if self.each is None and flags is not None:
            # One append, so that threads do not meet.
            self._counts.append(np.bincount(flags, minlength=32))

    @property
    def answer(self) -> Any:
        """The flags of each element as uint8 (the values of `Flags`), or how many raised each, by flag."""
        if self.each is not None:
            return self.each
        # How many elements raised each of the 32 sets of flags; a flag is in half of them.
        found = np.sum([np.zeros(32, np.int64), *self._counts], axis=0).tolist()
        return {flag: sum(many for flags, many in enumerate(found) if flags & flag.value) for flag in Flags}
