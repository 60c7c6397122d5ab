"""The film of a derivation: pages that can be played, and slid from one to the next; and the lamps beside it."""

from __future__ import annotations

from textual.binding import Binding
from textual.containers import ScrollableContainer
from textual.message import Message
from textual.timer import Timer

from floatlab.page.model import Page
from floatlab.tui.widgets.drawing import Drawing

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # steps a second
_SLIDE = 0.6  # seconds that a whole slide takes at most
_FRAME = 0.06


class Film(Drawing, can_focus=True):
    """A page of a film. Which page is the screen's matter; when to turn it is the film's."""

    PLACE = "On the film"  # what the list of keys calls it
    BINDINGS = [
        # A page scrolls with the arrows; the first and the last step lie where the ends of the page would.
        Binding("home", "screen.jump(0)", "First step", id="film.first", show=False),
        Binding("end", "screen.jump(-1)", "Last step", id="film.last", show=False),
        Binding("right,l", "screen.step(1)", "Next step", id="film.next", show=False),
        Binding("left,h", "screen.step(-1)", "Step before", id="film.back", show=False),
    ]

    class Ticked(Message):
        """The next step is due."""

    def __init__(self, *, id: str | None = None) -> None:
        """Start standing still."""
        super().__init__(id=id)
        self.speed = 1.0
        self._clock: Timer | None = None
        self._slider: Timer | None = None
        self._frames: list[Page] = []

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self._clock is not None

    def play(self) -> None:
        """Turn a page now and then."""
        self.stop()
        self._clock = self.set_interval(1 / self.speed, lambda: self.post_message(self.Ticked()))

    def stop(self) -> None:
        """Stand still; a slide goes to its end."""
        if self._clock is not None:
            self._clock.stop()
            self._clock = None
        self.stop_sliding()

    def change_speed(self, by: int) -> None:
        """Play faster or slower."""
        self.speed = SPEEDS[min(max(SPEEDS.index(self.speed) + by, 0), len(SPEEDS) - 1)]
        if self.playing:
            self.play()

    def slide(self, frames: tuple[Page, ...], last: Page) -> None:
        """Show pictures one after the other, the last one to stay."""
        self._frames = [*frames, last]
        every = min(_FRAME, _SLIDE / len(frames), 0.5 / self.speed / len(frames))
        self._turn()
        self._slider = self.set_interval(every, self._turn)

    def _turn(self) -> None:
        if self._frames:
            self.page = self._frames.pop(0)
        if not self._frames and self._slider is not None:
            self._slider.stop()
            self._slider = None

    def stop_sliding(self) -> None:
        """Show the last picture of a slide at once."""
        if self._slider is not None:
            self._slider.stop()
            self._slider = None
        if self._frames:
            self.page = self._frames.pop()
            self._frames = []

    def on_resize(self) -> None:
        """Keep what is new in sight, also where the reason has taken lines, or given some back."""
        super().on_resize()
        if not self.styles.auto_dimensions:
            self.show_newest()

    @property
    def newest(self) -> int:
        """The first line that is new on the page."""
        return next((y for y, runs in enumerate(self.lines) if any("▸" in run.text for run in runs)), 0)

    def show_newest(self) -> None:
        """Scroll to what is new on the page; where the film is as high as its page, what holds it scrolls."""
        if not self.styles.auto_dimensions:
            # Forced, since on the first picture there is no scrollbar yet.
            self.scroll_to(y=max(self.newest - self.size.height // 2, 0), animate=False, force=True)
        elif isinstance(self.parent, ScrollableContainer):
            # As far down as there is something to see, the reason and the lamps too, but not beyond what is new.
            top = self.virtual_region.y + self.newest
            self.parent.scroll_to(y=min(top, self.parent.max_scroll_y), animate=False)
