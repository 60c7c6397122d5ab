"""A question: a verb with everything that it takes, as a value that can be asked, kept, changed and written down."""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.formats.names import SHORTHANDS, short_name
from floatlab.numbers.context import DEFAULT, Context
from floatlab.record import Record
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.verbs.answer import Answer, Started

# The option that sets each choice of a Context, in the order of --help.
_CONTEXT_OPTIONS = {
    "rounding": "-r",
    "seed": "--seed",
    "overflow": "--overflow",
    "absent": "--absent",
    "nan": "--nan",
    "tininess": "--tininess",
    "flush_results": "--ftz",
    "flush_inputs": "--daz",
    "fma_invalid": "--silent-nan",
}
# Options whose name on the command line is not their name in the library.
_SPELLED = {"integer": "--int", "exact": "--notexact"}
_APART = ("inputs",)  # options that take several words


class Question(Record):
    """What is asked: a verb, its values as they were typed, formats, a context, and the options that are not default.

    >>> from floatlab import parse_format
    >>> question = Question("add", ("1.125", "0.1"), (parse_format("fp16"),), Context(rounding="RTZ"))
    >>> question.command
    'floatlab add 1.125 0.1 --fp16 -r RTZ'
    """

    verb: str
    values: tuple[str, ...] = ()
    formats: tuple[Format, ...] = ()
    context: Context = DEFAULT
    options: tuple[tuple[str, Any], ...] = ()

    def __post_init__(self) -> None:
        """Refuse verbs that nothing answers."""
        if self.verb not in ACTIONS or not ACTIONS[self.verb].home:
            raise FloatlabError(f"{self.verb} is not a question")

    def option(self, name: str, default: Any = None) -> Any:
        """Return an option, or its default."""
        return dict(self.options).get(name, default)

    def having(self, **options: Any) -> Question:
        """Return the question with some options set, or taken back with None.

        >>> Question("show", ("1",)).having(interval=True).command
        'floatlab show 1 --interval'
        """
        kept = {name: value for name, value in (dict(self.options) | options).items() if value is not None}
        return self.replace(options=tuple(sorted(kept.items())))

    def spelled_out(self) -> Question:
        """Return the question without `bits` and `little_endian`: its values say themselves what codes they are.

        Raises LiteralError or FormatError for values that cannot be read so.

        >>> asked = Question("show", ("0x7c3c@fp16", "bits:0x0038")).having(bits=True, little_endian=True)
        >>> asked.spelled_out().values
        ('bits:0x3c7c@fp16', 'bits:0x3800')
        """
        bits, swapped = self.option("bits", False), self.option("little_endian", False)
        if not bits and not swapped:
            return self
        from floatlab.verbs.operand import read_operand, reversed_code

        values = []
        for value in self.values:
            literal = read_operand(value, bits)[0]
            _, at, format = value.rpartition("@")
            values.append(f"{(reversed_code(literal) if swapped else literal).text}{at}{format if at else ''}")
        return self.replace(values=tuple(values)).having(bits=None, little_endian=None)

    def answers(self, started: Started | None = None) -> list[Answer]:
        """Answer it: one answer a value where values stand alone, else one for all; raises FloatlabError.

        `started` is told how much work there is where it is long.
        """
        home = import_module(f"floatlab.verbs.{ACTIONS[self.verb].home}.answer")
        found: list[Answer] = home.answers(self, started)
        return found

    @property
    def words(self) -> list[str]:
        """The words of the command that asks it."""
        words = [self.verb, *self.values]
        if self.verb == "convert":
            words += ["--through", ",".join(short_name(format) for format in self.formats)]
        else:
            for format in self.formats:
                name = short_name(format)
                words += [f"--{name}"] if name in SHORTHANDS else ["-f", name]
        for name, option in _CONTEXT_OPTIONS.items():
            value = getattr(self.context, name)
            if value != getattr(DEFAULT, name) and (name != "fma_invalid" or self.verb == "fma"):
                words += [option] if isinstance(value, bool) else [option, str(getattr(value, "value", value))]
        for name, value in self.options:
            option = _SPELLED.get(name, f"--{name.replace('_', '-')}")
            if isinstance(value, bool):
                words.append(option)
            elif name in _APART:
                words += [option, *value]
            elif isinstance(value, Format):
                words += [option, short_name(value)]
            else:
                words += [option, ",".join(value) if isinstance(value, tuple) else str(value)]
        return words

    @property
    def command(self) -> str:
        """The command line that asks it, to be pasted into a shell."""
        from shlex import join

        return join(["floatlab", *self.words])
