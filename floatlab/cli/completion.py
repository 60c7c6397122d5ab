"""The verb `completion`: shtab makes a completion script from a parser that has the options of all verbs."""

from __future__ import annotations

import argparse

from floatlab.cli.output import put
from floatlab.cli.parser import Parser, add_verb
from floatlab.errors import MissingPartError
from floatlab.formats.catalog import SHORTHANDS
from floatlab.verbs.completion.options import VERB
from floatlab.verbs.registry import VERBS, verb_named


def run(words: list[str]) -> int:
    """Write the completion script of one shell; raises MissingPartError if shtab is not installed."""
    options = Parser(VERB).parse(words)
    (shell,) = VERB.question(options.values, vars(options)).values
    try:
        import shtab
    except ImportError:
        raise MissingPartError("completion needs shtab: pip install 'floatlab[completion]'") from None
    put(shtab.complete(_whole_parser(shtab.FILE), shell))
    return 0


def _whole_parser(file: object) -> argparse.ArgumentParser:
    """Return one parser with all verbs; `file` marks the arguments that are completed with file names."""
    parser = argparse.ArgumentParser(prog="floatlab", description="inspect float formats, and see rounding happen")
    parser.add_argument("-V", "--version", action="store_true", help="show the version and exit")
    verbs = parser.add_subparsers()
    for name in VERBS:
        verb = verb_named(name)
        part = verbs.add_parser(name, help=verb.summary)
        add_verb(part, verb)
        choices = {flag: option.choices for option in verb.options for flag in option.spellings if option.metavar}
        suggestions = {flag: option.suggests for option in verb.options for flag in option.spellings}
        for action in part._actions:
            flag = next(iter(action.option_strings), "")
            if action.metavar == "FILE" or (not flag and verb.reads_files):
                action.complete = file  # type: ignore[attr-defined]
            elif choices.get(flag):
                action.choices = [str(value) for value, _ in choices[flag]]
            elif suggests := suggestions.get(flag):
                action.choices = suggests()
            elif action.dest == "formats" and action.metavar:
                action.choices = SHORTHANDS
            elif action.dest == "formats":  # a shorthand of -f, which --help does not list as an option
                action.help = f"-f {flag[2:]}"
    return parser
