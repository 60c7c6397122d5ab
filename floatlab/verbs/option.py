"""Options as records, used by the parser, `--help`, questions, error messages, completion and the explorer."""

from __future__ import annotations

import re

from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.catalog import short_name
from floatlab.numbers.rounding import DEFAULT, IN_WORDS, MOST_RANDOM_BITS, Context, Direction
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    Reader: TypeAlias = Callable[[str, str], object]  # takes the typed text and the flag, and returns the value

WIDTHS = range(20, 1001)


class UsageError(FloatlabError):
    """A command line with invalid arguments, or with arguments that exclude each other."""


def as_typed(text: str, flag: str) -> object:
    """Return the typed text unchanged."""
    return text


def whole(least: int, most: int) -> Reader:
    """Return a function that reads whole numbers within limits.

    >>> whole(1, 1000)("12", "--steps")
    12
    """

    def read(text: str, flag: str) -> object:
        if not (re.fullmatch("[0-9]{1,12}", text) and least <= int(text) <= most):
            raise UsageError(f"{flag} takes a whole number from {least:,} to {most:,}, not {quoted(text)}")
        return int(text)

    return read


def listed(text: str, flag: str) -> tuple[str, ...]:
    """Return the names in a text of the form NAME[,NAME…]."""
    names = tuple(name.strip() for name in text.split(","))
    if not all(names):
        raise UsageError(f"{flag} {quoted(text)}: a name is missing between commas")
    return names


def formats_named(text: str, flag: str) -> tuple[Format, ...]:
    """Return the formats in a text of the form NAME[,NAME…]."""
    names = text.split(",")
    if not all(map(str.strip, names)):
        raise UsageError(f"{flag} {quoted(text)}: a format's name is missing; names look like fp16,bf16")
    return tuple(map(parse_format, names))


def one_format(text: str, flag: str) -> Format:
    """Return the one format that an option names."""
    formats = formats_named(text, flag)
    if len(formats) > 1:
        raise UsageError(f"{flag} takes one format, but {text} names {len(formats)}")
    return formats[0]


def can_read(word: str, parse: Callable[[str], object]) -> bool:
    """Return whether `parse` can read a word; `parse` raises FloatlabError for other words.

    >>> can_read("fp16", parse_format), can_read("fp15", parse_format)
    (True, False)
    """
    try:
        parse(word)
    except FloatlabError:
        return False
    return True


def _seed(text: str, flag: str) -> object:
    if not re.fullmatch(r"[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}", text):
        raise UsageError(f"{flag} takes an integer from 0 to 2^64 − 1, not {quoted(text)}")
    return int(text, 0) if text[:2] in ("0x", "0X") else int(text)


class Option(Record):
    """An option of a verb: a row of the verb's table of options.

    Parameters
    ----------
    name
        The name of the option in `Question.options`, or the name of the field of `Context` that the option sets.
    metavar
        Placeholders of the arguments, such as `N` or `X Y`. An option without a metavar is a switch. Typing a switch
        sets the option to `value`.
    help
        The text in `--help`. An option is listed if it has this text, or a metavar and choices.
    flags
        The flags on the command line; commands are written with the first one. The default is made from the name, as in
        `--little-endian`.
    optional
        The value if the flag is typed without an argument.
    read
        Converts the typed text to the value; raises FloatlabError.
    default
        The value of the option if it is not typed.
    part
        Where the value is stored in the `Question`: "options", "context" or "formats". The part "output" is not stored;
        it affects only how the command writes its answer.
    group
        The heading in `--help`.
    choices
        The possible values with descriptions; `title` is their heading in the explorer.
    forms
        The subcommands that accept the option; empty if all subcommands accept it.
    names
        Function that accepts the values of this option and raises FloatlabError for other words. With this function, an
        error message can say that an unexpected word, such as fp16, is a value of this option.
    noun
        What an error message calls a value of this option, for instance "format".
    also
        Names of this option in other programs. Error messages use them to suggest this option.
    suggests
        Function that returns the values for completion in a shell, if they are not in `choices`.
    """

    name: str
    metavar: str = ""
    help: str = ""
    flags: tuple[str, ...] = ()
    value: object = True
    optional: str = ""
    read: Reader = as_typed
    default: object = None
    part: str = "options"
    group: str = ""
    choices: tuple[tuple[object, str], ...] = ()
    title: str = ""
    forms: tuple[str, ...] = ()
    names: Callable[[str], object] | None = None
    noun: str = ""
    also: tuple[str, ...] = ()
    suggests: Callable[[], tuple[str, ...]] | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """All flags of the option."""
        return self.flags or (f"--{self.name.replace('_', '-')}",)

    @property
    def explanation(self) -> str:
        """The line of `--help`: the help text, and the choices if the option has a metavar."""
        names = "|".join(str(value) for value, _ in self.choices) if self.metavar else ""
        return ": ".join(filter(None, (self.help, names))) if names not in self.help else self.help

    @property
    def flag(self) -> str:
        """The flag for error messages: the first long flag."""
        return next(flag for flag in self.spellings if flag.startswith("--"))

    def may_be(self, word: str) -> bool:
        """Return whether a word in the wrong place may be a value of this option."""
        return self.names is not None and can_read(word[:64], self.names)

    def value_of(self, typed: object) -> object:
        """Return the value of the option for the typed arguments.

        The text of a single argument is converted by `read`. Several arguments become a tuple of texts.
        """
        if isinstance(typed, str) and self.metavar:
            return self.read(typed, self.flag)
        return tuple(typed) if isinstance(typed, list) else typed

    def spell(self, value: object) -> list[str]:
        """Return the arguments that set the option to a value."""
        flag = self.spellings[0]
        if not self.metavar:
            return [flag]
        if isinstance(value, Format):
            return [flag, short_name(value)]
        if isinstance(value, tuple):
            names = [short_name(name) if isinstance(name, Format) else str(name) for name in value]
            return [flag, *names] if " " in self.metavar else [flag, ",".join(names)]
        return [flag, str(getattr(value, "value", value))]


