"""The worked examples, typed into the explorer: the screen shows what the command line prints."""

import contextlib
import io

import pytest

from floatlab.cli.main import main
from tests.tui.stage import driven, opened


def printed(command, width):
    """Return the lines that a command prints."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert main([*command.split(), "--width", str(width)]) == 0
    return [line.rstrip() for line in out.getvalue().splitlines() if line.strip()]


def on_screen(person):
    """Return the screen's lines without the marks of the active and of the new rows."""
    return [line.replace("▸", " ", 1) if line.startswith("▸") else line for line in person.screen.splitlines()]


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("format", "width"), [("fp16", 80), ("fp32", 80), ("fp16", 46)])
@driven
async def test_a_number_in_a_format(format, width):
    expected = printed(f"show 1.12156456132 --{format}", width)
    async with opened(f"show 1 --{format}", (width, 40)) as person:
        await person.press("slash")
        await person.fill("#value", "1.12156456132")
        await person.press("escape")
        missing = [line for line in expected if line not in on_screen(person)]
        assert missing == []


@pytest.mark.one_in(2)
@pytest.mark.parametrize("size", [(80, 24), (46, 60)])
@driven
async def test_an_addition(size):
    expected = printed("add 1.125 0.12457275390625 --fp16", size[0])
    async with opened("add 1 1 --fp16", size) as person:
        await person.fill("#operand-a", "1.125")
        await person.fill("#operand-b", "0.12457275390625")
        await person.press("escape", "end")
        missing = [line for line in expected if line not in on_screen(person)]
        assert missing == []


@pytest.mark.one_in(3)
@pytest.mark.parametrize("size", [(80, 60), (114, 60), (46, 110)])  # without frames
@driven
async def test_a_fused_multiply_add(size):
    expected = printed("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", size[0])
    async with opened("fma 1 1 1 --fp16", size) as person:
        for name, value in zip("abc", ("1.0009765625", "1.0009765625", "-1.001953125"), strict=True):
            await person.fill(f"#operand-{name}", value)
        await person.press("escape", "end")
        missing = [line for line in expected if line not in on_screen(person)]
        assert missing == []
