"""Suggestions for an argument that is not a verb, an option or a number; imported only when an error is reported."""

from __future__ import annotations

from floatlab.errors import guess, quoted
from floatlab.formats.catalog import SHORTHANDS, family
from floatlab.numbers import parse_literal
from floatlab.verbs.option import UsageError, can_read
from floatlab.verbs.question import Verb
from floatlab.verbs.registry import VERBS, verb_named

_LISTED = 8  # an error names at most this many verbs that have the option


def meant_by_value(verb: Verb, value: str, first: str | None) -> str:
    """Return a suggestion for a value that is not a number, or "".

    `first` is the first word of the command; None if this word is a verb.
    """
    if value in VERBS:
        return f"{quoted(value)} is a verb, and the verb comes first: floatlab {value} …"
    rows = [row.split(" → ") for name in VERBS for row in verb_named(name).also]
    command = next((command for words, command in rows if value.lower() in words.split()), "")
    if command and (value == first or not value.isalpha()):
        return f"{quoted(value)} is neither a verb nor a number; did you mean floatlab {command}?"
    if value == first and value.isalpha():
        near = guess(value, [*VERBS, "help", "--version"])
        if near:
            return f"{quoted(value)} is neither a verb nor a number{near}"
    for option in verb.options:
        if option.part == "formats" and option.may_be(value):
            return f"{quoted(value)} is a {option.noun}, not a number: write {option.spellings[0]} {quoted(value)}"
    if verb.needs_values and "," in value and all(can_read(part, parse_literal) for part in value.split(",")):
        return (
            f"{quoted(value)}: use spaces to separate values, and a point in decimals: {value.replace(',', ' ')[:60]}"
        )
    return ""


def unknown_option(word: str, verb: Verb) -> UsageError:
    """Return the error for an option that a verb does not have. The error's message has a suggestion."""
    option = word.partition("=")[0]
    if verb.formats_by and option in ("-f", "--format", *(f"--{name}" for name in SHORTHANDS)):
        return UsageError(f"{verb.name} has no {option}: {verb.formats_by}")
    related = [name for name, entry in VERBS.items() if entry == VERBS[verb.name] and name != verb.name]
    having = [name for name in related if any(option in each.spellings for each in verb_named(name).options)]
    if 0 < len(having) <= _LISTED:
        return UsageError(f"unknown option {quoted(word)} of {verb.name}: it is an option of {' '.join(having)}")
    meant = meant_by_option(option, verb) or f"; floatlab {verb.name} --help lists the options"
    return UsageError(f"unknown option {quoted(word)}{meant}")


def meant_by_option(flag: str, verb: Verb) -> str:
    """Return a suggestion to append to the error message for an unknown option such as --mode; may be empty."""
    word = flag.lstrip("-").lower()
    if verb.name == "show" and flag in ("-v", "-version", "--ver"):
        return "; did you mean '--version'?"
    if usual := next((option.flag for option in verb.options if word in option.also), ""):
        return f"; did you mean '{usual}'?"
    if families := family(word):
        return f": {families}"
    for option in verb.options:
        if word and all(map(option.may_be, word.split(","))):
            several = f"these {option.noun}s" if "," in word else f"this {option.noun}"
            return f": write {option.spellings[0]} {word} for {several}"
    known = [
        flag[2:] for option in verb.options for flag in option.spellings if flag.startswith("--") and option.explanation
    ]
    if any(option.name == "formats" for option in verb.options):
        known += SHORTHANDS
    return guess(word, known).replace("mean '", "mean '--")
