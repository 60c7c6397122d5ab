"""The rules of rounding as rows: every choice of a Context but the seed in words, for pickers and palettes."""

from __future__ import annotations

from typing import Any

from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT
from floatlab.record import Record
from floatlab.verbs.option import ROUNDING, SILENT_NAN


class ContextChoice(Record):
    """One choice: the Context's field, its value, and what it does in words."""

    field: str
    value: Any
    group: str
    words: str

    @property
    def name(self) -> str:
        """A name for the row, unique in RULES."""
        return f"{self.field}-{self.value}"

    def holds(self, context: Context) -> bool:
        """Say whether a context has made this choice."""
        chosen = getattr(context, self.field)
        return bool(getattr(chosen, "value", chosen) == self.value)

    def apply(self, context: Context) -> Context:
        """Return the context with this choice."""
        return context.replace(**{self.field: self.value})


_OPTIONS = tuple(option for option in (*ROUNDING, SILENT_NAN) if option.choices)
RULES: tuple[ContextChoice, ...] = tuple(
    ContextChoice(option.name, value, option.title, words) for option in _OPTIONS for value, words in option.choices
)


def context_words(context: Context) -> str:
    """Name what a context does otherwise than usual, the direction first.

    >>> context_words(Context(rounding="RTZ", overflow="saturate"))
    'RTZ, overflow saturate'
    """
    words = [context.rounding.value + (f" seed {context.seed}" if context.seed else "")]
    for option in _OPTIONS[1:]:
        value = getattr(context, option.name)
        if value != getattr(DEFAULT, option.name):
            words.append(f"{option.name} {value.value}" if option.metavar else option.flag.removeprefix("--"))
    return ", ".join(words)
