"""`add` … `fma`, `cmp`, `toint`, `rint`: one operation, step by step."""

from __future__ import annotations

from floatlab import arith
from floatlab.arith import Comparison, Contrast, IntegerResult
from floatlab.arith.integers import DEFAULT_INTEGER, INTEGERS
from floatlab.arith.operands import DEFAULT_FORMAT, reading_context
from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, hexadecimal_code
from floatlab.numbers.datum import shortest
from floatlab.numbers.reading import read_literal
from floatlab.verbs.arithmetic import relations
from floatlab.verbs.arithmetic.operands import ARITIES, compute, operands
from floatlab.verbs.question import Answer, Question, Scene, Started, read_operand, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.verbs.arithmetic.relations import Result
    from floatlab.wire.codecs import Wire

__all__ = ["DEFAULT_INTEGER", "INTEGERS", "answer_of", "answers", "operate"]


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
    if verb == "toint":
        kind = arith.parse_integer(integer)
        return answer_of(arith.to_integer(values[0], kind.width, kind.signed, format, context, exact))
    if verb == "cmp":
        if format is None:  # no result asks for a format: text without one is read into the default format
            home, rules = parse_format(DEFAULT_FORMAT), reading_context(context)
            values = tuple(read_literal(read_operand(x)[0], home, rules) if isinstance(x, str) else x for x in values)
        return answer_of(arith.compare(values[0], values[1], format, context, signaling))
    derivation = compute(verb, values, format, context, exact)
    if verb == "fma":
        a, b, c = values
        return answer_of(
            arith.contrast(derivation, arith.multiply_then_add(a, b, c, format, context)), steps, brief, why
        )
    return answer_of(derivation, steps, brief, why)


def answer_of(result: Result, steps: int | None = None, brief: bool = False, why: bool = False) -> Answer:
    """Return the answer that shows what an operation gave: its first `steps` steps, in one line, or with reasons."""
    first = result.fused if isinstance(result, Contrast) else result

    def words() -> list[str]:
        if isinstance(first, Derivation):
            return [shortest(first.result)]
        return [first.relation.value if isinstance(first, Comparison) else str(first.value)]

    def codes() -> list[str]:
        if isinstance(first, Derivation):
            return [hexadecimal_code(first.result)]
        return [first.hexadecimal_code] if isinstance(first, IntegerResult) else words()

    def scenes(strips: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.scenes import scenes_of

        return scenes_of(result, strips=strips)

    return Answer(
        lambda: relations.page_of(result, steps, brief, why),
        lambda: _records(result, steps),
        words,
        codes,
        results=(first.result,) if isinstance(first, Derivation) else (),
        operands=tuple(each for each in first.operands if isinstance(each, Datum)),
        scenes=scenes,
    )


def _records(result: Result, steps: int | None) -> list[Wire]:
    """Return the JSON of a result, with its first steps only where that is asked for."""
    if steps is None or isinstance(result, Comparison | IntegerResult):
        return written(result)()
    from floatlab.wire.codecs import Scope
    from floatlab.wire.derivations import STEPS

    def shortened(way: Derivation) -> Wire:
        return written(way)()[0] | {"steps": STEPS.write(way.steps[:steps], Scope())}

    if isinstance(result, Derivation):
        return [shortened(result)]
    return [written(result)()[0] | {"steps": shortened(result.fused)["steps"], "separate": shortened(result.separate)}]


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: all its values are the operands of one operation."""
    format, options = next(iter(question.formats), None), dict(question.options)
    return [operate(question.verb, question.values, format, question.context, **options)]
