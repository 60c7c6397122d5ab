"""The explorer in a browser: a server that runs one confined explorer a visitor, for those who have its address.

textual-serve does the serving. Around it stands a guard: who asks under a foreign name (DNS rebinding), from another
site's page (Origin), or without the token of the address gets nothing.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import sys
from contextvars import ContextVar
from errno import EADDRNOTAVAIL
from ipaddress import ip_address
from shlex import join

from floatlab.errors import FloatlabError, MissingPartError, printable_lines
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from aiohttp import web

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_QUERY = "token"
_SIZES = range(1, 1001)  # columns, or rows, of a terminal in a browser
_MOST_TYPED = 1 << 20  # characters of one message
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # no other page draws over it, or takes its keys
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Address(Record):
    """Where a server listens, and another name by which browsers reach it."""

    host: str
    port: int
    name: str = ""

    def url(self, token: str) -> str:
        """Return the address to open.

        >>> Address("::1", 8000).url("secret"), Address("0.0.0.0", 80, "lab.example").url("secret")
        ('http://[::1]:8000/?token=secret', 'http://lab.example/?token=secret')
        """
        host = self.name or ("localhost" if self.host in ("0.0.0.0", "::") else self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}{'' if self.port == 80 else f':{self.port}'}/?{_QUERY}={token}"

    def admits(self, host: str, reached: str) -> bool:
        """Say whether a request may name this host; `reached` is the address of this machine that it came to.

        >>> Address("localhost", 8000).admits("localhost:8000", "127.0.0.1")
        True
        >>> Address("0.0.0.0", 8000).admits("evil.example:8000", "192.0.2.7")
        False
        """
        name = _name_of(host)
        known = {*_LOOPBACK, self.host.lower(), self.name.lower(), socket.gethostname().lower(), _plain(reached)}
        return name != "" and name in known


def _name_of(host: str) -> str:
    """Return the name, or the plain IP address, in a Host header; nothing for what is none."""
    name, colon, port = host.lower().rpartition(":") if not host.endswith("]") else (host.lower(), "", "")
    if not colon:
        name = name or port
    elif not (port.isascii() and port.isdigit()):
        return ""
    return _plain(name[1:-1]) if name.startswith("[") and name.endswith("]") else name


def _plain(address: str) -> str:
    """Return an IP address in its usual spelling, an IPv4 one in IPv6 as what it is."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(getattr(found, "ipv4_mapped", None) or found)


class Guard:
    """What a request must have to be let in: our name, no foreign page behind it, and the token."""

    def __init__(self, address: Address, visitors: int) -> None:
        """Draw a token for this start of the server."""
        self.address, self.visitors = address, visitors
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"floatlab-{address.port}"  # browsers do not tell ports apart
        self.open = 0  # explorers that run now

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, or refuse it."""
        from aiohttp import web

        words = self._foreign(request)
        if words:
            return self._refused(words)
        given = request.query.get(_QUERY)
        if given is not None:
            if not self._right(given):
                return self._refused("this token is not the one in the address that floatlab printed")
            if request.path == "/" and request.method in ("GET", "HEAD"):
                return self._admitted(request)
        elif not self._right(request.cookies.get(self.cookie, "")):
            return self._refused("open the address that floatlab printed: it has a token, and this one has none")
        if request.path != "/ws":
            response = await handler(request)
            if not response.prepared:
                response.headers.update(_HEADERS)
            return response
        if any(not _size(request.query.get(name, "80")) for name in ("width", "height")):
            return web.Response(status=400, text="no terminal has this size\n")
        if self.open >= self.visitors:
            return web.Response(
                status=503, text=f"{self.visitors} explorers are open already, and no more run at once\n"
            )
        self.open += 1
        try:
            return await handler(request)
        finally:
            self.open -= 1

    def _foreign(self, request: web.Request) -> str:
        """Say what is foreign about a request; nothing where nothing is."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        reached = request.transport.get_extra_info("sockname") if request.transport else None
        if len(hosts) != 1 or not self.address.admits(hosts[0], reached[0] if reached else ""):
            return "this server does not go by that name; tui --serve --name NAME gives it another"
        if any(
            origin.lower() not in (f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower()) for origin in origins
        ):
            return "pages of other sites are not answered"
        return ""

    def _right(self, given: str) -> bool:
        """Compare a token in a time that says nothing about it."""
        return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.token.encode())

    def _refused(self, words: str) -> web.Response:
        from aiohttp import web

        return web.Response(status=403, text=f"Refused: {words}.\n", headers=_HEADERS)

    def _admitted(self, request: web.Request) -> web.Response:
        """Give the token as a cookie, and take it out of the address: it would stay in the browser's history."""
        from aiohttp import web

        rest = [(name, value) for name, value in request.query.items() if name != _QUERY]
        response = web.Response(status=303, headers={**_HEADERS, "Location": str(request.rel_url.with_query(rest))})
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Lax", path="/")
        return response


