"""What a word may have been meant as that is no verb, no option and no number here; looked at only on the way out."""

from __future__ import annotations

from floatlab.errors import FloatlabError, FormatError, guess, quoted
from floatlab.formats.names import family, parse_format
from floatlab.numbers import parse_literal
from floatlab.verbs.registry import ACTIONS, ARITIES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# What other programs, and people, call what a verb does.
_VERBS = {
    **dict.fromkeys(("plus", "+"), "add A B"),
    **dict.fromkeys(("subtract", "minus"), "sub A B"),
    **dict.fromkeys(("multiply", "times", "product", "*", "×"), "mul A B"),
    **dict.fromkeys(("divide", "quotient", "/", "÷"), "div A B"),
    **dict.fromkeys(("mod", "fmod", "remainder", "%"), "rem A B"),
    **dict.fromkeys(("eq", "less", "equal", "==", "=", "<", ">"), "cmp A B"),
    **dict.fromkeys(("int", "integer", "toi"), "toint VALUE --to i32"),
    **dict.fromkeys(("round", "roundtoint"), "rint VALUE (to an integer) or floatlab show VALUE -f NAME (to a format)"),
    "floor": "rint VALUE -r down",
    **dict.fromkeys(("ceil", "ceiling"), "rint VALUE -r up"),
    "trunc": "rint VALUE -r zero",
    **dict.fromkeys(("encode", "ulp", "inspect", "value"), "show VALUE -f NAME"),
    **dict.fromkeys(("decode", "bits", "hex"), "show bits:0x3c7c -f NAME"),
    **dict.fromkeys(("info", "list", "finfo", "types"), "formats"),
    **dict.fromkeys(("cast", "quantize"), "convert VALUE NAME"),
    **dict.fromkeys(("diff", "allclose"), "compare A B"),
    **dict.fromkeys(("gui", "explore", "ui"), "tui"),
}
_APART = {"show", "convert", "block", *ARITIES}  # whose values stand apart by spaces; those of arrays by commas
# What other programs call an option.
_OPTIONS = {
    **dict.fromkeys(("mode", "direction", "round", "rounding-mode", "rnd"), "rounding"),
    **dict.fromkeys(("order", "algorithm"), "schedule"),
    **dict.fromkeys(("type", "fmt", "precision"), "format"),
    **dict.fromkeys(("acc", "accumulate"), "accumulator"),
    **dict.fromkeys(("explain", "verbose"), "why"),
    **dict.fromkeys(("code", "value-only"), "quiet"),
    "flush": "ftz",
    "endian": "little-endian",
    "from": "through",
}


def meant_by_value(verb: str, value: str, first: str | None) -> str:
    """Return what a word that is not a number may have been meant as; `first` stands where a verb might."""
    if value in ACTIONS:
        return f"{quoted(value)} is a verb, and the verb comes first: floatlab {value} …"
    plain = value.lower()
    if plain in _VERBS and (value == first or not value.isalpha()):
        return f"{quoted(value)} is neither a verb nor a number; did you mean floatlab {_VERBS[plain]}?"
    if value == first and value.isalpha():
        near = guess(value, [*ACTIONS, "help", "--version"])
        if near:
            return f"{quoted(value)} is neither a verb nor a number{near}"
    if _is_format(value):
        option = {"convert": "--through", "block": "--to"}.get(verb, "-f")
        return f"{quoted(value)} is a format, not a number: {option} {quoted(value)} names it"
    if verb in _APART and "," in value and all(_is_number(part) for part in value.split(",")):
        return (
            f"{quoted(value)}: a decimal has a point, and values stand apart by spaces: {value.replace(',', ' ')[:60]}"
        )
    return ""


def meant_by_extra(verb: str, values: Sequence[str]) -> str:
    """Return what a value too many of an operation may have been meant as."""
    for value in values[ARITIES[verb] :]:
        if _is_format(value):
            return f"{quoted(value)} is a format, not a number: -f {value} names it"
        if verb == "toint" and _is_integer(value):
            return f"{quoted(value)} is a type, not a number: --to {value} names it"
    return ""


def meant_by_option(option: str, verb: str, known: Sequence[str]) -> str:
    """Return what an option that there is not, such as --mode, may have been meant as: the end of a line, or nothing.

    `known` are the long options that there are, without their dashes.
    """
    word = option.lstrip("-").lower()
    if verb == "show" and option in ("-v", "-version", "--ver"):
        return "; did you mean '--version'?"
    if (usual := _OPTIONS.get(word)) in known:
        return f"; did you mean '--{usual}'?"
    if words := family(word):
        return f": {words}"
    if verb == "toint" and _is_integer(word):
        return f": --to {word} names this type"
    if word and all(map(_is_format, word.split(","))):
        return f": -f {word} names {'this format' if ',' not in word else 'these formats'}"
    return guess(word, list(known)).replace("mean '", "mean '--")


def _is_format(word: str) -> bool:
    try:
        parse_format(word[:64])
    except FormatError:
        return False
    return True


def _is_integer(word: str) -> bool:
    from floatlab.arith import parse_integer

    try:
        parse_integer(word)
    except FloatlabError:
        return False
    return True


def _is_number(word: str) -> bool:
    try:
        parse_literal(word)
    except FloatlabError:
        return False
    return True
