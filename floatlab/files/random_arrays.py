"""Reproducible random arrays: `random:uniform:400x400:seed=1`.

Element i is computed from two draws: a = draw(seed, 2i) and b = draw(seed, 2i + 1) (`floatlab.numbers.rounding.draw`,
SplitMix64). So any part of an array can be computed alone. All formulas are evaluated in binary64. With n = a·2^32 + b,
`uniform` is low + (high − low)·floor(n / 2^11) / 2^53. `normal` is mean + std·z, with Box and Muller's z = sqrt(−2 ln
u)·cos(2πv), u = (a + 1)/2^32 and v = b/2^32. `lognormal` is exp(mean + sigma·z). `normal` and `lognormal` use the
machine's ln, cos and exp, whose results may differ in the last place on another machine. Finally the number is rounded
to nearest into the format, so a `uniform` number may become `high`. If a random array is made in two formats, the
numbers differ only by this rounding.
"""

from __future__ import annotations

from math import inf, isfinite, prod

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.arrays.lanes.numpy_rounding import draws
from floatlab.arrays.sources import ArraySource, Piece, Source, array_format, native_dtype
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.files.raw import parse_shape
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode, methods_in_default_mode

RANDOM = "random:"  # how the name of a random array begins
_FORM = "random:uniform:400x400:seed=1"
_MOST = 1 << 40  # the largest number of elements; more would take weeks
# The parameters of each distribution, with their defaults.
_CHOICES = {
    "uniform": {"low": 0.0, "high": 1.0},
    "normal": {"mean": 0.0, "std": 1.0},
    "lognormal": {"mean": 0.0, "sigma": 1.0},
}


@methods_in_default_mode
class RandomSource(ArraySource):
    """A random array, computed as it is read."""

    def __init__(
        self, name: str, shape: tuple[int, ...], format: Format, kind: str, seed: int, choices: dict[str, float]
    ) -> None:
        """Store the shape, the format, the distribution (`kind`), its seed and its parameters (`choices`)."""
        native = native_dtype(format)
        super().__init__(name, shape, format if native is None else native)
        self.distribution, self.seed, self.choices = kind, seed, choices

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on."""
        both = draws(self.seed, 2 * first, 2 * count).astype(np.uint64)
        a, b = both[::2], both[1::2]
        given = self.choices
        with np.errstate(over="ignore"):
            if self.distribution == "uniform":
                part = ((a << np.uint64(21)) | (b >> np.uint64(11))).astype(np.float64) * 2.0**-53
                values = given["low"] + (given["high"] - given["low"]) * part
            else:
                u, v = (a + np.uint64(1)).astype(np.float64) * 2.0**-32, b.astype(np.float64) * 2.0**-32
                values = np.sqrt(-2 * np.log(u)) * np.cos(2 * np.pi * v)
                values = given["mean"] + given.get("std", given.get("sigma", 1.0)) * values
                values = np.exp(values) if self.distribution == "lognormal" else values
        codes = np.asarray(encode(values, self.format))
        return Source(codes, self.format) if self.dtype is None else codes.view(self.dtype)


@in_default_mode
def parse_random(text: str, format: Format) -> ArraySource:
    """Return the random array that a text `random:DISTRIBUTION:SHAPE[:NAME=VALUE…]` describes.

    Distributions are uniform (low, high), normal (mean, std) and lognormal (mean, sigma); all take a seed. Raises
    UnsupportedError for text in another form, and FormatError for a format without a zero or a sign.

    >>> from floatlab.formats import parse_format
    >>> parse_random("random:uniform:2x2:seed=1", parse_format("fp16")).whole().tolist()
    [[0.56640625, 0.97119140625], [0.4443359375, 0.87744140625]]
    """
    kind, _, rest = text.partition(":")[2].partition(":")
    if kind not in _CHOICES:
        known = list(_CHOICES)
        near = guess(kind, known) or f"; known: {', '.join(known)}"
        raise UnsupportedError(f"{quoted(text)}: unknown distribution {quoted(kind)}{near}")
    shape, *named = rest.split(":")
    try:
        sizes = parse_shape(shape)
    except UnsupportedError:
        raise UnsupportedError(f"{quoted(text)}: {quoted(shape)} is not a shape as in {_FORM}") from None
    if prod(sizes) > _MOST:
        raise UnsupportedError(f"{quoted(text)} has too many numbers: at most 2^40 are drawn")
    seed, choices = 0, dict(_CHOICES[kind])
    for each in named:
        name, equals, value = each.partition("=")
        if not equals or name not in (*choices, "seed"):
            parameters = f"seed=N, {'=X, '.join(choices)}=X"
            raise UnsupportedError(f"{quoted(text)}: unknown parameter {quoted(each)}; known: {parameters}")
        if name == "seed":
            if not (value.isascii() and value.isdigit() and len(value) < 20 and int(value) < 1 << 63):
                raise UnsupportedError(f"{quoted(text)}: a seed must be an integer from 0 to 2^63 − 1")
            seed = int(value)
            continue
        try:
            choices[name] = float(value)
        except ValueError:
            choices[name] = inf
        if not isfinite(choices[name]):
            raise UnsupportedError(f"{quoted(text)}: {quoted(each)} needs a finite number")
    fmt = array_format(format)
    if not fmt.signed or not fmt.zero:
        raise FormatError(f"{fmt.name} has no zero or no negative numbers; random arrays need both")
    return RandomSource(text, sizes, fmt, kind, seed, choices)


def open_random(word: str, format: Format | str = "binary64") -> ArraySource:
    """Return the random array `random:DISTRIBUTION:SHAPE[:NAME=VALUE…][@FORMAT]`; its `name` is this whole text.

    Without @FORMAT, the numbers are rounded into `format`.

    >>> open_random("random:normal:4x4:seed=1@bf16").kind
    'bfloat16'
    """
    text, at, own = word.rpartition("@")
    array = parse_random(text, parse_format(own)) if at else parse_random(word, parse_format(format))
    array.name = word
    return array
