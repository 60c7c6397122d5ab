"""Types shared by the array modules: arrays, dtypes, and functions on chunks of arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Rounder = Callable[[Array, int, Array, Array | None], None]  # codes, first index, output, output flags or None
Reader = Callable[[Array, Array], None]  # arguments: codes, output
Work = Callable[..., None]  # arguments: codes of each operand, index of the first element, output, output flags or None
