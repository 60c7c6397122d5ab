"""The arrays that the words of `sum`, `dot` and `matmul` name, and the presets that take their place."""

from __future__ import annotations

from typing import Any

from floatlab.arrays.sources import ArraySource, source_of
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.files import open_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.reduce import PRESETS, Machine
from floatlab.reduce.results.presets import Preset

OPERANDS = {"sum": 1, "dot": 2, "matmul": 2}


_NUMBERS = {1: "one array", 2: "two arrays"}


def parse_preset(name: str) -> Preset:
    """Return the vectors of a name; raises UnsupportedError for a name that there is not."""
    if name not in PRESETS:
        known = list(PRESETS)
        raise UnsupportedError(f"--preset {quoted(name)} is none of {', '.join(known)}{guess(name, known)}")
    return PRESETS[name]


def preset_of(operation: str, words: tuple[str, ...], name: str) -> list[Any]:
    """Return the vectors of a preset, which takes the place of words; raises UnsupportedError."""
    found = parse_preset(name)
    if operation != "dot" or words:
        raise UnsupportedError(f"--preset {name} is two arrays for dot, and takes the place of others")
    return list(found.data)


@in_default_mode
def operands_of(
    operation: str, words: tuple[str, ...], format: Format | None = None, model: Machine | None = None
) -> list[Any]:
    """Return the arrays that words name, as many as the operation takes; raises FloatlabError."""
    wanted = OPERANDS[operation]
    if len(words) != wanted:
        lists = len(words) > wanted and all(kind_of(each) == "list" for each in words)
        more = "; the numbers of one are joined by commas, as in 1.5,-2" if lists else ""
        raise UnsupportedError(f"{operation} takes {_NUMBERS[wanted]}, and {len(words)} were given{more}")
    own = None if model is None else model.terms
    if own is not None and own.name == "tf32":
        own = parse_format("binary32")  # the unit itself ignores digits, and does not round
    with open_arrays(words, own or format) as opened:
        return [_with_origin(each) for each in opened]


def _with_origin(opened: ArraySource) -> Any:
    """Return a whole array; one of text with what reading it changed."""
    found = opened.whole()
    return found if opened.origin is None else source_of(found).replace(origin=opened.origin)
