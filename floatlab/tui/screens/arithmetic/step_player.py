"""The steps of a derivation as a film: pages that are played, and slid from one to the next."""

from __future__ import annotations

from collections.abc import Callable

from textual.binding import Binding
from textual.containers import ScrollableContainer
from textual.timer import Timer

from floatlab.page.model import Page
from floatlab.tui.widgets.page_view import PageView

SPEEDS = (0.25, 0.5, 1.0, 2.0, 4.0)  # steps a second
_SLIDE = 0.6  # seconds that a whole slide takes at most
_FRAME = 0.06  # seconds between two pictures of a slide


class StepPlayer(PageView, can_focus=True):
    """The page of one step, and the clock that plays the steps. The screen decides which step is shown."""

    PLACE = "On the steps"  # its name in the list of keys
    BINDINGS = [
        # A page scrolls with the arrows; here home and end lead to the first and the last step instead.
        Binding("home", "screen.jump(0)", "First step", id="film.first", show=False),
        Binding("end", "screen.jump(-1)", "Last step", id="film.last", show=False),
        Binding("right,l", "screen.step(1)", "Next step", id="film.next", show=False),
        Binding("left,h", "screen.step(-1)", "Step before", id="film.back", show=False),
    ]

    def __init__(self, tick: Callable[[], None], *, id: str | None = None) -> None:
        """Start without playing; `tick` is called when the next step is due."""
        super().__init__(id=id)
        self._tick = tick
        self.speed = 1.0
        self._clock: Timer | None = None
        self._slider: Timer | None = None
        self._frames: list[Page] = []

    @property
    def playing(self) -> bool:
        """Whether it plays."""
        return self._clock is not None

    def play(self) -> None:
        """Play the steps."""
        self.stop()
        self._clock = self.set_interval(1 / self.speed, self._tick)

    def stop(self) -> None:
        """Stop playing, and end a slide."""
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
        """Show pages one after the other; the last one stays."""
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
        """Show the last page of a slide at once."""
        self._frames = self._frames[-1:]
        if self._frames or self._slider is not None:
            self._turn()

    def on_resize(self) -> None:
        """Keep what is new in sight."""
        super().on_resize()
        if not self.styles.auto_dimensions:
            self.show_newest()

    @property
    def newest(self) -> int:
        """The first line that is new on the page."""
        return next((y for y, runs in enumerate(self.lines) if any("▸" in run.text for run in runs)), 0)

    def show_newest(self) -> None:
        """Scroll to what is new on the page; if the player is as high as its page, its parent scrolls."""
        if not self.styles.auto_dimensions:
            # Forced, since there is no scrollbar yet on the first picture.
            self.scroll_to(y=max(self.newest - self.size.height // 2, 0), animate=False, force=True)
        elif isinstance(self.parent, ScrollableContainer):
            # As far down as the parent goes, to show the reason and the flags, but not beyond what is new.
            top = self.virtual_region.y + self.newest
            self.parent.scroll_to(y=min(top, self.parent.max_scroll_y), animate=False)
