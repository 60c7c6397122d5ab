"""Functions that fill input boxes, and that mark boxes whose text cannot be read."""

from __future__ import annotations

from textual.widget import Widget
from textual.widgets import Input

_WRONG = "-wrong"


def fill(box: Input, text: str) -> None:
    """Put text into a box, unless the box is marked as invalid.

    If the texts differ only in spaces at the ends, the old text stays: the user may be typing these spaces.
    """
    if not is_wrong(box) and box.value.strip() != text.strip():
        with box.prevent(Input.Changed):
            box.value = text


def mark_valid(box: Input, valid: bool) -> None:
    """Mark a box as invalid, or unmark it if `valid`. The answer is dimmed while a visible box is marked."""
    box.set_class(not valid, _WRONG)
    mark_answer(box.screen)


def mark_answer(screen: Widget) -> None:
    """Dim the answer of a screen if a visible box is marked as invalid; otherwise, undo the dimming."""
    screen.set_class(bool(wrong_boxes(screen)), "-unread")


def wrong_boxes(screen: Widget) -> list[Input]:
    """Return the visible boxes that are marked as invalid. The text of hidden boxes is not used."""
    return [box for box in screen.query(Input) if is_wrong(box) and all(node.display for node in (box, *box.ancestors))]


def is_wrong(box: Input) -> bool:
    """Return whether a box is marked as invalid."""
    return box.has_class(_WRONG)
