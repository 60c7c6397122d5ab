"""Machines: published models of matrix units. Each model in `MACHINES` names its source.

A model's name is architecture.input.output, such as `hopper.f16.f32`; `h100.f16.f32` names the same model.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes.parameters import SINGLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Context
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.scaled_matrix_units import SCALED_UNITS, is_scaled_unit, unmodelled
from floatlab.reduce.simulate.simulation import evaluate
from floatlab.reduce.simulate.tensor_core_engine import TensorCore, TensorEngine

MMA_SIM = "P. Xie et al., MMA-Sim, arXiv:2511.10909"
_MMASIM_2 = f"{MMA_SIM}v2, mmasim 2.1.1"
KHATTAK = "F. A. Khattak and M. Mikaitis, Accurate models of NVIDIA tensor cores, arXiv:2512.07004"
_BOTH = f"{KHATTAK}; {MMA_SIM}"


@methods_in_default_mode
class Machine(Record):
    """A model of a matrix unit for one input and one output format.

    Parameters
    ----------
    name : str
        Architecture, input and output format: "hopper.f16.f32".
    hardware : tuple of str
        The devices that the model describes.
    terms : Format
        The format of the factors.
    order : str
        The schedule of the additions, as an expression.
    adder : TensorCore or Adder
        The arithmetic of each node.
    source : str
        The publication that describes the model.
    is_checked : bool
        Whether the model reproduces recorded outputs of the hardware, bit for bit.
    note : str
        A note for users.
    adds_c_last : bool
        Whether the accumulator's initial value c is added at the end, and this sum is rounded to nearest. Otherwise c
        is added in the first block.
    """

    name: str
    hardware: tuple[str, ...]
    terms: Format
    order: str
    adder: TensorCore | Adder
    source: str
    is_checked: bool
    note: str = ""
    adds_c_last: bool = False

    @property
    def schedule(self) -> Schedule:
        """The order of the additions."""
        return parse_schedule(self.order)

    @property
    def words(self) -> str:
        """The label of results of this model: its devices and its source.

        >>> parse_machine("h100.f16.f32").words
        'model of H100, H200 (hopper.f16.f32) from F. A. Khattak and M. Mikaitis, Accurate models of NVIDIA tensor \
cores, arXiv:2512.07004; P. Xie et al., MMA-Sim, arXiv:2511.10909'
        >>> parse_machine("mi100.f16.f32").words
        'model, no hardware record, of MI100 (cdna1.f16.f32) from P. Xie et al., MMA-Sim, arXiv:2511.10909'
        """
        kind = "model" if self.is_checked else "model, no hardware record,"
        return f"{kind} of {', '.join(self.hardware)} ({self.name}) from {self.source}"

    @property
    def reading(self) -> Context:
        """The rounding of inputs to the format `terms`: truncation for tf32, rounding to nearest for other formats."""
        return Context("RTZ") if self.terms.name == "tf32" else Context()

    def multiply_add(self, x: Source, y: Source, c: Source) -> Array:
        """Return the codes of c + Σ x·y as the unit computes them; their shapes are (n, *batch) and, for c, `batch`.

        Raises UnsupportedError if `adder` is not a `TensorCore`.
        """
        core = self.adder
        if not isinstance(core, TensorCore):
            raise UnsupportedError(f"{self.name} has no fused sum; use dot to simulate it")
        engine, last = TensorEngine((x, y), core), np.asarray(c.codes)[None]
        if self.adds_c_last:
            sums = evaluate(self.schedule.batches(engine.terms), engine)[None]
            return np.asarray(engine.add(sums, last, np.zeros(1, np.int64))[0])
        (size,) = self.schedule._values()
        for start in range(0, engine.terms, size):
            last = engine.block(np.arange(start, min(start + size, engine.terms))[:, None], [last])
        return np.asarray(last[0])


_SHORT = {
    "f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2", "f32": "binary32",
    "e4m3fnuz": "e4m3fnuz", "e5m2fnuz": "e5m2fnuz",
}  # fmt: skip


_HARDWARE = {
    "volta": ("V100",), "turing": ("T4",), "ampere": ("A100", "A2"), "ada": ("L40S", "RTX 4000 Ada"),
    "hopper": ("H100", "H200"), "blackwell": ("B200",), "rtxblackwell": ("RTX PRO 6000 Blackwell",),
    "cdna1": ("MI100",), "cdna2": ("MI210", "MI250"), "cdna3": ("MI300", "MI300A", "MI300X"),
}  # fmt: skip


def _core(
    block: int, fraction_bits: int, output: str = "f32", result_bits: int | None = None
) -> tuple[str, TensorCore]:
    """Return the order and the arithmetic of a tensor core that adds `block` products and the partial sum at once."""
    direction = "RTZ" if output == "f32" else "RNE"
    return f"fused({block})", TensorCore(parse_format(_SHORT[output]), fraction_bits, direction, result_bits)


def _rows(
    family: str, inputs: str, order: str, adder: TensorCore | Adder, note: str = "", *, source: str = _BOTH,
    adds_c_last: bool = False,
) -> list[Machine]:  # fmt: skip
    output = {"binary32": "f32", "binary16": "f16"}[adder.accumulator.name]
    return [
        Machine(
            name=f"{family}.{name}.{output}", hardware=_HARDWARE[family], terms=parse_format(_SHORT[name]),
            order=order, adder=adder, source=source, is_checked=KHATTAK in source, note=note, adds_c_last=adds_c_last,
        )
        for name in inputs.split()
    ]  # fmt: skip


_FLUSHING = Adder("binary32", context=Context(flush_inputs=True, flush_results=True))
_EXACT = Adder("binary32", fma=True)
_ONCE = "and the accumulator are exact, and rounded once to nearest even"
_CUT = "the result is cut after 13 fraction digits"
_FLUSHED = "subnormal numbers are flushed, before and after each operation"
# mma.sync widens these factors to binary16. The unit for binary16 then takes every 32 products in two passes of 16.
_WIDENED = "blocked(32, interleaved(4, 2))", _core(16, 25, "f16")[1]
_INTERLEAVED = f"{KHATTAK}, with its MATLAB program (inter_pattern)"
_TWICE = "mma.sync, which widens the factors to binary16 and uses that unit twice; c is added afterwards, to nearest"
_APART = "recorded outputs take c afterwards, to nearest"
_TWO_SUMS = "products are added first; their sum and the accumulator are cut toward −∞"
_THREE_SUMS = "even and odd products are added apart, then their sums, then the accumulator; sums are cut toward −∞"
_OLDER = "the model .v1 keeps one bit less of their sum, which matters in rare ties"
_CDNA3 = TensorCore(SINGLE, 24, "RNE", sum_bits=31, groups=1)

MACHINES = {
    row.name: row
    for row in (
        *_rows("volta", "f16", *_core(4, 23)),
        *_rows("volta", "f16", *_core(4, 23, "f16")),
        *_rows("turing", "f16", *_core(8, 24), source=MMA_SIM),
        *_rows("turing", "f16", *_core(8, 24, "f16"), source=MMA_SIM),
        *_rows("ampere", "f16 bf16", *_core(8, 24)),
        *_rows("ampere", "tf32", *_core(4, 24)),
        *_rows("ampere", "f16", *_core(8, 24, "f16")),
        *_rows("ada", "f16 bf16", *_core(8, 24)),
        *_rows("ada", "tf32", *_core(4, 24)),
        *_rows("ada", "f16", *_core(8, 24, "f16")),
        *_rows("ada", "e4m3 e5m2", *_core(16, 13, result_bits=13), _CUT),
        *_rows("ada", "e4m3 e5m2", *_core(16, 13, "f16")),
        *_rows("hopper", "f16 bf16", *_core(16, 25)),
        *_rows("hopper", "tf32", *_core(8, 25)),
        *_rows("hopper", "f16", *_core(16, 25, "f16")),
        *_rows("hopper", "e4m3 e5m2", *_core(32, 13, result_bits=13), f"{_CUT}; recorded outputs are without c"),
        *_rows("hopper", "e4m3 e5m2", *_WIDENED, _TWICE, source=_INTERLEAVED, adds_c_last=True),
        *_rows("blackwell", "f16 bf16", *_core(16, 25)),
        *_rows("blackwell", "tf32", *_core(8, 25)),
        *_rows("blackwell", "f16", *_core(16, 25, "f16")),
        *_rows("blackwell", "e4m3 e5m2", *_core(32, 25), _APART, adds_c_last=True),
        *_rows("blackwell", "e4m3 e5m2", *_WIDENED, _TWICE, source=_INTERLEAVED, adds_c_last=True),
        *_rows("rtxblackwell", "f16 bf16", *_core(16, 25), source=MMA_SIM),
        *_rows("rtxblackwell", "tf32", *_core(8, 25), source=MMA_SIM),
        *_rows("rtxblackwell", "f16", *_core(16, 25, "f16"), source=MMA_SIM),
        *_rows("rtxblackwell", "e4m3 e5m2", *_core(32, 25), source=MMA_SIM),
        *_rows("rtxblackwell", "e4m3 e5m2", *_core(32, 25, "f16"), source=MMA_SIM),
        *_rows("cdna1", "f16", "fused(4)", _EXACT, f"sums of four products {_ONCE}", source=MMA_SIM),
        *_rows("cdna1", "bf16", "fused(2)", _EXACT, f"sums of two products {_ONCE}", source=MMA_SIM),
        *_rows("cdna2", "f16", "blocked(4, pairwise)", _FLUSHING, _FLUSHED, source=MMA_SIM),
        *_rows("cdna2", "bf16", "blocked(4, pairwise)", _FLUSHING, f"{_FLUSHED}; instructions ending in _1k",
               source=MMA_SIM),
        *_rows("cdna3", "f16 bf16", "fused(8)", _CDNA3, f"{_TWO_SUMS}; {_OLDER}", source=_MMASIM_2),
        *_rows("cdna3", "tf32", "fused(4)", _CDNA3, f"{_TWO_SUMS}; {_OLDER}", source=_MMASIM_2),
        *_rows("cdna3", "e4m3fnuz e5m2fnuz", "fused(16)", _CDNA3.replace(groups=2), _THREE_SUMS, source=_MMASIM_2),
    )
}  # fmt: skip

# Models of other instructions of the same units, and earlier models. A user can choose them by name. A search for the
# unit that computed a result does not try them.
_FP8_UNITS = (
    ("wgmma", _rows("hopper", "e4m3 e5m2", *_core(32, 13, "f16"), source=_MMASIM_2)),
    ("tcgen05", _rows("blackwell", "e4m3 e5m2", *_core(32, 25), source=_MMASIM_2)),
    ("tcgen05", _rows("blackwell", "e4m3 e5m2", *_core(32, 25, "f16"), source=_MMASIM_2)),
)
_OLD_CDNA3 = {"adder": _CDNA3.replace(groups=0), "source": f"{MMA_SIM}v1", "note": f"{_TWO_SUMS}; an earlier model"}
VARIANTS = {
    row.name: row
    for row in (
        *(row.replace(name=f"{row.name}.v1", **_OLD_CDNA3) for row in MACHINES.values() if row.adder == _CDNA3),
        *(
            row.replace(name=f"{row.name}.{instruction}", note=f"{instruction}, with c in the first block")
            for instruction, rows in _FP8_UNITS
            for row in rows
        ),
    )
}

_FAMILIES = {product.lower(): family for family, products in _HARDWARE.items() for product in products}


def parse_machine(name: str | Machine) -> Machine:
    """Return the machine with this name; raises UnsupportedError for unknown names.

    >>> parse_machine("A100.bf16.f32").order, parse_machine("ampere.bf16.f32").adder.fraction_bits
    ('fused(8)', 24)
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):
        raise UnsupportedError(f"machine must be a name such as hopper.f16.f32, not {type(name).__name__}")
    first, dot, rest = name.strip().lower().replace("fp16", "f16").replace("fp32", "f32").partition(".")
    plain = f"{_FAMILIES.get(first, first)}{dot}{rest}"
    if plain in MACHINES or plain in VARIANTS:
        return MACHINES.get(plain) or VARIANTS[plain]
    if is_scaled_unit(name):
        raise UnsupportedError(f"machine {quoted(name)} multiplies blocks with scales: use matmul, with scales")
    if why := unmodelled(name):
        raise UnsupportedError(f"machine {quoted(name)}: {why}")
    known = sorted([*MACHINES, *VARIANTS, *SCALED_UNITS])
    families = dict.fromkeys(row.partition(".")[0] for row in known)
    hint = guess(plain, known) or f"; names look like hopper.f16.f32, and begin with one of {' '.join(families)}"
    if (family := plain.partition(".")[0]) in families:
        hint = f": there are {' '.join(row for row in known if row.startswith(f'{family}.'))}"
    raise UnsupportedError(f"machine {quoted(name)} is not in the table{hint}")
