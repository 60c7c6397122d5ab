"""The operands of an operation: what words mean, what a verb makes of them, and operands where fma differs."""

from __future__ import annotations

from floatlab import arith
from floatlab.arith.operands import reading_context
from floatlab.errors import FloatlabError, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, encode
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.numbers.rounding import DEFAULT
from floatlab.verbs.question import read_operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

# How many operands each operation takes.
ARITIES = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rem": 2, "sqrt": 1, "fma": 3, "cmp": 2, "toint": 1, "rint": 1}
_OPERATIONS: dict[str, Callable[..., Derivation]] = {
    "add": arith.add, "sub": arith.subtract, "mul": arith.multiply, "div": arith.divide, "rem": arith.remainder,
    "sqrt": arith.sqrt, "fma": arith.fma,
}  # fmt: skip

Operand = str | Datum | Derivation  # text, a code's datum, or what was read into a format of its own
_EXAMPLE = 40  # characters of a code that is repeated as an example


def operands(
    texts: tuple[str, ...], format: Format | None, bits: bool = False, context: Context | None = None
) -> tuple[Operand, ...]:
    """Return what an operation takes: readings of VALUE@FORMAT, data for codes, text for the rest.

    A code without a format belongs to `format`, which must then be given.

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
            raise FloatlabError(f"{quoted(text)}: a code of which format? Name it with -f, or as {example}@fp16")
    return tuple(found)


def compute(
    verb: str, values: tuple[Operand, ...], format: Format | None, context: Context, exact: bool = True
) -> Derivation:
    """Return the derivation of a verb that has one.

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
    """Return texts of a, b and c that read back as operands whose fma and multiply-then-add differ, or None.

    `near` are three texts to start from; what cannot be read is passed over. `progress` and None are
    `find_witness`'s.

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
    """Say that none was found, and whether that proves that there is none.

    >>> from floatlab import parse_format
    >>> print(no_witness(parse_format("e2m1")))
    e2m1fn: fma and multiply-then-add differ for no numbers of this format; all of them were tried
    >>> print(no_witness(parse_format("fp16")))
    binary16: no numbers were found for which fma and multiply-then-add differ; there may be some that were not tried
    """
    from floatlab.arith.witness import is_searched_through

    if is_searched_through(format):
        said = "fma and multiply-then-add differ for no numbers of this format; all of them were tried"
    else:
        said = "no numbers were found for which fma and multiply-then-add differ; there may be some that were not tried"
    return f"{format.name}: {said}"


def _data(texts: tuple[str, ...], format: Format, rules: Context) -> tuple[Datum, Datum, Datum] | None:
    """Return what these texts are in the format, to nearest; None where they are not three numbers."""
    try:
        values = operands(texts, format, context=rules)
        data = [encode(value.result if isinstance(value, Derivation) else value, format, rules) for value in values]
        a, b, c = data
    except (FloatlabError, ValueError):
        return None
    return a, b, c
