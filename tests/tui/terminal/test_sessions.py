"""Sessions in a real terminal: nothing that was typed is lost, there is a way back, and the first minutes are easy.

`python -m tests.tui.terminal.test_sessions` writes the captures anew; read the difference before committing them.
"""

import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.tui.terminal.tmux import Session, why_absent

HERE = Path(__file__).parent / "golden"
LONG = ("sum", "random:normal:8000000:seed=1", "--schedule", "numpy", "--fp16")
# This goes on while other keys are pressed.
LONGER = ("sum", "random:normal:33000000:seed=1", "--schedule", "pairwise", "--fp16")


def first_start(home):
    """The first steps are shown at the first start only; Enter opens the first example at its first step."""
    with closing(Session(home)) as session:
        yield session.shows("Enter opens an example", "F9 Audit")
        session.press("Enter")
        yield session.shows("0.1 + 0.2 in binary64", "Nothing is computed yet")
        session.press("q")
        session.ends()
    with closing(Session(home)) as session:
        assert "Enter opens an example" not in session.shows("0.1 + 0.2 in binary64")
        session.press("F1")
        session.shows("Enter opens an example")
        session.click("F6 Reduce     sums")  # not the tab behind the window
        session.shows("Side by side", "sum so far")


def escape_keeps_the_question(home):
    """A stopped question remains; `.` runs it again."""
    with closing(Session(home, LONG)) as session:
        session.sees("Esc stops")
        session.press("Escape")
        yield session.shows("stopped: the key . runs it again", "random:normal:8000000:seed=1")
        session.press(".", "Escape")
        session.shows("stopped: the key . runs it again")


def work_is_stopped_by_mouse(home):
    """While work is pending, the first key is the one that stops it; then the one that runs it again."""
    with closing(Session(home, LONGER)) as session:
        session.sees("Esc stops")
        session.click("esc Stop")
        yield session.shows("stopped: the key . runs it again", "random:normal:33000000:seed=1", ". Again")
        session.click(". Again")
        session.sees("Esc stops")
        session.click("F3 Arith")  # another screen answers meanwhile
        session.shows("Nothing is computed yet")
        session.press("n")
        session.shows("shift the smaller term right")
        session.click("F6 Reduce")
        session.sees("Esc stops")
        session.click("esc Stop")
        session.shows("stopped: the key . runs it again")


def an_order_with_a_mistake(home):
    """An order with a typing error is still there when its box is opened again."""
    with closing(Session(home, ("dot", "--preset", "forum"))) as session:
        session.shows("sum so far")
        session.press("s")
        session.shows("type to narrow")
        session.press("blocked(2, serial", "Enter")
        yield session.shows("! ", "^")
        session.press("s")
        session.shows("Enter uses this name", "blocked(2, serial")
        session.press(")", "Enter")
        yield session.shows("blocked(2, serial) ▾")


def an_order_with_a_mistake_by_mouse(home):
    """As with keys: the list opens on the order that was rejected; what is shown keeps the order that was accepted."""
    with closing(Session(home, ("dot", "--preset", "forum"))) as session:
        session.shows("sum so far")
        session.click("serial ▾")
        session.shows("type to narrow")
        session.press("blocked(2, serial", "Enter")
        session.shows("! ", "^")
        session.click("serial ▾")
        yield session.shows("Enter uses this name", "blocked(2, serial")
        session.press(")", "Enter")
        session.shows("blocked(2, serial) ▾")
        session.click("blocked(2, serial) ▾")
        session.shows("type to narrow")
        session.click("recursively in halves")
        session.shows("pairwise ▾")


def files_and_text_stay(home):
    """Paths and text that were typed stay when other screens, views and formats were used, and when they are wrong."""
    numbers = np.arange(1, 7, dtype=np.float32)
    np.save(f"{home}/a.npy", numbers)
    np.save(f"{home}/b.npy", numbers * (numbers != 4))
    with closing(Session(home, ("compare", "a.npy", "a.npy"))) as session:
        session.shows("a.npy", "equal bits")
        session.click("expected ▾")
        session.shows("type to narrow")
        session.press("b.npy", "Enter")
        session.shows("b.npy", "not close")
        session.press("f", "bf16", "Enter")
        session.shows("of bfloat16", "b.npy")
        session.press("F3")
        session.shows("Nothing is computed yet")
        session.click("F7 Compare")
        session.shows("a.npy", "b.npy", "of bfloat16")
        session.press("/", "End", "x")
        session.shows("a.npyx", "! ")
        session.press("Escape", "F6")
        session.shows("sum so far")
        session.press("F7")
        yield session.shows("a.npyx", "b.npy", "of bfloat16")
        session.click("u Undo")
        session.shows("actual   ▾▌a.npy", "b.npy", "not close")
    with closing(Session(home)) as session:  # the next start
        session.shows("a.npy", "b.npy", "not close")


