"""Questions that take long: the screen remains responsive, shows the progress, and can stop the work."""

import asyncio
import threading
from time import monotonic

import pytest
from textual.containers import Vertical
from textual.widgets import Input, Static

from floatlab.cli.parser import read_question
from floatlab.errors import FloatlabError
from floatlab.page.model import Page
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.registry import SCREENS, ScreenRow
from floatlab.tui.screens.background_answer import BackgroundAnswer, Stopped
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.task import TaskScreen
from floatlab.tui.widgets import KeyBar
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.registry import VERBS
from tests.tui.stage import driven, opened


class Slow(TaskScreen, inherit_bindings=False):
    """A screen that shows the answers as text."""

    NAME = "slow"
    BINDINGS = SHARED_KEYS

    def compose_task(self):
        yield Input(id="box")
        yield Vertical(Static(id="picture", markup=False), id="body")

    def prepare(self, question, answers):
        return f"prepared {answers[0].found}"

    def draw(self, before):
        self.query_one("#picture", Static).update(self.prepared if self.answers else "nothing yet")


class Work:
    """Work that ends when the test requests it; each value of a question names a piece of work."""

    def __init__(self):
        self.gates, self.ended = {}, {}

    def gate(self, value):
        return self.gates.setdefault(value, threading.Event())

    def answers(self, question, started=None):
        value = question.values[0]
        if value == "bad":
            raise FloatlabError("bad is wrong")
        if value != "quick":
            done = started(100, "pieces")
            try:
                while not self.gate(value).wait(0.01):
                    done(1 if value == "counted" else 0)
            except Stopped:
                self.ended[value] = "stopped"
                raise
        if value == "late":
            raise FloatlabError("late is wrong")
        if value == "broken":
            raise ZeroDivisionError("on purpose")
        self.ended[value] = "done"
        empty = list
        return [Answer(lambda: Page(()), empty, empty, empty, found=value)]


@pytest.fixture
def work(monkeypatch):
    work = Work()
    start = ("block", "quick", "--to", "mxfp4")
    monkeypatch.setitem(SCREENS, "slow", ScreenRow("slow", start, lambda: Slow, slow=True))
    monkeypatch.setitem(VERBS, "block", VERBS["block"].replace(screen="slow"))
    monkeypatch.setattr("floatlab.verbs.block.answer.answers", work.answers)
    yield work
    for gate in work.gates.values():
        gate.set()


def asked(value):
    return Question("block", (value,)).having(to="mxfp4")


def picture(person):
    return str(person.app.shown.query_one("#picture", Static).render())


def said(person):
    return str(person.app.shown.query_one("#complaint", Static).render())


async def until(person, true):
    """Wait for the clock of the screen."""
    end = monotonic() + 5
    while not true():
        assert monotonic() < end, person.screen
        await asyncio.sleep(0.02)
        await person.pilot.pause()


@driven
async def test_what_is_quick_comes_at_once(work):
    async with opened("block quick --to mxfp4") as person:
        assert picture(person) == "prepared quick"
        assert said(person) == ""


@driven
async def test_the_first_frame_waits_for_nobody(work):
    began = monotonic()
    async with opened("block counted --to mxfp4", grace=0.05) as person:
        assert picture(person) == "nothing yet"
        await until(person, lambda: "%" in said(person))
        assert said(person).startswith("working … ")
        assert said(person).endswith(" % · Esc stops")
        assert person.app.shown.question == asked("counted")
        work.gate("counted").set()
        await until(person, lambda: picture(person) == "prepared counted")
        assert said(person) == ""
    assert monotonic() - began < 5


