"""`sum`, `dot` and `matmul`: arrays added in a given order, with every rounding shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floatlab.arrays.sources import Piece, Source
from floatlab.errors import quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.rounding import DEFAULT
from floatlab.page.model import Page
from floatlab.progress import reporting
from floatlab.reduce import PRESETS, Reduction, dot, parse_machine
from floatlab.reduce import sum as add_up
from floatlab.reduce.results.products import Product, matrix_product
from floatlab.reduce.results.scaled import ScaledProduct, scaled_product
from floatlab.reduce.simulate.scaled_matrix_units import SCALED_UNITS, is_scaled_unit, parse_scaled_unit
from floatlab.verbs.named_arrays import arrays_of, operands_of, preset_of
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Answer, Question, Started, written
from floatlab.verbs.reduce.page import product_page, reduction_page

_SCALES = {"scale_a": "--scale-a", "scale_b": "--scale-b"}


@in_default_mode
def reduce_words(
    operation: str, words: tuple[str, ...], format: Format | None = None, preset: str | None = None, **options: Any
) -> Reduction | Product | ScaledProduct:
    """Return the sum of an array, or the product of two arrays or of a preset; raises FloatlabError.

    With a hardware model, typed numbers are read into the format of its terms (see `operands_of`); without a model,
    into `format`. If neither is given, they are read into the format of the other array or, if the other array is typed
    too, into binary32. The options are those of `floatlab.sum`, `floatlab.dot` or `floatlab.matmul`.

    >>> reduce_words("dot", (), preset="forum", fma=True).result
    Datum(binary32 0x3d6533f6 = 0.055957757)
    """
    if is_scaled_unit(options.get("machine")):
        return scaled_words(operation, words, format=format, **options)
    model = parse_machine(options["machine"]) if "machine" in options else None
    if given := [name for name in _SCALES if name in options]:
        raise UsageError(f"{_SCALES[given[0]]} is for machines with block scales, such as {next(iter(SCALED_UNITS))}")
    operands = operands_of(operation, words, format, model) if preset is None else preset_of(operation, words, preset)
    compute: dict[str, Callable[..., Reduction | Product | ScaledProduct]] = {
        "sum": add_up,
        "dot": dot,
        "matmul": matrix_product,
    }
    return compute[operation](*operands, format=format, **options)


def scaled_words(
    operation: str,
    words: tuple[str, ...],
    machine: str,
    scale_a: str | None = None,
    scale_b: str | None = None,
    **fixed: object,
) -> ScaledProduct:
    """Return the product of two arrays whose blocks have scales; raises FloatlabError."""
    unit = parse_scaled_unit(machine)
    if operation != "matmul":
        raise UsageError(f"--machine {machine} multiplies matrices: use matmul")
    if scale_a is None or scale_b is None:
        name = "--scale-a" if scale_a is None else "--scale-b"
        raise UsageError(f"--machine {machine} needs {name}: one scale for every {unit.size} numbers")
    if given := [name for name, value in fixed.items() if value is not None]:
        raise UsageError(f"{given[0]} is fixed by --machine {machine}: leave out one of them")
    a, b = arrays_of(words, unit.elements[0], operation)
    return scaled_product(a, b, unit, [_scales(word, unit.scale) for word in (scale_a, scale_b)])


def _scales(word: str, format: Format) -> Piece:
    """Return an array of scales; raises FloatlabError.

    If a typed list has codes, the whole list is read into `format`. Other typed numbers are read into binary64.
    """
    if "bits:" not in word:
        return arrays_of((word,), parse_format("binary64"))[0]
    found = arrays_of((word,), format)[0]
    if isinstance(found, Source) and found.origin is not None and found.origin.inexact:
        raise UsageError(f"{quoted(word)}: in a list with codes, every scale must be a number of {format.name}")
    return found


def answer_of(found: Reduction | Product | ScaledProduct, preset: str | None = None) -> Answer:
    """Return the answer for a reduction or a matrix product. `--quiet` prints a line for each row of a matrix."""

    def texts(text: Callable[[Datum], str]) -> list[str]:
        if isinstance(found, Reduction):
            return [text(found.result)]
        table = found.codes.reshape(-1, found.codes.shape[-1] if found.codes.shape else 1)
        return [",".join(text(Datum(found.format, code)) for code in row) for row in table.tolist()]

    origin = "" if preset is None else PRESETS[preset].source
    results = (found.result,) if isinstance(found, Reduction) else ()

    def page() -> Page:
        if isinstance(found, ScaledProduct):
            from floatlab.verbs.reduce.scaled import scaled_page

            return scaled_page(found)
        return product_page(found) if isinstance(found, Product) else reduction_page(found, origin)

    words, codes = lambda: texts(shortest), lambda: texts(hexadecimal_code)
    return Answer(page, written(found), words, codes, results=results, found=found)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: a sum in a given order, candidates for observed results, or timed products."""
    verb, words, format = question.verb, question.values, next(iter(question.formats), None)
    options = dict(question.options)
    if "observed" in options:
        from floatlab.verbs.attribute.answer import attribute_words

        wanted = {name: options[name] for name in ("observed", "difference", "preset", "targets") if name in options}
        return [attribute_words(verb, words, format=format, context=question.context, started=started, **wanted)]
    if "ways" in options or "backends" in options:
        from floatlab.verbs.timing import answer as timing

        runs = options.get("runs", timing.RUNS)
        if "ways" in options:
            block = options.get("block_size", timing.BLOCK)
            return [timing.partitions_answer(words, format or parse_format("binary32"), runs, block, started)]
        return [timing.backends_answer(words, options["backends"], format, runs, started)]
    if question.context != DEFAULT:  # a hardware model rounds by its own rules, and rejects a context
        options["context"] = question.context
    with reporting(started):
        return [answer_of(reduce_words(verb, words, format, **options), options.get("preset"))]
