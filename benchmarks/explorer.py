"""The processor time to the explorer's first frame, compared with simple Textual apps, and the time that a key takes.

    python benchmarks/explorer.py

For the first frame, each app is started in new processes; the apps take turns. Its time is the processor time of
all threads from the start of Python until the first screen has been laid out and drawn. The empty app has no widgets.
The comparable app has as many boxes as the explorer's first screen, but they are Textual's own widgets and almost
empty. The explorer opens with its first screen, and with commands on files of ten million numbers. Keys are timed
inside one process, from the key press until the screen changes. This is repeated while another screen computes a long
sum. The last times are those that the explorer needs to end during a long sum, in a pseudo terminal.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

ROUNDS, ENDS = 15, 5
SIZE = (80, 24)
PATIENCE = 2.0

EMPTY = """
from textual.app import App
App().run()
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

Comparable().run()
"""
FIRST_FRAME = {
    "TEXTUAL_DRIVER": "first_frame_driver:FirstFrameDriver",
    "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path]),
    "COLUMNS": str(SIZE[0]),
    "LINES": str(SIZE[1]),
}
SUM = "sum random:normal:1000000:seed=1 --schedule pairwise"
LONG = "sum random:normal:1000000:seed=1 --schedule serial -f e5m30"  # one addition after the other, in Python


def first_frame(words: list[str]) -> float:
    """Return the processor time in seconds of a process until its first frame."""
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, **FIRST_FRAME},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout.split()[-1])


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


async def keys_meanwhile(command: str, presses: list[str]) -> tuple[list[float], list[float], float, bool]:
    """Press keys on the screen Inspect while another screen computes a command.

    Return the wall time of each key, the processor time of all threads for each key, the processor time to quit, and
    whether the command was still being computed at the end. All times are in seconds.
    """
    from floatlab.cli.parser import read_question
    from floatlab.tui.app.app import Explorer

    app = Explorer(read_question, read_question(["show", "0.1", "--fp16"]), settings={"slide": False}, keep=False)
    took, worked = [], []
    async with app.run_test(size=SIZE):
        app.ask(read_question(command.split()))
        while app.shown is None or app.shown.NAME != "reduce":
            await asyncio.sleep(0)
        app.go("inspect")
        await asyncio.sleep(0.2)
        app.screen.query_one("BitRow").focus()
        for key in presses:
            await asyncio.sleep(0.05)
            before = app.screen._compositor.render_strips()
            began, worked_before = time.perf_counter(), time.process_time()
            app.simulate_key(key)
            while app.screen._compositor.render_strips() == before:
                await asyncio.sleep(0.001)
            took.append(time.perf_counter() - began)
            worked.append(time.process_time() - worked_before)
        is_pending = app.opened["reduce"].pending is not None
        began = time.process_time()
    return took, worked, time.process_time() - began, is_pending


async def keys_of_an_empty_app(command: str, presses: list[str]) -> list[float]:
    """Return the wall times in seconds of keys in an app that only counts them, while a command is computed."""
    from textual.app import App, ComposeResult
    from textual.widgets import Static

    from floatlab.cli.parser import read_question
    from floatlab.tui.screens.background_answer import BackgroundAnswer

    class Counter(App[None]):
        count = 0

        def compose(self) -> ComposeResult:
            yield Static("0")

        def on_key(self) -> None:
            self.count += 1
            self.query_one(Static).update(str(self.count))

    app, pending, took = Counter(), BackgroundAnswer(read_question(command.split())), []
    async with app.run_test(size=SIZE):
        pending.start()
        await asyncio.sleep(0.2)
        for key in presses:
            await asyncio.sleep(0.05)
            before = app.screen._compositor.render_strips()
            began = time.perf_counter()
            app.simulate_key(key)
            while app.screen._compositor.render_strips() == before:
                await asyncio.sleep(0.001)
            took.append(time.perf_counter() - began)
    pending.stop()
    return took


def end_time(end: str) -> tuple[float, float]:
    """End the explorer during a long sum, in a pseudo terminal, and return the wall time and the processor time.

    `end` is `quit` (Ctrl+Q), `hang-up` (the terminal is closed, without a signal), or the name of a signal.
    """
    import pty
    import select
    import signal
    import termios

    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, SIZE[::-1])
    program = subprocess.Popen(
        [sys.executable, "-m", "floatlab", "tui", "--new", *LONG.split()],
        env={**os.environ, "TERM": "xterm-256color"}, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen = b""
    while b"Esc stops" not in seen:
        seen += os.read(master, 65536)
    used = Path(f"/proc/{program.pid}/stat").read_text().rpartition(")")[2].split()
    began = time.perf_counter()
    if end == "quit":
        os.write(master, b"\x11")
    elif end == "hang-up":
        os.close(master)
    else:
        program.send_signal(getattr(signal, end))
    while True:
        pid, _, usage = os.wait4(program.pid, os.WNOHANG)
        if pid:
            break
        time.sleep(0.001)
        with suppress(OSError):  # nothing is connected to the terminal any more
            if end != "hang-up" and select.select([master], [], [], 0)[0]:
                os.read(master, 65536)
    took = time.perf_counter() - began
    if end != "hang-up":
        os.close(master)
    before = (int(used[11]) + int(used[12])) / os.sysconf("SC_CLK_TCK")
    return took, usage.ru_utime + usage.ru_stime - before


def timing_line(name: str, took: list[float]) -> str:
    """Return a line with the median, the quartiles and the longest time in milliseconds."""
    low, middle, high = (each * 1e3 for each in statistics.quantiles(took, n=4))
    return f"  {name:<58} median {middle:6.1f} ms ({low:.1f} to {high:.1f}), longest {max(took) * 1e3:6.1f} ms"


def print_first_frames(folder: str) -> None:
    """Print the processor times to the first frames of simple apps and of the explorer."""
    import numpy as np

    big, other = f"{folder}/big.npy", f"{folder}/other.npy"
    numbers = np.random.default_rng(1).normal(size=10**7).astype(np.float32)
    np.save(big, numbers)
    np.save(other, numbers * np.float32(1.0000001))
    tui = ["-m", "floatlab", "tui", "--new"]
    programs = {
        "empty": ["-c", EMPTY],
        "comparable": ["-c", COMPARABLE],
        "explorer": [*tui, "show", "1.12156456132", "--fp16"],
        "sum of 3 numbers": [*tui, "sum", "1,2,3"],
        "sum of 10⁷ numbers": [*tui, "sum", big],
        "comparison of 10⁷ numbers": [*tui, "compare", big, other],
        "block of 10⁷ numbers": [*tui, "block", big, "--to", "mxfp4"],
    }
    frames: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(ROUNDS):
        for name, words in programs.items():
            frames[name].append(first_frame(words))
    print(
        f"processor time to the first frame, {ROUNDS} alternating rounds, {SIZE[0]}×{SIZE[1]} "
        "(goals: 0.8 s; at most 1.3 times the comparable app):"
    )
    for name, took in frames.items():
        ratios = [
            statistics.median(mine / each for mine, each in zip(took, frames[other], strict=True))
            for other in ("empty", "comparable")
        ]
        print(f"{timing_line(name, took)}   {ratios[0]:.2f} × empty, {ratios[1]:.2f} × comparable")


def main() -> None:
    """Print all times."""
    print(f"load of the machine: {os.getloadavg()[0]:.1f}, on {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as folder:
        print_first_frames(folder)
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
    print("keys on another screen during a sum (goal: 100 ms), and the processor time to quit (goal: 1 s):")
    for command in (SUM, LONG):
        took, worked, quitting, is_pending = asyncio.run(keys_meanwhile(command, ["plus", "space"] * 5))
        empty = asyncio.run(keys_of_an_empty_app(command, ["plus", "space"] * 5))
        ratio = statistics.median(took) / statistics.median(empty)
        print(f"{timing_line(command, took)}   {ratio:.2f} × empty")
        print(timing_line("  an empty app meanwhile", empty))
        state = "still computed at the end" if is_pending else "computed before the end"
        print(f"{timing_line('  in processor time of all threads', worked)}   quit {quitting:.2f} s, {state}")
    print("ends of the program during the second of these sums (goal: 1 s):")
    for end in ("quit", "hang-up", "SIGTERM"):
        wall, processor = zip(*(end_time(end) for _ in range(ENDS)), strict=True)
        print(f"{timing_line(end, list(wall))}   processor time {statistics.median(processor):.2f} s")


if __name__ == "__main__":
    main()
