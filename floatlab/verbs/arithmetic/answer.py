"""Answers of the arithmetic verbs (`add`, `fma`, `cmp`, `toint`, …): one operation, step by step.

This module also reads the operands, and searches for operands for which fma and multiply-then-add differ.
"""

from __future__ import annotations

from floatlab import arith
from floatlab.arith import Comparison, Contrast, IntegerResult
from floatlab.arith.integers import DEFAULT_INTEGER as DEFAULT_INTEGER
from floatlab.arith.integers import INTEGERS as INTEGERS
from floatlab.arith.operands import DEFAULT_FORMAT, reading_context
from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, encode, hexadecimal_code
from floatlab.numbers.datum import shortest
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.numbers.rounding import DEFAULT
from floatlab.verbs.arithmetic import relations
from floatlab.verbs.question import Answer, Question, Scene, Started, read_operand, rules_of, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from floatlab.verbs.arithmetic.relations import Result
    from floatlab.wire.codecs import Wire

# The number of operands of each operation.
ARITIES = {
    "add": 2, "sub": 2, "mul": 2, "div": 2, "rem": 2, "sqrt": 1, "fma": 3, "cmp": 2, "toint": 1, "rint": 1,
    "min": 2, "max": 2, "minnum": 2, "maxnum": 2, "minmag": 2, "maxmag": 2, "minmagnum": 2, "maxmagnum": 2,
    "negate": 1, "abs": 1, "copysign": 2, "scaleb": 2, "logb": 1, "nextup": 1, "nextdown": 1,
}  # fmt: skip
_OPERATIONS: dict[str, Callable[..., Derivation]] = {
    "add": arith.add, "sub": arith.subtract, "mul": arith.multiply, "div": arith.divide, "rem": arith.remainder,
    "sqrt": arith.sqrt, "fma": arith.fma, "min": arith.minimum, "max": arith.maximum, "minnum": arith.minimum_number,
    "maxnum": arith.maximum_number, "minmag": arith.minimum_magnitude, "maxmag": arith.maximum_magnitude,
    "minmagnum": arith.minimum_magnitude_number, "maxmagnum": arith.maximum_magnitude_number,
    "negate": arith.negate, "abs": arith.abs, "copysign": arith.copy_sign, "scaleb": arith.scale_b,
    "logb": arith.log_b, "nextup": arith.next_up, "nextdown": arith.next_down,
}  # fmt: skip

Operand = str | Datum | Derivation  # what `operands` returns for a number, for a code, and for VALUE@FORMAT
_EXAMPLE = 40  # an error message repeats up to this many characters of a code


def operands(
    texts: tuple[str, ...], format: Format | None, bits: bool = False, context: Context | None = None
) -> tuple[Operand, ...]:
    """Return the operands of an operation, as read from text.

    VALUE@FORMAT becomes the derivation that converts VALUE into FORMAT, and a code becomes a `Datum`. Other values
    remain text. A code without a format belongs to `format`, which is then required.

    >>> reading, text = operands(("0.1@fp16", "2"), None)
    >>> reading.result, text
    (Datum(binary16 0x2e66 = 0.1), '2')
    """
    rules = reading_context(context or Context())
    found: list[Operand] = []
    for text in texts:
        literal, own = read_operand(text, bits)
        home = own or format
        if isinstance(literal.value, Code) and home:
            found.append(read_literal(literal, home).result)
        elif own:
            found.append(read_literal(literal, own, rules))
        elif not isinstance(literal.value, Code):
            found.append(text)
        else:
            example = text.strip() if len(text) <= _EXAMPLE else "bits:0x3c00"
            raise FloatlabError(f"{quoted(text)}: a code needs a format: use -f, or write {example}@fp16")
    return tuple(found)


def compute(
    verb: str, values: tuple[Operand, ...], format: Format | None, context: Context, exact: bool = True
) -> Derivation:
    """Return the derivation of an operation other than `cmp` and `toint`.

    >>> from floatlab import parse_format
    >>> compute("mul", ("3", "0.5"), parse_format("fp16"), Context()).result
    Datum(binary16 0x3e00 = 1.5)
    """
    if verb == "rint":
        return arith.round_to_integral(values[0], format, context, exact)
    return _OPERATIONS[verb](*values, format, context)


def witness(
    format: Format,
    context: Context = DEFAULT,
    near: tuple[str, ...] = (),
    progress: Callable[[int, int], bool] | None = None,
    seed: int = 0,
    tries: int = 100_000,
) -> tuple[str, str, str] | None:
    """Return operands a, b and c, as texts, for which fma and multiply-then-add differ; None if none are found.

    The search starts near the three numbers in `near`, if all three can be read. The docstring of `find_witness`
    explains `progress`, and the cases in which the result is None.

    >>> from floatlab import parse_format
    >>> witness(parse_format("fp16")), witness(parse_format("fp16"), near=("0.1", "10", "5"))
    (('45', '47', '-2116'), ('0.0999755859375', '10', '-1'))
    """
    from floatlab.arith.witness import find_witness
    from floatlab.verbs.edits import literal_of

    rules = reading_context(context)
    found = find_witness(format, context, seed, _data(near, format, rules), tries, progress)
    if found is None:
        return None
    a, b, c = (literal_of(datum, rules) for datum in found)
    return a, b, c


