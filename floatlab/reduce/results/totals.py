"""`sum` of a row of terms, and `dot` of two rows: all bits follow from a stated order of additions and roundings."""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum, convert
from floatlab.numbers.rounding import AnyContext
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.results.inputs import Settings, check_row, read_operands
from floatlab.reduce.results.reduction import Reduction, last_context
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.matrix_units import Machine
from floatlab.reduce.simulate.simulation import AnyAdder, simulate


def reduce_terms(operation: str, sides: Sides, settings: Settings) -> Reduction:
    """Return the sum of one row of terms, or the dot product of two rows; raises errors as `sum` does."""
    schedule, adder = settings.schedule, settings.adder
    accumulated = result = Datum(adder.accumulator, int(simulate(sides, schedule, adder)[()]))
    if accumulated.format != settings.format:
        result = convert(accumulated, settings.format, last_context(schedule, adder, len(sides[0].codes))).result
    return Reduction(operation, sides, schedule, adder, accumulated, result, settings.machine)


@in_default_mode
def reorder(found: Reduction, schedule: Schedule | None = None, adder: AnyAdder | None = None) -> Reduction:
    """Return the sum of the same terms in another order, or with another adder; raises errors as `sum` does.

    >>> from floatlab.reduce.plan.schedules import PAIRWISE
    >>> found = sum([2**24, 1, 1, 1])
    >>> float(found), float(reorder(found, PAIRWISE))
    (16777216.0, 16777218.0)
    """
    settings = Settings(found.result.format, adder or found.adder, schedule or found.schedule, None)
    return reduce_terms(found.operation, found.sides, settings)


@in_default_mode
def sum(
    x: object,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    terms: Format | str | None = None,
    accumulator: Format | str | None = None,
    adder: str = "rounded",
    context: AnyContext = None,
) -> Reduction:
    """Return the sum of a row of numbers, added in a stated order.

    Parameters
    ----------
    x : array_like
        The terms, one row of n ≥ 1 numbers. An array has the format of its dtype, and a list of Python floats has
        binary64. Text, fractions and integers have no format.
    schedule : str, Schedule or Plan, optional
        The order of the additions (see `parse_schedule`); serial by default.
    format : Format or str, optional
        The result's format. By default, it is the smallest format that contains the formats of all terms, or binary32
        if no term has a format.
    terms : Format or str, optional
        The format to which terms are converted. By default, terms keep their format if `format` contains it; other
        terms are converted to `format`. The conversion rounds to nearest. Integers must be exactly representable.
    accumulator : Format or str, optional
        The format of partial sums; by default, `format`. If the two formats differ, the last sum is rounded to
        `format`.
    adder : str
        "rounded", or the name of a compensated sum, which is serial: "kahan", "neumaier", "klein" or "double".
    context : Context or str, optional
        The rounding of all additions and products, and of the result: a Context, or the name of a direction. By
        default, rounding is to nearest even.

    Returns
    -------
    Reduction
        The result, with the plan, the nodes and their errors.

    Raises
    ------
    PlanError
        If the schedule is invalid, or has no order for n terms.
    UnsupportedError, FormatError, LiteralError
        If the terms cannot be read, or the adder cannot add them.

    Examples
    --------
    >>> x = [2**24, 1, 1, 1]
    >>> [float(sum(x, schedule)) - 2**24 for schedule in ("serial", "reversed", "pairwise")]
    [0.0, 4.0, 2.0]
    >>> [float(sum(x, adder=adder)) - 2**24 for adder in ("kahan", "double")]
    [4.0, 4.0]
    >>> sum([0.1] * 10, format="bf16", accumulator="fp32").result
    Datum(bfloat16 0x3f80 = 1)
    """
    sources, settings = read_operands(
        {"x": x}, schedule, format, terms=terms, accumulator=accumulator, adder=adder, context=context
    )
    check_row(sources[0], "x")
    return reduce_terms("sum", sources, settings)


@in_default_mode
def dot(
    a: object,
    b: object,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    fma: bool = False,
    terms: Format | str | None = None,
    products: Format | str | None = None,
    accumulator: Format | str | None = None,
    adder: str = "rounded",
    context: AnyContext = None,
    machine: str | Machine | None = None,
) -> Reduction:
    """Return the dot product of two rows of numbers, added in a stated order, with or without fused multiply-add.

    Parameters
    ----------
    a, b : array_like
        The factors, one row of n numbers each.
    schedule, format, terms, accumulator, adder, context : optional
        As for `sum`; `terms` is the format of the factors.
    fma : bool
        Whether fused multiply-add adds products to partial sums. A fused product is not rounded. In a node that adds
        two products, only one is fused.
    products : Format or str, optional
        The format to which products are rounded if they are not fused; by default, the format of the accumulator.
    machine : str or Machine, optional
        A model of a matrix unit, such as "hopper.f16.f32". The model fixes everything but the schedule and the result's
        format.

    Returns
    -------
    Reduction
        The result, with the plan, the nodes and their errors.

    Raises
    ------
    PlanError, UnsupportedError, FormatError, LiteralError
        As `sum`, and if the rows differ in length.

    Examples
    --------
    >>> from floatlab.reduce.results.presets import PRESETS
    >>> a, b = PRESETS["forum"].data
    >>> [hex(dot(a, b, fma=fma).result.code) for fma in (False, True)]
    ['0x3d6533f0', '0x3d6533f6']
    >>> dot([1024, 1, 1], [1024, 1, -1], machine="hopper.f16.f32").result
    Datum(binary32 0x49800000 = 1048576)
    """
    sources, settings = read_operands(
        {"a": a, "b": b}, schedule, format, terms=terms, accumulator=accumulator, products=products, fma=fma,
        adder=adder, context=context, machine=machine,
    )  # fmt: skip
    for source, name in zip(sources, "ab", strict=True):
        check_row(source, name)
    if len(sources[0].codes) != len(sources[1].codes):
        lengths = " and ".join(str(len(source.codes)) for source in sources)
        raise UnsupportedError(f"a dot product needs as many numbers in a as in b, not {lengths}")
    return reduce_terms("dot", sources, settings)
