"""The rules of rounding as rows: every choice of a Context but the seed in words, for pickers and palettes."""

from __future__ import annotations

from typing import Any

from floatlab.numbers import Context, Direction
from floatlab.numbers.rounding import IN_WORDS
from floatlab.record import Record


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


_ROWS: dict[tuple[str, str], tuple[tuple[Any, str], ...]] = {
    ("rounding", "Rounding"): tuple(
        (direction.value, f"{direction.value}, {IN_WORDS[direction]}") for direction in Direction
    ),
    ("overflow", "Overflow"): (
        ("native", "as the format has it: ∞, else NaN"),
        ("saturate", "the largest number, for ∞ too"),
        ("propagate", "the largest number, but ∞ stays"),
    ),
    ("absent", "No such code"): (
        ("largest", "the nearest thing there is"),
        ("zero", "zero"),
        ("nan", "NaN"),
        ("error", "refuse"),
    ),
    ("flush_results", "Tiny results"): ((False, "stay subnormal"), (True, "become zero (ftz)")),
    ("flush_inputs", "Subnormal operands"): ((False, "count"), (True, "are read as zero (daz)")),
    ("tininess", "Tininess"): (("after", "seen after rounding"), ("before", "seen before rounding")),
    ("nan", "NaN results"): (
        ("first", "the first NaN operand, quieted"),
        ("x86", "as x86 does it"),
        ("arm", "as Arm does it"),
        ("riscv", "as RISC-V does it"),
    ),
    ("fma_invalid", "∞ × 0 + NaN"): ((True, "is invalid"), (False, "raises nothing")),
}
# The names that some choices have on the command line.
_SWITCHES = {"flush_results": "ftz", "flush_inputs": "daz", "fma_invalid": "silent-nan"}
RULES: tuple[ContextChoice, ...] = tuple(
    ContextChoice(field, value, group, words) for (field, group), rows in _ROWS.items() for value, words in rows
)


def context_words(context: Context) -> str:
    """Name what a context does otherwise than usual, the direction first.

    >>> context_words(Context(rounding="RTZ", overflow="saturate"))
    'RTZ, overflow saturate'
    """
    words = [context.rounding.value + (f" seed {context.seed}" if context.seed else "")]
    usual = Context()
    for field, _ in list(_ROWS)[1:]:
        value = getattr(context, field)
        if value != getattr(usual, field):
            words.append(_SWITCHES.get(field) or f"{field} {value.value}")
    return ", ".join(words)
