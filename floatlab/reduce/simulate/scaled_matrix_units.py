"""Published models of matrix units for products with block scales. Each model names its source.

A model's name is architecture.kind.output, such as `rtxblackwell.mxf8f6f4.f32`. The kinds have the names that the
instructions mma.sync and tcgen05.mma use. No model has been checked against recorded outputs of the hardware, so all
results are labelled "model, no hardware record".
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.lanes.parameters import SINGLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Datum
from floatlab.record import Record
from floatlab.reduce.simulate.scaled_core_engine import ScaledCore, ScaledNode

_NOW = "P. Xie et al., Bit-Accurate Modeling of GPU Matrix Multiply-Accumulate Units, arXiv:2511.10909v2, mmasim 2.1.1"
_FIRST = "P. Xie et al., MMA-Sim, arXiv:2511.10909v1, and its first program (November 2025)"
_HARDWARE = {
    "blackwell": ("B200", "tcgen05.mma"),
    "rtxblackwell": ("RTX PRO 6000 Blackwell, RTX 50", "mma.sync"),
}
_KINDS = {
    # From version 2 of the paper: formats of elements, format of scales, elements per scale, arithmetic.
    "mxf8f6f4": ("e4m3fn e5m2 e3m2fn e2m3fn e2m1fn", "e8m0fnu", 32, ScaledCore(32, 1, 25, -133)),
    "mxf4": ("e2m1fn", "e8m0fnu", 32, ScaledCore(64, 16, 35, -139)),
    "nvf4": ("e2m1fn", "e4m3fn", 16, ScaledCore(64, 16, 35, -139)),
}
_UNKNOWN_UNITS = {"cdna4": "MI350, MI355", "mi350": "MI350", "mi355": "MI355", "mi355x": "MI355X", "gfx950": "MI355"}


class ScaledUnit(Record):
    """A model of a matrix unit. Each factor consists of codes, and every `size` successive codes share a scale.

    Parameters
    ----------
    name : str
        Architecture, kind of instruction and output format: "blackwell.nvf4.f32".
    hardware : str
        The devices that the model describes, and the instruction.
    elements : tuple of Format
        The formats that a factor may have. A factor in another format is rounded to the first of these formats.
    scale : Format
        The format of the scales.
    size : int
        The number of successive elements that share a scale.
    core : ScaledCore
        The arithmetic of a node, which adds several products to the partial sum.
    source : str
        The publication that describes the model.
    note : str
        A note for users.
    """

    name: str
    hardware: str
    elements: tuple[Format, ...]
    scale: Format
    size: int
    core: ScaledCore
    source: str
    note: str

    @property
    def words(self) -> str:
        """The label of results of this model: its devices, its instruction and its source.

        >>> parse_scaled_unit("blackwell.nvf4.f32").words.partition(" from ")[0]
        'model, no hardware record, of B200, tcgen05.mma (blackwell.nvf4.f32)'
        """
        return f"model, no hardware record, of {self.hardware} ({self.name}) from {self.source}"

    def blocks(self, terms: int) -> int:
        """Return how many scales each factor has for `terms` products: `terms` / `size`, rounded up."""
        return -(-terms // self.size)

    def multiply_add(self, x: Source, y: Source, scales: tuple[Source, Source], c: Array | None = None) -> Array:
        """Return the codes of c + Σ x·y, where each product x·y is multiplied by a scale of x and a scale of y.

        x has the shape (rows, n), and the scales of x have the shape (rows, blocks). y has the shape (n, columns), and
        the scales of y have the shape (blocks, columns). `c` has binary32 codes, of shape (rows, columns), or is None
        for zeros.

        >>> from floatlab.arrays.conversion import encode
        >>> unit = parse_scaled_unit("rtxblackwell.mxf4.f32")
        >>> x = Source(encode([[6.0] * 32], "e2m1"), unit.elements[0])
        >>> scales = Source(encode([[2.0]], "e8m0"), unit.scale)
        >>> unit.multiply_add(x, x.replace(codes=x.codes.T), (scales, scales)).view(np.float32)
        array([[4608.]], dtype=float32)
        """
        start = np.zeros((len(x.codes), y.codes.shape[1]), np.uint32) if c is None else c
        return self.core.sums(x, y, scales, self.size, start)

    def nodes(self, x: Source, y: Source, scales: tuple[Source, Source]) -> list[ScaledNode]:
        """Return the nodes of one element of a product, from a row x, a column y, and the scales of both."""
        sides = [[Datum(side.format, code) for code in side.codes.tolist()] for side in (x, y, *scales)]
        factors = list(zip(sides[0], sides[1], strict=True))
        pairs = [(sides[2][at // self.size], sides[3][at // self.size]) for at in range(len(factors))]
        made: list[ScaledNode] = []
        for first in range(0, len(factors), self.core.block):
            some = slice(first, first + self.core.block)
            made.append(self.core.node(first, factors[some], pairs[some], made[-1].value if made else Datum(SINGLE, 0)))
        return made


def _units() -> dict[str, ScaledUnit]:
    found: dict[str, ScaledUnit] = {}
    for architecture, hardware in _HARDWARE.items():
        for kind, (elements, scale, size, core) in _KINDS.items():
            name = f"{architecture}.{kind}.f32"
            unit = ScaledUnit(
                name=name, hardware=", ".join(hardware), elements=tuple(map(parse_format, elements.split())),
                scale=parse_format(scale), size=size, core=core, source=_NOW,
                note=f"zeros count as 2^{core.zero_exponent} in the alignment; {name}.v1 leaves them out",
            )  # fmt: skip
            first = unit.replace(
                name=f"{name}.v1", core=core.replace(zero_exponent=None), source=_FIRST,
                note=f"zeros take no part in the alignment; {name} counts them as 2^{core.zero_exponent}",
            )  # fmt: skip
            found |= {unit.name: unit, first.name: first}
    return found


SCALED_UNITS = _units()


def is_scaled_unit(name: object) -> bool:
    """Return whether `name` is a `ScaledUnit`, or is the name of one.

    >>> is_scaled_unit("b200.nvf4.f32"), is_scaled_unit("hopper.f16.f32")
    (True, False)
    """
    return isinstance(name, ScaledUnit) or (isinstance(name, str) and _plain(name) in SCALED_UNITS)


def parse_scaled_unit(name: str | ScaledUnit) -> ScaledUnit:
    """Return the unit with this name; raises UnsupportedError for unknown names."""
    if isinstance(name, ScaledUnit):
        return name
    if _plain(name) not in SCALED_UNITS:
        raise UnsupportedError(f"machine {quoted(name)} has no block scales{guess(name, [*SCALED_UNITS])}")
    return SCALED_UNITS[_plain(name)]


def _plain(name: str) -> str:
    first, dot, rest = name.strip().lower().replace("fp32", "f32").partition(".")
    return f"{'blackwell' if first == 'b200' else first}{dot}{rest}"


def unmodelled(name: str) -> str | None:
    """Return a message if no model of the architecture in a machine's name has been published; otherwise None.

    >>> unmodelled("cdna4.mxf4.f32")
    'no model of the matrix units of MI350, MI355 has been published'
    """
    hardware = _UNKNOWN_UNITS.get(name.strip().lower().partition(".")[0])
    return None if hardware is None else f"no model of the matrix units of {hardware} has been published"
