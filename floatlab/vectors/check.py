"""Checks test vectors: computes the result of every line again, and compares.

A `Mismatch` gives the command that shows how floatlab computes the result.
"""

from __future__ import annotations

import re

from floatlab.arith import Integer
from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.rounding import DEFAULT, Context, Flags
from floatlab.record import Record
from floatlab.vectors.functions import BITS_OF_FLAGS, COMPARISONS, FLAGS_OF_BITS, Function, digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    # arguments: a line and its number; returns the operands, the result and the flags
    Reader = Callable[[str, int], tuple[tuple[int, ...], int, Flags]]

# Operations whose verb has a different name.
_VERBS = {"mulAdd": "fma", "roundToInt": "rint"}


class Mismatch(Record):
    """A line whose result or flags differ from floatlab's."""

    number: int
    line: str
    function: Function
    operands: tuple[int, ...]
    expected: int
    expected_flags: Flags
    computed: int
    computed_flags: Flags

    def written(self, code: int, flags: Flags) -> str:
        """Return a result and flags as a line of test vectors has them: two hexadecimal numbers."""
        return f"{code:0{digits(self.function.result)}X} {BITS_OF_FLAGS[flags]:02X}"

    def command(self, context: Context) -> str:
        """Return the floatlab command that shows how the result of this line is derived."""
        function = self.function
        source, target, operation = function.operands[0], function.result, function.operation
        values = " ".join(f"bits:0x{code:0{digits(source)}x}" for code in self.operands)
        if isinstance(source, Integer):
            assert isinstance(target, Format)
            n = source.value(self.operands[0])
            return f"floatlab show {n} -f {target.name}{_settings(context)}"
        if operation in COMPARISONS:
            loud = " --signaling" * COMPARISONS[operation][1]
            return f"floatlab cmp {values} -f {source.name}{loud}{' --daz' * context.flush_inputs}"
        if isinstance(target, Integer):
            quiet = " --notexact" * (not function.exact)
            return f"floatlab toint {values} -f {source.name} --int {target.name}{quiet}{_settings(context)}"
        if operation == "to":
            assert target is not None
            return f"floatlab convert {values} --through {source.name},{target.name}{_settings(context)}"
        quiet = " --notexact" * (not function.exact and operation == "roundToInt")
        return f"floatlab {_VERBS.get(operation, operation)} {values} -f {source.name}{quiet}{_settings(context)}"


def _settings(context: Context) -> str:
    """Return the command-line options for a context: its rounding direction, and other rules.

    For stochastic rounding, --seed is always given. The other options are given only if the context differs from the
    default: --random-bits and --draw (for directions that use them), --overflow, --absent, --nan, --tininess,
    --negative, --daz and --ftz.
    """
    words = [f"-r {context.rounding.value}"]
    if context.rounding.is_stochastic:
        words.append(f"--seed {context.seed}")
        if context.rounding.has_few_bits and context.random_bits != DEFAULT.random_bits:
            words.append(f"--random-bits {context.random_bits}")
        if context.draw is not None:
            words.append(f"--draw {context.draw}")
    for option in ("overflow", "absent", "nan", "tininess", "negative"):
        choice = getattr(context, option)
        if choice is not getattr(DEFAULT, option):
            words.append(f"--{option} {choice.value}")
    words += ["--daz"] * context.flush_inputs + ["--ftz"] * context.flush_results
    return " " + " ".join(words)


def line_reader(function: Function) -> Reader:
    """Return a function that reads one line of test vectors for `function`.

    The returned function raises FileFormatError for an invalid line; the message names the line and the invalid word.
    """
    kinds = (*function.operands, function.result)
    lengths = [*map(digits, kinds), 2]
    limits = [1 << (1 if kind is None else kind.width) for kind in kinds] + [32]
    blank = "[ \t]+"
    whole = re.compile(rf"[ \t]*{blank.join(f'([0-9A-Fa-f]{{{length}}})' for length in lengths)}[ \t]*\r?\n?").fullmatch
    # A code whose width is a multiple of four cannot be out of range, since the number of its digits is checked.
    checked = [(place, limit) for place, limit in enumerate(limits) if limit < 1 << 4 * lengths[place]]

    def read(text: str, number: int) -> tuple[tuple[int, ...], int, Flags]:
        found = whole(text)
        if found is None:
            raise FileFormatError(f"line {number}: {_unlike(text, function, lengths)}")
        *operands, result, flags = [int(word, 16) for word in found.groups()]
        for place, limit in checked:
            value = (*operands, result, flags)[place]
            if value >= limit:
                word, what = found[place + 1], _places(function)[place]
                raise FileFormatError(
                    f"line {number}: {quoted(word)} is too large for the {what}: at most {limit - 1:0{lengths[place]}X}"
                )
        return tuple(operands), result, FLAGS_OF_BITS[flags]

    return read


def _places(function: Function) -> list[str]:
    def name(kind: Format | Integer | None) -> str:
        return "truth value" if kind is None else kind.name

    count = len(function.operands)
    order = ["operand"] if count == 1 else ["first operand", "second operand", "third operand"][:count]
    places = [f"{place} ({name(kind)})" for place, kind in zip(order, function.operands, strict=True)]
    return [*places, f"result ({name(function.result)})", "flags"]


def _unlike(text: str, function: Function, lengths: list[int]) -> str:
    """Return why a line does not fit its function: a wrong number of words, the first bad word, or a bad separator."""
    words = text.strip(" \t\r\n").split()
    if len(words) != len(lengths):
        return (
            f"{function.name} takes {len(lengths)} words per line (operands, result, flags), "
            f"and this one has {len(words)}: {quoted(text.strip())}"
        )
    for word, length, what in zip(words, lengths, _places(function), strict=True):
        if not re.fullmatch(f"[0-9A-Fa-f]{{{length}}}", word):
            prefix = " without 0x" * word.lower().startswith("0x")
            return f"{quoted(word)} is not the {what}: {length} hexadecimal digit{'s' * (length > 1)}{prefix}"
    return f"{quoted(text.strip())}: only spaces separate the words"


def check_lines(
    lines: Iterable[str], function: Function, context: Context, any_nan: bool = False
) -> Iterator[Mismatch | None]:
    """For each line that is not blank, yield None if floatlab's result and flags agree with the line, else a Mismatch.

    If `any_nan` is true, all NaNs are equal. Raises FileFormatError at the first line that cannot be read or computed;
    the message names the line.

    >>> from floatlab.vectors import parse_function
    >>> add = parse_function("f16_add")
    >>> [each and each.written(each.computed, each.computed_flags) for each in check_lines(
    ...     ["3C00 3C00 4000 00", "3C00 0001 3C00 00"], add, Context())]
    [None, '3C00 01']
    """
    run, read = function.run, line_reader(function)
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        operands, expected, expected_flags = read(text, number)
        try:
            computed, flags = run(operands, context)
        except FloatlabError as error:  # the context raises an error for a value that has no code
            raise FileFormatError(f"line {number}: {quoted(text.strip())}: {error}") from None
        if flags == expected_flags and (
            computed == expected or (any_nan and _both_nan(function.result, expected, computed))
        ):
            yield None
        else:
            yield Mismatch(number, text.strip(), function, operands, expected, expected_flags, computed, flags)


def _both_nan(kind: Format | Integer | None, expected: int, computed: int) -> bool:
    return isinstance(kind, Format) and Datum(kind, expected).is_nan and Datum(kind, computed).is_nan
