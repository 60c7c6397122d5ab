"""`sum`, `dot` and `matmul`: arrays that words name, added in a stated order, every rounding in the open."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.reduce import PRESETS, Reduction, dot, parse_machine
from floatlab.reduce import sum as add_up
from floatlab.reduce.results.products import Product, matrix_product
from floatlab.verbs.matmul.page import product_page
from floatlab.verbs.named_arrays import operands_of, preset_of
from floatlab.verbs.question import Answer, written
from floatlab.verbs.reduce.page import reduction_page


@in_default_mode
def reduce_words(
    operation: str,
    words: tuple[str, ...],
    format: Format | None = None,
    *,
    preset: str | None = None,
    schedule: str | None = None,
    fma: bool = False,
    products: Format | None = None,
    accumulator: Format | None = None,
    adder: str = "rounded",
    machine: str | None = None,
    context: Context | None = None,
) -> Reduction | Product:
    """Return the sum of the array that a word names, or the product of two, or of a preset; raises FloatlabError.

    Text is read into the format, a machine's own, the other array's or binary32, the first of them that there is.

    >>> reduce_words("dot", (), preset="forum", fma=True).result
    Datum(binary32 0x3d6533f6 = 0.055957757)
    """
    model = None if machine is None else parse_machine(machine)
    operands = operands_of(operation, words, format, model) if preset is None else preset_of(operation, words, preset)
    if operation == "sum":
        return add_up(
            operands[0], schedule, format, accumulator=accumulator, adder=adder, context=context,
        )  # fmt: skip
    multiply = dot if operation == "dot" else matrix_product
    return multiply(
        operands[0], operands[1], schedule, format, fma=fma, products=products, accumulator=accumulator, adder=adder,
        context=context, machine=model,
    )  # fmt: skip


def answer_of(found: Reduction | Product, preset: str | None = None) -> Answer:
    """Return the answer that shows a reduction, or a matrix product: as text, a row a line with commas."""
    if isinstance(found, Product):
        return _product_answer(found)

    words, codes = (lambda: [shortest(found.result)]), (lambda: [hexadecimal_code(found.result)])
    return Answer(
        page=lambda: reduction_page(found, "" if preset is None else PRESETS[preset].source),
        records=written(found),
        words=words,
        codes=codes,
        results=(found.result,),
        found=found,
    )


def _product_answer(found: Product) -> Answer:
    def rows(words: Callable[[Datum], str]) -> list[str]:
        table = found.codes.reshape(-1, found.codes.shape[-1]) if found.codes.shape else found.codes.reshape(1, 1)
        return [",".join(words(Datum(found.settings.format, code)) for code in row) for row in table.tolist()]

    return Answer(
        page=lambda: product_page(found),
        records=written(found),
        words=lambda: rows(shortest),
        codes=lambda: rows(hexadecimal_code),
        found=found,
    )
