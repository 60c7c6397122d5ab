"""`sum`, `dot` and `matmul`: arrays that words name, added in a stated order, every rounding in the open."""

from __future__ import annotations

from floatlab.arrays.sources import source_of
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.files import open_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import shortest
from floatlab.reduce import PRESETS, Machine, Reduction, dot, parse_machine
from floatlab.reduce import sum as add_up
from floatlab.reduce.presets import Preset
from floatlab.reduce.products import Product, product
from floatlab.verbs.answer import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.arrays.streams import ArraySource
    from floatlab.page.model import Page

OPERANDS = {"sum": 1, "dot": 2, "matmul": 2}
_NUMBERS = {1: "one array", 2: "two arrays"}


def parse_preset(name: str) -> Preset:
    """Return the vectors of a name; raises UnsupportedError for a name that there is not."""
    if name not in PRESETS:
        known = list(PRESETS)
        raise UnsupportedError(f"--preset {quoted(name)} is none of {', '.join(known)}{guess(name, known)}")
    return PRESETS[name]


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
    multiply = dot if operation == "dot" else product
    return multiply(
        operands[0], operands[1], schedule, format, fma=fma, products=products, accumulator=accumulator, adder=adder,
        context=context, machine=model,
    )  # fmt: skip


def preset_of(operation: str, words: tuple[str, ...], name: str) -> list[Any]:
    """Return the vectors of a preset, which takes the place of words; raises UnsupportedError."""
    found = parse_preset(name)
    if operation != "dot" or words:
        raise UnsupportedError(f"--preset {name} is two arrays for dot, and takes the place of others")
    return list(found.data)


@in_default_mode
def operands_of(
    operation: str, words: tuple[str, ...], format: Format | None = None, model: Machine | None = None
) -> list[Any]:
    """Return the arrays that words name, as many as the operation takes; raises FloatlabError."""
    wanted = OPERANDS[operation]
    if len(words) != wanted:
        lists = len(words) > wanted and all(kind_of(each) == "list" for each in words)
        more = "; the numbers of one are joined by commas, as in 1.5,-2" if lists else ""
        raise UnsupportedError(f"{operation} takes {_NUMBERS[wanted]}, and {len(words)} were given{more}")
    own = None if model is None else model.terms
    if own is not None and own.name == "tf32":
        own = parse_format("binary32")  # the unit itself ignores digits, and does not round
    with open_arrays(words, own or format) as opened:
        return [_with_origin(each) for each in opened]


def _with_origin(opened: ArraySource) -> Any:
    """Return a whole array; one of text with what reading it changed."""
    found = opened.whole()
    return found if opened.origin is None else source_of(found).replace(origin=opened.origin)


def answer_of(found: Reduction | Product, preset: str | None = None) -> Answer:
    """Return the answer that shows a reduction, or a matrix product: as text, a row a line with commas."""
    if isinstance(found, Product):
        return _product_answer(found)

    def page() -> Page:
        from floatlab.verbs.reduce.page import reduction_page

        return reduction_page(found, "" if preset is None else PRESETS[preset].source)

    def records() -> list[dict[str, Any]]:
        from floatlab.verbs.reduce.json import reduction_to_wire

        return [reduction_to_wire(found)]

    words, codes = (lambda: [shortest(found.result)]), (lambda: [hexadecimal_code(found.result)])
    return Answer(page, records, words, codes, results=(found.result,), found=found)


def _product_answer(found: Product) -> Answer:
    def page() -> Page:
        from floatlab.verbs.matmul.page import product_page

        return product_page(found)

    def records() -> list[dict[str, Any]]:
        from floatlab.verbs.matmul.json import product_to_wire

        return [product_to_wire(found)]

    def rows(words: Callable[[Datum], str]) -> list[str]:
        table = found.codes.reshape(-1, found.codes.shape[-1]) if found.codes.shape else found.codes.reshape(1, 1)
        return [",".join(words(Datum(found.settings.format, code)) for code in row) for row in table.tolist()]

    return Answer(page, records, lambda: rows(shortest), lambda: rows(hexadecimal_code), found=found)
