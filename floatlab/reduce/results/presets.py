"""Vectors from published examples of dot products, with their exact bits."""

from __future__ import annotations

from floatlab.formats import parse_format
from floatlab.numbers import Datum
from floatlab.record import Record

_SINGLE = parse_format("binary32")


class Preset(Record):
    """Two vectors of binary32 codes, and the publication that they are from."""

    name: str
    a: tuple[int, ...]
    b: tuple[int, ...]
    source: str

    @property
    def data(self) -> tuple[tuple[Datum, ...], tuple[Datum, ...]]:
        """The two vectors as `Datum` objects.

        >>> [float(x) for x in PRESETS["forum"].data[0]]
        [1.9076069593429565, -0.7862027287483215, 1.1473109722137451, 0.9604002237319946]
        """
        return tuple(Datum(_SINGLE, code) for code in self.a), tuple(Datum(_SINGLE, code) for code in self.b)


_PAPER = (
    "N. Whitehead, A. Fit-Florea, Precision & Performance: Floating Point and IEEE 754 Compliance for NVIDIA GPUs "
    "(NVIDIA, 2011)"
)
PRESETS = {
    "forum": Preset(
        "forum",
        (0x3FF42C77, 0xBF494495, 0x3F92DB16, 0x3F75DCCA),
        (0xBF6F7CEE, 0xBF3106DA, 0x3FDCBB6F, 0xBF35B25E),
        f"the vectors of {_PAPER} as they are printed, with seven digits, read into binary32",
    ),
    "paper": Preset(
        "paper",
        (0x3FF42C76, 0xBF494494, 0x3F92DB19, 0x3F75DCC9),
        (0xBF6F7CEE, 0xBF3106DA, 0x3FDCBB70, 0xBF35B25D),
        f"{_PAPER}: the only vectors that are printed as in the paper and give its four results",
    ),
}
