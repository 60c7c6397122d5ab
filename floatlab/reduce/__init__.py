"""Floor 3: reductions in any order: plans, schedules, adders, models of matrix units, and their exact errors."""

from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.results.presets import PRESETS
from floatlab.reduce.results.reduction import Reduction
from floatlab.reduce.results.totals import dot, matmul, sum  # noqa: A004
from floatlab.reduce.simulate.adders import Adder, Node, Term, fold
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.machines import MACHINES, Machine, parse_machine
from floatlab.reduce.simulate.tensor_cores import TensorCore

__all__ = [
    "MACHINES", "PRESETS", "Adder", "Compensated", "Machine", "Node", "Plan", "Reduction", "Schedule", "Batches",
    "TensorCore", "Term", "dot", "fold", "matmul", "parse_machine", "parse_schedule", "sum",
]  # fmt: skip
