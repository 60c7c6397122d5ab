"""argparse, wrapped once: values may begin with a minus, options may stand anywhere, errors are one line."""

from __future__ import annotations

import argparse
import re

from floatlab.cli.streams import put
from floatlab.errors import FloatlabError, quoted
from floatlab.formats.names import SHORTHANDS
from floatlab.numbers.rounding import Direction
from floatlab.verbs.registry import ACTIONS, Action

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from floatlab.formats import Format
    from floatlab.numbers import Context

WIDTHS = range(20, 1001)
_HELP_WIDTH = 78

# What looks like an option but is a value: -3, -.5, -0x1p3, -inf, -nan, -snan, -1/3, -2^-24.
_NEGATIVE_VALUE = re.compile(r"-(?:\.?[0-9]|inf|[sq]?nan)", re.IGNORECASE)

# argparse cannot say "an option whose value is optional but must be joined with =".
_QUIET = {"--quiet=value": "--quiet", "--quiet=code": "--quiet-code"}
# Where formats are named in the verbs that have no -f.
_FORMATS_OF = {
    "convert": "--through fp32,fp16 names its formats",
    "formats": "names stand alone, as in formats fp16",
    "block": "--to mxfp4 names the block format",
    "vectors": "the function names its formats, as in f16_add",
    "reveal": "--dtype fp16 names that of the terms",
}


class UsageError(FloatlabError):
    """The words of a command do not fit together."""


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help at a fixed width: asking the terminal would import shutil at every start, for argparse's own checks."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_HELP_WIDTH)


