"""A headless Chromium, driven through the DevTools protocol."""

import asyncio
import base64
import itertools
import json
import shutil
import tempfile
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

PROGRAM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
_FLAGS = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-proxy-server",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--remote-debugging-port=0",
    "--window-size=1100,700"]  # fmt: skip
_PATIENCE = 60.0  # seconds; generous for slow machines
_KEYS = {
    "Enter": {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "text": "\r"},
    "Home": {"key": "Home", "code": "Home", "windowsVirtualKeyCode": 36},
    "ArrowRight": {"key": "ArrowRight", "code": "ArrowRight", "windowsVirtualKeyCode": 39},
}


class Browser:
    """The browser: its pages, and the answers to commands."""

    def __init__(self, socket, folder):
        self.socket, self.folder = socket, folder
        self.numbers, self.waiting, self.pages = itertools.count(1), {}, {}
        self.reader = asyncio.create_task(self.read())

    async def read(self):
        async for message in self.socket:
            told = json.loads(message.data)
            if "id" in told:
                self.waiting.pop(told["id"]).set_result(told)
            elif told.get("sessionId") in self.pages:
                self.pages[told["sessionId"]].take(told["method"], told["params"])

    async def ask(self, method, session=None, **parameters):
        number, future = next(self.numbers), asyncio.get_running_loop().create_future()
        self.waiting[number] = future
        await self.socket.send_json(
            {"id": number, "method": method, "params": parameters, **({"sessionId": session} if session else {})}
        )
        told = await asyncio.wait_for(future, _PATIENCE)
        assert "error" not in told, (method, told)
        return told["result"]

    async def open(self, address):
        """Open an address in a new visitor's context, which has no cookies of others."""
        context = (await self.ask("Target.createBrowserContext"))["browserContextId"]
        target = (await self.ask("Target.createTarget", url="about:blank", browserContextId=context))["targetId"]
        session = (await self.ask("Target.attachToTarget", targetId=target, flatten=True))["sessionId"]
        page = self.pages[session] = Page(self, session, context)
        for domain in ("Network", "Page", "Runtime"):
            await page.ask(f"{domain}.enable")
        await page.ask("Page.navigate", url=address)
        return page


class Page:
    """A page: what it requested, and what its explorer drew."""

    def __init__(self, browser, session, context):
        self.browser, self.session, self.context = browser, session, context
        self.requested, self.drawn, self.problems = [], b"", []

    def take(self, method, parameters):
        match method:
            case "Network.requestWillBeSent":
                self.requested.append(parameters["request"]["url"])
            case "Network.webSocketCreated":
                self.requested.append(parameters["url"])
            case "Network.webSocketFrameReceived" if parameters["response"]["opcode"] == 2:
                self.drawn += base64.b64decode(parameters["response"]["payloadData"])
            case "Runtime.exceptionThrown":
                self.problems.append(parameters["exceptionDetails"])

    async def ask(self, method, **parameters):
        return await self.browser.ask(method, self.session, **parameters)

    async def evaluate(self, expression):
        told = await self.ask("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return told["result"].get("value")

    async def until(self, holds):
        """Wait until a coroutine function returns a true value; return it."""
        async with asyncio.timeout(_PATIENCE):
            while not (found := await holds()):
                await asyncio.sleep(0.05)
        return found

    async def until_drawn(self, text, since=0):
        async def is_drawn():
            return text in self.drawn[since:]

        try:
            await self.until(is_drawn)
        except TimeoutError:
            raise AssertionError(f"{text!r} was not drawn: {self.drawn[since:][-1500:]!r}") from None

    async def until_address(self, part):
        async def is_there():
            address = await self.evaluate("location.href")
            return address if part in address else None

        try:
            return await self.until(is_there)
        except TimeoutError:
            raise AssertionError(f"{part!r} is not in {await self.evaluate('location.href')}") from None

    async def press(self, *keys):
        """Press keys; nothing was clicked before, so the terminal has the focus."""
        for key in keys:
            event = _KEYS.get(key) or {"key": key, "text": key}
            await self.ask("Input.dispatchKeyEvent", type="keyDown", **event)
            await self.ask("Input.dispatchKeyEvent", type="keyUp", **{k: v for k, v in event.items() if k != "text"})


@asynccontextmanager
async def chromium():
    """Run a browser with an empty profile."""
    folder = Path(tempfile.mkdtemp(prefix="floatlab-chromium-"))
    program = await asyncio.create_subprocess_exec(
        PROGRAM, *_FLAGS, f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        told = folder / "DevToolsActivePort"
        async with asyncio.timeout(_PATIENCE):
            while not told.exists() or len(told.read_text().split()) < 2:
                assert program.returncode is None, f"{PROGRAM} has ended: {program.returncode}"
                await asyncio.sleep(0.05)
        port, path = told.read_text().split()
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(f"ws://127.0.0.1:{port}{path}", max_msg_size=0) as socket,
        ):
            browser = Browser(socket, folder)
            yield browser
            browser.reader.cancel()
    finally:
        if program.returncode is None:
            program.terminate()
        await program.wait()
        shutil.rmtree(folder, ignore_errors=True)
