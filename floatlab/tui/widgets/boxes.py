"""Boxes to type in: how all of them are filled, and marked where what they hold cannot be read."""

from __future__ import annotations

from textual.widgets import Input

_WRONG = "-wrong"


def fill(box: Input, text: str) -> None:
    """Let a box hold a text. What means the same stays as it was typed: it may be under the cursor."""
    if box.value.strip() != text.strip():
        with box.prevent(Input.Changed):
            box.value = text
    box.remove_class(_WRONG)


def judge(box: Input, right: bool) -> None:
    """Mark a box whose text cannot be read."""
    box.set_class(not right, _WRONG)


def is_wrong(box: Input) -> bool:
    """Say whether a box is marked."""
    return box.has_class(_WRONG)
