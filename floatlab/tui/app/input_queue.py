"""A queue for keys, clicks and pasted text. The app gets an event only when it has handled the previous event."""

from __future__ import annotations

import asyncio
from collections import deque
from time import monotonic

from textual.app import App
from textual.command import CommandPalette
from textual.events import Event, InputEvent, Key, MouseEvent, MouseMove, MouseScrollDown, MouseScrollUp, Paste
from textual.widget import Widget

_TURNS = 3  # after this many idle turns of the event loop, an event counts as handled
_LIMIT = 1.0  # seconds until waiting events are handed out even if the app is busy
_STEADY = 50  # a wait checks this many times without sleeping, then sleeps between checks
_PAUSE = 0.002  # seconds of sleep between checks
_PASSING = (MouseMove, MouseScrollDown, MouseScrollUp)  # events that do not change what later events mean

_LEAVING = "ctrl+q"  # quits at once, ahead of waiting keys


class InputQueue:
    """Hands out input events one at a time.

    Textual passes a key to the widget that has the focus when the key is read. If several keys are read at once, the
    earlier keys have not been handled yet, and a later key goes to the wrong widget. In `/1`, for instance, the key `/`
    moves the focus to a box, and the 1 should be typed there. This queue keeps a key until the earlier keys have been
    handled. That means: no message is left, all new widgets are mounted, and the callbacks for the next refresh have
    run.
    """

    def __init__(self, app: App[None]) -> None:
        """Start empty."""
        self._app = app
        self._waiting: deque[Event] = deque()
        self._next: set[Event] = set()  # events that were handed out but are still in the app's own queue
        self._task: asyncio.Task[None] | None = None  # waits until the last event has been handled
        self._seen: tuple[Widget | None, ...] = ()  # the screen and the focused widget when an event was handed out

    @property
    def is_waiting(self) -> bool:
        """Whether the queue still holds an event."""
        return bool(self._waiting)

    def keeps(self, event: Event) -> bool:
        """Return whether an event must wait. If it must, the queue keeps the event and posts it to the app later."""
        if not isinstance(event, (InputEvent, Paste)) or event.is_forwarded:
            return False
        if event in self._next:
            self._next.remove(event)
            return False
        if isinstance(event, _PASSING) and not self._waiting:
            return False
        if isinstance(event, Key) and event.key == _LEAVING:
            self._waiting.clear()
            return False
        if self._task is None or self._task.done():
            is_busy = self._is_busy()
            self._task = asyncio.create_task(self._hand_out())
            if not is_busy:
                self._look()
                return False
        self._waiting.append(event)
        return True

    def _look(self) -> None:
        self._seen = (self._app.screen, self._app.focused)

    async def _hand_out(self) -> None:
        """Post the waiting events to the app, each when the previous event has been handled."""
        while self._app.is_running:
            rested = await self._rest()
            if not self._waiting:
                return
            # If the app stays busy, hand out all events, so that Escape or a key that quits takes effect.
            for _ in range(1 if rested else len(self._waiting)):
                event = self._waiting.popleft()
                self._next.add(event)
                self._look()
                self._app.post_message(event)

    async def _rest(self) -> bool:
        """Wait until the last event has been handled. Return False after `_LIMIT` seconds."""
        turns, quiet, end = 0, 0, monotonic() + _LIMIT
        while quiet < _TURNS:
            await asyncio.sleep(0 if turns < _STEADY else _PAUSE)
            turns += 1
            quiet = 0 if self._is_busy() else quiet + 1
            # A turn can take seconds, for instance in an import.
            if turns > 2 * _STEADY and monotonic() > end:
                return False
        return True

    def _is_busy(self) -> bool:
        """Return whether messages are left, or the screen is not ready for the next event."""
        app = self._app
        if self._next or not app._screen_stacks.get(app.current_mode):  # the first screen is being opened
            return True
        screen = app.screen
        widgets = screen.walk_children(Widget, with_self=True)
        if app.message_queue_size or any(not each.is_mounted or each.message_queue_size for each in widgets):
            return True
        if isinstance(screen, CommandPalette) and any(not worker.is_finished for worker in app.workers):
            return True
        if screen._callbacks:
            return True
        # New widgets have no sizes before the next layout. Clicks need the sizes, and so do keys after a change of
        # screen or focus.
        is_elsewhere = self._seen != (screen, screen.focused)
        return screen._layout_required and (is_elsewhere or any(isinstance(e, MouseEvent) for e in self._waiting))
