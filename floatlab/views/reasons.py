"""Why each step of a derivation does what it does, in sentences with its own numbers in them."""

from __future__ import annotations

from floatlab.arith import Contrast
from floatlab.numbers import Derivation
from floatlab.views.page import Line, line


def reason(derivation: Derivation, index: int) -> Line:
    """Say why the step at this place does what it does."""
    return line(f"{derivation.operation} {index}")


def verdict_reason(contrast: Contrast) -> Line:
    """Say why the two ways give the same or different bits."""
    return line(str(contrast.same))
