"""The shapes of things that array code passes around: arrays, and the functions that work on blocks of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Rounder = Callable[[Array, int, Array, Array | None], None]  # words, the first one's place, codes, flags
Reader = Callable[[Array, Array], None]  # codes, words
Work = Callable[..., None]  # blocks of codes, the first one's place, a block to write, flags or None
