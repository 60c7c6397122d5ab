"""Functions that fill input boxes, and that mark boxes whose text cannot be read."""

from __future__ import annotations

from textual.widgets import Input

_WRONG = "-wrong"


def fill(box: Input, text: str) -> None:
    """Put text into a box; text that is wrong is kept, and text that differs only in spaces, as it is being typed."""
    if not is_wrong(box) and box.value.strip() != text.strip():
        with box.prevent(Input.Changed):
            box.value = text


def mark_valid(box: Input, valid: bool) -> None:
    """Mark a box if its text is invalid, else unmark it; while a box is marked, the screen dims the answer."""
    box.set_class(not valid, _WRONG)
    box.screen.set_class(any(map(is_wrong, box.screen.query(Input))), "-unread")


def is_wrong(box: Input) -> bool:
    """Return whether a box is marked as invalid."""
    return box.has_class(_WRONG)
