"""Types shared by the array modules: arrays, and functions on pieces of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Rounder = Callable[[Array, int, Array, Array | None], None]  # words, index of the first, codes out, flags out
Reader = Callable[[Array, Array], None]  # codes, words out
Work = Callable[..., None]  # codes of each operand, index of the first, result out, flags out or None
