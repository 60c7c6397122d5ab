"""Reproducible random integers, from the same generator as stochastic rounding (`rounding.draw`)."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers.rounding import draw


class RandomIntegers:
    """A stream of random integers that depends only on the seed.

    >>> draws = RandomIntegers(1)
    >>> [draws.below(100) for _ in range(5)]
    [13, 24, 23, 67, 6]
    """

    def __init__(self, seed: int) -> None:
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
        """Return an integer from low to high, or low if high is smaller than low."""
        return low + self.below(max(high - low + 1, 1))

    def one_of(self, choices: list[int]) -> int:
        """Return one of the choices."""
        return choices[self.below(len(choices))]

    def sign(self, kind: Format) -> bool:
        """Return a random sign (True: negative); False in an unsigned format."""
        return bool(self.below(2)) and kind.signed

    def odd(self, digits: int) -> int:
        """Return a random odd integer that has `digits` binary digits."""
        return 1 << (digits - 1) | self.below(1 << (digits - 1)) | 1
