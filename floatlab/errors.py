"""Everything floatlab raises on purpose: one clear line each, under one root."""

from __future__ import annotations


class FloatlabError(Exception):
    """The root of floatlab's errors; its text is one line that names the culprit and what would be right."""


class FormatError(FloatlabError, ValueError):
    """A format that does not exist or cannot exist."""


class LiteralError(FloatlabError, ValueError):
    """Text or a Python object that is not a number floatlab can read."""


class UnsupportedError(FloatlabError, ValueError):
    """A question that has no answer for this value or format, such as the exact value of a NaN."""


class ContextError(FloatlabError, ValueError):
    """A rounding direction, a rule or a seed that there is not."""


class PlanError(FloatlabError, ValueError):
    """An order of evaluation that is not a plan."""


class FileFormatError(FloatlabError, ValueError):
    """A file that does not hold what it should."""


class MissingPartError(FloatlabError):
    """An optional library is not installed; the text says which `pip install` brings it."""


def quoted(text: str, limit: int = 40) -> str:
    """Return `text` for an error line: in quotes, printable, and never longer than a glance."""
    shown = text if len(text) <= limit else f"{text[: limit - 8]}…{text[-6:]}"
    printable = "".join(ch if ch.isprintable() else repr(ch)[1:-1] for ch in shown)
    return f"'{printable}'" + (f" ({len(text):,} characters)" if len(text) > limit else "")


def guess(word: str, known: list[str]) -> str:
    """Return ", did you mean 'x'?" for the known word nearest to `word`, or nothing."""
    from difflib import get_close_matches  # only ever needed on the way out

    near = get_close_matches(word[:64].lower(), known, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""
