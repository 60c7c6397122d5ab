"""The page in which a visitor's browser shows an explorer. It loads nothing from other hosts.

The page has the terminal of textual-serve, which cannot pass a question to the explorer. So a script takes the command
from the page's address and adds it to the request for an explorer. When the explorer shows another question, the script
writes the command of this question into the address.

The explorer in a terminal imports this module for its constants.
"""

from __future__ import annotations

ASKED = "q"  # the address has the command (without the word floatlab) in this query parameter
SHOWN = "floatlab:"  # the prefix of the message with which an explorer sends its command
MOST_ASKED = 2000  # largest number of characters of a command in an address

_STYLE = """
@font-face { font-family: "Roboto Mono"; src: url("/static/fonts/RobotoMono-VariableFont_wght.ttf"); }
@font-face { font-family: "Roboto Mono"; font-style: italic;
  src: url("/static/fonts/RobotoMono-Italic-VariableFont_wght.ttf"); }
html, body { margin: 0; height: 100%; overflow: hidden; background: #0c181f; color: #fff; }
.textual-terminal { width: 100vw; height: 100vh; }
.dialog { position: absolute; inset: 0; z-index: 10; display: flex; align-items: center; justify-content: center;
  font: 16px system-ui, sans-serif; background: #0c181f; }
body.-first-byte .opening, .ended { display: none; }
body.-closed .ended { display: flex; }
button { font: inherit; margin-left: 1em; padding: .5em 1.5em; }
"""
_SCRIPT = """
"use strict";
const asked = () => new URLSearchParams(location.search).get("ASKED");
const show = command => { document.title = command ? "floatlab " + command : "floatlab"; };
show(asked());
let isOpen = false;
const focus = () => { if (isOpen) document.querySelector(".xterm-helper-textarea")?.focus(); };
window.WebSocket = class extends window.WebSocket {
  constructor(url, ...more) {
    const command = asked();
    super(command ? url + "&ASKED=" + encodeURIComponent(command) : url, ...more);
    this.addEventListener("open", () => { isOpen = true; setTimeout(focus); });
    this.addEventListener("message", event => {
      if (typeof event.data !== "string") return;
      const [kind, told] = JSON.parse(event.data);
      if (kind !== "open_url" || !told.url.startsWith("SHOWN")) return;
      event.stopImmediatePropagation();
      const address = new URL(location.href), command = told.url.slice("SHOWN".length);
      address.searchParams.set("ASKED", command);
      history.replaceState(null, "", address);
      show(command);
    });
  }
};
addEventListener("DOMContentLoaded", () => {
  document.getElementById("restart").addEventListener("click", () => location.reload());
});
addEventListener("focus", focus);
""".replace("ASKED", ASKED).replace("SHOWN", SHOWN)


def page(socket: str, font_size: int) -> str:
    """Return the HTML page of an explorer whose socket has this address."""
    from html import escape

    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>floatlab</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/static/css/xterm.css">
<style>{_STYLE}</style>
<script>{_SCRIPT}</script>
<script src="/static/js/textual.js"></script>
</head>
<body>
<div class="dialog opening">floatlab</div>
<div class="dialog ended">This explorer has ended.<button id="restart">Open it again</button></div>
<div id="start" hidden></div>
<div id="terminal" class="textual-terminal"
data-session-websocket-url="{escape(socket)}" data-font-size="{font_size}"></div>
</body>
</html>
"""


def policy(socket: str) -> str:
    """Return the page's Content-Security-Policy: everything comes from this host, and only the page's scripts run.

    >>> policy("ws://localhost:8000/ws").startswith("default-src 'self'; script-src 'self' 'sha256-")
    True
    """
    from base64 import b64encode
    from hashlib import sha256

    digest = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
    return (
        f"default-src 'self'; script-src 'self' 'sha256-{digest}'; style-src 'self' 'unsafe-inline'; "
        f"img-src 'self' data:; connect-src 'self' {socket}; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
