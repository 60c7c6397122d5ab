"""Floor 3: reductions in any order, simulated bit for bit, and what the orders of real libraries are.

The rooms, from the doors down:

* `explain/`: which computations give observed results; `reveal/`: the order in which a function adds;
* `replay/`: candidate computations, and how many elements of a result each gives;
* `timing/`: products of the installed libraries, timed; `results/`: sums and products with their exact errors;
* `simulate/`: what a node does, on numbers and on arrays; `plan/`: orders and the expressions that name them.
"""

from floatlab.faces import face

__all__, __getattr__, __dir__ = face(__name__, {
    "plan.batches": "Batches",
    "plan.expressions": "parse_schedule",
    "plan.orders": "Schedule",
    "plan.plan": "Plan",
    "results.presets": "PRESETS",
    "results.products": "matmul",
    "results.reduction": "Reduction",
    "results.totals": "dot sum",
    "simulate.adders": "Adder Node Term fold",
    "simulate.compensated": "Compensated",
    "simulate.machines": "MACHINES Machine parse_machine",
    "simulate.tensor_cores": "TensorCore",
})  # fmt: skip
