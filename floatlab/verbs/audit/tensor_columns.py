"""The table of tensors of `audit --to`: its columns, and how it is sorted and searched."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from math import inf, isinf

from floatlab.auditing.survival.figures import DAMAGED, OVERFLOWS, SURVIVES, RecipeAudit, RecipeFigures, TensorFigures
from floatlab.errors import shown_name
from floatlab.page.measures import shape_text
from floatlab.page.model import Role, Span, Table, Text
from floatlab.record import Record

ROLES = {SURVIVES: Role.PLAIN, DAMAGED: Role.FLAG, OVERFLOWS: Role.BAD}
LISTED = 40  # the default number of tensors on a page
OUTPUT = "*"  # marks the SQNR of a layer's output
_NONE = "·"
_OPTIONAL = ("largest", "type", "shape", "recommended")  # a narrow page omits these columns, in this order
DECIBELS = " dB"  # the end of the titles of columns with an SQNR

Key = tuple[bool, float | str]  # sort key: whether the cell is empty, and its value


class TensorColumn(Record):
    """A column: its title, and functions that return the cell and the sort key of a tensor."""

    title: str
    cell: Callable[[TensorFigures], Text]
    key: Callable[[TensorFigures], Key]
    is_number: bool = False


def decibels(sqnr: float | None) -> str:
    """Return an SQNR in dB as text; a dot for None."""
    return _NONE if sqnr is None else f"{'−' * (sqnr < 0)}∞" if isinf(sqnr) else f"{sqnr:.1f}"


def size_text(x: float | None, digits: str = ".3g") -> str:
    """Return a number in a few digits; a dot for None."""
    return _NONE if x is None else f"{x:{digits}}"


def tensor_columns(found: RecipeAudit, shown: Sequence[TensorFigures]) -> list[TensorColumn]:
    """Return the columns of a table of these tensors. A column of types is added if the types differ."""

    def name(tensor: TensorFigures) -> str:
        return f"{tensor.source}::{tensor.tensor}" if len(found.sources) > 1 else tensor.tensor or shown_name("")

    columns = [TensorColumn("tensor", name, lambda tensor: (False, name(tensor)))]
    if len({each.kind for each in shown}) > 1:
        columns.append(TensorColumn("type", lambda tensor: tensor.kind, lambda tensor: (False, tensor.kind)))
    columns += [
        TensorColumn("shape", lambda tensor: shape_text(tensor.shape), lambda tensor: (False, tensor.elements)),
        TensorColumn("largest", lambda tensor: size_text(tensor.largest), _largest, is_number=True),
    ]
    for place, recipe in enumerate(found.recipes):
        columns.append(TensorColumn(f"{recipe}{DECIBELS}", partial(_level, place), partial(_level_key, place), True))
    return [*columns, TensorColumn("recommended", _choice, lambda tensor: (False, tensor.choice))]


def _largest(tensor: TensorFigures) -> Key:
    return tensor.largest is None, tensor.largest or 0.0


def _choice(tensor: TensorFigures) -> str:
    return tensor.choice or ("as it is" if tensor.elements else _NONE)


def _figures(place: int, tensor: TensorFigures) -> RecipeFigures | None:
    return tensor.recipes[place] if tensor.recipes else None


def _level(place: int, tensor: TensorFigures) -> Text:
    each = _figures(place, tensor)
    if each is None:
        return _NONE
    mark = "" if each.verdict == SURVIVES else "! "
    output = "" if each.output_sqnr is None else OUTPUT
    return Span(f"{mark}NaN" if each.lost else f"{mark}{decibels(each.decisive_sqnr)}{output}", ROLES[each.verdict])


def _level_key(place: int, tensor: TensorFigures) -> Key:
    """Return the key that sorts tensors by their SQNR in the recipe with index `place`.

    A tensor with numbers that become NaN or infinite counts as worse than all other tensors.
    """
    each = _figures(place, tensor)
    if each is None or (each.decisive_sqnr is None and not each.lost):
        return True, 0.0
    return False, -inf if each.lost else each.decisive_sqnr or 0.0


def tensors_table(columns: Sequence[TensorColumn], shown: Sequence[TensorFigures]) -> Table:
    """Return the table of these tensors. A narrow page omits some columns."""
    titles = tuple(column.title for column in columns)
    optional = tuple(titles.index(title) for title in _OPTIONAL if title in titles)
    right = tuple(place for place, column in enumerate(columns) if column.is_number)
    return Table(titles, [[column.cell(each) for column in columns] for each in shown], right, optional)


def arranged(
    tensors: Sequence[TensorFigures], typed: str, by: TensorColumn | None, descending: bool = False
) -> list[TensorFigures]:
    """Return the tensors whose names contain all typed words, in upper or lower case, sorted by the column `by`.

    Tensors with an empty cell come last. If `by` is None, the order is not changed.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> found = audit_recipes({"a": np.float32([1, 2]), "ab": np.float32([0.1, 3]), "c": np.float32([9])}, "e4m3")
    >>> largest = next(each for each in tensor_columns(found, found.tensors) if each.title == "largest")
    >>> [each.tensor for each in arranged(found.tensors, "A", largest, descending=True)]
    ['ab', 'a']
    """
    words = typed.lower().split()
    kept = [each for each in tensors if all(word in each.tensor.lower() for word in words)]
    if by is None:
        return kept
    key = by.key
    ranked = sorted((each for each in kept if not key(each)[0]), key=key, reverse=descending)
    return ranked + [each for each in kept if key(each)[0]]
