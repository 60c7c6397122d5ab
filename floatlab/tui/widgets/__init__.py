"""The widgets of the screens. Boxes for arrays are not imported here, since their module imports NumPy."""

from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.cells import MARGIN, Cells, ColumnTable, cursor_keys
from floatlab.tui.widgets.choice_bar import ButtonBar, ChoiceBar, KeyBar, TabBar
from floatlab.tui.widgets.page_view import EMPTY, PageView, StaticPage, note_page
from floatlab.tui.widgets.pickers import Choice, HelpWindow, MarkingPicker, Pick, Picker, choices_of
from floatlab.tui.widgets.window import Window

__all__ = [
    "BitRow", "ButtonBar", "Cells", "Choice", "ChoiceBar", "ColumnTable", "EMPTY", "HelpWindow", "KeyBar", "MARGIN",
    "MarkingPicker", "PageView", "Pick", "Picker", "StaticPage", "TabBar", "Window", "choices_of", "cursor_keys",
    "note_page",
]  # fmt: skip
