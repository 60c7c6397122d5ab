"""Layer 2a: the operations of IEEE 754-2019, computed exactly, rounded once, and recorded as derivations."""

from floatlab.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, {
    "comparison": "Comparison Relation compare equal less less_equal",
    "extrema": "maximum maximum_magnitude maximum_magnitude_number maximum_number"
    " minimum minimum_magnitude minimum_magnitude_number minimum_number",
    "fma_contrast": "Contrast contrast multiply_then_add",
    "integers": "Integer IntegerResult from_integer parse_integer round_to_integral to_integer",
    "operands": "Lack common_format holds lacks readings",
    "operations": "add divide fma multiply remainder sqrt subtract",
    "signs": "abs copy_sign log_b negate next_down next_up scale_b",
})  # fmt: skip