def text_with_a_mistake(home):
    """Text that is wrong stays in its box; the page does not move, and u goes back."""
    with closing(Session(home, ("show", "0.1", "--fp16", "--e4m3"))) as session:
        before = session.shows("exactly").splitlines()
        plain = session.looks("exactly")
        session.press("/", "0.1x")
        wrong = session.shows("0.1x", "! ").splitlines()
        assert session.looks("exactly") != plain  # dimmed
        changed = [y for y, row in enumerate(before) if wrong[y] != row]
        assert changed[0] == 1  # the box
        assert all(y >= len(before) - 3 for y in changed[1:])  # the message above the keys, and the keys
        session.press("Escape")
        yield session.shows("0.1x", "u goes back")
        session.press("u")
        assert session.shows("value 0.1 ").splitlines() == before
        assert session.looks("exactly") == plain
        session.click("0.1 ")
        session.press("End", "x")
        wrong = session.shows("0.1x", "! ").splitlines()
        assert next(y for y, row in enumerate(before) if wrong[y] != row) == 1
        session.click("exactly")
        session.shows("0.1x", "u goes back")
        assert session.looks("exactly") != plain
        session.click("u Undo")
        session.shows("value 0.1 ")
        assert session.looks("exactly") == plain


def a_format_that_cannot_hold_it(home):
    """A format that cannot hold a value says so in its row."""
    with closing(Session(home, ("show", "nan", "--fp16", "--e4m3", "--fp32"))) as session:
        session.shows("0x7f = nan")
        session.press("/", "nan(0x1)", "Enter")
        yield session.shows("0x7e01", "plain nan works", "0x7fc00001")
        session.click("nan(0x1)")
        session.press("End", "BSpace", "BSpace", "2)")
        session.shows("0x7e02", "plain nan works", "0x7fc00002")


def the_way_back(home):
    """Backspace leads back through any depth, also after clicks."""
    with closing(Session(home, ("dot", "--preset", "forum", "--fma"))) as session:
        session.shows("sum so far")
        session.press("Down", "Down", "Down", "Enter")
        session.shows("1.147311 × 1.72447")
        session.click("F4 Formats")
        session.shows("thin: subnormal numbers")
        session.press("Enter")
        session.shows("value 1 ")
        session.press("BSpace")
        session.shows("thin: subnormal numbers")
        session.press("BSpace")
        session.shows("1.147311 × 1.72447")
        session.press("BSpace")
        session.shows("sum so far")
        session.press("Enter")  # the same row
        session.shows("1.147311 × 1.72447")
        session.press("H")
        yield session.shows("Questions asked before")
        session.press("preset", "Enter")
        session.shows("sum so far")


def keys_with_a_filter(home):
    """The list of keys has the whole height, and / selects."""
    with closing(Session(home, ("show", "0.1", "--fp16"))) as session:
        session.shows("exactly")
        session.press("?")
        session.shows("Keys that work here")
        session.press("/", "next number")
        yield session.shows("the next number above", "the next number below")


def an_operation_as_a_value(home):
    """0.1+0.2 in the box for a value leads to Arithmetic."""
    with closing(Session(home, ("show", "1", "--fp16"))) as session:
        session.shows("exactly")
        session.press("/", "0.1+0.2")
        yield session.shows("Enter shows this step by step")
        session.press("Enter")
        session.shows("0.1 + 0.2 in binary64")
        session.press("BSpace")
        session.shows("value 0.1+0.2")


SESSIONS = {
    each.__name__.replace("_", "-"): each
    for each in (
        first_start, escape_keeps_the_question, work_is_stopped_by_mouse, an_order_with_a_mistake,
        an_order_with_a_mistake_by_mouse, files_and_text_stay, text_with_a_mistake,
        a_format_that_cannot_hold_it, the_way_back, keys_with_a_filter, an_operation_as_a_value,
    )
}  # fmt: skip


def captures(name, home):
    """Run a session; return its captures by the name of the file."""
    return {f"{name}-{number}.txt": f"{screen}\n" for number, screen in enumerate(SESSIONS[name](home), 1)}


@pytest.mark.slow
@pytest.mark.skipif(bool(why_absent()), reason=why_absent())
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_as_recorded(name, tmp_path):
    for file, screen in captures(name, tmp_path).items():
        assert screen == (HERE / file).read_text(encoding="utf-8"), file


def test_no_recorded_session_is_left_over():
    assert {path.name.rpartition("-")[0] for path in HERE.glob("*.txt")} == set(SESSIONS)


def write():
    for path in HERE.glob("*.txt"):
        path.unlink()
    for name in SESSIONS:
        with tempfile.TemporaryDirectory() as home:
            for file, screen in captures(name, home).items():
                (HERE / file).write_text(screen, encoding="utf-8")


if __name__ == "__main__":
    write()
