"""An adapter for argparse: values may begin with a minus, options may be anywhere, errors are one line."""

from __future__ import annotations

import argparse
import re
from functools import partial

from floatlab.cli.output import put
from floatlab.errors import quoted
from floatlab.formats.catalog import SHORTHANDS, TABLE_SHORTHANDS
from floatlab.verbs.option import UsageError, formats_named
from floatlab.verbs.question import Verb
from floatlab.verbs.registry import VERBS, asks, verb_named

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from floatlab.formats import Format
    from floatlab.verbs.option import Option
    from floatlab.verbs.question import Question

_HELP_WIDTH = 78

# Values that look like options: -3, -.5, -0x1p3, -inf, -nan, -snan, -1/3, -2^-24.
_NEGATIVE_VALUE = re.compile(r"-(?:\.?[0-9]|inf|[sq]?nan)", re.IGNORECASE)

# `--quiet` takes an optional value that must follow a =. argparse cannot express this, so each value is an option.
_QUIET = {"--quiet=value": "--quiet", "--quiet=code": "--quiet-code"}


# Help has a fixed width: argparse makes a formatter for each argument, and would import shutil for the width.
_Help = partial(argparse.RawDescriptionHelpFormatter, width=_HELP_WIDTH)


def _example(words: str) -> str:
    """Return an example for the help. If it is too long, it continues on the next line, after a backslash."""
    from textwrap import wrap

    lines = wrap(
        f"  floatlab {words}", _HELP_WIDTH, subsequent_indent=" " * 6, break_long_words=False, break_on_hyphens=False
    )
    return " \\\n".join(lines)


