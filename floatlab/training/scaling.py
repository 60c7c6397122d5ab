"""Loss scaling: the scale that is static, or finds itself, and what gradients lose without one.

The dynamic scale keeps the rules of `torch.amp.GradScaler`: a step whose gradients are not all finite is skipped and
the scale shrinks; after so many good steps in a row it grows, unless that would leave binary32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.operations import multiply
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Context, Datum, Exact, Flags, round_exact
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.training.validation import checked_number

LARGEST_SCALE = float(np.finfo(np.float32).max)
_SCALES = (-1074, 1023)  # exponents of the powers of two that binary64 has


@methods_in_default_mode
class LossScale(Record):
    """What the loss, and with it every gradient, is multiplied by: a static number, or one that adapts.

    It adapts where there is a `growth_interval`. The defaults are those of `torch.amp.GradScaler`. Raises
    UnsupportedError for a scale of 0, or one that is not a finite positive number of binary32.

    >>> LossScale(1024).is_dynamic, LossScale.dynamic().growth_interval
    (False, 2000)
    """

    scale: float
    growth_interval: int | None
    growth_factor: float
    backoff_factor: float

    def __init__(
        self,
        scale: float = 65536.0,
        growth_interval: int | None = None,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
    ) -> None:
        """Check the numbers."""
        number = checked_number(scale, "the loss scale", above=0)
        if number > LARGEST_SCALE or not np.float32(number):
            raise UnsupportedError(f"the loss scale is a positive number of binary32, not {quoted(str(scale))}")
        if growth_interval is not None and (type(growth_interval) is not int or growth_interval < 1):
            raise UnsupportedError(
                f"growth_interval is a number of steps from 1 up, not {quoted(str(growth_interval))}"
            )
        backoff = checked_number(backoff_factor, "backoff_factor", above=0)
        if backoff >= 1:
            raise UnsupportedError(f"backoff_factor is below 1, not {backoff:g}")
        put = object.__setattr__
        put(self, "scale", float(np.float32(number)))
        put(self, "growth_interval", growth_interval)
        put(self, "growth_factor", checked_number(growth_factor, "growth_factor", above=1))
        put(self, "backoff_factor", backoff)

    @classmethod
    def dynamic(cls, scale: float = 65536.0, growth_interval: int = 2000) -> LossScale:
        """Return a scale that adapts."""
        return cls(scale, growth_interval)

    @property
    def is_dynamic(self) -> bool:
        """Whether it adapts."""
        return self.growth_interval is not None


@methods_in_default_mode
class Scaler:
    """A loss scale at work: its scale now, and how many good steps there were since it changed.

    >>> scaler = Scaler(LossScale(4.0, growth_interval=2))
    >>> told = []
    >>> for overflowed in (False, False, True, False):
    ...     scaler.update(overflowed)
    ...     told.append((scaler.scale, scaler.good))
    >>> told
    [(4.0, 1), (8.0, 0), (4.0, 0), (4.0, 1)]
    """

    def __init__(self, rules: LossScale) -> None:
        """Start with the scale of the rules."""
        self.rules = rules
        self.scale = rules.scale
        self.good = 0

    @property
    def until_growth(self) -> int | None:
        """How many more good steps make it grow; None where it is static."""
        return None if self.rules.growth_interval is None else self.rules.growth_interval - self.good

    def update(self, overflowed: bool, steps: int = 1) -> None:
        """Take note of a skipped step, or of some good ones (no more than `until_growth`)."""
        if self.rules.growth_interval is None:
            return
        if overflowed:
            self.scale = float(np.float32(self.scale * self.rules.backoff_factor))
            self.good = 0
            return
        self.good += steps
        if self.good == self.rules.growth_interval:
            grown = self.scale * self.rules.growth_factor
            if grown <= LARGEST_SCALE:
                self.scale = float(np.float32(grown))
            self.good = 0


@methods_in_default_mode
class Underflow(Answering, Record):
    """What becomes of gradients in a format: how they are spread over its range, what is lost, and which scale helps.

    `exponents` are those of the leading digits, with how many gradients have each in `counts`. The shares are of the
    `nonzero` gradients, after multiplication by `scale`. `safe_scale` is the largest power of two that makes none
    overflow, None where all gradients are zero; `flushed_by_safe_scale` is how many become zero all the same, and
    `least_scale` the smallest power of two that keeps all of them, None where binary64 has none.
    """

    format: Format
    scale: float
    total: int
    nonzero: int
    not_finite: int  # among those given
    exponents: tuple[int, ...]
    counts: tuple[int, ...]
    flushed: int  # became zero
    subnormal: int
    overflowed: int
    safe_scale: float | None
    least_scale: float | None
    flushed_by_safe_scale: int | None

    _ASKS = ".lost_share"

    def __repr__(self) -> str:
        """Show the format and what share is lost."""
        return f"Underflow({self.format.name}: {self.lost_share:.3%} of the gradients lost)"

    @property
    def lost_share(self) -> float:
        """The share of nonzero gradients that became zero."""
        return self.flushed / self.nonzero if self.nonzero else 0.0

    @property
    def subnormal_share(self) -> float:
        """The share of nonzero gradients that became subnormal numbers, with fewer digits."""
        return self.subnormal / self.nonzero if self.nonzero else 0.0

    @property
    def range(self) -> tuple[int, int, int]:
        """The exponents of the format's smallest and smallest normal number, and of its largest."""
        return self.format.qmin, self.format.emin, self.format.emax

    @property
    def histogram(self) -> list[tuple[int, int]]:
        """Exponents and counts."""
        return list(zip(self.exponents, self.counts, strict=True))


