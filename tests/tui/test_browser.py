"""The explorer's server on the loopback interface: the requests that it admits, and the explorers that it starts."""

import asyncio
import os
import re
import shlex
import socket
import subprocess
import sys
import time
from base64 import b64encode
from contextlib import asynccontextmanager
from hashlib import sha256
from unittest import mock
from urllib.parse import quote

import pytest

import floatlab.tui.app.browser
from floatlab.cli.main import main
from floatlab.tui.app.browser import Address, server_of
from tests.cli.conftest import HOUSE

aiohttp = pytest.importorskip("aiohttp", reason="aiohttp is not installed")
AppService = pytest.importorskip("textual_serve.app_service", reason="textual-serve is not installed").AppService

PATIENCE = 60.0  # seconds; generous for slow machines
FREE = "127.0.0.1"


def free_port():
    with socket.socket() as found:
        found.bind((FREE, 0))
        return found.getsockname()[1]


class Site:
    """A server that runs, and what a browser asks of it."""

    def __init__(self, address, server, client):
        self.address, self.guard, self.client = address, server.guard, client
        self.base = f"http://localhost:{address.port}"
        self.cookie = {"Cookie": f"{server.guard.cookie}={server.guard.token}"}

    async def get(self, path, **headers):
        """Return the status, the headers and the text of an answer."""
        found = await self.client.get(self.base + path, headers=headers, allow_redirects=False)
        return found.status, found.headers, await found.text(errors="replace")

    async def socket(self, query="", **headers):
        """Open the socket; return it, or the status that it was refused with."""
        try:
            return await self.client.ws_connect(f"{self.base}/ws{query}", headers=headers)
        except aiohttp.WSServerHandshakeError as refused:
            return refused.status


@asynccontextmanager
async def serving(words=(), host="localhost", visitors=2, name="", command=None, question=None):
    """Serve on the loopback interface; `command` replaces the explorer in tests that are not about it."""
    told, programs = [], []
    open_program = AppService._open_app_process

    async def remembered(self, *size, **named):
        programs.append(await open_program(self, *size, **named))
        return programs[-1]

    address = Address(host, free_port(), name)
    server = server_of(address, list(words), visitors, told.append, question)
    if command is not None:
        server.command = command
    monkey = mock.patch.object(AppService, "_open_app_process", remembered)
    monkey.start()
    runner = aiohttp.web.AppRunner(await server._make_app(), shutdown_timeout=1)
    await runner.setup()
    await aiohttp.web.TCPSite(runner, FREE, address.port).start()
    try:
        async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
            site = Site(address, server, client)
            assert told == [f"The explorer is at {address.url(server.guard.token)}\nCtrl+C ends it."]
            yield site
    finally:
        await runner.cleanup()
        monkey.stop()
        for program in programs:  # else the loop may end before their pipes are closed
            await program.wait()
            program._transport.close()


def loop(test):
    """Run a test that is a coroutine."""

    def run():
        asyncio.run(asyncio.wait_for(test(), PATIENCE))

    run.__name__ = test.__name__
    return run


QUIET = "echo __GANGLION__; head -c 1; :"  # it prints its address, and ends on request
PATHS = ["/", "/ws", "/static/js/textual.js", "/static/", "/download/x", "/nowhere"]


@loop
async def test_nothing_is_answered_without_the_token():
    async with serving() as site:
        for path in PATHS:
            for headers in ({}, {"Cookie": f"{site.guard.cookie}=wrong"}, {"Cookie": f"{site.guard.cookie}="}):
                status, _, text = await site.get(path, **headers)
                assert status == 403
                assert text.startswith("Refused: ")
            for wrong in ("", "wrong", site.guard.token[:-1], site.guard.token + "x", "%ff", "é"):
                status, answered, _ = await site.get(f"{path}?token={wrong}", **site.cookie)
                assert status == 403
                assert "Set-Cookie" not in answered
        assert await site.socket() == 403
        assert await site.socket(Cookie="floatlab=wrong") == 403
        assert site.guard.open == 0


@loop
async def test_the_token_of_the_address_becomes_a_cookie_and_everything_needs_it():
    async with serving(command=QUIET) as site:
        status, headers, _ = await site.get(f"/?token={site.guard.token}&fontsize=20")
        assert (status, headers["Location"]) == (303, "/?fontsize=20")
        cookie = headers["Set-Cookie"]
        assert "HttpOnly" in cookie
        assert "SameSite=Lax" in cookie
        sent = {"Cookie": cookie.partition(";")[0]}
        status, headers, page = await site.get("/", **sent)
        assert status == 200
        assert site.guard.token not in page
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert f'"ws://localhost:{site.address.port}/ws"' in page
        assert (await site.get("/static/js/textual.js", **sent))[0] == 200
        found = await site.socket(**sent, Origin=site.base)
        await found.close()