class OptionRule(Record):
    """A rule on options that exclude or need other options.

    Each of `options` excludes all of `excludes`, or needs one of `needs`. `reason` says why.
    """

    options: tuple[str, ...]
    reason: str
    excludes: tuple[str, ...] = ()
    needs: tuple[str, ...] = ()


def grouped(group: str, *options: Option, part: str = "options", forms: tuple[str, ...] = ()) -> tuple[Option, ...]:
    """Return copies of the options, placed under one heading of `--help`.

    An option that names no subcommands gets the subcommands in `forms`. `part` says where the values are stored.
    """
    return tuple(option.replace(group=group, part=part, forms=option.forms or forms) for option in options)


FORMATS = Option(
    "formats", "NAME", "a format; repeatable", flags=("-f", "--format"), part="formats", group="formats",
    names=parse_format, noun="format", also=("type", "fmt", "precision"),
)  # fmt: skip

# The values of the options on rounding, each with its description.
_DIRECTIONS = tuple((direction.value, f"{direction.value}, {IN_WORDS[direction]}") for direction in Direction)
_OVERFLOW = (
    ("native", "∞ if the format has it, else NaN, else the largest number"),
    ("saturate", "the largest number, also for operands that are ∞"),
    ("propagate", "the largest number, but operands that are ∞ stay ∞"),
    ("none", "∞ if the format has it, else the largest number (P3109 report 4.0)"),
    ("none-nan", "∞ if the format has it, else NaN (P3109's executable specification)"),
)
_ABSENT = (
    ("largest", "the largest number; in place of 0, the smallest"),
    ("zero", "zero"),
    ("nan", "NaN"),
    ("error", "an error"),
)
_NEGATIVE = (("native", "NaN, or P3109's rule"), ("zero", "zero"), ("drop", "the sign is dropped"))
_FTZ = ((False, "stay subnormal"), (True, "become zero (ftz)"))
_DAZ = ((False, "keep their values"), (True, "are read as zero (daz)"))
_TININESS = (("after", "detected after rounding"), ("before", "detected before rounding"))
_NAN = (
    ("first", "the first NaN operand, quieted"),
    ("x86", "the rule of x86"),
    ("arm", "the rule of Arm"),
    ("riscv", "the rule of RISC-V"),
    ("riscv-fp8", "the rule of RISC-V for fp8: 0x7f"),
)

