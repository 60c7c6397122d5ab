"""Candidate computations of observed results: for one sum or product, and for two arrays being compared."""

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
    matrices, it names one or two arrays. `targets` names functions; the order in which each of them adds on this
    machine is an additional candidate. Candidates round as the context says, except models of hardware, which have
    their own rules.

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
        results = (observed,)  # the numbers of one array
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
    # If no candidate gives every bit, the array may have been printed with fewer digits than its numbers have.
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
    """Return whether a word between two commas is a number, or several numbers separated by `;`, such as 2;3."""
    return all(parse_printed(each) is not None for each in word.split(";"))


@in_default_mode
def attribute_pair(
    product: Sequence[Source], started: Started | None = None, targets: tuple[str, ...] | None = None
) -> Attribution | None:
    """Attribute two results of a product to candidate computations.

    `product` has x, y, and both results; `targets` is passed on to `attribute`. Returns None if the results have
    different formats, since then no candidate gives both.
    """
    from floatlab.reduce.explain.attribution import attribute

    x, y, first, second = product
    return None if first.format != second.format else attribute(x, y, (first, second), targets=targets, started=started)
