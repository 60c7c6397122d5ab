"""The exceptions that floatlab raises on purpose, and functions for their messages.

The functions escape and shorten texts, join names to lists, write counts with their nouns, and suggest known words.
"""

from __future__ import annotations

_LONG_NAME = 60  # longer names are shortened to this many characters in messages


class FloatlabError(Exception):
    """The base class of floatlab's errors; the first line of the message says what was wrong."""


class FormatError(FloatlabError, ValueError):
    """An unknown format, or impossible parameters of a format."""


class RecipeError(FormatError):
    """Text that is not a recipe. In most cases, the message ends with the text and a caret at the mistake."""


class LiteralError(FloatlabError, ValueError):
    """Text or a Python object that floatlab cannot read as a number."""


class UnsupportedError(FloatlabError, ValueError):
    """An operation that this value or format does not support, such as the exact value of a NaN."""


class TruthValueError(UnsupportedError, TypeError):
    """A result that has no truth value was used as a condition; the message names the attributes to use instead."""


class ContextError(FloatlabError, ValueError):
    """An unknown rounding direction or rule, or another setting that a rounding or a recipe does not accept."""


class PlanError(FloatlabError, ValueError):
    """An invalid order of evaluation."""


class FileFormatError(FloatlabError, ValueError):
    """A file or standard stream that cannot be read or written, or a file with unexpected contents."""


class RefusedError(FloatlabError):
    """An action that is not available to visitors of a served explorer (`floatlab.sandbox`)."""


class MissingPartError(FloatlabError):
    """An optional library that is not installed; the message contains the `pip install` command."""


def printable(text: str) -> str:
    r"""Escape all characters in `text` that a terminal would interpret, reorder or not display.

    Control characters (C0, C1, DEL), formatting characters such as the bidirectional controls, line separators,
    surrogates, private and unassigned code points are escaped. Spaces other than the ASCII space and the no-break space
    are escaped, too. Other characters are unchanged. All output of names goes through this function.

    >>> printable("a\x1b[31m\x9b\u202e😀")
    'a\\x1b[31m\\x9b\\u202e😀'
    """
    if text.isprintable():
        return text
    return "".join(ch if ch.isprintable() or ch == "\N{NO-BREAK SPACE}" else repr(ch)[1:-1] for ch in text)


def printable_lines(text: str) -> str:
    """Return `text` with non-printable characters escaped, except line ends."""
    return "\n".join(map(printable, text.split("\n")))


def quoted(text: str, limit: int = 40) -> str:
    """Return `text` for an error message: in quotes, and printable.

    If `text` has more than `limit` characters, its middle is left out, and the length of the whole text follows in
    parentheses.
    """
    shown = text if len(text) <= limit else f"{text[: limit - 8]}…{text[-6:]}"
    return f"'{printable(shown)}'" + (f" ({len(text):,} characters)" if len(text) > limit else "")


def shortened(name: str, length: int, head: float = 1 / 2) -> str:
    """Return a name with at most `length` characters; the middle of a longer name is left out.

    >>> shortened("model.layers.12.mlp.down_proj.weight", 30), shortened("model.norm", 30)
    ('model.layers.1…own_proj.weight', 'model.norm')
    """
    if len(name) <= length:
        return name
    before = int((length - 1) * head)
    return f"{name[:before]}…{name[len(name) - (length - 1 - before) :]}"


def shown_name(name: str) -> str:
    """Return the name of a tensor for a sentence: long names are shortened, an empty name is shown in quotes.

    >>> shown_name(""), shown_name("x" * 80)[20:40]
    ("''", 'xxxxxxxxx…xxxxxxxxxx')
    """
    return shortened(name, _LONG_NAME) or "''"


def plural(n: int, noun: str, nouns: str = "") -> str:
    """Return the singular or plural of a noun; `nouns` gives an irregular plural."""
    return noun if n == 1 else nouns or f"{noun}s"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun; `nouns` gives an irregular plural.

    >>> counted(1, "digit"), counted(1234, "digit")
    ('1 digit', '1,234 digits')
    """
    return f"{n:,} {plural(n, noun, nouns)}"


def listed(names: list[str], joined: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    *head, last = names
    return f"{', '.join(head)} {joined} {last}" if head else last


def guess(word: str, known: list[str]) -> str:
    """Return "; did you mean 'x'?", where x is the known word nearest to `word`; empty if no known word is near."""
    from difflib import get_close_matches  # slow import, needed only for errors

    near = get_close_matches(word[:64].lower(), known, n=1, cutoff=0.6)
    return f"; did you mean '{near[0]}'?" if near else ""
