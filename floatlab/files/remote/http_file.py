"""Reads files from servers of http(s), which may be hostile: the time and memory of each request are limited.

fsspec's reader for http is not used. It keeps all bytes that a server sends, decompresses the bytes if the server says
so, and waits as long as bytes trickle in.
"""

from __future__ import annotations

import http.client
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from email.message import Message
from threading import Timer
from typing import TypeVar
from urllib.error import HTTPError, URLError
from urllib.parse import urljoin
from urllib.request import (
    HTTPDefaultErrorHandler,
    HTTPErrorProcessor,
    HTTPHandler,
    HTTPSHandler,
    OpenerDirector,
    ProxyHandler,
    Request,
)

from floatlab.errors import FileFormatError, quoted
from floatlab.files.remote.logins import login_words, refuse_login_in, token_for
from floatlab.files.remote.range_file import RangeFile
from floatlab.files.remote.urls import scheme_of

_T = TypeVar("_T")
_PATIENCE = 30.0  # a request fails after this many seconds without a byte
_LATEST = 60.0  # seconds that a request may take, in addition to the time for its bytes at the slowest rate
_SLOWEST = 1 << 15  # bytes a second
_PIECE = 1 << 18  # bytes per read call
_MOST_REDIRECTS = 10
_PAUSES = (0.5, 1.0, 2.0)  # seconds to wait before each repetition of a request
_MOST_PAUSE = 8.0  # longest time in seconds that a server may ask to wait before a repetition
_NO_REPEAT = 20.0  # seconds after which a request is not repeated
_PASSING = (408, 425, 429, 500, 502, 503, 504)  # status codes after which a repetition may succeed
_MOVED, _ABSENT, _BEYOND = (301, 302, 303, 307, 308), (404, 410), 416
_RANGE = re.compile(r"bytes (\d{1,18})-(\d{1,18})/(\d{1,18})")
_SIZE = re.compile(r"bytes \*/(\d{1,18})")


class HttpFile(RangeFile):
    """A file at a URL of http or https."""

    _size: int | None = None
    _version: str | None = None

    @property
    def size(self) -> int:
        """The number of bytes in the file, as its server says."""
        if self._size is None:
            self._start, self._ahead = 0, self._fetch(0, 1 << 16)
        if self._size is None:
            raise FileFormatError("cannot be read: its server does not say its length")
        return self._size

    @property
    def version(self) -> str:
        """The entity tag of the file, else the time of its last change; empty if the server gives neither."""
        self.size  # noqa: B018 — sends a request if there was none
        return self._version or ""

    def _fetch(self, first: int, count: int) -> bytes:
        with _plain_errors(self.url):
            return _repeated(lambda: self._requested(first, count))

    def _requested(self, first: int, count: int) -> bytes:
        with _limited(count) as (opener, deadline):
            try:
                with _answer(opener, self.url, f"bytes={first}-{first + count - 1}") as answer:
                    expected = self._expected(answer.status, answer.headers, first, count)
                    return _received(answer, expected, deadline)
            except HTTPError as refusal:
                with refusal:
                    if refusal.code != _BEYOND:
                        raise
                    if found := _SIZE.fullmatch(refusal.headers.get("Content-Range", "")):
                        self._same(int(found[1]), refusal.headers)
                    return b""

    def _expected(self, status: int, headers: Message, first: int, count: int) -> int:
        """Return how many bytes the answer to a request must have.

        Raises FileFormatError if the headers announce bytes that were not requested.
        """
        if headers.get("Content-Encoding", "identity").lower() not in ("", "identity"):
            raise FileFormatError("cannot be read: its server sends it compressed")
        if status == 206:
            found = _RANGE.fullmatch(headers.get("Content-Range", ""))
            if not found:
                raise FileFormatError("cannot be read: its server does not say which bytes it sends")
            start, last, size = map(int, found.groups())
            if (start, last) != (first, min(first + count, size) - 1) or last < start:
                raise FileFormatError(
                    f"cannot be read: its server sends bytes {start:,} to {last:,} of {size:,}, "
                    f"but {count:,} bytes from {first:,} on were requested"
                )
            self._same(size, headers)
            return last + 1 - start
        length = headers.get("Content-Length", "")
        if status == 200 and first == 0 and re.fullmatch(r"\d{1,18}", length) and int(length) <= count:
            self._same(int(length), headers)  # servers may send a whole file if the range has all of it
            return int(length)
        raise FileFormatError("cannot be read: its server does not send ranges of bytes")

    def _same(self, size: int, headers: Message) -> None:
        """Store the size and the version of the file.

        Raises FileFormatError if an earlier answer gave another size or version.
        """
        version = headers.get("ETag") or headers.get("Last-Modified") or ""
        if (self._size, self._version) not in ((None, None), (size, version)):
            raise FileFormatError("has changed while it was read")
        self._size, self._version = size, version


class _Interrupted(FileFormatError):
    """An answer that ended early: the connection was lost."""


_LOST = (_Interrupted, ConnectionResetError, BrokenPipeError, http.client.IncompleteRead)  # a lost connection


def _repeated(request: Callable[[], _T]) -> _T:
    """Call a request and return its result.

    A request that fails for a temporary reason is repeated up to three times.
    """
    start = time.monotonic()
    for pause in _PAUSES:
        try:
            return request()
        except HTTPError as refusal:
            if refusal.code not in _PASSING:
                raise
            asked = refusal.headers.get("Retry-After") or ""
            pause = max(pause, int(asked) if re.fullmatch(r"\d{1,4}", asked) else 0.0)
            if pause > _MOST_PAUSE or time.monotonic() - start > _NO_REPEAT:
                raise
            refusal.close()
        except (*_LOST, URLError) as trouble:
            reason = trouble.reason if isinstance(trouble, URLError) else trouble
            if not isinstance(reason, _LOST) or time.monotonic() - start > _NO_REPEAT:
                raise
        time.sleep(pause)
    return request()