class Parser(argparse.ArgumentParser):
    """A leaf parser of one verb."""

    def __init__(self, action: Action) -> None:
        """Set up the parser of a verb from its row."""
        super().__init__(
            prog=f"floatlab {action.verb}",
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
        )
        self.action = action
        self._negative_number_matcher = _NEGATIVE_VALUE
        self.add_argument("-h", "--help", action="help", help="show this help and exit")

    def format_help(self) -> str:
        """Return the help: what the verb does, its options, what its values mean, examples that run."""
        from textwrap import fill

        action = self.action
        examples = "\n".join(f"  floatlab {example}" for example in action.examples)
        self.description = fill(f"{action.summary[0].upper()}{action.summary[1:]}.", _HELP_WIDTH)
        self.epilog = f"{fill(action.explanation, _HELP_WIDTH)}\n\nexamples:\n{examples}"
        return super().format_help()

    def print_help(self, file: object = None) -> None:
        """Write the help as all data is written, in whatever encoding the terminal has."""
        put(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Raise one line instead of printing a usage block."""
        raise UsageError(message)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse, naming what is wrong and what might have been meant."""
        words, values = [_QUIET.get(word, word) for word in words], []
        if "--" in words:  # argparse's own handling of it differs between versions of Python
            words, values = words[: words.index("--")], words[words.index("--") + 1 :]
        for word in words:
            self._check(word)
        try:
            known, unknown = self.parse_known_intermixed_args(words)
        except argparse.ArgumentError as error:
            raise UsageError(self._missing(error)) from None
        if unknown:
            raise self._unknown(unknown[0])
        if values:
            dest = next(action.dest for action in self._actions if not action.option_strings)
            setattr(known, dest, [*(getattr(known, dest) or []), *values])
        return known

    def _check(self, word: str) -> None:
        """Refuse words that argparse would take for something else, or speak of in its own way."""
        known = self._option_string_actions
        option, equals, value = word.partition("=")
        if equals and option in known and known[option].nargs == 0:
            better = "; --quiet=code gives the codes" if option == "--quiet" else ""
            raise UsageError(f"{option} takes no value, and {quoted(value)} was given{better}")
        if word.startswith("--") or _NEGATIVE_VALUE.match(word):
            return
        if f"-{word}" in known and word not in known:
            reads = f"{word} reads as {word[:2]} {word[2:]}" if word[:2] in known else f"unknown option {word}"
            raise UsageError(f"{reads}; did you mean -{word}?")
        if len(word) > 2 and word[:2] in known and known[word[:2]].nargs == 0:
            raise self._unknown(word)

    def _missing(self, error: argparse.ArgumentError) -> str:
        """Say what an option without its value wants."""
        name = error.argument_name or ""
        action = self._option_string_actions.get(name.split("/")[0])
        if action is None:
            return str(error)
        wanted = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
        return f"{name} needs {wanted}: {action.help}"

    def _unknown(self, word: str) -> UsageError:
        option = word.partition("=")[0]
        if option in ("-f", "--format", *(f"--{name}" for name in SHORTHANDS)) and self.action.verb in _FORMATS_OF:
            return UsageError(f"{self.action.verb} has no {option}: {_FORMATS_OF[self.action.verb]}")
        from floatlab.cli.hints import meant_by_option

        names = [
            known[2:] for known in self._option_string_actions if known.startswith("--") and known != "--quiet-code"
        ]
        near = meant_by_option(option, self.action.verb, names)
        return UsageError(
            f"unknown option {quoted(word)}{near or f'; floatlab {self.action.verb} --help lists the options'}"
        )


def formats_named(names: str, option: str) -> list[Format]:
    """Return the formats of NAME[,NAME…]."""
    from floatlab.formats import parse_format

    parts = names.split(",")
    if not all(part.strip() for part in parts):
        raise UsageError(f"{option} {quoted(names)}: a format's name is missing; names look like fp16,bf16")
    return [parse_format(part) for part in parts]


class AppendFormats(argparse.Action):
    """Collect formats in the order typed, from -f NAME[,NAME…] and from the shorthands."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[object] | None,
        option_string: str | None = None,
    ) -> None:
        """Append what an option named, once each."""
        found = list(getattr(namespace, self.dest, None) or [])
        option = str(option_string)
        for format in formats_named(values if isinstance(values, str) else option.lstrip("-"), option):
            if format not in found:
                found.append(format)
        setattr(namespace, self.dest, found)


def add_formats(parser: Parser) -> None:
    """Add -f/--format and the shorthands."""
    group = parser.add_argument_group("formats")
    group.add_argument(
        "-f", "--format", action=AppendFormats, dest="formats", metavar="NAME", help="a format; repeatable"
    )
    for name in SHORTHANDS:
        group.add_argument(f"--{name}", action=AppendFormats, dest="formats", nargs=0, help=argparse.SUPPRESS)
    group.description = "shorthands: " + " ".join(f"--{name}" for name in SHORTHANDS)


def one_format(options: argparse.Namespace, reason: str, more: str = "") -> tuple[Format, ...]:
    """Return the format that -f names, if any; raises UsageError for several, with a reason and what else to do."""
    found: list[Format] = options.formats or []
    if len(found) > 1:
        raise UsageError(f"{reason}, and -f names {', '.join(format.name for format in found)}{more}")
    return tuple(found)


# What the rules of rounding are where no option says otherwise.
USUAL_RULES = {
    "overflow": "native", "absent": "largest", "nan": "first", "tininess": "after", "ftz": False, "daz": False,
}  # fmt: skip


def add_direction(parser: Parser) -> argparse._ArgumentGroup:
    """Add the direction that is rounded in, where no other rule can be chosen; return the group."""
    group = parser.add_argument_group("rounding")
    directions = "|".join(direction.value for direction in Direction)
    group.add_argument(
        "-r", "--rounding", default="RNE", metavar="DIR", help=f"{directions}, or nearest, up, down, zero, …"
    )
    group.add_argument("--seed", metavar="N", help="what SR draws from (default 0)")
    parser.set_defaults(**USUAL_RULES)
    return group


def add_rounding(parser: Parser) -> None:
    """Add everything that a Context holds and a rounding of a value can use."""
    group = add_direction(parser)
    group.add_argument("--overflow", default="native", metavar="RULE", help="native|saturate|propagate")
    group.add_argument(
        "--absent",
        default="largest",
        metavar="RULE",
        help="what stands for NaN, ∞ or 0 where there is none: largest|zero|nan|error",
    )
    group.add_argument("--nan", default="first", metavar="RULE", help="first|x86|arm|riscv")
    group.add_argument("--tininess", default="after", metavar="WHEN", help="after|before rounding")
    group.add_argument("--ftz", action="store_true", help="flush tiny results to zero")
    group.add_argument("--daz", action="store_true", help="read subnormal operands as zero")


def context_of(options: argparse.Namespace) -> Context:
    """Return the Context that the options describe."""
    from floatlab.numbers import Context

    seed = 0
    if options.seed is not None:
        if not re.fullmatch(r"[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}", options.seed):
            raise UsageError(f"--seed takes an integer from 0 to 2^64 − 1, not {quoted(options.seed)}")
        seed = int(options.seed, 0) if options.seed[:2] in ("0x", "0X") else int(options.seed)
    return Context(
        options.rounding,
        seed,
        options.overflow,
        options.absent,
        options.tininess,
        options.daz,
        options.ftz,
        options.nan,
    )


def whole_number(text: str | None, option: str, least: int, most: int) -> int | None:
    """Return the integer that an option was given, or None where it was not; raises UsageError with the limits."""
    if text is None:
        return None
    if not (re.fullmatch("[0-9]{1,12}", text) and least <= int(text) <= most):
        raise UsageError(f"{option} takes a whole number from {least:,} to {most:,}, not {quoted(text)}")
    return int(text)


def add_output(parser: Parser) -> None:
    """Add how the answer is shown."""
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="one JSON object a line")
    group.add_argument(
        "--svg", metavar="FILE", help="write the picture to FILE (- for standard output, instead of text)"
    )
    group.add_argument("--color", "--colour", default="auto", metavar="WHEN", help="auto|always|never")
    group.add_argument(
        "--width", metavar="N", help=f"columns, {WIDTHS[0]} to {WIDTHS[-1]} (default: the terminal's, else 80)"
    )
    group.add_argument("--ascii", action="store_true", help="only ASCII characters")
    group.add_argument(
        "--quiet", action="store_const", const="value", help="only the shortest decimal (--quiet=code: only the code)"
    )
    group.add_argument("--quiet-code", action="store_const", const="code", dest="quiet", help=argparse.SUPPRESS)


def overview() -> str:
    """Return the help of `floatlab` itself."""
    verbs = "\n".join(f"  {action.verb:<10} {action.summary}" for action in ACTIONS.values())
    return (
        "floatlab: inspect IEEE 754 and machine-learning float formats, and see rounding happen.\n\n"
        "usage: floatlab VERB …        floatlab VALUE… is floatlab show VALUE…\n\n"
        f"verbs:\n{verbs}\n\n"
        "examples:\n  floatlab 1.12156456132 --fp16\n  floatlab formats e4m3\n\n"
        "floatlab VERB --help tells more. Status: 0 done, 2 bad usage or input, 3 an optional part is missing.\n"
    )
