"""Machines: published models of matrix units, one row each with its source. Results are always shown as a model's.

A row's name is architecture.input.output, as in `hopper.f16.f32`; `h100.f16.f32` is the same row.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes.reading import SINGLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import methods_in_default_mode
from floatlab.numbers import Context
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.tensor_cores import TensorCore, TensorEngine

MMA_SIM = "P. Xie et al., MMA-Sim, arXiv:2511.10909"
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
        The products that the model describes.
    terms : Format
        The format of the factors.
    order : str
        The schedule of the additions, as an expression.
    adder : TensorCore or Adder
        What each node does.
    source : str
        The publication that the model follows.
    is_checked : bool
        Whether the model gives recorded outputs of the hardware bit for bit.
    note : str
        A remark for users.
    adds_apart : bool
        Whether c is added afterwards, to nearest, instead of in the first block.
    """

    name: str
    hardware: tuple[str, ...]
    terms: Format
    order: str
    adder: TensorCore | Adder
    source: str
    is_checked: bool
    note: str = ""
    adds_apart: bool = False

    @property
    def schedule(self) -> Schedule:
        """The order of the terms."""
        return parse_schedule(self.order)

    @property
    def words(self) -> str:
        """What to say wherever results of the model are shown.

        >>> parse_machine("h100.f16.f32").words
        'model of H100, H200 (hopper.f16.f32) from F. A. Khattak and M. Mikaitis, Accurate models of NVIDIA tensor \
cores, arXiv:2512.07004; P. Xie et al., MMA-Sim, arXiv:2511.10909'
        """
        return f"model of {', '.join(self.hardware)} ({self.name}) from {self.source}"

    @property
    def reading(self) -> Context:
        """How wider numbers become terms: tf32 units ignore the digits that they do not have."""
        return Context("RTZ") if self.terms.name == "tf32" else Context()

    def multiply_add(self, x: Source, y: Source, c: Source) -> Array:
        """Return the codes of Σ x·y + c as one instruction gives them, for factors (n, *batch) and c (*batch).

        Raises UnsupportedError for units that are no tensor cores.
        """
        core = self.adder
        if not isinstance(core, TensorCore):
            raise UnsupportedError(f"{self.name} has no fused sum: dot simulates it")
        engine = TensorEngine((x, y), core)
        size = self.schedule._values()[0]
        found = np.asarray(c.codes)[None]
        if self.adds_apart:
            found = np.zeros_like(found)
        for start in range(0, len(x.codes), size):
            found = engine.block(np.arange(start, min(start + size, len(x.codes)))[:, None], [found])
        if self.adds_apart:
            found = engine.add(found, np.asarray(c.codes)[None], np.zeros(1, np.int64))
        row: Array = found[0]
        return row


_SHORT = {"f16": "binary16", "bf16": "bfloat16", "tf32": "tf32", "e4m3": "e4m3fn", "e5m2": "e5m2", "f32": "binary32"}


def _core(
    family: str, hardware: tuple[str, ...], inputs: str, block: int, bits: int, source: str, checked: bool,
    output: str = "f32", note: str = "", result_bits: int | None = None, apart: bool = False,
) -> list[Machine]:  # fmt: skip
    into = parse_format(_SHORT[output])
    direction = "RTZ" if output == "f32" else "RNE"
    core = TensorCore(into, bits, direction, result_bits)
    return [
        Machine(
            f"{family}.{each}.{output}", hardware, parse_format(_SHORT[each]), f"fused({block})", core, source, checked,
            note, apart,
        )
        for each in inputs.split()
    ]  # fmt: skip


_FLUSHING = Context(flush_inputs=True, flush_results=True)
_CDNA2 = "subnormal numbers are flushed, before and after each operation"

