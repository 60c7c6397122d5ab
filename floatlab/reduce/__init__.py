"""Floor 3: reductions in any order: plans, schedules, adders, models of matrix units, and their exact errors."""

from floatlab.reduce.adders import Adder, Node, Term, fold
from floatlab.reduce.compensated import Compensated
from floatlab.reduce.expressions import parse_schedule
from floatlab.reduce.machines import MACHINES, Machine, parse_machine
from floatlab.reduce.plan import Plan
from floatlab.reduce.presets import PRESETS
from floatlab.reduce.reduction import Reduction
from floatlab.reduce.schedules import Schedule
from floatlab.reduce.steps import Steps
from floatlab.reduce.tensor_cores import TensorCore
from floatlab.reduce.totals import dot, matmul, sum  # noqa: A004

__all__ = [
    "MACHINES", "PRESETS", "Adder", "Compensated", "Machine", "Node", "Plan", "Reduction", "Schedule", "Steps",
    "TensorCore", "Term", "dot", "fold", "matmul", "parse_machine", "parse_schedule", "sum",
]  # fmt: skip
