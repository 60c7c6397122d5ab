"""Python's garbage collector, which is paused until the first frame."""

from __future__ import annotations

import gc


def pause_collector() -> None:
    """Pause the garbage collector, until `resume_collector` is called.

    While modules are imported and widgets are made, many objects are created and hardly any become garbage; looking for
    garbage would take a tenth of the time to the first frame.
    """
    gc.disable()


def resume_collector() -> None:
    """Resume the collector if it is paused, without the objects that exist now, most of which are kept until the end.

    A collection that visits all of them takes longer than the answer to a key.
    """
    if not gc.isenabled():
        gc.freeze()
        gc.enable()
