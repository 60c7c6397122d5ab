"""Quantities of a format, such as the machine epsilon, under the names that people search for."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers.limits import finfo
from floatlab.verbs.edits import literal_of
from floatlab.verbs.question import Question

# Each quantity, and other names for it.
QUANTITIES = {
    "Machine epsilon": ("eps", "epsilon", "ulp of 1", "unit roundoff"),
    "Largest number": ("max", "maximum", "overflow threshold"),
    "Smallest normal number": ("tiny", "underflow"),
    "Smallest subnormal number": ("denormal", "denorm_min"),
}


def quantity(name: str, format: Format) -> Question:
    """Return the question that shows a quantity of a format.

    >>> from floatlab import parse_format
    >>> from floatlab.verbs.registry import command_of
    >>> [command_of(quantity(name, parse_format("fp16"))) for name in ("Machine epsilon", "Largest number")]
    ['floatlab show 1/1024 --fp16', 'floatlab show 65504 --fp16']
    """
    info = finfo(format)
    if name == "Machine epsilon":
        return Question("show", (str(info.eps),), (format,))
    found = {
        "Largest number": info.max,
        "Smallest normal number": info.smallest_normal,
        "Smallest subnormal number": info.smallest_subnormal,
    }[name]
    return Question("show", (literal_of(found),), (format,))
