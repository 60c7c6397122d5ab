"""What breaks a rule of the house today, rule by rule; `tests/test_house.py` sees to it that the lists only shrink.

`python -m tests.test_house` takes off what is no longer true, and adds nothing. Rename a module here by hand.
"""

# Modules that import each other, also inside functions or for types alone: there should be none.
CIRCLES: set[frozenset[str]] = set()

# Names that more than one public class of the package has: a name means one thing in the whole house.
SHARED_CLASS_NAMES: set[str] = set()

# Files of more than 400 lines.
TALL_FILES: set[str] = set()

# Folders of more than 16 modules.
WIDE_FOLDERS: set[str] = set()

# How many files above floor 1, which `floatlab show` does not load, still import for types alone (`TYPE_CHECKING`).
GUARDED_MODULES = 36

# Public functions without NumPy's sections: Parameters (all of them), Returns, Examples.
UNTOLD_FUNCTIONS: set[str] = {
    "floatlab.arrays.add",
    "floatlab.arrays.decode",
    "floatlab.arrays.divide",
    "floatlab.arrays.encode",
    "floatlab.arrays.fma",
    "floatlab.arrays.load",
    "floatlab.arrays.multiply",
    "floatlab.arrays.pack",
    "floatlab.arrays.save",
    "floatlab.arrays.spacing",
    "floatlab.arrays.sqrt",
    "floatlab.arrays.subtract",
    "floatlab.arrays.unpack",
    "floatlab.dot",
    "floatlab.matmul",
    "floatlab.training.advised_step",
    "floatlab.training.compare_learnings",
    "floatlab.training.exact_loss",
    "floatlab.training.make_problem",
    "floatlab.training.measure_underflow",
    "floatlab.training.parse_optimizer",
    "floatlab.training.parse_remedy",
}

# How many lines mention `Any`: at most so many.
LINES_WITH_ANY = 356
