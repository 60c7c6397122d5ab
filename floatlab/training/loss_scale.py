"""The loss scale: a static factor, or a dynamic one that follows the rules of `torch.amp.GradScaler`.

With a dynamic factor, a step with NaN or infinite gradients is skipped, and the factor is reduced. After
`growth_interval` consecutive steps with finite gradients, the factor grows, unless it would exceed the largest number
of binary32.
"""

from __future__ import annotations

import numpy as np

from floatlab.errors import UnsupportedError, quoted
from floatlab.fpmode import methods_in_default_mode
from floatlab.record import Record
from floatlab.training.validation import checked_number, set_fields

GROWTH_INTERVAL = 2000  # steps with finite gradients until a dynamic scale grows, as in torch.amp.GradScaler
LARGEST_SCALE = float(np.finfo(np.float32).max)


@methods_in_default_mode
class LossScale(Record):
    """The factor by which the loss, and therefore every gradient, is multiplied: static or dynamic.

    The scale is dynamic if `growth_interval` is given. The other defaults are those of `torch.amp.GradScaler`. The
    scale is rounded to binary32. Raises UnsupportedError if the scale is not positive, exceeds the largest number of
    binary32 or rounds to zero, and if another argument is out of its range.

    >>> LossScale(1024).is_dynamic, LossScale.dynamic().growth_interval
    (False, 2000)
    """

    scale: float = 65536.0
    growth_interval: int | None = None
    growth_factor: float = 2.0
    backoff_factor: float = 0.5

    def __post_init__(self) -> None:
        """Validate the numbers."""
        scale, interval = checked_number(self.scale, "the loss scale", above=0), self.growth_interval
        if scale > LARGEST_SCALE or not np.float32(scale):
            raise UnsupportedError(
                f"the loss scale must be a positive number of binary32, not {quoted(str(self.scale))}"
            )
        if interval is not None and (type(interval) is not int or interval < 1):
            raise UnsupportedError(f"growth_interval must be a number of steps from 1 up, not {quoted(str(interval))}")
        backoff = checked_number(self.backoff_factor, "backoff_factor", above=0)
        if backoff >= 1:
            raise UnsupportedError(f"backoff_factor must be below 1, not {backoff:g}")
        growth = checked_number(self.growth_factor, "growth_factor", above=1)
        set_fields(self, scale=float(np.float32(scale)), growth_factor=growth, backoff_factor=backoff)

    @classmethod
    def dynamic(cls, scale: float = 65536.0, growth_interval: int = GROWTH_INTERVAL) -> LossScale:
        """Return a dynamic scale."""
        return cls(scale, growth_interval)

    @property
    def is_dynamic(self) -> bool:
        """Whether the scale is dynamic."""
        return self.growth_interval is not None


@methods_in_default_mode
class Scaler:
    """The current state of a loss scale.

    `scale` is the current value. For a dynamic scale, `good` counts the steps with finite gradients since the last
    skipped step or the last complete growth interval. For a static scale, `good` stays 0.

    >>> scaler = Scaler(LossScale(4.0, growth_interval=2))
    >>> states = []
    >>> for overflowed in (False, False, True, False):
    ...     scaler.update(overflowed)
    ...     states.append((scaler.scale, scaler.good))
    >>> states
    [(4.0, 1), (8.0, 0), (4.0, 0), (4.0, 1)]
    """

    def __init__(self, rules: LossScale) -> None:
        self.rules = rules
        self.scale = rules.scale
        self.good = 0

    @property
    def until_growth(self) -> int | None:
        """Number of steps with finite gradients until the scale grows; None if the scale is static."""
        return None if self.rules.growth_interval is None else self.rules.growth_interval - self.good

    def update(self, overflowed: bool, steps: int = 1) -> None:
        """Record one skipped step if `overflowed`, otherwise `steps` steps with finite gradients.

        `steps` may be at most `until_growth`.
        """
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
