"""What breaks a rule of the house today, rule by rule; `tests/test_house.py` sees to it that the lists only shrink.

`python -m tests.test_house` takes off what is no longer true, and adds nothing. Rename a module here by hand.
"""

# Modules that import each other, also inside functions or for types alone: there should be none.
CIRCLES: set[frozenset[str]] = {
    frozenset({"floatlab.arrays.blocks", "floatlab.arrays.conversion", "floatlab.arrays.scales"}),
    frozenset(
        {
            "floatlab.arrays.container.accumulation",
            "floatlab.arrays.container.array",
            "floatlab.arrays.container.functions",
            "floatlab.arrays.container.operands",
            "floatlab.arrays.container.ufuncs",
        }
    ),
    frozenset(
        {
            "floatlab.arrays.lanes.compiled",
            "floatlab.arrays.lanes.dispatch",
            "floatlab.arrays.lanes.numpy_integers",
            "floatlab.arrays.lanes.scalar",
        }
    ),
    frozenset({"floatlab.formats.blocks", "floatlab.formats.names"}),
    frozenset(
        {
            "floatlab.numbers.carriers",
            "floatlab.numbers.datum",
            "floatlab.numbers.decimals",
            "floatlab.numbers.reading",
            "floatlab.numbers.steps",
        }
    ),
    frozenset(
        {"floatlab.reduce.simulate.adders", "floatlab.reduce.simulate.engines", "floatlab.reduce.simulate.tensor_cores"}
    ),
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
    frozenset(
        {
            "floatlab.verbs.attribute.answer",
            "floatlab.verbs.backends.answer",
            "floatlab.verbs.reduce.answer",
            "floatlab.verbs.ways.answer",
        }
    ),
}

# Names that more than one public class of the package has: a name means one thing in the whole house.
SHARED_CLASS_NAMES: set[str] = {
    "Arithmetic",
    "Bars",
    "Cause",
    "Comparison",
    "Curve",
    "Cut",
    "Element",
    "Entry",
    "Errors",
    "Interval",
    "Pair",
    "Part",
    "Row",
    "Rule",
    "Scales",
    "Sight",
    "Stage",
    "Target",
    "Way",
    "Ways",
}

# Files of more than 400 lines.
TALL_FILES: set[str] = {
    "arrays/compare/measure.py",
    "reduce/simulate/engines.py",
    "training/gradient_check.py",
    "tui/screens/arithmetic/screen.py",
}

# Folders of more than 16 modules.
WIDE_FOLDERS: set[str] = {
    "tui/widgets",
}

# How many files above floor 1, which `floatlab show` does not load, still import for types alone (`TYPE_CHECKING`).
GUARDED_MODULES = 201

# Public functions without NumPy's sections: Parameters (all of them), Returns, Examples.
UNTOLD_FUNCTIONS: set[str] = {
    "floatlab.add",
    "floatlab.arrays.add",
    "floatlab.arrays.decode",
    "floatlab.arrays.divide",
    "floatlab.arrays.encode",
    "floatlab.arrays.fma",
    "floatlab.arrays.load",
    "floatlab.arrays.multiply",
    "floatlab.arrays.next_after",
    "floatlab.arrays.operate",
    "floatlab.arrays.ordinal",
    "floatlab.arrays.pack",
    "floatlab.arrays.quantize",
    "floatlab.arrays.save",
    "floatlab.arrays.spacing",
    "floatlab.arrays.sqrt",
    "floatlab.arrays.subtract",
    "floatlab.arrays.ulp_distance",
    "floatlab.arrays.unpack",
    "floatlab.attribute",
    "floatlab.compare",
    "floatlab.contrast",
    "floatlab.convert",
    "floatlab.decode",
    "floatlab.divide",
    "floatlab.dot",
    "floatlab.encode",
    "floatlab.equal",
    "floatlab.fma",
    "floatlab.from_integer",
    "floatlab.from_json",
    "floatlab.less",
    "floatlab.less_equal",
    "floatlab.matmul",
    "floatlab.multiply",
    "floatlab.multiply_then_add",
    "floatlab.parse_format",
    "floatlab.read",
    "floatlab.remainder",
    "floatlab.reveal",
    "floatlab.round_to_integral",
    "floatlab.sqrt",
    "floatlab.subtract",
    "floatlab.sum",
    "floatlab.to_integer",
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
LINES_WITH_ANY = 865
