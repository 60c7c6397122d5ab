"""Bounds on the error of a reduction; functions return None where no bound is proved.

Rounding a number x gives x·(1 + d) + e with |d| ≤ u and |e| ≤ η. When rounding to nearest, u is 2^−p, where p is the
precision; with other roundings, u is 2^(1−p). η is the smallest positive number that rounding can return. The errors d
of h roundings change a term by a factor of at most 1/(1 − h·u) (N. J. Higham, *Accuracy and Stability of Numerical
Algorithms*, 2nd ed., 2002, sections 3.1 and 4.2). No bound is proved for formats that are defined by a table, since
their relative rounding error depends on the number.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, Overflow
from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.simulate.adders import Adder, Node, Term
from floatlab.reduce.simulate.tensor_core_engine import TensorCore

_NEAREST = (Direction.RNE, Direction.RNA)


def unit(format: Format, context: Context) -> Fraction:
    """Return u, a bound on the relative error of rounding to a normal number of a format.

    >>> from floatlab import Context, parse_format
    >>> unit(parse_format("fp16"), Context()), unit(parse_format("fp16"), Context("RTZ"))
    (Fraction(1, 2048), Fraction(1, 1024))
    """
    return Fraction(1, 1 << (format.precision - (context.rounding not in _NEAREST)))


def smallest_step(format: Format, context: Context) -> Fraction:
    """Return η, a bound on the error of rounding near zero: the smallest positive number that rounding can return."""
    if format.subnormals and not context.flush_results:
        return format.smallest
    return format.smallest_normal


def first_bound(
    batches: Batches, whole: Fraction, is_dot: bool, terms: Sequence[Format], adder: Adder
) -> Fraction | None:
    """Return a bound on |sum − exact| that needs only the order of the additions and `whole`, which is Σ|x| or Σ|x·y|.

    Return None if a result may overflow, if inputs are flushed, if a format has no sign or no zero, if a format is
    defined by a table, or if h·u ≥ 1, where h is the depth of the tree of additions (see the module's docstring).
    """
    context, into, products = adder.context, adder.accumulator, adder.products
    if context.flush_inputs or not (into.signed and into.zero and products.signed and products.zero):
        return None
    if any(each.is_table for each in (into, products, *terms)):
        return None
    u, height = unit(into, context), Fraction(batches.depth)
    if height * u >= 1:
        return None
    growth = 1 / (1 - height * u)
    tiny = batches.nodes * smallest_step(into, context)
    if is_dot:
        growth *= 1 + unit(products, context)
        tiny += batches.terms * smallest_step(products, context)
    if products != into or any(each != into for each in terms):
        growth *= 1 + u
        tiny += batches.terms * smallest_step(into, context)
    if whole * growth + tiny * growth > min(into.largest, products.largest if is_dot else into.largest):
        return None
    return whole * (growth - 1) + tiny * growth


def final_bound(bound: Fraction | None, exact: Fraction, format: Format, context: Context) -> Fraction | None:
    """Return a bound on the error after rounding the sum to the result's format, or None if no bound is proved.

    `bound` is a bound on the error of the sum before this rounding; it is None if no bound is proved. `exact` is the
    exact sum.
    """
    if bound is None or not (format.signed and format.zero) or format.is_table:
        return None
    most = abs(exact) + bound
    found = bound + most * unit(format, context) + smallest_step(format, context)
    return None if abs(exact) + found > format.largest else found


def running_bound(nodes: Sequence[Node], terms: Sequence[Term], adder: Adder | TensorCore) -> Fraction | None:
    """Return a bound on |sum − exact| from the computed values of the nodes.

    A rounding to nearest adds half an ulp to the bound. Any other rounding adds one ulp. Each rounding adds more if
    results near zero are flushed. A node of a tensor core adds to the bound one unit of the last bit that the alignment
    keeps, for each truncation. The rounding of the node's result adds one unit of the last bit that this result keeps.

    Return None if inputs are flushed, if a format is defined by a table, if a result is not finite or overflowed, or if
    the context changes the results of overflows.
    """
    if adder.context.flush_inputs or (isinstance(adder, Adder) and adder.context.overflow is not Overflow.NATIVE):
        return None
    total = Fraction(0)
    values: list[Term | Datum] = [*terms, *(node.value for node in nodes if node.id >= len(terms))]
    for node in nodes:
        if not node.value.is_finite:
            return None
        if isinstance(adder, TensorCore) and not node.derivations:
            inside = [values[each] for each in node.arguments]
            top, _ = adder.aligned(inside)
            cuts = len(inside) + (0 if adder.sum_bits is None else 1)
            total += cuts * Fraction(2) ** (top - adder.fraction_bits) + _cut(node.value, adder)
        for each in node.derivations:
            if not each.result.is_finite or each.result.format.is_table or "overflow" in each.flags.names:
                return None
            total += _missed_at_most(each.result, each.context)
    return total


def _missed_at_most(value: Datum, context: Context) -> Fraction:
    """Return a bound on the error of a rounding whose result is `value`."""
    fmt, step = value.format, value.ulp.as_fraction()
    if context.rounding in _NEAREST:
        step /= 2
    if (context.flush_results or not fmt.subnormals) and value.magnitude <= fmt.smallest_normal_magnitude:
        return max(step, fmt.smallest_normal)  # the format has no numbers between 0 and the smallest normal number
    return step


def _cut(value: Datum, core: TensorCore) -> Fraction:
    """Return a bound on the error of rounding a fused sum into the accumulator."""
    step = value.ulp.as_fraction()
    return step if core.result_bits is None else step * (1 << (value.format.trailing_bits - core.result_bits))
