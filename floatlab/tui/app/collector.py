"""Python's garbage collector, which is paused until the first frame."""

from __future__ import annotations

import gc


def pause_collector() -> None:
    """Pause the garbage collector, until `resume_collector` is called.

    Imports and new widgets create many objects, but hardly any garbage. Looking for garbage would take a tenth of the
    time to the first frame.
    """
    gc.disable()


def resume_collector() -> None:
    """Resume the collector if it is paused, and freeze the objects that exist now.

    The collector does not visit frozen objects. Most of these objects live until the end, and visiting all of them
    takes longer than answering a key.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