@loop
async def test_a_page_loads_nothing_from_other_hosts():
    async with serving() as site:
        _, headers, page = await site.get("/?fontsize=1e9", **site.cookie)
        assert "<title>floatlab</title>" in page
        assert 'data-font-size="16"' in page
        addresses = re.findall(r"""(?<!-)(?:src|href|url)[=(]["']?([^"') >]+)""", page)
        assert len(addresses) >= 5
        assert all(each.startswith(("/static/", "data:")) for each in addresses)
        for each in addresses:
            if each.startswith("/static/"):
                assert (await site.get(each, **site.cookie))[0] == 200
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'self'; script-src 'self' 'sha256-")
        (script,) = re.findall("<script>(.*?)</script>", page, re.DOTALL)
        assert b64encode(sha256(script.encode()).digest()).decode() in policy
        assert set(re.findall(r"\w+://\S+", policy)) == {f"ws://localhost:{site.address.port}/ws;"}


LINKS = {
    "": "show 1",
    "show 0.1 --fp16": "show 0.1 --fp16",
    "add '1.5' 2 --theme $(reboot)": "add 1.5 2 --theme '$(reboot)'",
}


@loop
async def test_a_link_names_the_question_and_nothing_else():
    async with serving(["--served"], question=["show", "1"], visitors=20, command=None) as site:
        started = []
        with mock.patch.object(AppService, "_open_app_process", lambda self, *size: started.append(self.command)):
            for asked, words in LINKS.items():
                assert (await site.get(f"/?q={quote(asked)}", **site.cookie))[0] == 200
                found = await site.socket(f"?q={quote(asked)}", **site.cookie)
                await found.close()
                assert shlex.split(started[-1])[-len(shlex.split(words)) :] == shlex.split(words)
                assert shlex.split(started[-1])[1:6] == ["-m", "floatlab", "tui", "--new", "--served"]
            count = len(started)
            for asked in ("--serve", "tui --serve", "vectors check f16_add /etc/passwd", "dequantize a b", "'", "; ls",
                          "completion bash", "\x1b", "show " + "1" * 3000):  # fmt: skip
                assert (await site.get(f"/?q={quote(asked)}", **site.cookie))[0] == 400, asked
                assert await site.socket(f"?q={quote(asked)}", **site.cookie) == 400
            assert len(started) == count


def test_a_bad_link_opens_the_explorer_with_a_reason():
    async def visit():
        async with serving(["--served"]) as site:
            found = await site.socket(f"?width=200&height=30&q={quote('show what --fp16')}", **site.cookie)
            seen = await read_until(found, b"1.12156456132")
            while b"'what'" not in seen:
                seen += await read_until(found, b"what")
            await found.close()

    asyncio.run(asyncio.wait_for(visit(), PATIENCE))


@loop
async def test_pages_name_the_host_that_they_were_asked_of():
    async with serving() as site:
        for host in (f"127.0.0.1:{site.address.port}", f"LOCALHOST:{site.address.port}", "[::1]:80", "localhost"):
            status, _, page = await site.get("/", Host=host, **site.cookie)
            assert status == 200
            assert f'"ws://{host}/ws"' in page


HOSTS = ["evil.example", "evil.example:{port}", "localhost.evil.example:{port}", "evil.localhost:{port}", "192.0.2.1",
    "localhost:{port}@evil.example", "localhost:x", "localhost:80:80", "", ":{port}", "[::2]:{port}", "localhost,evil",
    "127.0.0.2", "2130706433", "localhost\udcff"]  # fmt: skip


@loop
async def test_foreign_names_are_refused_even_with_the_token():
    async with serving(command=QUIET) as site:
        for host in HOSTS:
            request = (
                f"GET /?token={site.guard.token} HTTP/1.1\r\nHost: {host.format(port=site.address.port)}\r\n"
                f"Cookie: {site.cookie['Cookie']}\r\nConnection: close\r\n\r\n"
            )
            assert (await raw(site, request)).split()[1] in (b"403", b"400"), host
        two = f"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n{cookie_line(site)}\r\n"
        assert (await raw(site, two)).split()[1] in (b"403", b"400")
        none = f"GET / HTTP/1.0\r\n{cookie_line(site)}\r\n"
        assert (await raw(site, none)).split()[1] in (b"403", b"400")
        upgrade = (
            "GET /ws HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n{cookie_line(site)}\r\n"
        )
        assert (await raw(site, upgrade)).split()[1] == b"403"
        good = await raw(site, upgrade.replace("evil.example", f"localhost:{site.address.port}"))
        assert good.split()[1] == b"101"  # the same request under its own name


