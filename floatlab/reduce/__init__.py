"""Layer 3: simulates reductions in any order, bit for bit, and finds the order of additions of real libraries.

The subpackages, from the highest layer to the lowest:

* `explain/`: which computations give observed results;
* `reveal/`: the order in which a function adds;
* `replay/`: candidate computations, and how many elements of a result each reproduces;
* `timing/`: how long matrix products take in the installed libraries;
* `results/`: sums and products with their exact errors;
* `simulate/`: how one addition of a tree (a node) is computed, for single numbers and for arrays;
* `plan/`: orders of addition, and the expressions that name them.
"""

from floatlab.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, {
    "plan.batches": "Batches",
    "plan.expressions": "parse_schedule",
    "plan.schedules": "Schedule",
    "plan.plan": "Plan",
    "results.presets": "PRESETS",
    "results.products": "matmul",
    "results.reduction": "Reduction",
    "results.totals": "dot sum",
    "simulate.adders": "Adder Node Term fold",
    "simulate.compensated": "Compensated",
    "simulate.matrix_units": "MACHINES Machine parse_machine",
    "simulate.tensor_core_engine": "TensorCore",
})  # fmt: skip
