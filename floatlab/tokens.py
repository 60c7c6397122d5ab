"""Tokens of the small languages (schedules, recipes), and the excerpt with a caret that error messages show."""

from __future__ import annotations

import re

_EXCERPT = 60  # characters that an error message shows of a long text


class TokenReader:
    """Reads the tokens of a text from left to right; after the last one, the next token is empty.

    >>> reader = TokenReader("lanes(8", r"[a-z]+|[0-9]+|.")
    >>> reader.take(), reader.take(), reader.take(), reader.peek()
    (('lanes', 0), ('(', 5), ('8', 6), '')
    >>> print(reader.marked("a bracket is never closed", 5))
    a bracket is never closed
      lanes(8
           ^
    """

    def __init__(self, text: str, pattern: str) -> None:
        """Split the text into tokens, which are the matches of the regular expression `pattern`; skip white space."""
        self.text = text
        found = re.finditer(rf"\s*({pattern})", text, re.DOTALL)
        self._tokens = [(each[1], each.start(1)) for each in found if not each[1].isspace()]
        self._tokens.append(("", len(text.rstrip())))
        self._next = 0

    @property
    def place(self) -> int:
        """The character index of the next token."""
        return self._tokens[self._next][1]

    def peek(self) -> str:
        """Return the next token without taking it."""
        return self._tokens[self._next][0]

    def last(self) -> str:
        """Return the token that was taken last."""
        return self._tokens[self._next - 1][0]

    def take(self) -> tuple[str, int]:
        """Return the next token and its index in the text; at the end of the text, return the empty token."""
        token = self._tokens[self._next]
        self._next += bool(token[0])
        return token

    def marked(self, message: str, place: int) -> str:
        """Return a message, and below it the text with a caret under the character at index `place`."""
        start = max(0, min(place - _EXCERPT // 2, len(self.text) - _EXCERPT))
        shown = "".join(ch if ch.isprintable() else " " for ch in self.text[start : start + _EXCERPT])
        before, after = "…" * (start > 0), "…" * (start + _EXCERPT < len(self.text))
        return f"{message}\n  {before}{shown}{after}\n  {' ' * (len(before) + place - start)}^"
