"""Results of other libraries for the same value: NumPy, ml_dtypes and PyTorch, if they are installed.

The libraries receive the value as a Python float, that is, rounded to binary64 first. Each result is a code of the
format. This module does not decide which result is right.
"""

from __future__ import annotations

from floatlab.errors import FloatlabError, MissingPartError, guess, quoted
from floatlab.formats import parse_format
from floatlab.numbers import Context, Datum, Derivation, Literal, convert
from floatlab.numbers.reading import read_literal
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any

# For each library, the name of its type for each format.
_NUMPY = {"binary16": "float16", "binary32": "float32", "binary64": "float64"}
_ML_DTYPES = {
    "bfloat16": "bfloat16",
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e4m3b11fnuz": "float8_e4m3b11fnuz",
    "e4m3_ieee": "float8_e4m3",
    "e3m4": "float8_e3m4",
    "e8m0fnu": "float8_e8m0fnu",
    "e2m3fn": "float6_e2m3fn",
    "e3m2fn": "float6_e3m2fn",
    "e2m1fn": "float4_e2m1fn",
}
_TORCH = {
    "binary16": "float16",
    "binary32": "float32",
    "binary64": "float64",
    "bfloat16": "bfloat16",
    "e4m3fn": "float8_e4m3fn",
    "e5m2": "float8_e5m2",
    "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz",
    "e8m0fnu": "float8_e8m0fnu",
}
LIBRARIES = {"numpy": _NUMPY, "ml_dtypes": _ML_DTYPES, "torch": _TORCH}


class Opinion(Record):
    """A library's result for a value; `type_name` and `code` are None if the library has no type for the format."""

    library: str
    version: str
    type_name: str | None
    code: int | None


def parse_libraries(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return names of libraries as spelled in `LIBRARIES`, without repetitions; raises FloatlabError for unknown names.

    >>> parse_libraries(("NumPy", "ml-dtypes"))
    ('numpy', 'ml_dtypes')
    """
    plain = tuple(dict.fromkeys(name.strip().lower().replace("-", "_") for name in names))
    for name in plain:
        if name not in LIBRARIES:
            raise FloatlabError(
                f"--like accepts {' '.join(LIBRARIES)}, not {quoted(name)}{guess(name, list(LIBRARIES))}"
            )
    return plain


def ask(library: str, format_name: str, value: float) -> Opinion:
    """Return a library's rounding of a Python float; raises MissingPartError if the library is not installed."""
    module = _open(library)
    type_name = LIBRARIES[library].get(format_name)
    kind = getattr(module, type_name, None) if type_name else None
    version = str(getattr(module, "__version__", ""))
    if kind is None:
        return Opinion(library, version, None, None)
    code = _torch_code(module, kind, value) if library == "torch" else _array_code(kind, value)
    return Opinion(library, version, type_name, code)


def explain(literal: Literal, result: Datum, code: int) -> str:
    """Return a text that says how a library may have rounded the literal to `code`.

    `result` is floatlab's result. The text is "" if `code` is the code of `result`, and `a NaN with other bits` if both
    are NaNs with different codes. The text is `another value` if no known way of rounding gives `code`.
    """
    fmt, theirs = result.format, Datum(result.format, code)
    if theirs == result:
        return ""
    if theirs.is_nan and result.is_nan:
        return "a NaN with other bits"
    given = read_literal(literal, parse_format("binary64")).result
    routes: dict[str, Callable[[], Derivation]] = {
        "rounds to nearest": lambda: read_literal(literal, fmt),
        "rounds twice: to binary64, then here": lambda: convert(given, fmt),
        "rounds through binary32": lambda: convert(convert(given, "binary32").result, fmt),
        "saturates": lambda: convert(given, fmt, Context(overflow="saturate")),
        "cuts off": lambda: convert(given, fmt, Context(rounding="RTZ")),
    }
    return next((words for words, other in routes.items() if other().result == theirs), "another value")


def _open(library: str) -> ModuleType:
    from importlib import import_module

    try:
        return import_module(library)
    except (ImportError, OSError):  # not installed, or a dependency is missing
        raise MissingPartError(f"--like {library} needs {library}: pip install {library}") from None


def _array_code(kind: Any, value: float) -> int:
    import numpy as np

    with np.errstate(all="ignore"):
        stored = np.asarray([value], np.float64).astype(kind)
    return int.from_bytes(stored.tobytes()[::-1], "big")


def _torch_code(torch: ModuleType, kind: Any, value: float) -> int:
    stored = torch.tensor([value], dtype=torch.float64).to(kind)
    return int.from_bytes(bytes(stored.view(torch.uint8).tolist())[::-1], "big")
