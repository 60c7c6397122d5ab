"""Random integers that anyone can repeat: a stream of the draws that stochastic rounding documents."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers.rounding import draw


class RandomIntegers:
    """A stream of random integers that depends on the seed alone.

    >>> draws = RandomIntegers(1)
    >>> [draws.below(100) for _ in range(5)]
    [13, 24, 23, 67, 6]
    """

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

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high; low where there is none."""
        return low + self.below(max(high - low + 1, 1))

    def one_of(self, choices: list[int]) -> int:
        """Return one of the choices."""
        return choices[self.below(len(choices))]

    def sign(self, kind: Format) -> bool:
        """Return whether a number is negative, half the time where it can be."""
        return bool(self.below(2)) and kind.signed

    def odd(self, digits: int) -> int:
        """Return an odd number of so many binary digits."""
        return 1 << (digits - 1) | self.below(1 << (digits - 1)) | 1
