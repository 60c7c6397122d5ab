"""The search for a witness: operands for which fused and separate roundings differ."""

from __future__ import annotations

from threading import Event

from textual import work
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Label, ProgressBar

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.verbs.arithmetic.operands import no_witness, witness
from floatlab.verbs.question import Question


class WitnessSearch(ModalScreen["tuple[str, ...] | str | None"]):
    """A progress bar. Dismissed with operands, with a message if there are none, or with None."""

    DEFAULT_CSS = """
    WitnessSearch {
        align: center middle;
        & > Vertical {
            width: 60; max-width: 96%; height: auto; background: $surface; border: round $primary; padding: 0 1;
        }
    }
    """
    BINDINGS = [Binding("escape", "give_up", "Give up", id="witness.cancel")]

    def __init__(self, question: Question, format: Format) -> None:
        """Search near the operands of a question, in one format."""
        super().__init__()
        self._question, self._format = question, format
        self._ended = Event()

    def compose(self) -> ComposeResult:
        """Compose the bar."""
        with Vertical():
            yield Label("Looking for operands where fused and separate differ", markup=False)
            yield ProgressBar(show_eta=False)
            yield Label("Escape gives up", markup=False)

    def on_mount(self) -> None:
        """Begin."""
        self.search()

    @work(thread=True)
    def search(self) -> None:
        """Search on a worker thread."""
        try:
            result: tuple[str, ...] | str | None = witness(
                self._format, self._question.context, near=self._question.values, progress=self._tell
            )
        except FloatlabError as error:
            result = str(error)
        if not self._ended.is_set():
            self.app.call_from_thread(self.dismiss, result or no_witness(self._format))

    def _tell(self, done: int, total: int) -> bool:
        if not self._ended.is_set():
            self.app.call_from_thread(self.show_progress, done, total)
        return not self._ended.is_set()

    def show_progress(self, done: int, total: int) -> None:
        """Move the bar."""
        self.query_one(ProgressBar).update(total=total, progress=done)

    def action_give_up(self) -> None:
        """End the search."""
        self._ended.set()
        self.dismiss(None)

    def on_unmount(self) -> None:
        """End the search with the screen."""
        self._ended.set()
