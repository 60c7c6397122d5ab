"""Keys of every screen. A screen adds further keys in its `BINDINGS`, and the app adds the keys of the tabs."""

from __future__ import annotations

from textual.binding import Binding
from textual.screen import Screen

# A screen puts its own keys before these, since a narrow key bar shows only the first keys.
VALUE_KEY = Binding("slash", "value", "Value", id="value", key_display="/", tooltip="Type in the first box")
SHARED_KEYS = [
    VALUE_KEY,
    Binding("v", "view(1)", "View", id="view", tooltip="Next view"),
    Binding("V", "view(-1)", "Previous view", id="view.last", show=False),
    Binding("f", "pick('format')", "Format", id="format"),
    Binding("r", "pick('rules')", "Rounding", id="rules"),
    Binding("u", "undo", "Undo", id="undo"),
    Binding("U,ctrl+r", "redo", "Redo", id="redo", show=False),
    Binding("y", "copy('value')", "Copy", id="copy.value", tooltip="Copy the value"),
    Binding("Y", "copy('command')", "Copy the command that prints this", id="copy.command", show=False),
    Binding("c", "pick('copies')", "Copy …: choose what", id="copies", show=False),
    Binding("S", "save", "Save to a file …", id="save", show=False),
    Binding("a", "pin('A')", "Pin A", id="pin.a", show=False),
    Binding("b", "pin('B')", "Pin B", id="pin.b", show=False),
    Binding("z", "zoom", "This pane at full size, or all panes again", id="zoom", show=False),
    Binding("full_stop", "again", "Again", id="again", key_display=".", tooltip="Run the stopped question again"),
    Binding(
        "backspace", "app.go_back", "Back", id="go.back", key_display="bksp", tooltip="Back to where you came from"
    ),
    Binding("escape", "escape", "Leave the box", id="leave"),
    *Screen.BINDINGS,
]
