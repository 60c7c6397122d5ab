"""The arrays that the arguments of `sum`, `dot` and `matmul` name, and the presets that replace them."""

from __future__ import annotations

from floatlab.arrays.sources import Piece, source_of
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.files import open_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.reduce import PRESETS, Machine

_OPERANDS = {"sum": (1, "one array"), "dot": (2, "two arrays"), "matmul": (2, "two arrays")}


def preset_of(operation: str, words: tuple[str, ...], name: str) -> list[object]:
    """Return the vectors of a preset, which replaces the arguments; raises UnsupportedError."""
    if name not in PRESETS:
        known = list(PRESETS)
        raise UnsupportedError(f"--preset {quoted(name)} is none of {', '.join(known)}{guess(name, known)}")
    if operation != "dot" or words:
        raise UnsupportedError(f"--preset {name} is two arrays for dot, and takes the place of others")
    return list(PRESETS[name].data)


@in_default_mode
def operands_of(
    operation: str, words: tuple[str, ...], format: Format | None = None, model: Machine | None = None
) -> list[Piece]:
    """Return the arrays that the arguments name, as many as the operation accepts; raises FloatlabError.

    An array read from text comes with a record of what reading it changed.
    """
    count, arrays = _OPERANDS[operation]
    if len(words) != count:
        lists = len(words) > count and all(kind_of(word) == "list" for word in words)
        more = "; the numbers of one are joined by commas, as in 1.5,-2" if lists else ""
        raise UnsupportedError(f"{operation} takes {arrays}, and {len(words)} were given{more}")
    own = None if model is None else model.terms
    if own is not None and own.name == "tf32":
        own = parse_format("binary32")  # the tensor core ignores the extra digits, it does not round
    with open_arrays(words, own or format) as opened:
        pieces = [(source.whole(), source.origin) for source in opened]
    return [piece if origin is None else source_of(piece).replace(origin=origin) for piece, origin in pieces]
