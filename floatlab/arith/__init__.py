"""Floor 2a: the operations of IEEE 754-2019, exact in the middle, rounded once, each with its derivation."""

from floatlab.arith.comparison import Comparison, Relation, compare, equal, less, less_equal
from floatlab.arith.contrast import Contrast, contrast, multiply_then_add
from floatlab.arith.integers import Integer, IntegerResult, from_integer, parse_integer, round_to_integral, to_integer
from floatlab.arith.operands import Lack, common_format, holds, lacks, readings
from floatlab.arith.operations import add, divide, fma, multiply, remainder, sqrt, subtract

__all__ = [
    "Comparison", "Contrast", "Integer", "IntegerResult", "Lack", "Relation", "add", "common_format", "compare",
    "contrast", "divide", "equal", "fma", "from_integer", "holds", "lacks", "less", "less_equal", "multiply",
    "multiply_then_add", "parse_integer", "readings", "remainder", "round_to_integral", "sqrt", "subtract",
    "to_integer",
]  # fmt: skip