def is_at(url: str, may_be_forbidden: bool = False) -> bool:
    """Return whether a server has a file at a URL of http(s); raises FileFormatError if this cannot be found out.

    With `may_be_forbidden`, a file counts as absent if the answer is 403: object stores give this answer for an absent
    file if the user may not list files.
    """
    absent = (*_ABSENT, 403) if may_be_forbidden else _ABSENT

    def requested() -> bool:
        with _limited(0) as (opener, _):
            try:
                _answer(opener, url, "bytes=0-0").close()
            except HTTPError as refusal:
                if refusal.code not in (*absent, _BEYOND):
                    raise
                refusal.close()
                return refusal.code == _BEYOND
            return True

    with _plain_errors(url):
        return _repeated(requested)


def _answer(opener: OpenerDirector, url: str, wanted: str) -> http.client.HTTPResponse:
    """Request the range `wanted` and return the server's answer, after following redirections.

    A redirection from https may not lead to http, and no redirection may lead to other schemes. Each access token
    (`logins.py`) belongs to one host. It is sent only to this host, also after a redirection.
    """
    for _ in range(_MOST_REDIRECTS):
        refuse_login_in(url)
        headers = {"Range": wanted, "Accept-Encoding": "identity", "User-Agent": "floatlab"}
        if token := token_for(url):
            headers["Authorization"] = f"Bearer {token}"
        try:
            answer: http.client.HTTPResponse = opener.open(Request(url, headers=headers), timeout=_PATIENCE)
            return answer
        except HTTPError as refusal:
            if refusal.code not in _MOVED:
                raise
            with refusal:
                target = urljoin(url, refusal.headers.get("Location", ""))
            if scheme_of(target) not in ("https", scheme_of(url)):
                raise FileFormatError(f"is not read: its server redirects to {quoted(target, 80)}") from None
            url = target
    raise FileFormatError("is not read: its server redirects without end")


def _received(answer: http.client.HTTPResponse, count: int, deadline: float) -> bytes:
    """Return the first `count` bytes of an answer; raises FileFormatError if the answer is shorter."""
    found = bytearray()
    while len(found) < count:
        piece = answer.read1(min(count - len(found), _PIECE))
        if not piece:
            late = time.monotonic() >= deadline
            if late:
                raise FileFormatError("is sent too slowly")
            raise _Interrupted(f"ends early: {count - len(found):,} bytes are missing")
        found += piece
    return bytes(found)


@contextmanager
def _limited(count: int) -> Iterator[tuple[OpenerDirector, float]]:
    """Provide an opener of URLs for one request of `count` bytes, and the deadline of the request.

    The deadline is a time of the clock `time.monotonic`. At the deadline, the connections of the opener are shut down,
    even while they wait for bytes.
    """
    seconds = _LATEST + count / _SLOWEST
    sockets: list[socket.socket] = []
    deadline = time.monotonic() + seconds
    timer = Timer(seconds, _shut, (sockets,))
    timer.daemon = True
    timer.start()
    try:
        yield _opener(sockets), deadline
    except (OSError, http.client.HTTPException):
        if time.monotonic() >= deadline:
            raise FileFormatError("is sent too slowly") from None
        raise
    finally:
        timer.cancel()


def _shut(sockets: list[socket.socket]) -> None:
    for each in sockets:
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


def _opener(sockets: list[socket.socket]) -> OpenerDirector:
    """Return an opener for http and https that appends its sockets to `sockets`, and does not follow redirections."""

    class Plain(http.client.HTTPConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class Secure(http.client.HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            sockets.append(self.sock)

    class PlainHandler(HTTPHandler):
        def http_open(self, request: Request) -> http.client.HTTPResponse:
            return self.do_open(Plain, request)

    class SecureHandler(HTTPSHandler):
        def https_open(self, request: Request) -> http.client.HTTPResponse:
            return self.do_open(Secure, request)

    opener = OpenerDirector()
    for handler in (ProxyHandler(), PlainHandler(), SecureHandler(), HTTPDefaultErrorHandler(), HTTPErrorProcessor()):
        opener.add_handler(handler)
    return opener


@contextmanager
def _plain_errors(url: str) -> Iterator[None]:
    """Turn errors of requests into FileFormatErrors. The message of an error is meant to follow the file's name."""
    try:
        yield
    except FileFormatError:
        raise
    except HTTPError as refusal:
        refusal.close()
        raise FileFormatError(_refusal(url, refusal.code)) from None
    except (OSError, http.client.HTTPException, ValueError) as trouble:
        reason = trouble.reason if isinstance(trouble, URLError) else trouble
        words = getattr(reason, "strerror", None) or reason or type(trouble).__name__
        raise FileFormatError(f"cannot be read: {quoted(' '.join(str(words).split()), 100)}") from None


def _refusal(url: str, status: int) -> str:
    """Say in words why a server refused a request; `status` is the HTTP status of its answer."""
    if status in (401, 403):
        return login_words(url, status)
    if status in _ABSENT:
        return "is not a file" if status == 404 else f"is not a file any more (its server answers {status})"
    if status in _PASSING:
        return f"cannot be read: its server answers {status}, {len(_PAUSES) + 1} times: try again later"
    return f"cannot be read: its server answers {status}"
