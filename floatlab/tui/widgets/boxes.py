"""Input boxes: filling them, and marking those whose text cannot be read."""

from __future__ import annotations

from textual.widgets import Input

_WRONG = "-wrong"


def fill(box: Input, text: str) -> None:
    """Put text into a box and unmark it. If the text differs only in spaces, keep it, since the cursor may be in it."""
    if box.value.strip() != text.strip():
        with box.prevent(Input.Changed):
            box.value = text
    box.remove_class(_WRONG)


def mark_valid(box: Input, valid: bool) -> None:
    """Mark a box whose text cannot be read, or unmark it."""
    box.set_class(not valid, _WRONG)


def is_wrong(box: Input) -> bool:
    """Return whether a box is marked."""
    return box.has_class(_WRONG)
