"""The answer and the page of `compare` for two checkpoints: a row for each tensor, the worst first."""

from __future__ import annotations

from collections import Counter

from floatlab.auditing.comparison import (
    BEYOND,
    CLOSE,
    EQUAL,
    SAME,
    SHAPES,
    CheckpointDifferences,
    TensorDifference,
    TensorSide,
    compare_checkpoints,
)
from floatlab.page.measures import number, shape_text, share_of_tolerance
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, Text, heading, hint, line
from floatlab.page.words import counted
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Answer, Question, Started, plain_answer

_LISTED = 50  # the default number of tensors on the page
_KNOWN = ("rtol", "atol", "equal_nan", "only", "stored", "worst")


def checkpoint_answer(question: Question, started: Started | None = None) -> Answer:
    """Answer a question about two checkpoints; raises FloatlabError, and UsageError for options that need arrays."""
    options = dict(question.options)
    if wrong := next((name for name in options if name not in _KNOWN), None):
        raise UsageError(f"--{wrong} is for two arrays, but these are checkpoints: name arrays as FILE::NAME")
    listed = options.pop("worst", _LISTED)
    format = next(iter(question.formats), None)
    actual, expected = question.values
    found = compare_checkpoints(
        actual, expected, **options, format=format,
        progress=None if started is None else lambda total: started(total, "elements"),
    )  # fmt: skip
    return answer_of(found, listed)


def answer_of(found: CheckpointDifferences, listed: int = _LISTED) -> Answer:
    """Return the answer that shows the differences of two checkpoints. Its JSON has a line for each tensor."""
    failing = sum(not each.within for each in found.tensors)
    answer = plain_answer(found, lambda: checkpoints_page(found, listed), str(failing))
    return answer.replace(records=lambda: _records(found), status=0 if found.within else 1)


def _records(found: CheckpointDifferences) -> list[dict[str, object]]:
    from floatlab.verbs.from_json import document_of

    return [document_of(each) for each in found.tensors]


def checkpoints_page(found: CheckpointDifferences, listed: int = _LISTED) -> Page:
    """Return the page of two checkpoints: the verdict, the conventions of quantised weights, and a row per tensor.

    >>> import numpy as np
    >>> from floatlab.page.text_layout import to_text
    >>> x = {"a": np.float32([0.1, 2]), "b": np.float32([3])}
    >>> page = checkpoints_page(compare_checkpoints({"a": np.float32([0.1, 2.5])}, x))
    >>> print(to_text(page, 100), end="")
      the mapping and the mapping: 2 of 2 tensors fail
                   1 tensor only in expected, 1 beyond tolerance (rtol 1e-05, atol 1e-08)
    <BLANKLINE>
      tensor  result            type     shape         worst  error
      b       only in expected  float32  1                 ·      ·
      a       beyond tolerance  float32  2      24,988 times    0.5
    """
    counts = Counter(each.result for each in found.tensors)
    failing = sum(not each.within for each in found.tensors)
    total = counted(len(found.tensors), "tensor")
    agree = f"all {total} agree" if len(found.tensors) > 1 else "the only tensor agrees"
    verdict = f"{failing:,} of {total} {'fails' if failing == 1 else 'fail'}" if failing else agree
    title = f"{found.actual} and {found.expected}: {verdict}"
    parts = [f"{count:,} {_words(result, count)}" for result, count in counts.items()]
    allowed = f" (rtol {number(found.rtol)}, atol {number(found.atol)})" if {BEYOND, CLOSE} & counts.keys() else ""
    blocks: list[Block] = [heading(title), Row("", _first_counted(parts, found) + allowed)]
    if found.rounded is not None:
        blocks.append(Row("", Span(found.rounded.words, Role.FLAG)))
    for word, sides in (
        ("actual", [each.actual for each in found.tensors]),
        ("expected", [each.expected for each in found.tensors]),
    ):
        conventions = Counter(each.convention for each in sides if each is not None and each.convention)
        if conventions:
            said = ", ".join(f"{counted(count, 'weight')} in {name}" for name, count in conventions.items())
            blocks.append(Row("", f"{word}: {said}, read as numbers"))
    shown = found.tensors[:listed]
    if shown:
        header = ("tensor", "result", "type", "shape", "worst", "error")
        rows = [_cells(each, found.rounded is None) for each in shown]
        blocks += [Gap(), Table(header, rows, right=(4, 5))]
    if len(shown) < len(found.tensors):
        blocks.append(hint(f"{counted(len(found.tensors) - len(shown), 'more tensor')}: --worst N lists more"))
    reasons = [Note(line(Span(each.reason, Role.BAD))) for each in shown if each.reason]
    return Page((*blocks, *([Gap(), *reasons] if reasons else ())), title)


def _first_counted(parts: list[str], found: CheckpointDifferences) -> str:
    """Join counts into one text. The first number is followed by "tensor" or "tensors"."""
    first, _, rest = parts[0].partition(" ")
    noun = "tensor" if first == "1" else "tensors"
    return ", ".join([f"{first} {noun} {rest}", *parts[1:]])


def _words(result: str, count: int) -> str:
    if result == SAME:
        return "with the same bits"
    if result == SHAPES:
        return "of another shape" if count == 1 else "of other shapes"
    return "equal" if result == EQUAL else result


def _cells(each: TensorDifference, tells_rounding: bool) -> tuple[Text, ...]:
    role = Role.PLAIN if each.within else Role.BAD
    result: Line = line(Span(each.result, role))
    if each.rounded is not None and tells_rounding:
        side = "expected" if each.rounded.expected_is_rounded else "actual"
        result = line(*result, Span(f", {side} rounded to {each.rounded.format.name}", Role.HINT))
    sides = [side for side in (each.actual, each.expected) if side is not None]
    kinds = list(dict.fromkeys(side.convention or side.kind for side in sides))
    shapes = list(dict.fromkeys(_shape(side) for side in sides))
    share = "·" if each.share is None else share_of_tolerance(each.share)
    error = "·" if each.absolute is None else number(each.absolute)
    return (each.tensor, result, " / ".join(kinds), " / ".join(shapes), share, error)


def _shape(side: TensorSide) -> str:
    return shape_text(side.shape)