@in_default_mode
def measure_underflow(gradients: Any, format: Format | str, scale: Any = 1.0, rounding: str = "RNE") -> Underflow:
    """Return what a format does to gradients multiplied by a loss scale, rounded once.

    `gradients` is an array of floats of any shape. Raises UnsupportedError for no numbers, a scale of 0, and formats
    that gradients cannot have.

    >>> found = measure_underflow([1e-9, -3e-8, 1e-6, 0.25], "fp16")
    >>> found.flushed, found.subnormal, found.safe_scale, found.flushed_by_safe_scale
    (1, 2, 131072.0, 0)
    """
    fmt = parse_format(format)
    check_needs(fmt, "the format of gradients")
    number = checked_number(scale, "the loss scale", above=0)
    source = source_of(gradients, "gradients")
    values = np.asarray(decode(source.codes, source.format, np.float64)).reshape(-1)
    if not values.size:
        raise UnsupportedError("gradients has no numbers")
    finite = values[np.isfinite(values)]
    nonzero = finite[finite != 0]
    exponents, counts = np.unique(np.frexp(nonzero)[1] - 1, return_counts=True)
    context = Context(rounding)
    flushed, subnormal, overflowed = _fates(nonzero, fmt, number, context)
    safe = _safe_scale(nonzero, fmt, context)
    return Underflow(
        fmt, number, values.size, nonzero.size, values.size - finite.size,
        tuple(exponents.tolist()), tuple(counts.tolist()), flushed, subnormal, overflowed,
        safe, _least_scale(nonzero, fmt, context), None if safe is None else _fates(nonzero, fmt, safe, context)[0],
    )  # fmt: skip


def _fates(nonzero: Array, fmt: Format, scale: float, context: Context) -> tuple[int, int, int]:
    """Return how many become zero, subnormal, and too large."""
    if not nonzero.size:
        return 0, 0, 0
    found, flags = multiply(nonzero, np.float64(scale), fmt, context=context, return_flags=True)
    size = np.abs(found)
    small = (size > 0) & (size < float(fmt.smallest_normal))
    return int((found == 0).sum()), int(small.sum()), int((flags & Flags.OVERFLOW.value != 0).sum())


def _stays(x: float, fmt: Format, power: int, context: Context) -> tuple[bool, bool]:
    """Say whether x·2^power, rounded, is not zero and does not overflow."""
    n, d = abs(x).as_integer_ratio()
    found = round_exact(Exact(x < 0, n, power - d.bit_length() + 1), fmt, context)
    datum = Datum(fmt, found.code)
    return not datum.is_finite or bool(datum.exact), not found.overflowed


def _extremes(nonzero: Array, choose: Any) -> list[float]:
    """Return the positive and the negative number that is smallest, or largest, in size: each rounds in its own way."""
    sides = ((1.0, nonzero[nonzero > 0]), (-1.0, -nonzero[nonzero < 0]))
    return [sign * float(choose(each)) for sign, each in sides if each.size]


def _safe_scale(nonzero: Array, fmt: Format, context: Context) -> float | None:
    powers = []
    for most in _extremes(nonzero, np.max):
        power = fmt.emax - (math.frexp(most)[1] - 1)
        while not _stays(most, fmt, power, context)[1]:
            power -= 1
        powers.append(power)
    return 2.0 ** max(min(*powers, _SCALES[1]), _SCALES[0]) if powers else None


def _least_scale(nonzero: Array, fmt: Format, context: Context) -> float | None:
    powers = []
    for least in _extremes(nonzero, np.min):
        power = fmt.qmin - 2 - (math.frexp(least)[1] - 1)
        while not _stays(least, fmt, power, context)[0]:
            power += 1
        while power > _SCALES[0] and _stays(least, fmt, power - 1, context)[0]:
            power -= 1
        powers.append(power)
    return 2.0 ** max(*powers, _SCALES[0]) if powers and max(powers) <= _SCALES[1] else None


def check_needs(format: Format, name: str) -> None:
    """Refuse a format that has no zero or no sign: gradients, weights and updates need both; UnsupportedError."""
    missing = [what for what, there in (("zero", format.zero), ("sign", format.signed)) if not there]
    if missing:
        lacks = " and ".join(f"no {what}" for what in missing)
        raise UnsupportedError(
            f"{name} is {format.name}, which has {lacks}: numbers that are trained need both (try bf16 or e5m2)"
        )
