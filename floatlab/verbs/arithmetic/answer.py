"""`add` … `fma`, `cmp`, `toint`, `rint`: one operation, step by step."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.arith import Comparison, Contrast, IntegerResult
from floatlab.arith.integers import DEFAULT_INTEGER, INTEGERS
from floatlab.arith.operands import DEFAULT_FORMAT, reading_context
from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, hexadecimal_code
from floatlab.numbers.datum import shortest
from floatlab.numbers.reading import read_literal
from floatlab.page.model import Page
from floatlab.verbs.arithmetic.operands import ARITIES, Operand, compute, operands
from floatlab.verbs.question import Answer, Question, Scene, Started, read_operand, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.arith import Comparison, Contrast, IntegerResult
    from floatlab.wire.schema import Wire

__all__ = ["DEFAULT_INTEGER", "INTEGERS", "compute", "operands", "operate"]


def operate(
    verb: str,
    texts: tuple[str, ...],
    format: Format | None = None,
    context: Context | None = None,
    *,
    bits: bool = False,
    steps: int | None = None,
    brief: bool = False,
    why: bool = False,
    integer: str = DEFAULT_INTEGER,
    signaling: bool = False,
    exact: bool = True,
) -> Answer:
    """Answer one operation by its verb; raises FloatlabError for a wrong number of operands.

    `integer` and `exact` are for `toint` (and `exact` for `rint`), `signaling` for `cmp`, `steps`,
    `brief` and `why` (each step with its reason) for the others.

    >>> from floatlab import parse_format
    >>> operate("add", ("1.125", "0.12457275390625"), parse_format("fp16")).codes()
    ['0x3d00']
    """
    context = context or Context()
    arity = ARITIES[verb]
    if len(texts) != arity:
        takes = {1: "one value", 2: "two values", 3: "three values"}[arity]
        got = f"{len(texts)}: {quoted(' '.join(texts), 60)}" if texts else "none"
        raise FloatlabError(f"{verb} takes {takes}, and got {got}")
    values = operands(texts, format, bits, context)
    if verb == "cmp":
        if format is None:  # no result asks for a format: what has none is a number of the usual one
            values = tuple(_usual(value, context) if isinstance(value, str) else value for value in values)
        return _compared(values, format, context, signaling)
    if verb == "toint":
        return _to_integer(values[0], format, context, integer, exact)
    if verb == "fma":
        return _fused(values, format, context, steps, brief, why)
    return derivation_answer(compute(verb, values, format, context, exact), steps, brief, why)


def _usual(text: str, context: Context) -> Derivation:
    """Read text whose format nothing says."""
    return read_literal(read_operand(text)[0], parse_format(DEFAULT_FORMAT), reading_context(context))


def derivation_answer(
    derivation: Derivation, steps: int | None = None, brief: bool = False, why: bool = False
) -> Answer:
    """Return the answer that shows an operation step by step."""

    def page() -> Page:
        from floatlab.verbs.arithmetic.page import derivation_page, summary_page

        return summary_page([derivation]) if brief else derivation_page(derivation, steps, why)

    def records() -> list[Wire]:
        return [_first_steps(wire, derivation, steps) for wire in written(derivation)()]

    def film(strips: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.scenes import scenes

        return scenes(derivation, strips=strips)

    return _answer(derivation, page, records, film)


def _answer(
    derivation: Derivation,
    page: Callable[[], Page],
    records: Callable[[], list[Wire]],
    film: Callable[[bool], tuple[Scene, ...]],
) -> Answer:
    result = derivation.result
    return Answer(
        page,
        records,
        lambda: [shortest(result)],
        lambda: [hexadecimal_code(result)],
        results=(result,),
        operands=tuple(each for each in derivation.operands if isinstance(each, Datum)),
        scenes=film,
    )


def _first_steps(wire: Wire, derivation: Derivation, steps: int | None) -> Wire:
    """Return the JSON of a derivation with its first steps only."""
    from floatlab.wire.derivations import STEPS
    from floatlab.wire.schema import Scope

    return wire if steps is None else wire | {"steps": STEPS.write(derivation.steps[:steps], Scope())}


def _fused(
    values: tuple[Operand, ...], format: Format | None, context: Context, steps: int | None, brief: bool, why: bool
) -> Answer:
    from floatlab.arith import contrast, fma, multiply_then_add

    a, b, c = values
    both = contrast(fma(a, b, c, format, context), multiply_then_add(a, b, c, format, context))
    return contrast_answer(both, steps, brief, why)


def contrast_answer(both: Contrast, steps: int | None = None, brief: bool = False, why: bool = False) -> Answer:
    """Return the answer that shows a·b + c fused and separately, side by side."""

    def page() -> Page:
        from floatlab.verbs.arithmetic.fma.page import contrast_page, contrast_summary

        return contrast_summary(both) if brief else contrast_page(both, steps, why)

    def records() -> list[Wire]:
        fused, separate = written(both, both.separate)()
        separate = _first_steps(separate, both.separate, steps)
        return [_first_steps(fused, both.fused, steps) | {"separate": separate}]

    def film(strips: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.scenes import contrast_scenes

        return contrast_scenes(both, strips=strips)

    return _answer(both.fused, page, records, film)


def _compared(values: tuple[Operand, ...], format: Format | None, context: Context, signaling: bool) -> Answer:
    from floatlab.arith import compare

    return comparison_answer(compare(values[0], values[1], format, context, signaling))


def comparison_answer(found: Comparison) -> Answer:
    """Return the answer that shows how two numbers stand."""

    def page() -> Page:
        from floatlab.verbs.arithmetic.relations.page import comparison_page

        return comparison_page(found)

    def film(strips: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.explain.result import comparison_reason
        from floatlab.verbs.arithmetic.scenes import whole_scene

        return (whole_scene("compare", page(), comparison_reason(found), found.flags, strips=strips),)

    word = found.relation.value
    return Answer(page, written(found), lambda: [word], lambda: [word], operands=found.operands, scenes=film)


def _to_integer(value: Operand, format: Format | None, context: Context, integer: str, exact: bool) -> Answer:
    from floatlab.arith import parse_integer, to_integer

    kind = parse_integer(integer)
    return integer_answer(to_integer(value, kind.width, kind.signed, format, context, exact))


def integer_answer(found: IntegerResult) -> Answer:
    """Return the answer that shows a number as an integer."""

    def page() -> Page:
        from floatlab.verbs.arithmetic.relations.page import integer_page

        return integer_page(found)

    def film(strips: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.explain.result import integer_reason
        from floatlab.verbs.arithmetic.scenes import whole_scene

        return (whole_scene("to integer", page(), integer_reason(found), found.flags, strips=strips),)

    words, codes = (lambda: [str(found.value)]), (lambda: [found.hexadecimal_code])
    return Answer(page, written(found), words, codes, operands=found.operands, scenes=film)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: all its values are the operands of one operation."""
    format, options = next(iter(question.formats), None), dict(question.options)
    return [operate(question.verb, question.values, format, question.context, **options)]
