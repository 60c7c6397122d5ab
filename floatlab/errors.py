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


class TruthValueError(UnsupportedError, TypeError):
    """An answer that was asked for its truth value and has none; the text says what to ask instead."""


class ContextError(FloatlabError, ValueError):
    """A rounding direction, a rule or a seed that there is not."""


class PlanError(FloatlabError, ValueError):
    """An order of evaluation that is not a plan."""


class FileFormatError(FloatlabError, ValueError):
    """A file that does not hold what it should."""


class RefusedError(FloatlabError):
    """Something that is not done for a visitor of a served explorer (`floatlab.confinement`)."""


class MissingPartError(FloatlabError):
    """An optional library is not installed; the text says which `pip install` brings it."""


def printable(text: str) -> str:
    r"""Return `text` with everything escaped that a terminal would obey, reorder by or not show; all that is shown is.

    Escaped are control characters (C0, C1, DEL), formatting ones such as the bidirectional controls, separators of
    lines, surrogates and code points without a character. Every place where names become characters asks this function.

    >>> printable("a\x1b[31m\x9b\u202e😀")
    'a\\x1b[31m\\x9b\\u202e😀'
    """
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() or ch == "\N{NO-BREAK SPACE}" else repr(ch)[1:-1] for ch in text)


def printable_lines(text: str) -> str:
    """Return `text` with each of its lines printable; the ends of lines stay."""
    return "\n".join(map(printable, text.split("\n")))


def quoted(text: str, limit: int = 40) -> str:
    """Return `text` for an error line: in quotes, printable, and never longer than a glance."""
    shown = text if len(text) <= limit else f"{text[: limit - 8]}…{text[-6:]}"
    return f"'{printable(shown)}'" + (f" ({len(text):,} characters)" if len(text) > limit else "")


def guess(word: str, known: list[str]) -> str:
    """Return ", did you mean 'x'?" for the known word nearest to `word`, or nothing."""
    from difflib import get_close_matches  # only ever needed on the way out

    near = get_close_matches(word[:64].lower(), known, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""