def cookie_line(site):
    return f"Cookie: {site.cookie['Cookie']}\r\n"


async def raw(site, request):
    """Send bytes as no client would; return the beginning of the answer."""
    reader, writer = await asyncio.open_connection(FREE, site.address.port)
    writer.write(request.encode("utf-8", "surrogateescape"))
    await writer.drain()
    answer = await reader.read(1000)
    writer.close()
    return answer or b"HTTP/1.1 400 closed"


ORIGINS = ["http://evil.example", "null", "http://localhost", "http://localhost:{other}", "http://127.0.0.1:{port}",
    "https://localhost:{port}.evil.example", "http://evil.example:{port}", "", "file://"]  # fmt: skip


@loop
async def test_pages_of_other_sites_are_refused_even_with_the_token():
    async with serving(command=QUIET) as site:
        for origin in ORIGINS:
            origin = origin.format(port=site.address.port, other=site.address.port + 1)
            assert await site.socket(**site.cookie, Origin=origin) == 403, origin
            assert (await site.get("/", **site.cookie, Origin=origin))[0] == 403
        assert site.guard.open == 0


@loop
async def test_only_so_many_run_at_once():
    async with serving(visitors=2, command=QUIET) as site:
        visits = [await site.socket(**site.cookie) for _ in range(2)]
        assert await site.socket(**site.cookie) == 503
        assert site.guard.open == len(visits)
        for query in ("?width=0", "?width=100000", "?height=-1", "?height=x", "?width=1e3"):
            assert await site.socket(query, **site.cookie) == 400


@loop
async def test_a_place_is_free_again_when_an_explorer_has_ended():
    async with serving(visitors=1, command="true") as site:
        for _ in range(3):
            found = await site.socket(**site.cookie)
            await found.close()
            while site.guard.open:
                await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ('["stdin", "q"]', True),
        ('["resize", {"width": 100, "height": 30}]', True),
        ('["focus"]', True),
        ('["ping", 1]', True),
        ('["resize", {"width": 1000000000, "height": 30}]', False),
        ('["resize", {"width": "30", "height": 30}]', False),
        ('["resize", {"width": true, "height": 30}]', False),
        ('["resize", []]', False),
        ('["resize"]', False),
        ('["stdin", 5]', False),
        ('["stdin", "\\ud800"]', False),
        ('["stdin", "' + "x" * (1 << 21) + '"]', False),
        ('["deliver_chunk_request", {}]', False),
        ('"stdin"', False),
        ("{}", False),
        ("[]", False),
        ("nonsense", False),
        ("1", False),
    ],
    ids=lambda each: str(each)[:40],
)
def test_only_messages_that_an_explorer_can_be_sent_come_through(text, passes):
    message = aiohttp.WSMessage(aiohttp.WSMsgType.TEXT, text, None)
    assert floatlab.tui.app.browser._sensible(message) is passes


def test_tokens_are_fresh_and_long():
    found = {server_of(Address("localhost", 8000), [], 1, print).guard.token for _ in range(3)}
    assert len(found) == 3
    assert min(map(len, found)) >= 43  # 256 bits


@pytest.mark.parametrize(
    ("address", "host", "reached", "admitted"),
    [
        (Address("0.0.0.0", 80), "192.0.2.7", "192.0.2.7", True),
        (Address("0.0.0.0", 80), "192.0.2.8", "192.0.2.7", False),
        (Address("0.0.0.0", 80), socket.gethostname(), "192.0.2.7", True),
        (Address("0.0.0.0", 80, "Lab.example"), "lab.EXAMPLE:80", "192.0.2.7", True),
        (Address("::", 80), "[2001:db8:0::1]:80", "2001:db8::1", True),
        (Address("::", 80), "192.0.2.7", "::ffff:192.0.2.7", True),
        (Address("lab.example", 80), "lab.example", "192.0.2.7", True),
        (Address("lab.example", 80), "www.lab.example", "192.0.2.7", False),
    ],
)
def test_the_names_that_a_server_goes_by(address, host, reached, admitted):
    assert address.admits(host, reached) is admitted


def test_the_command_of_an_explorer_confines_it():
    server = server_of(Address("localhost", 8000), ["--served", "--files", "/a b", "show", "1"], 1, print)
    words = shlex.split(server.command)
    assert words == [sys.executable, "-m", "floatlab", "tui", "--new", "--served", "--files", "/a b", "show", "1"]


