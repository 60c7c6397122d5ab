"""The public names of floatlab.reduce, for type checkers; `__init__.py` imports each name on first use."""

from floatlab.reduce.plan.batches import Batches as Batches
from floatlab.reduce.plan.expressions import parse_schedule as parse_schedule
from floatlab.reduce.plan.plan import Plan as Plan
from floatlab.reduce.plan.schedules import Schedule as Schedule
from floatlab.reduce.results.presets import PRESETS as PRESETS
from floatlab.reduce.results.products import matmul as matmul
from floatlab.reduce.results.reduction import Reduction as Reduction
from floatlab.reduce.results.totals import dot as dot
from floatlab.reduce.results.totals import sum as sum  # noqa: A004
from floatlab.reduce.simulate.adders import Adder as Adder
from floatlab.reduce.simulate.adders import Node as Node
from floatlab.reduce.simulate.adders import Term as Term
from floatlab.reduce.simulate.adders import fold as fold
from floatlab.reduce.simulate.compensated import Compensated as Compensated
from floatlab.reduce.simulate.matrix_units import MACHINES as MACHINES
from floatlab.reduce.simulate.matrix_units import Machine as Machine
from floatlab.reduce.simulate.matrix_units import parse_machine as parse_machine
from floatlab.reduce.simulate.tensor_core_engine import TensorCore as TensorCore
