"""Functions that fill input boxes, and that mark boxes whose text cannot be read."""

from __future__ import annotations

from textual.widgets import Input

_WRONG = "-wrong"


def fill(box: Input, text: str) -> None:
    """Put text into a box and unmark it; text that differs only in spaces is kept, since the cursor may be in it."""
    if box.value.strip() != text.strip():
        with box.prevent(Input.Changed):
            box.value = text
    box.remove_class(_WRONG)


def mark_valid(box: Input, valid: bool) -> None:
    """Mark a box if its text is invalid, else unmark it."""
    box.set_class(not valid, _WRONG)


def is_wrong(box: Input) -> bool:
    """Return whether a box is marked as invalid."""
    return box.has_class(_WRONG)
