"""Types shared by the array modules: arrays, and functions on pieces of them."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Rounder = Callable[[Array, int, Array, Array | None], None]  # words, first index, output codes and flags
Reader = Callable[[Array, Array], None]  # arguments: codes, output words
Work = Callable[..., None]  # arguments: codes of each operand, index of the first element, output, output flags or None
