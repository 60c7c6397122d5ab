"""A small server of http that answers requests for ranges of bytes, rightly or wrongly."""

import re
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Serving:
    """The files of a server, the way in which it misbehaves, and the requests that it has received."""

    def __init__(self, files: dict[str, bytes], fault: str = "") -> None:
        self.files, self.fault = files, fault
        self.requests: list[tuple[str, int, int]] = []
        self.tokens: list[str | None] = []  # what each request had as its authorization
        self.failures = 0  # this many requests fail, as `fault` says, before the others do not
        self.forbidden = False  # whether files that do not exist are called forbidden
        self.url = ""

    @property
    def sent(self) -> int:
        """The number of bytes that were requested."""
        return sum(last + 1 - first for _, first, last in self.requests)


def _answer(self: BaseHTTPRequestHandler, serving: Serving) -> None:
    fault, path = serving.fault, self.path.split("?")[0].lstrip("/")
    serving.tokens.append(self.headers["Authorization"])
    if serving.failures:
        serving.failures -= 1
        if serving.failures == 0:
            serving.fault = ""
    if fault == "hangs up":
        return
    if fault.startswith("answers "):
        self.send_response(int(fault[8:]))
        self.send_header("Retry-After", "0")
        self.end_headers()
        return
    if fault == "is silent":
        time.sleep(3)
        return
    if fault == "says nonsense":
        self.wfile.write(b"\x00\xff" * 1000 + b"\n")
        return
    if fault == "has endless headers":
        self.wfile.write(b"HTTP/1.1 206 OK\r\n" + b"a: b\r\n" * 100_000)
        return
    if fault.startswith("redirects "):
        self.send_response(302)
        self.send_header("Location", fault.partition(" ")[2])
        self.end_headers()
        return
    if fault == "refuses":
        self.send_error(500, "I am \x1b[31m not well")
        return
    if path not in serving.files:
        self.send_error(403 if serving.forbidden else 404)
        return
    body = serving.files[path]
    first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
    serving.requests.append((path, first, last))
    last = min(last, len(body) - 1)
    if first > last:
        self.send_response(416)
        self.send_header("Content-Range", f"bytes */{len(body)}")
        self.end_headers()
        return
    part, total, start = body[first : last + 1], len(body), first
    if fault == "sends all":
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()
        _pour(self)
        return
    if fault == "claims more":
        total += 1 << 40
    if fault.startswith("claims ") and fault[7:].isdecimal():
        total = int(fault[7:])
    if fault == "claims 1e30":
        total = 10**30
    if fault == "starts elsewhere":
        start += 1
    if fault == "grows":
        total += len(serving.requests)  # in each answer
    self.send_response(206)
    if fault != "hides the range":
        self.send_header("Content-Range", f"bytes {start}-{last if start == first else last + 1}/{total}")
    self.send_header("ETag", f'"{len(serving.requests)}"' if fault == "changes" else '"1"')
    if fault == "inflates":
        self.send_header("Content-Encoding", "gzip")
    if fault != "sends without end":
        self.send_header("Content-Length", str(len(part) + (100 if fault == "stops early" else 0)))
    self.end_headers()
    if fault == "trickles":
        for octet in part:
            self.wfile.write(bytes([octet]))
            time.sleep(0.05)
        return
    self.wfile.write(part[: len(part) // 2] if fault == "sends half" else part)
    if fault == "sends without end":
        _pour(self)


def _pour(self: BaseHTTPRequestHandler) -> None:
    for _ in range(1 << 12):  # 4 GiB
        self.wfile.write(bytes(1 << 20))


@contextmanager
def serving(files: dict[str, bytes], fault: str = ""):
    """Serve files on a port of this computer; `fault` names how the server misbehaves."""
    state = Serving(files, fault)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            try:
                _answer(self, state)
            except OSError:  # the client has gone
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield state
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
