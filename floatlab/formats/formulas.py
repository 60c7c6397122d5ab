"""Formulas of scales, such as `amax / (6 * tensor)`: parses text into a tree of operations.

Libraries that implement the same block format differ in the order and in the precision of their operations. A formula
states the operations in order. `arith.blocks.formulas` and `arrays.recipes.formulas` evaluate formulas. A scale rule
(`formats.scaling`) consists of formulas. In the rules of libraries, each operation is rounded once, to the working
precision of the rule; operations inside `fp32(…)` and `fp64(…)` are rounded to fp32 and fp64 instead. Exact rules round
only their results.

sum        products joined by + or -
product    atoms joined by * or /
atom       a number (2688, 1e-12, 2^-9), a name, name(sum, …), or (sum)
"""

from __future__ import annotations

import re
from fractions import Fraction

from floatlab.errors import FormatError
from floatlab.record import Record

WORKING = "input"  # in formulas, `input(x)` rounds x to the format of the values (see `ScaleRule.working`)
_TOKEN = re.compile(r"\s*([0-9][0-9.]*(?:e-?[0-9]+)?(?:\^-?[0-9]+)?|[A-Za-z_][A-Za-z_0-9]*|.)")


class Formula(Record):
    """A formula as a tree: a number, a name, or an operation whose arguments are formulas.

    `name` is the number as text, the variable's name, or the operation (+ - * / or a function). `number` is the value
    of a number; for a variable or an operation, it is None.

    >>> parse_formula("amax / 6").arguments[0].name
    'amax'
    """

    name: str
    arguments: tuple[Formula, ...] = ()
    number: Fraction | None = None

    def __str__(self) -> str:
        """Return the formula as text, with only the brackets that are needed."""
        return _text(self, 0)

    def names(self) -> frozenset[str]:
        """Return the names of the variables in the formula.

        >>> sorted(parse_formula("amax / (6 * tensor)").names())
        ['amax', 'tensor']
        """
        if self.arguments:
            return frozenset().union(*(each.names() for each in self.arguments))
        return frozenset() if self.number is not None else frozenset({self.name})


_STRENGTH = {"+": 1, "-": 1, "*": 2, "/": 2}


def _text(term: Formula, outer: int) -> str:
    strength = _STRENGTH.get(term.name, 0)
    if not term.arguments:
        return term.name
    if not strength:
        return f"{term.name}({', '.join(_text(each, 0) for each in term.arguments)})"
    left, right = term.arguments
    inside = f"{_text(left, strength)} {term.name} {_text(right, strength + 1)}"
    return f"({inside})" if strength < outer else inside


def parse_formula(text: str) -> Formula:
    """Return the tree of a formula; raises FormatError for text that is not a formula.

    >>> str(parse_formula("x * ((1 / tensor) / scale)"))
    'x * (1 / tensor / scale)'
    """
    tokens = [found[1] for found in _TOKEN.finditer(text) if not found[1].isspace()]
    term, rest = _sum(tokens)
    if rest:
        raise FormatError(f"the formula {text!r} ends before {rest[0]!r}")
    return term


def _sum(tokens: list[str]) -> tuple[Formula, list[str]]:
    return _joined(tokens, _product, ("+", "-"))


def _product(tokens: list[str]) -> tuple[Formula, list[str]]:
    return _joined(tokens, _atom, ("*", "/"))


def _joined(tokens: list[str], part: object, signs: tuple[str, str]) -> tuple[Formula, list[str]]:
    assert callable(part)
    term, tokens = part(tokens)
    while tokens and tokens[0] in signs:
        other, rest = part(tokens[1:])
        term, tokens = Formula(tokens[0], (term, other)), rest
    return term, tokens


def _atom(tokens: list[str]) -> tuple[Formula, list[str]]:
    first, *rest = tokens or [""]
    if first[:1].isdigit():
        return Formula(first, number=_number(first)), rest
    if first == "(":
        term, rest = _sum(rest)
        return term, _closed(rest)
    if not first.isidentifier():
        raise FormatError(f"a formula must have a number, a name or '(' here, not {first!r}")
    if rest[:1] != ["("]:
        return Formula(first), rest
    arguments: list[Formula] = []
    while not arguments or rest[:1] == [","]:
        term, rest = _sum(rest[1:])
        arguments.append(term)
    return Formula(first, tuple(arguments)), _closed(rest)


def _closed(tokens: list[str]) -> list[str]:
    if tokens[:1] != [")"]:
        raise FormatError("a ')' is missing in the formula")
    return tokens[1:]


def _number(text: str) -> Fraction:
    base, _, power = text.partition("^")
    return Fraction(base) ** int(power or 1)
