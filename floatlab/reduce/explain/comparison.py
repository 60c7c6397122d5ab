"""Compare two arrays. If their inputs are given, also diagnose why they differ."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.arrays.compare.differences import Differences
from floatlab.arrays.compare.measure import WORST
from floatlab.arrays.compare.measure import compare as measure
from floatlab.arrays.compare.tolerances import NUMPY
from floatlab.errors import UnsupportedError
from floatlab.formats import Format


def compare(
    actual: object,
    expected: object,
    rtol: float = NUMPY[0],
    atol: float = NUMPY[1],
    *,
    inputs: tuple[object, object] | None = None,
    op: str = "matmul",
    bias: object = None,
    equal_nan: bool = False,
    format: Format | str | None = None,
    torch_tolerances: tuple[float, float] | None = None,
    worst: int = WORST,
    progress: Callable[[int], None] | None = None,
) -> Differences:
    """Return how two arrays differ and, if their inputs are given, why.

    Parameters
    ----------
    actual, expected : array_like
        Arrays as for `arrays.quantize`, or `ArraySource`s of any size. Their shapes broadcast.
    rtol, atol : float
        The tolerances of `numpy.allclose`; the defaults are those of NumPy.
    inputs : tuple of two array_like, optional
        The inputs x and y of an operation `op` whose result both arrays should be. The member `diagnosis` then says
        whether the arrays differ by rounding or by a bug, why, and where.
    op : str
        The operation on the inputs: matmul, linear, dot, sum (y is None), `einsum:ij,jk->ik` or `conv2d:stride=2`.
    bias : array_like, optional
        The array that was added to the result of the operation. For linear and conv2d, the bias has one number per
        output; for other operations, the bias is broadcast to the shape of the result.
    equal_nan : bool
        If true, two NaNs count as close, as in `numpy.allclose`.
    format : Format or str, optional
        The format whose ulps are counted. The default is the format of both arrays. If the formats differ, the default
        is the narrower format, and the other array is first rounded to it.
    torch_tolerances : tuple of two floats, optional
        The rtol and atol of `torch.testing.assert_close`. The defaults depend on the dtype.
    worst : int
        The number of elements to list, from 0 to 10,000.
    progress : callable, optional
        Called repeatedly with the number of elements compared since the last call.

    Returns
    -------
    Differences
        Errors, distances in ulps, whether NumPy and PyTorch call the arrays close, and the worst elements. The member
        `diagnosis` is None if no inputs are given.

    Raises
    ------
    UnsupportedError
        If an argument is not an array of numbers, a tolerance is negative or not finite, or the shapes of the inputs do
        not fit.

    Examples
    --------
    >>> import numpy as np
    >>> found = compare(np.float32([1, 2, 3.0001]), np.float32([1, 2.000001, 3]))
    >>> found.ulps.largest, found.allclose.passes, found.allclose.failing
    (Extreme(value=419, index=(2,)), False, 1)
    >>> x, y = np.eye(9, dtype=np.float32), np.ones((9, 9), np.float32)
    >>> wrong = x @ y
    >>> wrong[2:5, 3:7] = 0
    >>> compare(wrong, x @ y, inputs=(x, y)).diagnosis.first
    'Yes: rows 2–4, columns 3–6 of A are zero; all others agree.'
    """
    pair = None if inputs is None else _pair(inputs)
    if pair is None and (op != "matmul" or bias is not None):
        given = "op" if bias is None else "bias"
        raise UnsupportedError(f"{given} says how the results were made from inputs: give inputs=(x, y) too")
    found = measure(
        actual, expected, rtol, atol, equal_nan=equal_nan, format=format, torch_tolerances=torch_tolerances,
        worst=worst, progress=progress,
    )  # fmt: skip
    if pair is None:
        return found
    from floatlab.reduce.explain.operations import diagnose_operation

    return found.replace(diagnosis=diagnose_operation(op, *pair, actual, expected, bias=bias))


def _pair(inputs: object) -> tuple[object, object]:
    if not isinstance(inputs, tuple | list) or len(inputs) != 2:
        count = f" of {len(inputs)}" if isinstance(inputs, tuple | list) else ""
        raise UnsupportedError(f"inputs must be a pair (x, y), not {type(inputs).__name__}{count}; y is None for a sum")
    return inputs[0], inputs[1]
