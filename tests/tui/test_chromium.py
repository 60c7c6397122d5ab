"""The explorer in a real browser: links, keys, the clipboard, downloads, and no request to another host."""

import asyncio
from urllib.parse import parse_qs, quote, urlsplit

import pytest

pytest.importorskip("aiohttp", reason="aiohttp is not installed")
pytest.importorskip("textual_serve", reason="textual-serve is not installed")

from tests.tui.chromium import PROGRAM, chromium
from tests.tui.test_browser import serving

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="there is no Chromium here")]
PATIENCE = 240.0  # seconds; generous for slow machines


def asked(address):
    return parse_qs(urlsplit(address).query).get("q")


async def visited(site, browser, question=""):
    """Open the explorer as a visitor with a link."""
    page = await browser.open(f"{site.base}/?token={site.guard.token}&q={quote(question)}")
    await browser.ask(
        "Browser.grantPermissions",
        origin=site.base,
        browserContextId=page.context,
        permissions=["clipboardReadWrite", "clipboardSanitizedWrite"],
    )
    return page


def in_a_browser(test):
    async def visit():
        async with serving(["--served"], visitors=4) as site, chromium() as browser:
            pages = await test(site, browser)
            for page in pages:
                hosts = {urlsplit(each).netloc for each in page.requested if not each.startswith(("data:", "blob:"))}
                assert hosts == {f"localhost:{site.address.port}"}
                assert page.problems == []
                assert site.guard.token not in await page.evaluate(
                    "location.href + document.title + document.body.innerHTML"
                )

    def run():
        asyncio.run(asyncio.wait_for(visit(), PATIENCE))

    run.__name__ = test.__name__
    return run


@in_a_browser
async def test_a_link_opens_a_question_and_the_address_follows(site, browser):
    page = await visited(site, browser, "show 0.1 --fp16")
    await page.until_drawn(b"0x2e66")
    assert await page.evaluate("document.title") == "floatlab show 0.1 --fp16"
    assert await page.evaluate("document.activeElement.className") == "xterm-helper-textarea"
    await page.press(" ")  # flips the last bit; no click was needed
    assert asked(await page.until_address("0.10003")) == ["show 0.10003662109375 --fp16"]
    assert await page.evaluate("document.title") == "floatlab show 0.10003662109375 --fp16"
    other = await visited(site, browser, "show 0.10003662109375 --fp16")  # the link opens it again
    await other.until_drawn(b"0x2e67")
    await page.press("+")  # the other visitor has another session
    assert asked(await page.until_address("0.10009")) == ["show 0.10009765625 --fp16"]
    await other.press("-")
    assert asked(await other.until_address("0.0999")) == ["show 0.0999755859375 --fp16"]
    assert asked(await page.until_address("0.1")) == ["show 0.10009765625 --fp16"]
    assert site.guard.open == 2
    return page, other


@in_a_browser
async def test_an_addition_is_stepped_copied_and_saved(site, browser):
    page = await visited(site, browser, "add 1.125 0.12457275390625 --fp16")
    await page.until_drawn(b"Quit")
    await page.press("Home")
    before = len(page.drawn)
    await page.press("n")
    await page.until_drawn(b"shifted right", before)
    await page.press("y")

    async def copied():
        return await page.evaluate("navigator.clipboard.readText()")

    assert await page.until(copied) == "1.25"
    await browser.ask(
        "Browser.setDownloadBehavior", behavior="allow", browserContextId=page.context, downloadPath=str(browser.folder)
    )
    before = len(page.drawn)
    await page.press("S")
    await page.until_drawn(b"Save to a file", before)
    await page.press("Enter")

    async def saved():
        found = list(browser.folder.glob("floatlab-add*.svg"))
        return found[0].read_text() if found else None

    assert "<svg" in await page.until(saved)
    return (page,)
