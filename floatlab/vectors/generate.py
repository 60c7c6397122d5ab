"""Generates test vectors. Many operands are hard cases of rounding, as in TestFloat's generator.

*Landmarks* are 0, 1, the least and the largest subnormal and normal numbers, the neighbours of all these numbers, ∞ and
NaNs. The first lines are all combinations of landmarks; operations with three operands have these lines only at level
2. The remaining lines mix landmarks, random codes, and numbers with patterns in their significands, such as runs of
ones. The exponent of a number with a pattern is near that of 1, near the lowest exponent or near the highest one. In
about a quarter of the remaining lines, the operands are constructed so that the exact result is on or near a tie, a
cancellation or the end of the range (`hard.py`).
"""

from __future__ import annotations

from itertools import islice, product

from floatlab.arith import Integer
from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.numbers.rounding import DEFAULT, as_context
from floatlab.vectors.functions import BITS_OF_FLAGS, Function, digits
from floatlab.vectors.hard import pointed, target_landmarks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from floatlab.numbers.rounding import AnyContext

LINES = {1: 10_000, 2: 200_000}  # default number of lines per level


def landmarks(kind: Format | Integer) -> list[int]:
    """Return the codes that every test should cover: 0, 1, the least and the largest numbers, ∞ and NaNs.

    The least and the largest subnormal numbers, the smallest normal number, and the neighbours of all these numbers are
    included.

    >>> from floatlab import parse_format
    >>> [hex(code) for code in landmarks(parse_format("e2m1"))][:8]
    ['0x0', '0x1', '0x2', '0x3', '0x6', '0x7', '0x8', '0x9']
    """
    if isinstance(kind, Integer):
        top = 1 << (kind.width - 1)
        return sorted({0, 1, 2, 3, top - 2, top - 1, top, top + 1, 2 * top - 2, 2 * top - 1})
    one = (
        kind.bias << kind.trailing_bits if 0 <= kind.bias < 1 << kind.exponent_bits else kind.smallest_normal_magnitude
    )
    ranks = {0, kind.smallest_magnitude, kind.largest_magnitude, one, kind.smallest_normal_magnitude}
    near = {rank + step for rank in ranks for step in (-1, 0, 1)}
    magnitudes = {rank for rank in near if 0 <= rank <= kind.largest_magnitude}
    if kind.infinities:
        magnitudes.add(kind.infinity_magnitude)
    top = (1 << kind.magnitude_bits) - 1
    if kind.nans:
        magnitudes |= {top, kind.magnitude(kind.nan_code)}
        if kind.ieee_nans:
            magnitudes |= {kind.infinity_magnitude + 1, kind.infinity_magnitude + kind.quiet_bit - 1}
    codes = {
        kind.signed_code(negative, m) for m in magnitudes for negative in ((False, True) if kind.signed else (False,))
    }
    if kind.nan_in_place_of_negative_zero:
        codes.add(kind.nan_code)
    return sorted(codes)


def _patterned(kind: Format, draws: RandomIntegers, level: int) -> int:
    """Return a code with a pattern in its significand.

    The exponent is near that of 1, near the lowest exponent or near the highest one.

    The patterns are a run of 1 bits, a single 1 bit, a single 0 bit, and all 0 bits; some significands are random.
    """
    t, w = kind.trailing_bits, kind.exponent_bits
    ones = (1 << t) - 1
    cut = draws.below(t + 1)
    run = ones >> cut
    trailing = (run, ones ^ run, 1 << cut & ones, ones ^ (1 << cut & ones), draws.below(ones + 1), 0)[draws.below(6)]
    if level > 1:
        trailing ^= 1 << draws.below(t) if t and draws.below(2) else 0
    reach = kind.precision + 2
    center = (kind.bias, kind.bias, 0, (kind.largest_magnitude >> t))[draws.below(4)]
    field = min(max(center + draws.below(2 * reach + 1) - reach, 0), (1 << w) - 1)
    magnitude = field << t | trailing
    return kind.compose(draws.sign(kind), magnitude)


def _operand(kind: Format | Integer, marks: list[int], draws: RandomIntegers, level: int) -> int:
    choice = draws.below(8)
    if choice == 0:
        return draws.one_of(marks)
    if isinstance(kind, Integer):
        return draws.below(1 << kind.width) >> draws.below(kind.width)
    if choice < 6:
        return _patterned(kind, draws, level)
    return kind.compose(draws.sign(kind), draws.below(1 << kind.magnitude_bits))


def operand_codes(function: Function, level: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Yield operands endlessly: combinations of landmarks, then a mix of landmarks, random codes and hard cases.

    The combinations are left out for functions with three operands, except at level 2.
    """
    kinds, result = function.operands, function.result
    marks = [landmarks(kind) for kind in kinds]
    if function.operation == "to" and result is not None:
        marks = [sorted({*marks[0], *target_landmarks(kinds[0], result, landmarks(result))})]
    draws = RandomIntegers(seed)
    unsigned = isinstance(result, Format) and not result.signed
    positive = isinstance(kinds[0], Format) and kinds[0].signed and (function.operation == "sqrt" or unsigned)
    if len(kinds) < 3 or level > 1:
        yield from product(*marks)
    while True:
        operands = [_operand(kind, mark, draws, level) for kind, mark in zip(kinds, marks, strict=True)]
        if draws.below(4) == 0:
            operands = pointed(function.operation, kinds[-1], result, operands, draws)
        if positive and draws.below(8):  # otherwise half of the operands would be negative, and their results invalid
            operands = [code & ~(1 << (kinds[0].width - 1)) for code in operands]
        yield tuple(operands)


def generate_lines(
    function: Function, context: AnyContext = DEFAULT, level: int = 1, seed: int = 0, lines: int | None = None
) -> Iterator[str]:
    """Yield lines of vectors: operands, the correctly rounded result, the flags. The same seed gives the same lines.

    Level 1 is a short test, and level 2 is a long test. `lines` is the number of lines; its default depends on the
    level. Raises FloatlabError for another level.

    >>> from floatlab.vectors import parse_function
    >>> list(generate_lines(parse_function("e2m1_add"), lines=3))
    ['0 0 0 00', '0 1 1 00', '0 2 2 00']
    """
    rules = as_context(context)
    if level not in LINES:
        raise FloatlabError(f"the level must be 1 or 2, not {level}")
    count = LINES[level] if lines is None else lines
    for operands in islice(operand_codes(function, level, seed), count):
        code, flags = function.run(operands, rules)
        words = [f"{each:0{digits(kind)}X}" for each, kind in zip(operands, function.operands, strict=True)]
        yield f"{' '.join(words)} {code:0{digits(function.result)}X} {BITS_OF_FLAGS[flags]:02X}"
