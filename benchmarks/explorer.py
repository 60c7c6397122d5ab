"""The time to the explorer's first frame, compared with simple Textual apps, and the time that a key takes.

    python benchmarks/explorer.py

The first frame is timed in separate processes, in which the three apps alternate. The time is that from the start of
Python until the first screen has been laid out and drawn. The comparable app has as many boxes as the explorer's first
screen, but they are Textual's own widgets and almost empty. The bare app has a line, a box, a pane and a footer. Keys
are timed inside one process, from the key press until the screen changes.
"""

from __future__ import annotations

import asyncio
import statistics
import subprocess
import sys
import time

ROUNDS = 15
SIZE = (80, 24)
PATIENCE = 2.0

BARE = """
from textual.app import App
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Footer, Input, Static

class Bare(App):
    BINDINGS = [Binding(key, "bell", f"Key {key}") for key in "abcdefgh"]

    def compose(self):
        yield Static("one two three")
        yield Input(compact=True)
        with VerticalScroll():
            yield Static("\\n".join("line" for _ in range(40)))
        yield Footer(compact=True)

app = Bare()
"""
COMPARABLE = """
from textual.app import App
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import Screen
from textual.widgets import Footer, Input, Label, Static

class Boxes(Screen):
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (60, "-normal"), (116, "-wide")]
    BINDINGS = [Binding(key, "bell", f"Key {key}") for key in "abcdefgh"]
    CSS = "Horizontal, Static { height: auto; } Label { width: auto; } Input { width: 1fr; } #left { height: auto; }"

    def compose(self):
        yield Static("one two three")
        with Horizontal():
            yield Label("value")
            yield Input(compact=True)
        yield Static("hint")
        yield Static("1 2 3 4 5")
        with Vertical():
            with Vertical(id="left"):
                with VerticalScroll(id="rows"):
                    for row in range(4):
                        yield Static(f"row {row}")
                with Horizontal():
                    yield Static("fields")
                    yield Input(compact=True)
            with Vertical():
                yield Static("views")
                with VerticalScroll():
                    yield Static("\\n".join("line" for _ in range(40)))
        yield Footer(compact=True)

class Comparable(App):
    MODES = {"one": Boxes}
    DEFAULT_MODE = "one"

app = Comparable()
"""
EXPLORER = """
from floatlab.cli.parser import read_question
from floatlab.tui.app.app import Explorer
app = Explorer(read_question, keep=False)
"""
DRIVE = """
import asyncio, time

async def main():
    async with app.run_test(size=(80, 24)):
        app.screen._compositor.render_strips()
        print(time.monotonic())

asyncio.run(main())
"""


def first_frame(script: str) -> float:
    """Return the seconds from the start of a process to its first frame."""
    began = time.monotonic()
    done = subprocess.run([sys.executable, "-c", script + DRIVE], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[-1]) - began


async def keys(command: str, presses: list[str], focus: str | None = None) -> list[float]:
    """Return the times of these keys in seconds."""
    from floatlab.cli.parser import read_question
    from floatlab.tui.app.app import Explorer

    app = Explorer(read_question, read_question(command.split()), settings={"slide": False}, keep=False)
    took = []
    async with app.run_test(size=SIZE) as pilot:
        await pilot.pause()
        if focus:
            app.screen.query_one(focus).focus()
            await pilot.pause()
        for key in presses:
            before = app.screen._compositor.render_strips()
            began = time.perf_counter()
            app.simulate_key(key)
            while app.screen._compositor.render_strips() == before:
                await asyncio.sleep(0)
                if time.perf_counter() - began > PATIENCE:
                    raise SystemExit(f"{command}: {key} changes nothing")
            took.append(time.perf_counter() - began)
            await pilot.pause()
    return took


def timing_line(name: str, took: list[float]) -> str:
    """Return a line with the median and the longest time in milliseconds."""
    return f"  {name:<58} median {statistics.median(took) * 1e3:6.1f} ms   longest {max(took) * 1e3:6.1f} ms"


def main() -> None:
    """Print all times."""
    frames: dict[str, list[float]] = {"bare": [], "comparable": [], "explorer": []}
    for _ in range(ROUNDS):
        for name, script in (("bare", BARE), ("comparable", COMPARABLE), ("explorer", EXPLORER)):
            frames[name].append(first_frame(script))
    print(
        f"first frame, {ROUNDS} alternating rounds, {SIZE[0]}×{SIZE[1]} (goal: at most 1.3 times the comparable app):"
    )
    for name, took in frames.items():
        ratios = sorted(e / p for e, p in zip(frames["explorer"], took, strict=True))
        spread = f"explorer/{name} {statistics.median(ratios):.2f} ({ratios[1]:.2f} to {ratios[-2]:.2f})"
        print(f"{timing_line(name, took)}   {spread if name != 'explorer' else ''}".rstrip())
    print("one key, until the screen changes (goal: 50 ms):")
    flips = ["space", "left"] * 10
    for name, command, presses, focus in (
        ("flip bits of 4 formats", "show 0.1 --fp16 --bf16 --e4m3 --fp32", flips, "BitRow"),
        ("next ulp in 8 formats", "show 0.1 -f fp16,bf16,e4m3,e5m2,tf32,fp32,fp64,fp128", ["plus"] * 20, "BitRow"),
        ("views of binary64", "show 0.1 --fp64", ["v", "v", "v"], "BitRow"),
        ("type a number", "show 0.1 --fp16 --fp32", list("1234567890"), "#value"),
        ("steps of an addition", "add 1.125 0.12457275390625 --fp16", ["n"] * 20, None),
        ("steps of an fma", "fma 1.0009765625 1.0009765625 -1.001953125 --fp16", ["n"] * 20, None),
        ("256 bits: flip bits of two binary128 operands", "add 0.1 0.2 --fp128", flips, "BitRow"),
        ("384 bits: flip bits of three binary128 operands", "fma 0.1 0.2 0.3 --fp128", flips, "BitRow"),
        ("move over the table of formats", "formats fp16 bf16", ["down"] * 10, None),
        ("from screen to screen", "show 0.1 --fp16", ["f3", "f4", "f2"] * 4, None),
    ):
        took = asyncio.run(keys(command, presses, focus))
        print(timing_line(name, took))


if __name__ == "__main__":
    main()
