"""The explorer in a browser: a server that runs a sandboxed explorer for each visitor who knows its address.

The server is from textual-serve. In front of it, a guard refuses three kinds of requests: those for another host
name (DNS rebinding), those from pages of other sites (Origin), and those without the token, which is part of the
address.
"""

from __future__ import annotations

import hmac
import logging
import secrets
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextvars import ContextVar
from errno import EADDRNOTAVAIL
from ipaddress import ip_address
from shlex import join, split
from typing import TYPE_CHECKING

from floatlab.errors import FloatlabError, MissingPartError, printable_lines
from floatlab.record import Record
from floatlab.tui.app.browser_page import ASKED, MOST_ASKED, page, policy
from floatlab.tui.app.registry import screen_for
from floatlab.verbs.registry import VERBS

if TYPE_CHECKING:  # an optional dependency
    from aiohttp import WSMessage, web
    from textual_serve.app_service import AppService
    from textual_serve.server import Server

    Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_QUERY = "token"
_SIZES = range(1, 1001)  # valid widths and heights of a terminal in a browser
_MOST_TYPED = 1 << 20  # most bytes of typed text in a message, and most characters of other messages
_FONT_SIZES = [str(size) for size in range(6, 73)]
_NO_QUESTION = "This address has no question that the explorer can open, such as ?q=show 0.1 --fp16\n"
_POLICY = "Content-Security-Policy"
_HEADERS = {
    "Cache-Control": "no-store",
    _POLICY: "frame-ancestors 'none'",  # other pages cannot embed the explorer or capture its keys
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Address(Record):
    """The host and port at which a server listens, and (if different) the host name that browsers use."""

    host: str
    port: int
    name: str = ""

    def url(self, token: str) -> str:
        """Return the URL that users open.

        >>> Address("::1", 8000).url("secret"), Address("0.0.0.0", 80, "lab.example").url("secret")
        ('http://[::1]:8000/?token=secret', 'http://lab.example/?token=secret')
        """
        host = self.name or ("localhost" if self.host in ("0.0.0.0", "::") else self.host)
        host = f"[{host}]" if ":" in host else host
        return f"http://{host}{'' if self.port == 80 else f':{self.port}'}/?{_QUERY}={token}"

    def admits(self, host: str, reached: str) -> bool:
        """Return whether to accept this Host header. `reached` is the local IP address that received the request.

        >>> Address("localhost", 8000).admits("localhost:8000", "127.0.0.1")
        True
        >>> Address("0.0.0.0", 8000).admits("evil.example:8000", "192.0.2.7")
        False
        """
        name = _name_of(host)
        known = {*_LOOPBACK, self.host.lower(), self.name.lower(), socket.gethostname().lower(), _plain(reached)}
        return name != "" and name in known


def _name_of(host: str) -> str:
    """Return the host name, or the IP address, in a Host header; empty if the header is malformed."""
    name, colon, port = host.lower().rpartition(":") if not host.endswith("]") else (host.lower(), "", "")
    if not colon:
        name = name or port
    elif not (port.isascii() and port.isdigit()):
        return ""
    return _plain(name[1:-1]) if name.startswith("[") and name.endswith("]") else name


def _plain(address: str) -> str:
    """Return an IP address in canonical notation, as IPv4 if possible. Other text is returned unchanged."""
    try:
        plain = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    return str(getattr(plain, "ipv4_mapped", None) or plain)


class Guard:
    """Answers a request only if the request names this server, has the token, and is not from another site's page."""

    def __init__(self, address: Address, visitors: int) -> None:
        """Create a random token for this server process."""
        self.address, self.visitors = address, visitors
        self.token = secrets.token_urlsafe(32)
        self.cookie = f"floatlab-{address.port}"  # includes the port, since browsers share cookies between ports
        self.open = 0  # number of running explorers

    async def __call__(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer a request, or refuse it."""
        from aiohttp import web

        foreign = self._foreign(request)
        if foreign:
            return self._refused(foreign)
        token = request.query.get(_QUERY)
        if token is not None:
            if not self._right(token):
                return self._refused("wrong token: open the address that floatlab printed")
            if request.path == "/" and request.method in ("GET", "HEAD"):
                return self._admitted(request)
        elif not self._right(request.cookies.get(self.cookie, "")):
            return self._refused("no token: open the address that floatlab printed, which has a token")
        if request.path != "/ws":
            response = await handler(request)
            if not response.prepared:
                for name, value in _HEADERS.items():
                    response.headers.setdefault(name, value)
            return response
        if question_asked(request.query.get(ASKED, "")) is None:
            return web.Response(status=400, text=_NO_QUESTION)
        if any(not _size(request.query.get(name, "80")) for name in ("width", "height")):
            return web.Response(status=400, text="a terminal has 1 to 1000 columns and 1 to 1000 rows\n")
        if self.open >= self.visitors:
            return web.Response(status=503, text=f"{self.visitors} explorers are open already, which is the maximum\n")
        self.open += 1
        try:
            return await handler(request)
        finally:
            self.open -= 1

    def _foreign(self, request: web.Request) -> str:
        """Return why a request is refused because of its Host or Origin header; empty if both are right."""
        hosts, origins = request.headers.getall("Host", []), request.headers.getall("Origin", [])
        reached = request.transport.get_extra_info("sockname") if request.transport else None
        if len(hosts) != 1 or not self.address.admits(hosts[0], reached[0] if reached else ""):
            return "this is not a name of the server; tui --serve --name NAME adds a name"
        if any(
            origin.lower() not in (f"http://{hosts[0]}".lower(), f"https://{hosts[0]}".lower()) for origin in origins
        ):
            return "requests from pages of other sites are refused"
        return ""

    def _right(self, token: str) -> bool:
        """Return whether a token is correct. The time that this takes reveals nothing about the correct token."""
        return hmac.compare_digest(token.encode("utf-8", "surrogateescape"), self.token.encode())

    def _refused(self, reason: str) -> web.Response:
        from aiohttp import web

        return web.Response(status=403, text=f"Refused: {reason}.\n", headers=_HEADERS)

    def _admitted(self, request: web.Request) -> web.Response:
        """Set the token as a cookie, and redirect to the address without the token.

        The browser's history then does not contain the token.
        """
        from aiohttp import web

        rest = [(name, value) for name, value in request.query.items() if name != _QUERY]
        response = web.Response(status=303, headers={**_HEADERS, "Location": str(request.rel_url.with_query(rest))})
        response.set_cookie(self.cookie, self.token, httponly=True, samesite="Lax", path="/")
        return response


def question_asked(text: str) -> list[str] | None:
    """Split the command in an address into words, which become arguments of the explorer.

    The result is None if the text is too long, not printable, or cannot be split. It is also None if the first word is
    not a verb with a screen, since such a word could be an option of `tui`. An empty text gives no words.

    >>> question_asked("show 0.1 --fp16"), question_asked("--serve"), question_asked("vectors generate f16_add")
    (['show', '0.1', '--fp16'], None, None)
    """
    try:
        words = split(text) if len(text) <= MOST_ASKED and text.isprintable() else ["?"]
    except ValueError:  # a quote is not closed
        return None
    return words if not words or (words[0] in VERBS and screen_for(words[0]) is not None) else None


def _size(text: str) -> bool:
    """Return whether a text is a valid number of columns or rows of a terminal."""
    return text.isascii() and text.isdigit() and len(text) < 5 and int(text) in _SIZES


class _Checked:
    """A visitor's socket that forwards only well-formed messages."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket
        self.send_json = socket.send_json

    async def __aiter__(self) -> AsyncIterator[WSMessage]:
        async for message in self._socket:
            if _sensible(message):
                yield message


def _sensible(message: WSMessage) -> bool:
    try:
        kind, *rest = message.json()
        if kind == "stdin":
            return len(rest[0].encode()) <= _MOST_TYPED
        if kind == "resize":
            return all(type(rest[0][name]) is int and rest[0][name] in _SIZES for name in ("width", "height"))
    except (ValueError, TypeError, LookupError, AttributeError):  # not a list, invalid JSON, or unpaired surrogates
        return False
    return kind in ("ping", "blur", "focus") and len(message.data) <= _MOST_TYPED


class _Lines(logging.Formatter):
    """A log formatter that escapes control characters."""

    def format(self, record: logging.LogRecord) -> str:
        return printable_lines(super().format(record))


def server_of(
    address: Address, words: list[str], visitors: int, tell: Callable[[str], None], question: list[str] | None = None
) -> Server:
    """Return a server of explorers behind a `Guard`; raises MissingPartError without textual-serve (extra `web`).

    `words` are the options of each explorer. `question` is the command, as words, that an explorer shows if the address
    of its page has no command. When the server starts, `tell` is called with a message that has the address.
    """
    try:
        from aiohttp import web
        from textual_serve.server import Server
    except ImportError:
        raise MissingPartError("tui --serve needs textual-serve: pip install 'floatlab[web]'") from None
    asked: ContextVar[str] = ContextVar("asked", default="")
    wanted: ContextVar[str] = ContextVar("wanted", default="")
    guard = Guard(address, visitors)

    async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
        asked.set(f"{request.scheme}://{request.host}")
        wanted.set(join(question_asked(request.query.get(ASKED, "")) or []))
        return await guard(request, handler)

    class Guarded(Server):
        """The server of textual-serve behind the guard. Links in its pages use the host name of the request."""

        @property
        def public_url(self) -> str:
            return asked.get()

        @public_url.setter
        def public_url(self, url: str) -> None:
            """Ignore the URL that textual-serve sets: a host may have several names; the request has the right name."""

        @property
        def command(self) -> str:
            """The command that starts an explorer, at the question in the page's address or, by default, `question`."""
            return f"{explorer} {wanted.get()}" if wanted.get() else str(self._command)

        @command.setter
        def command(self, command: str) -> None:
            self._command = command

        async def handle_index(self, request: web.Request) -> web.StreamResponse:
            """Answer with the page of an explorer, or with an error if no screen answers the address's question."""
            if question_asked(request.query.get(ASKED, "")) is None:
                return web.Response(status=400, text=_NO_QUESTION)
            size = request.query.get("fontsize", "16")
            socket = f"{asked.get().replace('http', 'ws', 1)}/ws"
            html = page(socket, int(size) if size in _FONT_SIZES else 16)
            return web.Response(text=html, content_type="text/html", headers={_POLICY: policy(socket)})

        def initialize_logging(self) -> None:
            """Log only warnings and errors: lines about requests would contain the token, and text from visitors."""
            handler = logging.StreamHandler()
            handler.setFormatter(_Lines("floatlab: %(name)s: %(message)s"))
            logging.basicConfig(level=logging.WARNING, handlers=[handler])

        async def _make_app(self) -> web.Application:
            app = await super()._make_app()
            app.middlewares.append(web.middleware(guarded))
            return app

        async def on_startup(self, app: web.Application) -> None:
            tell(f"The explorer is at {address.url(guard.token)}\nCtrl+C ends it.")

        async def _process_messages(self, websocket: web.WebSocketResponse, app_service: AppService) -> None:
            await super()._process_messages(_Checked(websocket), app_service)

    # Visitors do not share a session, so none is loaded.
    explorer = join([sys.executable, "-m", "floatlab", "tui", "--new", *words])
    command = f"{explorer} {join(question)}" if question else explorer
    server = Guarded(command, address.host, address.port, title="floatlab")
    server.guard = guard
    return server


def serve(
    address: Address, words: list[str], visitors: int, tell: Callable[[str], None], question: list[str] | None = None
) -> None:
    """Serve explorers until interrupted; see `server_of` for the parameters.

    Raises MissingPartError without textual-serve (extra `web`), and FloatlabError if the address is not available.
    """
    server = server_of(address, words, visitors, tell, question)
    try:
        _check_free(address)
        server.serve()
    except OSError as error:
        raise FloatlabError(
            f"tui --serve cannot listen on {address.host}:{address.port}: {error.strerror or error}"
        ) from None


def _check_free(address: Address) -> None:
    """Raise OSError if the server cannot listen at an address.

    Without this check, the server would print its address before it fails.
    """
    places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    for family, kind, protocol, _, place in places:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(place)
            except OSError as error:
                if error.errno != EADDRNOTAVAIL:  # such as ::1 on a machine without IPv6
                    raise
