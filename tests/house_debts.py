"""What breaks a rule of the house today, rule by rule; `tests/test_house.py` sees to it that the lists only shrink.

`python -m tests.test_house` takes off what is no longer true, and adds nothing. Rename a module here by hand.
"""

# Modules that import each other, also inside functions or for types alone: there should be none.
CIRCLES: set[frozenset[str]] = {
    frozenset(
        {
            "floatlab.tui.app.app",
            "floatlab.tui.app.palette",
            "floatlab.tui.app.registry",
            "floatlab.tui.screens.asking",
            "floatlab.tui.screens.task",
            "floatlab.tui.widgets.choices",
            "floatlab.tui.widgets.drawing",
            "floatlab.tui.widgets.key_bar",
            "floatlab.tui.widgets.pickers",
        }
    ),
}

# Names that more than one public class of the package has: a name means one thing in the whole house.
SHARED_CLASS_NAMES: set[str] = {
    "Bars",
    "Entry",
    "Interval",
    "Program",
    "Row",
    "Rule",
    "Sight",
    "Target",
    "Ways",
}

# Files of more than 400 lines.
TALL_FILES: set[str] = {
    "arrays/blocks.py",
    "reduce/simulate/engines.py",
    "training/gradient_check.py",
    "tui/screens/arithmetic/screen.py",
}

# Folders of more than 16 modules.
WIDE_FOLDERS: set[str] = {
    "tui/widgets",
}

# How many files above floor 1, which `floatlab show` does not load, still import for types alone (`TYPE_CHECKING`).
GUARDED_MODULES = 70

# Public functions without NumPy's sections: Parameters (all of them), Returns, Examples.
UNTOLD_FUNCTIONS: set[str] = {
    "floatlab.arrays.add",
    "floatlab.arrays.decode",
    "floatlab.arrays.divide",
    "floatlab.arrays.encode",
    "floatlab.arrays.fma",
    "floatlab.arrays.load",
    "floatlab.arrays.multiply",
    "floatlab.arrays.next_after",
    "floatlab.arrays.ordinal",
    "floatlab.arrays.pack",
    "floatlab.arrays.save",
    "floatlab.arrays.spacing",
    "floatlab.arrays.sqrt",
    "floatlab.arrays.subtract",
    "floatlab.arrays.ulp_distance",
    "floatlab.arrays.unpack",
    "floatlab.compare",
    "floatlab.dot",
    "floatlab.from_json",
    "floatlab.matmul",
    "floatlab.train",
    "floatlab.training.advised_step",
    "floatlab.training.check_gradient",
    "floatlab.training.compare_learnings",
    "floatlab.training.exact_loss",
    "floatlab.training.learn",
    "floatlab.training.make_problem",
    "floatlab.training.measure_underflow",
    "floatlab.training.parse_optimizer",
    "floatlab.training.parse_remedy",
    "floatlab.training.step",
    "floatlab.training.sweep_steps",
    "floatlab.training.train",
}

# How many lines mention `Any`: at most so many.
LINES_WITH_ANY = 599