def _size(text: Any) -> bool:
    """Say whether a browser's terminal may have so many columns, or rows."""
    return str(text).isascii() and str(text).isdigit() and len(str(text)) < 5 and int(text) in _SIZES


class _Checked:
    """A visitor's socket, of which only messages come through that an explorer can be sent."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self.send_json = socket.send_json

    async def __aiter__(self) -> Any:
        async for message in self._socket:
            if _sensible(message):
                yield message


def _sensible(message: Any) -> bool:
    try:
        kind, *rest = message.json()
        if kind == "stdin":
            return len(rest[0].encode()) <= _MOST_TYPED
        if kind == "resize":
            return all(type(rest[0][name]) is int and rest[0][name] in _SIZES for name in ("width", "height"))
    except (ValueError, TypeError, LookupError, AttributeError):  # another shape, no JSON, or halves of characters
        return False
    return kind in ("ping", "blur", "focus") and len(message.data) <= _MOST_TYPED


class _Lines(logging.Formatter):
    """What goes wrong in the server, as lines that a terminal only shows."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def server_of(address: Address, words: list[str], visitors: int, tell: Callable[[str], None]) -> Any:
    """Return the server, and what it is guarded by; raises MissingPartError without textual-serve (extra `web`)."""
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise MissingPartError("tui --serve needs textual-serve: pip install 'floatlab[web]'") from None
    asked: ContextVar[str] = ContextVar("asked", default="")
    guard = Guard(address, visitors)

    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.set(f"{request.scheme}://{request.host}")
        return await guard(request, handler)

    class Guarded(Server):
        """textual-serve's server behind the guard; pages name the host that they were asked of."""

        @property
        def public_url(self) -> str:
            return asked.get()

        @public_url.setter
        def public_url(self, url: str) -> None:
            """Take no notice of the one name that textual-serve makes up."""

        def initialize_logging(self) -> None:
            """Log what goes wrong only: the lines of requests hold the token, and whatever visitors send."""
            handler = logging.StreamHandler()
            handler.setFormatter(_Lines("floatlab: %(name)s: %(message)s"))
            logging.basicConfig(level=logging.WARNING, handlers=[handler])

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(web.middleware(guarded))
            return app

        async def on_startup(self, app: web.Application) -> None:
            tell(f"The explorer is at {address.url(guard.token)}\nCtrl+C ends it.")

        async def _process_messages(self, websocket: Any, app_service: Any) -> None:
            await super()._process_messages(_Checked(websocket), app_service)

    # Visitors share no session: each starts afresh.
    command = join([sys.executable, "-m", "floatlab", "tui", "--new", *words])
    server = Guarded(command, address.host, address.port, title="floatlab")
    server.guard = guard
    return server


def serve(address: Address, words: list[str], visitors: int, tell: Callable[[str], None]) -> None:
    """Serve explorers, opened by the words of a command, until it is interrupted; `tell` is told the address.

    Raises MissingPartError without textual-serve (extra `web`), FloatlabError where the address cannot be had.
    """
    server = server_of(address, words, visitors, tell)
    try:
        _check_free(address)
        server.serve()
    except OSError as error:
        raise FloatlabError(
            f"tui --serve cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from None


def _check_free(address: Address) -> None:
    """Raise OSError where another program listens at an address: the server itself binds it after it was told."""
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, place in found:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno != EADDRNOTAVAIL:  # such as ::1 on a machine without IPv6
                    raise
