"""The answer of `--observed`: which candidate computations (orders, formats, fused or not) give an observed result."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arrays.sources import Source, source_of
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.files.nested import split_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.replay.observations import PrintedArray, format_of_result, parse_printed, printed_array
from floatlab.verbs.attribute.page import attribution_page
from floatlab.verbs.named_arrays import operands_of, preset_of
from floatlab.verbs.question import Answer, Started, written


@in_default_mode
def attribute_words(
    operation: str,
    words: tuple[str, ...],
    observed: str,
    difference: str | None = None,
    targets: tuple[str, ...] | None = None,
    format: Format | None = None,
    preset: str | None = None,
    context: Context = DEFAULT,
    started: Started | None = None,
) -> Answer:
    """Return the answer with the candidate computations that give an observed result; raises FloatlabError.

    For a dot product or the sum of a vector, `observed` is one or two results as printed, separated by a comma. For
    matrices, `observed` names one or two arrays. `targets` names functions such as numpy.sum. The order of addition of
    each function, found by probing, is an additional candidate. `context` says how candidates round, except for models
    of hardware.

    >>> found = attribute_words("dot", (), "0.0559577,0.0559577569366", "8.19563865662e-08", preset="forum")
    >>> found.words()
    ['explained by order and FMA together']
    >>> attribute_words("sum", ("1,0x1p-24,0x1p-24",), "1.0000001").words()[0].partition(",")[0]
    'reversed'
    """
    from floatlab.reduce.explain.attribution import attribute

    given = operands_of(operation, words, format) if preset is None else preset_of(operation, words, preset)
    left, right = (*given, None)[:2]
    is_array = operation == "matmul" or (operation == "sum" and np.ndim(getattr(left, "codes", left)) > 1)
    results = tuple(each.strip() for each in split_arrays(observed))
    if is_array and (len(results) == 1 or any(map(_is_listed, results))):
        results = (observed,)  # the commas separate the elements of one array
    if len(results) > 2:
        raise UnsupportedError(f"--observed takes one or two results, not {len(results)}")
    goals: tuple[object, ...] = results
    printed: list[PrintedArray | None] = [None] * len(results)
    if is_array:
        wanted = format or format_of_result(left, "the first array") or parse_format("binary32")
        with open_arrays(results, wanted) as opened:
            goals = tuple(source.whole() for source in opened)
        texts = [kind_of(each) in ("list", "text", "nested") for each in results]
        printed = [
            printed_array(source_of(each)) if is_text else None for each, is_text in zip(goals, texts, strict=True)
        ]

    def attributed(goals: tuple[object, ...]) -> Attribution:
        goal = goals[0] if len(goals) == 1 else goals
        return attribute(left, right, goal, difference=difference, targets=targets, context=context, started=started)

    found = attributed(goals)
    # If no candidate gives all bits, the printed array may have too few digits; then compare only the digits.
    loose = tuple(
        text if text is not None and not fits else goal
        for goal, text, fits in zip(goals, printed, found.fitting, strict=True)
    )
    if any(one is not other for one, other in zip(loose, goals, strict=True)):
        found = attributed(loose)
    return answer_of(found, results)


def answer_of(found: Attribution, results: tuple[str, ...]) -> Answer:
    """Return the answer for an attribution; `results` are the results as typed."""
    said = [found.text if found.verdict is None else found.verdict.value]
    page, records = (lambda: attribution_page(found, results)), written(found.replace(observed=results))
    return Answer(page, records, lambda: said, lambda: said, found=found)


def _is_listed(word: str) -> bool:
    """Return whether a word consists of numbers separated by `;`, such as 2;3, or is a single number."""
    return all(parse_printed(each) is not None for each in word.split(";"))


@in_default_mode
def attribute_pair(
    product: Sequence[Source], started: Started | None = None, targets: tuple[str, ...] | None = None
) -> Attribution | None:
    """Attribute two results of a product to candidate computations.

    `product` has the operands x and y and both results. Returns None if the results have different formats, because no
    candidate can give both. For `targets`, see `attribute_words`.
    """
    from floatlab.reduce.explain.attribution import attribute

    x, y, first, second = product
    return None if first.format != second.format else attribute(x, y, (first, second), targets=targets, started=started)
