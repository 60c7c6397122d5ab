"""Comparisons (IEEE 754-2019 clause 5.11): the four relations of two operands, and quiet and signaling predicates."""

from __future__ import annotations

from enum import Enum

from floatlab.arith.operands import DerivationBuilder, begin, counts_as_nan, in_own_format
from floatlab.formats import Format
from floatlab.numbers.datum import Datum, NumberClass
from floatlab.numbers.rounding import DEFAULT, Context, Flags
from floatlab.presenter import Answering
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers.rounding import AnyContext


class Relation(Enum):
    """The relation of two numbers or NaNs. For any two of them, exactly one of the four relations holds."""

    LESS = "less"
    EQUAL = "equal"
    GREATER = "greater"
    UNORDERED = "unordered"


class Comparison(Answering, Record):
    """The result of a predicate; it can be used as a truth value."""

    operation: str
    operands: tuple[Datum, ...]
    context: Context
    relation: Relation
    holds: bool
    flags: Flags
    literals: tuple[str | None, ...] = ()

    def __repr__(self) -> str:
        """Show the operands and their relation."""
        a, b = self.operands
        return f"Comparison({self.operation}: {a!r}, {b!r}: {self.relation.value}, {self.holds})"

    def __bool__(self) -> bool:
        """Return whether the predicate holds."""
        return self.holds


def compare(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT, signaling: bool = False
) -> Comparison:
    """Return a Comparison: its `relation` is less, equal, greater or unordered; its truth value says whether a = b.

    A NaN is unordered with everything, and −0 equals +0. If `signaling` is true, any NaN raises invalid; otherwise only
    signaling NaNs do. The operands may have different formats: their values are compared exactly.

    >>> compare("-0", "0", "fp16").relation.value, compare("nan", "1", "fp16").relation.value
    ('equal', 'unordered')
    """
    return _compared("compare", (Relation.EQUAL,), (a, b), format, context, signaling)


def _compared(
    operation: str,
    holding: tuple[Relation, ...],
    values: tuple[object, object],
    format: Format | str | None,
    context: AnyContext,
    signaling: bool,
) -> Comparison:
    if format is None:  # a comparison needs no common format, so the operands keep theirs
        given = [in_own_format(value) for value in values]
        format = next((value.format for value in given if isinstance(value, Datum)), None)
    work = begin(operation, values, format, context)
    x, y = work.operands
    flags = Flags.NONE
    if counts_as_nan(x) or counts_as_nan(y):
        relation = Relation.UNORDERED
        if signaling or any(d.is_signaling or d.number_class is NumberClass.UNSUPPORTED for d in (x, y)):
            flags = Flags.INVALID
    else:
        relation = _relation(work)
    return Comparison(operation, work.operands, work.context, relation, relation in holding, flags, work.literals)


def _relation(work: DerivationBuilder) -> Relation:
    x, y = work.operands
    if x.is_infinite or y.is_infinite:
        left, right = ((-1 if d.sign_bit else 1) if d.is_infinite else 0 for d in (x, y))
        return Relation.LESS if left < right else Relation.EQUAL if left == right else Relation.GREATER
    a, b = work.exact(0), work.exact(1)
    return Relation.EQUAL if a == b else Relation.LESS if a < b else Relation.GREATER


def equal(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT, signaling: bool = False
) -> Comparison:
    """Return whether a = b.

    Parameters
    ----------
    a, b : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Numbers, whose formats may differ: the values are compared exactly.
    format : Format or str, optional
        Format into which text is read. Default: the format of the first operand that has one, otherwise binary32.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.
    signaling : bool, optional
        Whether quiet NaNs raise invalid, too. Default: only signaling NaNs do.

    Returns
    -------
    Comparison
        It can be used as a truth value, and has `.relation` and `.flags`.

    Raises
    ------
    LiteralError, FormatError, ContextError
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 5.11 (compareQuietEqual, compareSignalingEqual).
    A NaN is unordered with everything, and −0 equals +0.

    Examples
    --------
    >>> bool(equal("0.1", "0.2", format="fp16")), bool(equal("-0", "0", format="fp16"))
    (False, True)
    """
    return _compared("equal", (Relation.EQUAL,), (a, b), format, context, signaling)


def less(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT, signaling: bool = False
) -> Comparison:
    """Return whether a < b.

    Parameters
    ----------
    a, b : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Numbers, whose formats may differ: the values are compared exactly.
    format : Format or str, optional
        Format into which text is read. Default: the format of the first operand that has one, otherwise binary32.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.
    signaling : bool, optional
        Whether quiet NaNs raise invalid, too. Default: only signaling NaNs do.

    Returns
    -------
    Comparison
        It can be used as a truth value, and has `.relation` and `.flags`.

    Raises
    ------
    LiteralError, FormatError, ContextError
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 5.11 (compareQuietLess, compareSignalingLess).
    A NaN is unordered with everything, and −0 equals +0.

    Examples
    --------
    >>> bool(less("1", "2", format="fp16")), less("nan", "1", signaling=True, format="fp16").flags.names
    (True, ['invalid'])
    """
    return _compared("less", (Relation.LESS,), (a, b), format, context, signaling)


def less_equal(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT, signaling: bool = False
) -> Comparison:
    """Return whether a ≤ b.

    Parameters
    ----------
    a, b : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Numbers, whose formats may differ: the values are compared exactly.
    format : Format or str, optional
        Format into which text is read. Default: the format of the first operand that has one, otherwise binary32.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.
    signaling : bool, optional
        Whether quiet NaNs raise invalid, too. Default: only signaling NaNs do.

    Returns
    -------
    Comparison
        It can be used as a truth value, and has `.relation` and `.flags`.

    Raises
    ------
    LiteralError, FormatError, ContextError
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 5.11 (compareQuietLessEqual, compareSignalingLessEqual).
    A NaN is unordered with everything, and −0 equals +0.

    Examples
    --------
    >>> bool(less_equal("2", "2", format="fp16"))
    True
    """
    return _compared("less_equal", (Relation.LESS, Relation.EQUAL), (a, b), format, context, signaling)