class Parser(argparse.ArgumentParser):
    """The parser of one verb, built from its option table."""

    def __init__(self, verb: Verb) -> None:
        """Add the verb's values and options, each under its heading."""
        super().__init__(
            prog=f"floatlab {verb.name}",
            formatter_class=_Help,
            allow_abbrev=False,
            add_help=False,
            exit_on_error=False,
        )
        self.verb = verb
        self._negative_number_matcher = _NEGATIVE_VALUE
        self.add_argument("-h", "--help", action="help", help="show this help and exit")
        add_verb(self, verb)

    def format_help(self) -> str:
        """Return the help: the verb's purpose, its options, the meaning of its values, and runnable examples."""
        from textwrap import fill

        verb = self.verb
        examples = "\n".join(map(_example, verb.examples))
        self.description = fill(f"{verb.summary[0].upper()}{verb.summary[1:]}.", _HELP_WIDTH)
        self.epilog = f"{fill(verb.explanation, _HELP_WIDTH)}\n\nexamples:\n{examples}"
        return super().format_help()

    def print_help(self, file: object = None) -> None:
        """Write the help to standard output with `output.put`, which handles the terminal's encoding."""
        put(self.format_help())

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with one line instead of printing a usage block."""
        raise UsageError(message)

    def parse(self, words: Sequence[str]) -> argparse.Namespace:
        """Parse the words of a command; errors name the wrong word, and may suggest a correction."""
        words, values = [_QUIET.get(word, word) for word in words], []
        if "--" in words:  # argparse's handling of -- differs between versions of Python
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
            known.values = [*(known.values or []), *values]
        return known

    def _check(self, word: str) -> None:
        """Reject words that argparse would misinterpret or report in its own wording."""
        known = self._option_string_actions
        option, equals, value = word.partition("=")
        if equals and option in known and known[option].nargs == 0:
            better = "; --quiet=code gives the codes" if option == "--quiet" else ""
            raise UsageError(f"{option} takes no value, but {quoted(value)} was given{better}")
        if word.startswith("--") or _NEGATIVE_VALUE.match(word):
            return
        if f"-{word}" in known and word not in known:
            reads = f"{word} reads as {word[:2]} {word[2:]}" if word[:2] in known else f"unknown option {word}"
            raise UsageError(f"{reads}; did you mean -{word}?")
        if len(word) > 2 and word[:2] in known and known[word[:2]].nargs == 0:
            raise self._unknown(word)

    def _missing(self, error: argparse.ArgumentError) -> str:
        """Return the error message for an option whose value is missing."""
        name = error.argument_name or ""
        action = self._option_string_actions.get(name.split("/")[0])
        if action is None:
            return str(error)
        wanted = action.metavar if isinstance(action.metavar, str) else " ".join(action.metavar or ())
        return f"{name} needs {wanted}: {action.help}"

    def _unknown(self, word: str) -> UsageError:
        from floatlab.cli.hints import unknown_option

        return unknown_option(word, self.verb)


def add_verb(parser: argparse.ArgumentParser, verb: Verb) -> None:
    """Add the values and options of a verb, each under its heading."""
    metavar, help = verb.takes
    if help:
        parser.add_argument("values", nargs="*", metavar=metavar, help=help)
    else:  # `tui`, whose values are a whole command
        parser.usage = f"%(prog)s [options] {metavar}"
    notes = dict(verb.notes)
    groups: dict[str, argparse._ActionsContainer] = {"": parser}
    for option in verb.options:
        if option.group not in groups:
            groups[option.group] = parser.add_argument_group(option.group, notes.get(option.group))
        _add(groups[option.group], option)


def _add(group: argparse._ActionsContainer, option: Option) -> None:
    help = option.explanation or argparse.SUPPRESS
    if option.name == "formats":
        group.description = "shorthands: " + " ".join(f"--{name}" for name in SHORTHANDS)
        group.add_argument(*option.spellings, action=AppendFormats, dest=option.name, metavar=option.metavar, help=help)
        for name in (*SHORTHANDS, *TABLE_SHORTHANDS):
            group.add_argument(f"--{name}", action=AppendFormats, dest=option.name, nargs=0, help=argparse.SUPPRESS)
    elif not option.metavar:
        group.add_argument(*option.spellings, action="store_const", const=option.value, dest=option.name, help=help)
    else:
        words = tuple(option.metavar.split())
        nargs, metavar = (len(words), words) if len(words) > 1 else ("?" if option.optional else None, option.metavar)
        const = option.optional or None
        group.add_argument(*option.spellings, nargs=nargs, const=const, dest=option.name, metavar=metavar, help=help)


class AppendFormats(argparse.Action):
    """Collects the formats of -f NAME[,NAME…] and of shorthands such as --fp16, each once, in the order typed."""

    def __call__(self, parser: object, namespace: argparse.Namespace, values: object, flag: str | None = None) -> None:
        """Append the formats that an option names."""
        formats: list[Format] = list(getattr(namespace, self.dest, None) or [])
        option = str(flag)
        for format in formats_named(values if isinstance(values, str) else option.lstrip("-"), option):
            if format not in formats:
                formats.append(format)
        setattr(namespace, self.dest, formats)


def read_question(words: list[str]) -> Question:
    """Return the question of a command. The verb is `show`, unless the first word is a verb that has a `Question`.

    Raises UsageError for --help, for - (standard input), and for invalid arguments.

    >>> from floatlab.verbs.registry import command_of
    >>> command_of(read_question(["0.1", "--fp16"]))
    'floatlab show 0.1 --fp16'
    """
    if {"-h", "--help"} & set(words):
        raise UsageError("--help cannot be used here")
    named = bool(words) and asks(words[0])
    verb = verb_named(words[0] if named else "show")
    options = Parser(verb).parse(words[1:] if named else words)
    question = verb.question(options.values, vars(options))
    if "-" in question.values:
        raise UsageError("- (standard input) cannot be used here: give the values, or name a file")
    return question


def overview() -> str:
    """Return the help of `floatlab` itself."""
    verbs = "\n".join(f"  {name:<10} {verb_named(name).summary}" for name in VERBS)
    return (
        "floatlab: inspect IEEE 754 and machine-learning float formats, and see rounding happen.\n\n"
        "usage: floatlab VERB …        floatlab VALUE… means floatlab show VALUE…\n\n"
        f"verbs:\n{verbs}\n\n"
        "examples:\n  floatlab 1.12156456132 --fp16\n  floatlab formats e4m3\n\n"
        "floatlab VERB --help explains a verb.\n"
        "Status: 0 done, 1 a check failed, 2 bad usage or input, 3 an optional part is missing.\n"
    )
