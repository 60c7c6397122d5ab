"""Undo and redo."""

from floatlab.tui.screens.history import History
from floatlab.verbs.question import Question
from tests.tui.stage import driven, opened


@driven
async def test_typing_the_same_again_is_no_step_of_undo():
    async with opened("show 0.5 --fp16") as person:
        await person.press("plus", "slash")
        value = person.app.shown.question.values
        await person.press("end", "1", "backspace", "escape")
        assert person.app.shown.question.values == value != ("0.5",)
        await person.press("u")
        assert person.app.shown.question.values == ("0.5",)


def test_edits_that_changed_nothing_are_no_step():
    first, second, third = (Question("show", (value,)) for value in "123")
    history = History()
    history.add(first)
    history.add(second, "value")
    assert history.add(first, "value")
    assert (history.now, history.can_go(-1), history.can_go(1)) == (first, False, False)
    history.add(second, "value")  # a new step
    history.add(third, "value")
    assert (history.go(-1), history.can_go(-1)) == (first, False)
