"""What a comparison of two arrays finds: `Differences` and its parts."""

from __future__ import annotations

from floatlab.arrays.compare.distances import Ulps
from floatlab.arrays.compare.structure import Structure
from floatlab.arrays.compare.tolerances import Extreme, Tolerance
from floatlab.formats import Format
from floatlab.presenter import Answering
from floatlab.record import Record


class Operand(Record):
    """One of two arrays that were compared."""

    name: str
    shape: tuple[int, ...]
    kind: str  # its dtype where NumPy has it, else its format
    format: Format


class Specials(Record):
    """How many elements differ in a NaN, an infinity or the sign of a zero."""

    nan_in_actual: int
    nan_in_expected: int
    nan_in_both: int
    infinity: int  # one side infinite and the other not, or infinities of opposite signs
    sign_of_zero: int


class ErrorSummary(Record):
    """The largest and the mean of errors of one kind, over the `count` elements that have such errors."""

    largest: Extreme | None
    mean: float | None
    count: int


NO_ERRORS = ErrorSummary(None, None, 0)


class ComparedElement(Record):
    """One element of both arrays: values in binary64, codes, and how they differ; `share` as in Tolerance."""

    index: tuple[int, ...]
    actual: float
    expected: float
    actual_code: int
    expected_code: int
    absolute: float
    ulps: int
    share: float


class Differences(Answering, Record):
    """What `compare` found. Errors are computed in binary64, over elements that are finite in both arrays.

    Where the shapes do not broadcast, `shape` is None and nothing was measured.
    """

    actual: Operand
    expected: Operand
    shape: tuple[int, ...] | None
    size: int
    equal_bits: int | None  # None where the formats differ
    equal: int  # the same number, whatever the sign of zero; NaNs are none
    specials: Specials
    absolute: ErrorSummary
    relative: ErrorSummary  # over elements whose expected value is not zero
    ulps: Ulps | None
    allclose: Tolerance
    assert_close: Tolerance
    worst: tuple[ComparedElement, ...]  # by share of NumPy's tolerance
    differing: Structure | None
    failing: Structure | None
    diagnosis: object = None  # why they differ, where their inputs are known: a Diagnosis
    _ASKS = ".within (NumPy's tolerance), .assert_close.passes (PyTorch's), or whether .equal is .size"

    def __repr__(self) -> str:
        """Show how many elements are beyond tolerance."""
        names = f"{self.actual.name}, {self.expected.name}"
        if self.shape is None:
            return f"Differences({names}: shapes {self.actual.shape} and {self.expected.shape} do not go together)"
        beyond = f"{self.allclose.failing:,} of {self.size:,} elements beyond"
        return f"Differences({names}: {beyond} rtol {self.allclose.rtol:g}, atol {self.allclose.atol:g})"

    @property
    def within(self) -> bool:
        """Whether everything is within NumPy's tolerance."""
        return self.allclose.passes
