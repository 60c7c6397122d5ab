"""The tables of Train: the lines of a laboratory, and the stages of one step."""

from __future__ import annotations

from textual.binding import Binding

from floatlab.tui.widgets.column_table import ColumnTable


class Lines(ColumnTable, inherit_bindings=False):
    """The lines of a laboratory."""

    PLACE = "On the lines"  # what the list of keys calls it
    HELP = "A row a remedy. Enter shows its next step, rounding by rounding; e lets it go on under another remedy."
    BINDINGS = [
        Binding("enter", "choose", "Step", id="lines.step", key_display="enter"),
        Binding("up,k", "move(-1)", "Line before", show=False, id="lines.before"),
        Binding("down,j", "move(1)", "Line after", show=False, id="lines.after"),
        Binding("pageup", "turn(-1)", "Columns before", show=False, id="lines.left"),
        Binding("pagedown", "turn(1)", "More columns", show=False, id="lines.right"),
    ]


class Stages(ColumnTable):
    """The stages of one step."""

    PLACE = "On the stages"  # what the list of keys calls it
    HELP = "Each row is one rounding of this step. Enter, or a double click, opens it in Arithmetic, with exact codes."
    BINDINGS = [Binding("enter", "choose", "Digits", id="stages.open", key_display="enter")]