MACHINES = {
    row.name: row
    for row in (
        *_core("volta", ("V100",), "f16", 4, 23, _BOTH, True),
        *_core("volta", ("V100",), "f16", 4, 23, _BOTH, True, "f16"),
        *_core("turing", ("T4",), "f16", 8, 24, MMA_SIM, False),
        *_core("turing", ("T4",), "f16", 8, 24, MMA_SIM, False, "f16"),
        *_core("ampere", ("A100", "A2"), "f16 bf16", 8, 24, _BOTH, True),
        *_core("ampere", ("A100", "A2"), "tf32", 4, 24, _BOTH, True),
        *_core("ampere", ("A100", "A2"), "f16", 8, 24, _BOTH, True, "f16"),
        *_core("ada", ("L40S", "RTX 4000 Ada"), "f16 bf16", 8, 24, _BOTH, True),
        *_core("ada", ("L40S", "RTX 4000 Ada"), "tf32", 4, 24, _BOTH, True),
        *_core("ada", ("L40S", "RTX 4000 Ada"), "f16", 8, 24, _BOTH, True, "f16"),
        *_core(
            "ada", ("L40S", "RTX 4000 Ada"), "e4m3 e5m2", 16, 13, _BOTH, True,
            note="the result is cut after 13 fraction digits", result_bits=13,
        ),
        *_core("ada", ("L40S", "RTX 4000 Ada"), "e4m3 e5m2", 16, 13, _BOTH, True, "f16"),
        *_core("hopper", ("H100", "H200"), "f16 bf16", 16, 25, _BOTH, True),
        *_core("hopper", ("H100", "H200"), "tf32", 8, 25, _BOTH, True),
        *_core("hopper", ("H100", "H200"), "f16", 16, 25, _BOTH, True, "f16"),
        *_core(
            "hopper", ("H100", "H200"), "e4m3 e5m2", 32, 13, _BOTH, True,
            note="the result is cut after 13 fraction digits; recorded outputs are without c", result_bits=13,
        ),
        *_core("blackwell", ("B200",), "f16 bf16", 16, 25, _BOTH, True),
        *_core("blackwell", ("B200",), "tf32", 8, 25, _BOTH, True),
        *_core("blackwell", ("B200",), "f16", 16, 25, _BOTH, True, "f16"),
        *_core(
            "blackwell", ("B200",), "e4m3 e5m2", 32, 25, _BOTH, True,
            note="recorded outputs take c afterwards, to nearest", apart=True,
        ),
        Machine(
            "cdna1.f16.f32", ("MI100",), parse_format("binary16"), "fused(4)", Adder("binary32", fma=True), MMA_SIM,
            False, "sums of four products and the accumulator are exact, and rounded once to nearest even",
        ),
        Machine(
            "cdna1.bf16.f32", ("MI100",), parse_format("bfloat16"), "fused(2)", Adder("binary32", fma=True), MMA_SIM,
            False, "sums of two products and the accumulator are exact, and rounded once to nearest even",
        ),
        Machine(
            "cdna2.f16.f32", ("MI210", "MI250"), parse_format("binary16"), "blocked(4, pairwise)",
            Adder("binary32", context=_FLUSHING), MMA_SIM, False, _CDNA2,
        ),
        Machine(
            "cdna2.bf16.f32", ("MI210", "MI250"), parse_format("bfloat16"), "blocked(4, pairwise)",
            Adder("binary32", context=_FLUSHING), MMA_SIM, False, f"{_CDNA2}; instructions ending in _1k",
        ),
        *(
            Machine(
                f"cdna3.{each}.f32", ("MI300",), parse_format(_SHORT[each]), f"fused({block})",
                TensorCore(SINGLE, 24, "RNE", sum_bits=31), MMA_SIM, False,
                "products are added first; their sum and the accumulator are cut toward −∞",
            )
            for each, block in (("f16", 8), ("bf16", 8), ("tf32", 4))
        ),
    )
}  # fmt: skip

# What is recorded but reproduced by no model that is known: nothing is claimed for these.
NOT_MODELLED = (
    "hopper.e4m3.f16", "hopper.e5m2.f16", "blackwell.e4m3.f16", "blackwell.e5m2.f16",
)  # fmt: skip

_FAMILIES = {
    "v100": "volta", "t4": "turing", "a100": "ampere", "a2": "ampere", "l40s": "ada", "h100": "hopper",
    "h200": "hopper", "b200": "blackwell", "mi100": "cdna1", "mi210": "cdna2", "mi250": "cdna2",
    "mi300": "cdna3",
}  # fmt: skip


def parse_machine(name: str | Machine) -> Machine:
    """Return the row of a name; raises UnsupportedError for an unknown one.

    >>> parse_machine("A100.bf16.f32").order, parse_machine("ampere.bf16.f32").adder.fraction_bits
    ('fused(8)', 24)
    """
    if isinstance(name, Machine):
        return name
    if not isinstance(name, str):
        raise UnsupportedError(f"machine is a name such as hopper.f16.f32, not {type(name).__name__}")
    plain = name.strip().lower()
    for long, short in (("fp16", "f16"), ("fp32", "f32")):
        plain = plain.replace(long, short)
    first, dot, rest = plain.partition(".")
    plain = f"{_FAMILIES.get(first, first)}{dot}{rest}"
    if plain in MACHINES:
        return MACHINES[plain]
    if plain in NOT_MODELLED:
        raise UnsupportedError(f"machine {plain}: no published model reproduces what was recorded on it")
    known = sorted(MACHINES)
    same = [row for row in known if row.startswith(plain.partition(".")[0] + ".")]
    families = " ".join(dict.fromkeys(row.partition(".")[0] for row in known))
    hint = guess(plain, known) or f"; names look like hopper.f16.f32, and begin with one of {families}"
    if same:
        hint = f": there are {' '.join(same)}"
    raise UnsupportedError(f"machine {quoted(name)} is not in the table{hint}")