@driven
async def test_the_first_key_stops_the_work_or_runs_it_again(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        bar = person.app.shown.query_one(KeyBar)
        assert not {"escape", "full_stop"} & {name for name, _ in bar.options}
        person.app.shown.open(asked("slowly"))
        await until(person, lambda: bar.options[0] == ("escape", "esc Stop"))
        await person.choose(KeyBar, "escape")
        assert bar.options[0] == ("full_stop", ". Again")
        await person.choose(KeyBar, "full_stop")
        await until(person, lambda: bar.options[0] == ("escape", "esc Stop"))
        work.gate("slowly").set()
        await until(person, lambda: picture(person) == "prepared slowly")
        assert not {"escape", "full_stop"} & {name for name, _ in bar.options}


@driven
async def test_the_picture_stays_until_the_answer_comes(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        assert task.open(asked("slowly"))
        assert picture(person) == "prepared quick"
        assert said(person) == "working … 0 % · Esc stops"
        assert task.question == asked("slowly")
        assert not task.history.can_go(-1)
        work.gate("slowly").set()
        await until(person, lambda: picture(person) == "prepared slowly")
        await person.press("u")
        assert picture(person) == "prepared quick"


@driven
async def test_a_newer_question_makes_the_older_one_void(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        task.open(asked("older"))
        task.open(asked("newer"))
        await until(person, lambda: work.ended.get("older") == "stopped")
        work.gate("newer").set()
        await until(person, lambda: picture(person) == "prepared newer")
        await person.press("u")
        assert picture(person) == "prepared quick"


@driven
async def test_a_late_answer_does_not_overwrite_newer_text(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        box = task.query_one("#box", Input)
        box.focus()
        await person.pilot.pause()
        with box.prevent(Input.Changed):
            box.value = "older"
        task.open(asked("older"), "box")
        with box.prevent(Input.Changed):
            box.value = "newer"  # its message is still on its way
        work.gate("older").set()
        await until(person, lambda: work.ended.get("older") == "done")
        await person.pilot.pause(0.2)
        assert picture(person) == "prepared quick"
        work.gate("newer").set()
        task.open(asked("newer"), "box")
        await until(person, lambda: picture(person) == "prepared newer")


@driven
async def test_escape_stops(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        task.open(asked("slowly"))
        await person.press("escape")
        await until(person, lambda: work.ended.get("slowly") == "stopped")
        assert said(person).startswith("stopped: the key . runs it again")
        assert picture(person) == "prepared quick"
        assert task.has_class("-stopped")  # the picture is dimmed
        assert task.question == asked("slowly")  # nothing is lost
        await person.press("full_stop")
        assert task.pending is not None
        work.gate("slowly").set()
        await until(person, lambda: picture(person) == "prepared slowly")
        assert not task.has_class("-stopped")
        work.gate("slowly").clear()
        await person.press("u")
        assert picture(person) == "prepared quick"
        work.gate("other").set()
        task.open(asked("other"))
        task.open(asked("last"))
        work.gate("last").set()
        await until(person, lambda: picture(person) == "prepared last")
        work.gates["quick"] = threading.Event()
        work.gates["other"].clear()
        await person.press("u")  # an undo that is stopped has not been done
        if task.pending is not None:
            await person.press("escape", "u")
            assert task.question == asked("last")


@driven
async def test_the_first_question_can_be_stopped_too(work):
    async with opened("block slowly --to mxfp4", grace=0.05) as person:
        await person.press("escape")
        assert picture(person) == "nothing yet"
        assert said(person) == "stopped: the key . runs it again"
        assert person.app.shown.question == asked("slowly")
        work.gate("slowly").set()
        await person.press("full_stop")
        await until(person, lambda: picture(person) == "prepared slowly")


@driven
async def test_an_undo_that_is_stopped_has_not_been_done(work):
    async with opened("block first --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        work.gate("first").set()
        await until(person, lambda: picture(person) == "prepared first")
        task.open(asked("quick"))
        work.gate("first").clear()
        await person.press("u")
        assert picture(person) == "prepared quick"
        assert task.question == asked("first")
        await person.press("escape")
        assert task.question == asked("first")
        await person.press("u")
        assert task.question == asked("quick")
        assert task.history.can_go(-1)


@driven
async def test_what_is_wrong_is_said_and_the_picture_stays(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        assert not task.open(asked("bad"))
        assert said(person) == "! bad is wrong"
        box = task.query_one("#box", Input)
        box.focus()
        assert task.open(asked("late"))
        work.gate("late").set()
        await until(person, lambda: said(person) == "! late is wrong")
        assert picture(person) == "prepared quick"
        assert box.has_class("-wrong")
        assert task.question == asked("quick")


@driven
async def test_an_error_of_a_picked_file_that_comes_late_marks_its_box(work):
    async with opened("block quick --to mxfp4", grace=0.05) as person:
        task = person.app.shown
        box = task.query_one("#box", Input)
        person.app.set_focus(None)
        task.mark_taken(box, task.open(asked("late")), picked=True)
        assert not box.has_class("-wrong")
        work.gate("late").set()
        await until(person, lambda: said(person).startswith("! late is wrong"))
        assert box.has_class("-wrong")


@pytest.mark.parametrize("value", ["bad", "late"])
@driven
async def test_a_first_question_that_is_wrong_is_kept(work, value):
    async with opened(f"block {value} --to mxfp4", grace=0.05) as person:
        work.gate(value).set()
        await until(person, lambda: said(person) == f"! {value} is wrong")
        assert picture(person) == "nothing yet"
        assert person.app.shown.question == asked(value)
        person.app.shown.open(asked("quick"))
        assert picture(person) == "prepared quick"
        assert said(person) == ""


@driven
async def test_leaving_waits_for_nobody_and_stops_the_work(work):
    began = monotonic()
    async with opened("block slowly --to mxfp4", grace=0.05):
        pass
    assert monotonic() - began < 5
    while work.ended.get("slowly") != "stopped":
        assert monotonic() - began < 5
        await asyncio.sleep(0.01)


@driven
async def test_what_was_begun_before_the_screen_is_taken_over(work):
    start = read_question(["block", "slowly", "--to", "mxfp4"])
    pending = BackgroundAnswer(start)
    pending.start()
    app = Explorer(read_question, start, keep=False, pending=pending)
    calls = []
    whole = work.answers
    work.answers = lambda *given: calls.append(given) or whole(*given)
    async with app.run_test():
        assert app.shown.answers == []
        work.gate("slowly").set()
        end = monotonic() + 5
        while not app.shown.answers:
            assert monotonic() < end
            await asyncio.sleep(0.02)
        assert app.shown.prepared == "prepared slowly"
    assert calls == []


def test_a_mistake_of_ours_ends_the_explorer(work):
    work.gate("broken").set()

    async def provoke():
        async with opened("block broken --to mxfp4", grace=0.05) as person:
            await until(person, lambda: person.app.failure)

    with pytest.raises(ZeroDivisionError):
        asyncio.run(provoke())


def test_what_is_wrong_is_said_before_the_screen_is_taken(work, monkeypatch):
    import floatlab.cli.explorer

    work.gate("late").set()
    monkeypatch.setattr(floatlab.cli.explorer, "_PATIENCE", 5)
    for value in ("bad", "late"):
        with pytest.raises(FloatlabError, match=f"{value} is wrong"):
            floatlab.cli.explorer.run(["block", value, "--to", "mxfp4"])


def test_what_takes_long_does_not_keep_the_screen_waiting(work, monkeypatch):
    import floatlab.cli.explorer
    import floatlab.tui.app.opening

    taken = []
    monkeypatch.setattr(floatlab.cli.explorer, "_PATIENCE", 0)
    monkeypatch.setattr(floatlab.cli.explorer, "_check_terminal", lambda: None)
    monkeypatch.setattr(floatlab.tui.app.opening, "open_explorer", lambda *_, pending, **__: taken.append(pending) or 0)
    assert floatlab.cli.explorer.run(["block", "slowly", "--to", "mxfp4"]) == 0
    assert not taken[0].ends(0)
    work.gate("slowly").set()
    assert taken[0].result()[0][0].found == "slowly"


def test_progress_is_not_100_percent_before_the_end():
    seen, answer = [], None

    def ask(question, started):
        for total in (4, 2):
            done = started(total, "pieces")
            for _ in range(total):
                seen.append(answer.progress)
                done(1)
            seen.append(answer.progress)
        return []

    answer = BackgroundAnswer(asked("quick"), ask=ask)
    answer.run()
    parts = ["0 %", "25 %", "50 %", "75 %", "last steps", "part 2: 0 %", "part 2: 50 %", "part 2: last steps"]
    assert seen == [f"working … {part} · Esc stops" for part in parts]


@pytest.mark.slow
@pytest.mark.parametrize("name", SCREENS)
@driven
async def test_keys_that_are_no_text_work_in_a_box_with_wrong_text(name):
    """Wrong text keeps the focus, since it is to be corrected; Escape and the function keys lead away from it."""
    async with opened("") as person:
        app = person.app
        app.go(name)
        await person.pilot.pause()
        boxes = [box for box in app.shown.query(Input) if all(node.display for node in (box, *box.ancestors))]
        assert boxes
        for box in boxes:
            box.focus()
            await person.burst(*"(x@", "enter")
            assert app.focused is box
            await person.press("escape")
            assert not isinstance(app.focused, Input)
            box.focus()
            await person.press("f1")
            assert not app.screen_stack[-1].query(Input)
            await person.press("escape")
            for key, there in (("f2", "inspect"), ("f4", "formats"), (f"f{[*SCREENS].index(name) + 2}", name)):
                await person.press(key)
                assert app.current_mode == there
            await person.press("escape", "u")
