"""A file that is read by ranges of bytes."""

from __future__ import annotations

import io

from floatlab.errors import FileFormatError

_AHEAD = 1 << 16  # the least number of bytes per request, so that headers need few requests


class RangeFile(io.RawIOBase):
    """A file that is read by requests for ranges of its bytes; subclasses send the requests.

    Nothing is requested until the file is first read, or until `size` or `version` is first used.
    """

    def __init__(self, url: str) -> None:
        """Start at the first byte."""
        super().__init__()
        self.url = url
        self._place, self._start, self._ahead = 0, 0, b""

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        raise NotImplementedError

    @property
    def version(self) -> str:
        """A text that changes whenever the file changes; empty if the server gives no such text."""
        raise NotImplementedError

    def _fetch(self, first: int, count: int) -> bytes:
        """Return `count` bytes from byte `first` on; fewer if the file ends earlier."""
        raise NotImplementedError

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the current position."""
        return self._place

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Set the position, relative to the start, to the current position or to the end."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._place}.get(whence)
        place = (self.size if base is None else base) + offset
        if place < 0:
            raise FileFormatError("has no bytes before its start")
        self._place = place
        return place

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        """Read bytes from the current position on into a buffer; return how many (0 at the end of the file)."""
        into = memoryview(buffer).cast("B")
        count = len(into)
        found = self._held(count) if count < _AHEAD else b""
        if not found and count:
            wanted = max(count, _AHEAD)
            found = self._fetch(self._place, wanted)
            if len(found) > wanted:
                sent = len(found)
                raise FileFormatError(f"cannot be read: {sent:,} bytes were sent, but {wanted:,} were requested")
            if count < _AHEAD:
                self._start, self._ahead = self._place, found
        done = min(count, len(found))
        into[:done] = found[:done]
        self._place += done
        return done

    def _held(self, count: int) -> bytes:
        """Return the bytes at the current position, at most `count`, if an earlier request has already fetched them."""
        first = self._place - self._start
        return self._ahead[first : first + count] if 0 <= first < len(self._ahead) else b""
