"""Open the arrays that the arguments of `sum`, `dot` and `matmul` name, or the arrays of a preset (a named example)."""

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
    """Return the two vectors of a preset (a named example).

    Raises UnsupportedError for unknown presets, for operations other than `dot`, and if `words` name arrays, too.
    """
    if name not in PRESETS:
        known = list(PRESETS)
        raise UnsupportedError(f"--preset must be one of {', '.join(known)}, not {quoted(name)}{guess(name, known)}")
    if operation != "dot" or words:
        raise UnsupportedError(f"--preset {name} gives dot its two arrays: do not name others")
    return list(PRESETS[name].data)


@in_default_mode
def operands_of(
    operation: str, words: tuple[str, ...], format: Format | None = None, model: Machine | None = None
) -> list[Piece]:
    """Return the arrays that the arguments name; raises FloatlabError if the number of arguments is wrong.

    Text is rounded to the format of the terms of `model` or, without a model, to `format`. If the format of the terms
    is tf32, text is rounded to binary32 instead, because the tensor core itself drops the extra digits. If an array was
    read from text, its `origin` says how many values were rounded.
    """
    own = None if model is None else model.terms
    if own is not None and own.name == "tf32":
        # A tensor core drops the extra digits of binary32; rounding to tf32 first would differ.
        own = parse_format("binary32")
    return arrays_of(words, own or format, operation)


@in_default_mode
def arrays_of(words: tuple[str, ...], format: Format | None, operation: str = "sum") -> list[Piece]:
    """Return the arrays that these arguments name.

    Text and random numbers are rounded to `format`. If `format` is None, `open_arrays` chooses the format.
    """
    count, arrays = _OPERANDS[operation]
    if len(words) != count:
        lists = len(words) > count and all(kind_of(word) == "list" for word in words)
        more = "; separate the numbers of an array by commas, as in 1.5,-2" if lists else ""
        raise UnsupportedError(f"{operation} takes {arrays}, not {len(words)}{more}")
    with open_arrays(words, format) as opened:
        pieces = [(source.whole(), source.origin) for source in opened]
    return [piece if origin is None else source_of(piece).replace(origin=origin) for piece, origin in pieces]
