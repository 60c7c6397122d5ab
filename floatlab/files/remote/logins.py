"""Access tokens for servers of http(s), from an environment variable; a token is sent to its own host only."""

from __future__ import annotations

import os
from urllib.parse import urlsplit

from floatlab.errors import FileFormatError

TOKENS = "FLOATLAB_TOKENS"  # "host=token,host:port=token"
_LOCAL = ("localhost", "127.0.0.1", "::1")
_LONGEST = 1 << 12


def token_for(url: str) -> str:
    """Return the token for the host of a URL; empty if there is no token for this host.

    The result is also empty if the token would be sent to another computer without encryption. Raises FileFormatError
    for a token that cannot be sent.

    >>> os.environ[TOKENS] = "host=secret"
    >>> token_for("https://host/a.npy"), token_for("http://host/a.npy"), token_for("https://other/a.npy")
    ('secret', '', '')
    >>> del os.environ[TOKENS]
    """
    parts = urlsplit(url)
    if parts.scheme.lower() != "https" and parts.hostname not in _LOCAL:
        return ""
    for entry in os.environ.get(TOKENS, "").split(","):
        host, _, token = entry.strip().partition("=")
        if host and host.lower() in (parts.netloc.lower(), (parts.hostname or "").lower()):
            if not token.isascii() or not token.isprintable() or not token or len(token) > _LONGEST:
                wrong = "is empty, too long, or not printable ASCII"
                raise FileFormatError(f"is not read: the token for {host} in {TOKENS} {wrong}")
            return token
    return ""


def login_words(url: str, status: int) -> str:
    """Return the error message for a server's answer 401 or 403; the message says how to set a token."""
    host = urlsplit(url).hostname or "host"
    if token_for(url):
        return f"cannot be read: {host} refuses the token in {TOKENS} ({status})"
    need = "needs a login" if status == 401 else "may not be read"
    return f"{need} ({host} answers {status}): set {TOKENS}={host}=TOKEN if you have a token"


def refuse_login_in(url: str) -> None:
    """Raise FileFormatError for a URL with a name or a password, which other processes could see."""
    if "@" in urlsplit(url).netloc:
        raise FileFormatError(f"is not read: its URL has a login; give a token in {TOKENS} instead")