DIRECTION = grouped(
    "rounding",
    Option(
        "rounding", "DIR", f"{'|'.join(direction.value for direction in Direction)}, or nearest, up, down, zero, …",
        flags=("-r", "--rounding"), choices=_DIRECTIONS, title="Rounding",
        also=("mode", "direction", "round", "rounding-mode", "rnd"),
    ),
    Option("seed", "N", "the seed of stochastic rounding (default 0)", read=_seed),
    Option(
        "random_bits", "N", f"random bits of SRA, SRB and SRC (default {DEFAULT.random_bits})",
        read=whole(0, MOST_RANDOM_BITS), also=("bits",),
    ),
    Option("draw", "R", "use the random number R in every stochastic rounding", read=whole(0, (1 << 32) - 1)),
    part="context",
)  # fmt: skip
FLUSH = grouped(
    "rounding",
    Option(
        "flush_results", "", "flush tiny results to zero", ("--ftz",), choices=_FTZ, title="Tiny results",
        also=("flush",),
    ),
    part="context",
)  # fmt: skip
ROUNDING = DIRECTION + grouped(
    "rounding",
    Option("overflow", "RULE", choices=_OVERFLOW, title="Overflow"),
    Option("absent", "RULE", "result when the format lacks NaN, ∞ or 0", choices=_ABSENT, title="No such code"),
    *FLUSH,
    Option(
        "flush_inputs", "", "read subnormal operands as zero", ("--daz",), choices=_DAZ, title="Subnormal operands",
    ),
    Option(
        "tininess", "WHEN", "whether tininess is detected before or after rounding",
        choices=_TININESS, title="Tininess",
    ),
    Option(
        "negative", "RULE", "a negative number in an unsigned format", choices=_NEGATIVE, title="Unsigned formats",
    ),
    Option("nan", "RULE", "the NaN that an operation returns", choices=_NAN, title="NaN results"),
    part="context",
)  # fmt: skip
DIALECT = Option(
    "dialect",
    "NAME",
    "round as a processor or library: cuda, arm-fp8, torch, … (floatlab formats NAME lists them)",
    flags=("--as",),
    group="rounding",
    also=("like-hardware", "platform"),
)
DIALECT_RULE = OptionRule(
    ("dialect",),
    "a dialect fixes overflow, NaNs and negative numbers",
    excludes=("overflow", "absent", "nan", "negative"),
)
SILENT_NAN = Option(
    "fma_invalid", "", "do not raise invalid for ∞ × 0 + quiet NaN (7.2)", ("--silent-nan",), value=False,
    choices=((True, "is invalid"), (False, "raises nothing")), title="∞ × 0 + NaN", part="context",
    group="what to show",
)  # fmt: skip
_COLOUR = (("auto", "on a terminal"), ("always", "always"), ("never", "never"))
OUTPUT = grouped(
    "output",
    Option("json", "", "one JSON object per line"),
    Option("svg", "FILE", "write the picture to FILE (- for standard output, instead of text)"),
    Option("color", "WHEN", flags=("--color", "--colour"), choices=_COLOUR),
    Option("width", "N", f"columns, {WIDTHS[0]} to {WIDTHS[-1]} (default: the terminal's, else 80)"),
    Option("ascii", "", "only ASCII characters"),
    Option(
        "quiet", "", "only the result, such as the shortest decimal (--quiet=code: the code)", value="value",
        also=("code", "value-only"),
    ),
    # argparse has no options with an optional value after =, so --quiet=code becomes --quiet-code.
    Option("quiet", flags=("--quiet-code",), value="code"),
    part="output",
)  # fmt: skip

# Options of all verbs that round their results to a format, in the order of --help.
RESULT = (FORMATS, *ROUNDING, *OUTPUT)


class ContextChoice(Record):
    """One choice for an option on rounding.

    Choosing it sets the field `field` of a `Context` to `value`. `group` is the title of the option, and `words`
    describes the choice.
    """

    field: str
    value: object
    group: str
    words: str

    @property
    def name(self) -> str:
        """A unique name, such as overflow-saturate."""
        return f"{self.field}-{self.value}"

    def holds(self, context: Context) -> bool:
        """Return whether the field of a context has the chosen value."""
        chosen = getattr(context, self.field)
        return bool(getattr(chosen, "value", chosen) == self.value)

    def apply(self, context: Context) -> Context:
        """Return the context with the chosen value in the field.

        `draw` and `random_bits` get their default values if the new rounding direction ignores them.
        """
        found = context.replace(**{self.field: self.value})
        unused = {"draw": not found.rounding.is_stochastic, "random_bits": not found.rounding.has_few_bits}
        return found.replace(**{name: getattr(DEFAULT, name) for name, reset in unused.items() if reset})


_OPTIONS = tuple(option for option in (*ROUNDING, SILENT_NAN) if option.choices)
RULES: tuple[ContextChoice, ...] = tuple(
    ContextChoice(option.name, value, option.title, words) for option in _OPTIONS for value, words in option.choices
)


def context_words(context: Context) -> str:
    """Return the rounding direction of a context as text, followed by the settings that differ from the default.

    >>> context_words(Context(rounding="RTZ", overflow="saturate"))
    'RTZ, overflow saturate'
    """
    words = [context.rounding.value + (f" seed {context.seed}" if context.seed else "")]
    if context.rounding.has_few_bits:
        words[0] += f" of {context.random_bits} bits"
    if context.draw is not None:
        words[0] += f" draw {context.draw}"
    if context.precision != DEFAULT.precision:
        words.append(f"precision {context.precision}")
    for option in _OPTIONS[1:]:
        value = getattr(context, option.name)
        if value != getattr(DEFAULT, option.name):
            words.append(f"{option.name} {value.value}" if option.metavar else option.flag.removeprefix("--"))
    return ", ".join(words)