def no_witness(format: Format) -> str:
    """Return the message for a search that found nothing; it says whether all numbers of the format were tried.

    >>> from floatlab import parse_format
    >>> print(no_witness(parse_format("e2m1")))
    e2m1fn: fma and multiply-then-add give the same result for all numbers of this format; all were tried
    >>> print(no_witness(parse_format("fp16")))
    binary16: no numbers were found for which fma and multiply-then-add differ; not all numbers were tried
    """
    from floatlab.arith.witness import is_searched_exhaustively

    if is_searched_exhaustively(format):
        said = "fma and multiply-then-add give the same result for all numbers of this format; all were tried"
    else:
        said = "no numbers were found for which fma and multiply-then-add differ; not all numbers were tried"
    return f"{format.name}: {said}"


def _data(texts: tuple[str, ...], format: Format, rules: Context) -> tuple[Datum, Datum, Datum] | None:
    """Read three numbers from texts, and round them to nearest; return None if the texts are not three numbers."""
    try:
        values = operands(texts, format, context=rules)
        data = [encode(value.result if isinstance(value, Derivation) else value, format, rules) for value in values]
        a, b, c = data
    except (FloatlabError, ValueError):
        return None
    return a, b, c


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
    dialect: str = "",
) -> Answer:
    """Return the answer for one operation, given by its verb; raises FloatlabError for a wrong number of operands.

    Some verbs have more options: `toint` has `integer`, `toint` and `rint` have `exact`, `cmp` has `signaling`. All
    verbs except `toint` and `cmp` have `steps`, `brief` and `why`; `why` adds the reason for each step. `dialect` names
    the rules of a processor or library.

    >>> from floatlab import parse_format
    >>> operate("add", ("1.125", "0.12457275390625"), parse_format("fp16")).codes()
    ['0x3d00']
    """
    context = context or Context()
    arity = ARITIES[verb]
    if len(texts) != arity:
        takes = {1: "one value", 2: "two values", 3: "three values"}[arity]
        got = f"{len(texts)}: {quoted(' '.join(texts), 60)}" if texts else "none"
        raise FloatlabError(f"{verb} takes {takes}, but got {got}")
    values = operands(texts, format, bits, context)
    if dialect:
        context = rules_of(dialect, context)(format or _result_format(values))
    if verb == "toint":
        kind = arith.parse_integer(integer)
        return answer_of(arith.to_integer(values[0], kind.width, kind.signed, format, context, exact))
    if verb == "cmp":
        if format is None:  # numbers without a format are read into the default format
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


def _result_format(values: tuple[Operand, ...]) -> Format:
    """Return the format of a result if no option names it.

    If the operands have one format, the result has this format, too. If they have several formats, the result has the
    format to which the operands are promoted. If no operand has a format, the result has the default format.
    """
    data = (value.result if isinstance(value, Derivation) else value for value in values)
    own = [value.format for value in data if isinstance(value, Datum)]
    return arith.common_format(own) if own else parse_format(DEFAULT_FORMAT)


def answer_of(result: Result, steps: int | None = None, brief: bool = False, why: bool = False) -> Answer:
    """Return the answer for the result of an operation.

    The answer shows the first `steps` steps (all by default). If `brief` is true, it shows only one line (two for fma).
    If `why` is true, it shows the reason for each step.
    """
    first = result.fused if isinstance(result, Contrast) else result

    results = (first.result,) if isinstance(first, Derivation) else ()
    if isinstance(first, Derivation):
        word, code = shortest(first.result), hexadecimal_code(first.result)
    elif isinstance(first, Comparison):
        word = code = first.relation.value
    else:
        word, code = str(first.value), first.hexadecimal_code

    def scenes(draw_bits: bool) -> tuple[Scene, ...]:
        from floatlab.verbs.arithmetic.scenes import scenes_of

        return scenes_of(result, draw_bits=draw_bits)

    data = tuple(each for each in first.operands if isinstance(each, Datum))
    page, records = lambda: relations.page_of(result, steps, brief, why), lambda: _records(result, steps)
    return Answer(page, records, lambda: [word], lambda: [code], results=results, operands=data, scenes=scenes)


def _records(result: Result, steps: int | None) -> list[Wire]:
    """Return the JSON of a result, with its first `steps` steps (None: all)."""
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
    """Answer a question; the question's values are the operands of one operation."""
    format, options = next(iter(question.formats), None), dict(question.options)
    return [operate(question.verb, question.values, format, question.context, **options)]
