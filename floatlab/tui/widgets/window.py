"""Windows in front of a screen."""

from __future__ import annotations

from textual.await_complete import AwaitComplete
from textual.geometry import Offset
from textual.screen import ModalScreen, ScreenResultType
from textual.widget import Widget

from floatlab.tui.base import ExplorerBase, if_present


class ClosedOnce(ModalScreen[ScreenResultType]):
    """A window that closes once, and only while it is in front.

    A choice may come after the window was closed. The result of a search may come while another window is in front. In
    both cases, Textual would close the screen that is in front.
    """

    _late: tuple[ScreenResultType | None] | None = None  # a result that came while another window was in front

    def dismiss(self, result: ScreenResultType | None = None) -> AwaitComplete:
        """Close the window with a result as soon as the window is in front; do nothing if it was closed already."""
        if self.is_active:
            return super().dismiss(result)
        if any(self in stack for stack in self.app._screen_stacks.values()):
            self._late = self._late or (result,)
        return AwaitComplete()

    def on_screen_resume(self) -> None:
        """Close this window if its result came while another window was in front."""
        if self._late is not None:
            self.dismiss(*self._late)


class Window(ClosedOnce[ScreenResultType]):
    """A framed window in the middle of the screen."""

    app: ExplorerBase

    DEFAULT_CSS = """
    Window {
        align: center middle;
        & > Vertical {
            width: 64; max-width: 96%; height: auto; max-height: 94%; background: $surface; border: round $primary;
            padding: 0 1;
        }
        Label { width: 1fr; }
        #title, #close { text-style: bold; }
        #nothing { color: $role-label; }
        Input { margin: 0; &>.input--placeholder { color: $role-label; } }
        OptionList { height: auto; max-height: 18; border: none; padding: 0; background: $surface; }
        OptionList:nocolor > .option-list--option-highlighted { text-style: bold underline; }
        PageView { height: auto; max-height: 18; }
    }
    """

    def get_widget_and_offset_at(self, x: int, y: int) -> tuple[Widget | None, Offset | None]:
        """Return the widget at a position, and the offset in its content; None if the widget has just been removed."""
        return if_present(super().get_widget_and_offset_at(x, y))
