"""Making vectors: operands weighted to where rounding goes wrong, as TestFloat's generator weights them.

The first lines cross the landmarks of the format with each other; then come lines that mix
landmarks, patterned significands at telling exponents, and random codes, with one line in four
built to fall near a tie, a cancellation or the end of the range.
"""

from __future__ import annotations

from itertools import islice, product

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.numbers.context import DEFAULT, Context
from floatlab.numbers.datum import Datum
from floatlab.numbers.projection import signed_code
from floatlab.numbers.rounding import draw
from floatlab.vectors.functions import BITS_OF_FLAGS, Function, Integer, digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

LINES = {1: 10_000, 2: 200_000}  # written unless a number is asked for


class Draws:
    """A stream of random integers that depends on the seed alone."""

    def __init__(self, seed: int) -> None:
        """Start the stream."""
        self.seed = seed
        self.index = 0

    def below(self, n: int) -> int:
        """Return an integer from 0 to n − 1."""
        words = 0
        for _ in range(n.bit_length() // 32 + 2):
            words = words << 32 | draw(self.seed, self.index)
            self.index += 1
        return words % n

    def one_of(self, choices: list[int]) -> int:
        """Return one of the choices."""
        return choices[self.below(len(choices))]


def landmarks(kind: Format | Integer) -> list[int]:
    """Return the codes that every test should meet: the ends of each class, one, their neighbours, NaNs.

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
        signed_code(kind, negative, m) for m in magnitudes for negative in ((False, True) if kind.signed else (False,))
    }
    if kind.nan_in_place_of_negative_zero:
        codes.add(kind.nan_code)
    return sorted(codes)


def _patterned(kind: Format, draws: Draws, level: int) -> int:
    """Return a code with a telling exponent and a significand that is mostly zeros, mostly ones, or one run."""
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
    return kind.compose(bool(draws.below(2)) and kind.signed, magnitude)


def _operand(kind: Format | Integer, marks: list[int], draws: Draws, level: int) -> int:
    choice = draws.below(8)
    if choice == 0:
        return draws.one_of(marks)
    if isinstance(kind, Integer):
        return draws.below(1 << kind.width) >> draws.below(kind.width)
    if choice < 6:
        return _patterned(kind, draws, level)
    return kind.compose(bool(draws.below(2)) and kind.signed, draws.below(1 << kind.magnitude_bits))


def _near(code: int, kind: Format, draws: Draws) -> int:
    """Return a neighbour within two places, with the other sign half the time."""
    datum = Datum(kind, code)
    if not datum.is_finite:
        return code
    for _ in range(draws.below(3)):
        datum = datum.next_up if draws.below(2) else datum.next_down
    flip = draws.below(2) and kind.signed and datum.is_finite
    return signed_code(kind, not datum.sign_bit, datum.magnitude) if flip else datum.code


def _pointed(function: Function, operands: list[int], draws: Draws) -> list[int]:
    """Move the last operand to where it nearly cancels the rest, or lies near half of its last place."""
    kind = function.operands[-1]
    if not isinstance(kind, Format) or len(operands) < 2:
        return operands
    if function.operation == "mulAdd":
        from floatlab.arith import multiply

        rest = multiply(Datum(kind, operands[0]), Datum(kind, operands[1]), kind).result
    else:
        rest = Datum(kind, operands[0])
    if not rest.is_finite or not kind.signed:
        return operands
    if draws.below(2):
        return [*operands[:-1], _near(rest.code, kind, draws)]
    # p + 1 binades below: half of the last place, or a little beside it
    magnitude = max(rest.magnitude - ((kind.precision + draws.below(2)) << kind.trailing_bits), 0)
    low = kind.compose(bool(draws.below(2)), magnitude >> kind.trailing_bits << kind.trailing_bits)
    return [*operands[:-1], _near(low, kind, draws)]


def operand_codes(function: Function, level: int, seed: int) -> Iterator[tuple[int, ...]]:
    """Yield operands without end: the landmarks crossed, then the weighted mixture."""
    kinds = function.operands
    marks = [landmarks(kind) for kind in kinds]
    draws = Draws(seed)
    if len(kinds) < 3 or level > 1:
        yield from product(*marks)
    while True:
        operands = [_operand(kind, mark, draws, level) for kind, mark in zip(kinds, marks, strict=True)]
        yield tuple(_pointed(function, operands, draws) if draws.below(4) == 0 else operands)


def generate_lines(
    function: Function, context: Context = DEFAULT, level: int = 1, seed: int = 0, lines: int | None = None
) -> Iterator[str]:
    """Yield lines of vectors: operands, the correctly rounded result, the flags; the same for the same seed.

    Level 1 is a quick look, level 2 a long one; `lines` says how many. Raises FloatlabError for
    another level.

    >>> from floatlab.vectors import parse_function
    >>> list(generate_lines(parse_function("e2m1_add"), lines=3))
    ['0 0 0 00', '0 1 1 00', '0 2 2 00']
    """
    if level not in LINES:
        raise FloatlabError(f"the level is 1 or 2, not {level}")
    count = LINES[level] if lines is None else lines
    for operands in islice(operand_codes(function, level, seed), count):
        code, flags = function.run(operands, context)
        words = [f"{each:0{digits(kind)}X}" for each, kind in zip(operands, function.operands, strict=True)]
        yield f"{' '.join(words)} {code:0{digits(function.result)}X} {BITS_OF_FLAGS[flags]:02X}"