async def read_until(found, text):
    """Read from a socket what an explorer draws, until a text has come."""
    seen = b""
    while text not in seen:
        message = await found.receive(PATIENCE / 3)
        if message.type is aiohttp.WSMsgType.TEXT:  # the command for the address
            continue
        assert message.type is aiohttp.WSMsgType.BINARY, (message, seen[-500:])
        seen += message.data
    return seen


@pytest.fixture
def hook(tmp_path, monkeypatch):
    """Put a module on the path of explorers that leaves a mark when it is imported."""
    (tmp_path / "evil_hook.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()\ndef total(x): return 1.0\n")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HOUSE), str(tmp_path)]))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path / "mark"


def test_a_visitor_asks_no_module_and_reads_no_file(hook):
    (hook.parent / "numbers.txt").write_text("5 6 7\n")

    async def visit():
        async with serving(["--served", "sum", "1,2,3"]) as site:
            found = await site.socket("?width=500&height=40", **site.cookie, Origin=site.base)
            await read_until(found, b"Order")
            await found.send_json(["stdin", "w"])
            await read_until(found, b"How does a library add?")
            await found.send_json(["stdin", "evil_hook:total"])
            await read_until(found, b"Enter uses this name")
            await found.send_json(["stdin", "\r"])
            seen = await read_until(found, b"is refused here")
            await found.send_json(["stdin", "/"])
            await read_until(found, b"Leave the box")
            await found.send_json(["stdin", f"{hook.parent / 'numbers.txt'}"])
            seen += await read_until(found, b"files cannot be read here")
            await found.close()
            assert b"fault" not in seen

    asyncio.run(asyncio.wait_for(visit(), PATIENCE))
    assert not hook.exists()


def test_the_program_prints_its_address_and_refuses_the_rest(hook):
    port = free_port()
    program = subprocess.Popen(
        [sys.executable, "-m", "floatlab", "tui", "--serve", "--port", str(port), "--files", ".", "show", "0.1"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=hook.parent,
    )  # fmt: skip
    try:
        line = program.stdout.readline()
        address = re.fullmatch(rf"The explorer is at (http://localhost:{port}/)\?token=([\w-]+)\n", line)
        assert address, line

        async def ask():
            async with aiohttp.ClientSession() as client:
                end = time.monotonic() + PATIENCE
                while time.monotonic() < end:
                    try:
                        refused = await client.get(address[1])
                    except aiohttp.ClientConnectionError:
                        await asyncio.sleep(0.05)
                        continue
                    break
                foreign = await client.get(address[1], headers={"Host": "evil.example"}, params={"token": address[2]})
                answered = await client.get(address[1], params={"token": address[2]})
                return refused.status, foreign.status, answered.status

        assert asyncio.run(ask()) == (403, 403, 200)
    finally:
        program.terminate()
        said = program.communicate()[0]
    assert said.startswith("Ctrl+C ends it.\n")
    assert address[2] not in said  # no log of requests has the token


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--files", "."], "--files needs --serve: it is a setting of --serve"),
        (["--visitors", "2"], "--visitors needs --serve"),
        (["--name", "x"], "--name needs --serve"),
        (["--serve", "--files", ""], "--files needs a folder"),
        (["--serve", "--visitors", "0"], "--visitors takes a whole number from 1"),
        (["--serve", "--files", "nowhere"], "--files 'nowhere' is not a folder that can be read: No such file"),
        (["--serve", "--files", "a.txt"], "--files 'a.txt' is not a folder that can be read: Not a directory"),
        (["--serve", "sum", "a.txt"], "'a.txt' is not a list of numbers, and files cannot be read here"),
        (["--serve", "--files", "sub", "sum", "../a.txt"], "'../a.txt' lies outside the folder"),
        (["--serve", "reveal", "evil_hook:total"], "is refused here"),
    ],
    ids=" ".join,
)
def test_what_is_not_served_is_one_line(hook, confine, monkeypatch, capsys, words, named):
    monkeypatch.syspath_prepend(str(hook.parent))
    monkeypatch.chdir(hook.parent)
    (hook.parent / "a.txt").write_text("1 2 3\n")
    (hook.parent / "sub").mkdir()
    assert main(["tui", *words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert named in said.err
    assert not hook.exists()


@pytest.mark.usefixtures("confine")  # only until the end of the test
def test_a_port_that_is_taken_is_said_before_any_address(capsys):
    with socket.create_server((FREE, 0)) as taken:
        port = taken.getsockname()[1]
        assert main(["tui", "--serve", "--host", FREE, "--port", str(port)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"floatlab: tui --serve cannot listen on {FREE}:{port}: ")
    assert err.count("\n") == 1
