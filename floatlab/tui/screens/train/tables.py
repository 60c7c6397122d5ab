"""The tables of Train: the remedies side by side, and the roundings of one step."""

from __future__ import annotations

from textual.binding import Binding

from floatlab.tui.widgets.column_table import ColumnTable


class RemedyTable(ColumnTable, inherit_bindings=False):
    """One row for each remedy, or configuration of a network."""

    PLACE = "On the remedies"  # its name in the list of keys
    HELP = "A row for each remedy. Enter shows its next step, rounding by rounding; e changes the remedy from here on."
    BINDINGS = [
        Binding("enter", "choose", "Step", id="lines.step", key_display="enter"),
        Binding("up,k", "move(-1)", "Row before", show=False, id="lines.before"),
        Binding("down,j", "move(1)", "Row after", show=False, id="lines.after"),
        Binding("pageup", "turn(-1)", "Columns before", show=False, id="lines.left"),
        Binding("pagedown", "turn(1)", "More columns", show=False, id="lines.right"),
    ]


class RoundingTable(ColumnTable):
    """One row for each rounding of one step."""

    PLACE = "On the roundings"  # its name in the list of keys
    HELP = "Each row is one rounding of this step. Enter, or a double click, opens it in Arithmetic, with exact codes."
    BINDINGS = [Binding("enter", "choose", "Digits", id="stages.open", key_display="enter")]
