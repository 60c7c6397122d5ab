"""A change to Textual's drivers: they accept input bytes that are not UTF-8."""

from __future__ import annotations

import sys
from codecs import IncrementalDecoder, getincrementaldecoder

from textual.driver import Driver


def read_all_bytes(driver: type[Driver]) -> None:
    """Make a driver read each byte that is not UTF-8 as the replacement character (U+FFFD).

    Such bytes come from a terminal with another encoding, or from pasted binary data. Without this
    change, they would end the app.
    """
    module = sys.modules[driver.__module__]
    if hasattr(module, "getincrementaldecoder"):
        module.getincrementaldecoder = _decoder  # type: ignore[attr-defined]


def _decoder(encoding: str) -> type[IncrementalDecoder]:
    class Decoder(getincrementaldecoder(encoding)):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__("replace")

    return Decoder
