"""floatlab: inspect IEEE 754 and machine-learning float formats, and see rounding happen.

>>> import floatlab as fl
>>> fl.read("1.12156456132", "fp16").result
Datum(binary16 0x3c7c = 1.121)
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab import arrays as arrays
    from floatlab import training as training
    from floatlab.arith import (
        Comparison,
        Contrast,
        IntegerResult,
        Relation,
        abs,  # noqa: A004
        add,
        contrast,
        copy_sign,
        divide,
        equal,
        fma,
        from_integer,
        less,
        less_equal,
        log_b,
        maximum,
        maximum_magnitude,
        maximum_magnitude_number,
        maximum_number,
        minimum,
        minimum_magnitude,
        minimum_magnitude_number,
        minimum_number,
        multiply,
        multiply_then_add,
        negate,
        next_down,
        next_up,
        remainder,
        round_to_integral,
        scale_b,
        sqrt,
        subtract,
        to_integer,
    )
    from floatlab.arrays.compare.differences import Differences
    from floatlab.arrays.container.array import FloatArray
    from floatlab.auditing.audit import audit
    from floatlab.auditing.comparison import compare_checkpoints
    from floatlab.auditing.dequantization import dequantize
    from floatlab.auditing.quantized import load_quantized
    from floatlab.auditing.recipe_search.finding import find_recipe
    from floatlab.errors import (
        ContextError,
        FileFormatError,
        FloatlabError,
        FormatError,
        LiteralError,
        MissingPartError,
        PlanError,
        TruthValueError,
        UnsupportedError,
    )
    from floatlab.formats import (
        Format,
        parse_format,
    )
    from floatlab.numbers import (
        Absent,
        Context,
        Datum,
        Derivation,
        Direction,
        Exact,
        Flags,
        NanRule,
        NumberClass,
        Overflow,
        Rounded,
        Tininess,
        convert,
        decode,
        encode,
        read,
    )
    from floatlab.numbers.limits import finfo
    from floatlab.presenter import Presenter
    from floatlab.reduce import Plan, Reduction, Schedule, dot, matmul, sum  # noqa: A004
    from floatlab.reduce.explain.attribution import attribute
    from floatlab.reduce.explain.comparison import compare
    from floatlab.reduce.reveal.revelation import examine, reveal
    from floatlab.training.trajectories import train
    from floatlab.verbs.from_json import from_json

__version__ = "0.1.0"


def _presenter() -> Presenter:
    """Return the presenter, which draws the pages of answers; `floatlab.presenter` calls this."""
    from floatlab.verbs import presenting

    return presenting


# The public names by module; each module is imported when its first name is used (PEP 562).
_ROOMS = {
    "floatlab.errors": (
        "ContextError", "FileFormatError", "FloatlabError", "FormatError", "LiteralError", "MissingPartError",
        "PlanError", "TruthValueError", "UnsupportedError",
    ),
    "floatlab.formats": (
        "Format", "parse_format",
    ),
    "floatlab.numbers": (
        "Absent", "Context", "Datum", "Derivation", "Direction", "Exact", "Flags", "NanRule", "NumberClass",
        "Overflow", "Rounded", "Tininess", "convert", "decode", "encode", "read",
    ),
    "floatlab.numbers.limits": ("finfo",),
    "floatlab.auditing.audit": ("audit",),
    "floatlab.auditing.comparison": ("compare_checkpoints",),
    "floatlab.auditing.dequantization": ("dequantize",),
    "floatlab.auditing.quantized": ("load_quantized",),
    "floatlab.auditing.recipe_search.finding": ("find_recipe",),
    "floatlab.arith": (
        "Comparison", "Contrast", "IntegerResult", "Relation", "abs", "add", "contrast", "copy_sign", "divide", "equal",
        "fma", "from_integer", "less", "less_equal", "log_b", "maximum", "maximum_magnitude",
        "maximum_magnitude_number", "maximum_number", "minimum", "minimum_magnitude", "minimum_magnitude_number",
        "minimum_number", "multiply", "multiply_then_add", "negate", "next_down", "next_up", "remainder",
        "round_to_integral", "scale_b", "sqrt", "subtract", "to_integer",
    ),
    "floatlab.arrays": (
        "FloatArray",
    ),
    "floatlab.arrays.compare.differences": ("Differences",),
    "floatlab.reduce.reveal.revelation": ("examine", "reveal"),
    "floatlab.reduce": (
        "Plan", "Reduction", "Schedule", "dot", "matmul", "sum",
    ),
    "floatlab.reduce.explain.attribution": (
        "attribute",
    ),
    "floatlab.reduce.explain.comparison": ("compare",),
    "floatlab.verbs.from_json": ("from_json",),
    "floatlab.training": (
        "train",
    ),
}  # fmt: skip
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}
# Subpackages that are used by name, as in `fl.arrays.encode`.
_OPEN_ROOMS = ("arrays", "training")

__all__ = [
    "Absent", "Comparison", "Context", "ContextError", "Contrast", "Datum", "Derivation", "Differences", "Direction",
    "Exact", "FileFormatError", "Flags", "FloatArray", "FloatlabError", "Format", "FormatError", "IntegerResult",
    "LiteralError", "MissingPartError", "NanRule", "NumberClass", "Overflow", "Plan", "PlanError", "Reduction",
    "Relation", "Rounded", "Schedule", "Tininess", "TruthValueError", "UnsupportedError", "abs", "add", "attribute",
    "audit", "compare", "compare_checkpoints", "contrast", "convert", "copy_sign", "decode", "dequantize", "divide",
    "dot", "encode", "equal", "examine", "find_recipe", "finfo", "fma", "from_integer", "from_json", "less",
    "less_equal", "load_quantized", "log_b", "matmul", "maximum", "maximum_magnitude", "maximum_magnitude_number",
    "maximum_number", "minimum", "minimum_magnitude", "minimum_magnitude_number", "minimum_number", "multiply",
    "multiply_then_add", "negate", "next_down", "next_up", "parse_format", "read", "remainder", "reveal",
    "round_to_integral", "scale_b", "sqrt", "subtract", "sum", "to_integer", "train",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Return the object with a public name, or the subpackage `arrays` or `training`; import it at first use."""
    if name not in _ROOM_OF and name not in _OPEN_ROOMS:
        raise AttributeError(f"module 'floatlab' has no attribute {name!r}")
    from floatlab.lazy_names import open_module

    if name in _OPEN_ROOMS:
        return open_module(f"floatlab.{name}")
    value = getattr(open_module(_ROOM_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names, imported or not."""
    return sorted([*__all__, *_OPEN_ROOMS, "__version__"])
