"""Whether an ideal observer could decide a blind case with a small fault; floatlab takes no part in the simulations.

The observer sees only the inputs and both results. A fault is in doubt if a correct program could have made a
difference of this pattern and size. Correct programs are simulated in NumPy: 40 orders of addition, sums that are
rounded in one direction, and products of changed or rearranged inputs. No rule depends on an answer of floatlab.
"""

from itertools import product

import numpy as np

from tests.reduce import blind_ways as ways
from tests.reduce.blind_ways import f64

# An element is in doubt if its error is at most this many times the largest of the simulated orders. The second number
# is for elements that another order may change alone: in small products, and at the edges of a library's tiles.
_TIMES, _ALONE = 1.2, 2.0
# A shift is in doubt if it is at most this many times as clear as the shifts that correct programs make.
_SHIFTS = 2.0
# Scaled inputs have up to four rounded scales: x·(1/a), y·(1/b), and the result times a·b. They make a factor.
_ROUNDED = 4.0
ONE_NUMBER = 24  # a choice of precision is in doubt if all numbers hold fewer bits about it than one of binary32 has
_ROWS, _COLUMNS = 16, 32  # typical errors are simulated in at most this many rows and columns


def orders(x, y, dtype, rng):
    """Yield 40 products in other orders of addition."""
    n = x.shape[1]
    for fma in (False, True):
        narrow = np.dtype(dtype).itemsize < 8
        for terms in (range(n), range(n - 1, -1, -1), *(rng.permutation(n) for _ in range(8))):
            yield ways.serial(x, y, dtype, fma and narrow, terms)
        for count in (2, 4, 8, 16):
            yield ways.lanes(x, y, dtype, count, fma and narrow)
        for count in (2, 3, 4, 5, 6, 8):
            yield ways.split(x, y, count) if fma else ways.split(x[:, ::-1], y[::-1], count)


def directed(x, y, kind):
    """Yield products in binary32 whose sums are rounded toward zero, up or down, in one to 16 lanes."""
    for count, down in product((1, 4, 16), ("zero", "up", "down")):
        total = np.zeros((count, x.shape[0], y.shape[1]), kind)
        for k in range(x.shape[1]):
            exact = f64(total[k % count]) + f64(x[:, k : k + 1]) * f64(y[k : k + 1])
            total[k % count] = in_direction(exact, down, kind)
        made = total[0]
        for part in total[1:]:
            made = in_direction(f64(made) + f64(part), down, kind)
        yield made


def in_direction(exact, direction, kind):
    made = exact.astype(kind)
    goal = {"zero": -np.sign(exact), "up": np.ones_like(exact), "down": -np.ones_like(exact)}[direction]
    off = (f64(made) - exact) * goal < 0
    return np.where(off, np.nextafter(made, (goal * np.inf).astype(kind)), made)


def rearranged(x, y, rng):
    """Yield products of scaled, rotated or centred inputs, and sums of differences."""
    kind, n = x.dtype, x.shape[1]
    for _ in range(4):
        scale = np.exp(rng.standard_normal(n)).astype(kind)
        yield (x / scale) @ (y * scale[:, None])
        turn = np.linalg.qr(rng.standard_normal((n, n)))[0].astype(kind) if n < 400 else np.eye(n, dtype=kind)
        yield (x @ turn) @ (turn.T @ y)
    row, column = x.mean(axis=0, keepdims=True), y.mean(axis=1, keepdims=True)
    yield (x - row) @ y + row @ y
    yield x @ (y - column) + x @ column
    yield (x - x.mean()) @ y + x.mean() * y.sum(axis=0)
    yield (x - row) @ (y - column) + row @ y + x @ column - row @ column
    yield np.cumsum(np.diff(x, axis=0, prepend=np.zeros_like(x[:1])) @ y, axis=0, dtype=kind)


def is_element_in_doubt(x, y, bad, at, is_alone, rng):
    """Return whether the error of one element is no larger than those of other orders.

    If `is_alone` is true, another order may change just this element, and somewhat larger errors are in doubt.
    """
    row, column = np.divmod(at, bad.shape[1])
    a, b = x[row : row + 1], y[:, column : column + 1]
    exact = float((f64(a) @ f64(b)).item())
    with np.errstate(all="ignore"):
        honest = [abs(float(f64(made.astype(bad.dtype)).item()) - exact) for made in orders(a, b, x.dtype, rng)]
        half = abs(float(np.nextafter(bad.flat[at], bad.dtype.type(np.inf))) - float(bad.flat[at])) / 2
    return abs(float(bad.flat[at]) - exact) <= (_ALONE if is_alone else _TIMES) * max(honest) + half


def is_mere_order(x, y, made, rng):
    """Return whether the errors of a result are typically no larger than those of other orders."""
    x, y, made = x[:_ROWS], y[:, :_COLUMNS], made[:_ROWS, :_COLUMNS]
    exact, weight = _weighted(x, y)

    def typical(result):
        return float((weight * (f64(result) - exact) ** 2).sum())

    with np.errstate(all="ignore"):
        most = max(typical(each.astype(made.dtype)) for each in orders(x, y, x.dtype, rng))
    return typical(made) <= _TIMES**2 * most


def bits(x, y, made):
    """Return how many bits the numbers of a result hold about its errors: log2 of 1 + 2·error/ulp, for each number."""
    exact, values = f64(x) @ f64(y), f64(made)
    error = np.abs(values - exact)[np.isfinite(values)]
    step = {2: 2.0**-8, 4: 2.0**-24, 8: 2.0**-53}[made.dtype.itemsize]
    with np.errstate(all="ignore"):
        count = np.log2(1 + error / (step * np.abs(values[np.isfinite(values)])))
    return float(count[np.isfinite(count)].sum())


def may_be_coarse(x, y, made):
    """Return whether inputs of a few bits might give a result, so that one or two numbers prove no fault."""
    return bool((np.abs(f64(made) - f64(x) @ f64(y)) <= np.abs(f64(x)) @ np.abs(f64(y))).all())


def twins(x, y, results):
    """Return the names of the causes that give the very bits of a result: wide sums and compensated sums."""
    if x.dtype.itemsize == 2:
        return set()
    with np.errstate(all="ignore"):
        wide = [f64(x) @ f64(y), ways.rounded_products(x, y, ways.NAMES[x.dtype.name], np.float64)]
        made = [("accumulator", each) for each in wide] + [("compensated", ways.kahan(x, y, x.dtype))]
        return {name for name, each in made for result in results if np.array_equal(each.astype(x.dtype), result)}


def is_factor_in_doubt(x, y, bad, rng):
    """Return whether correct programs make factors as clear as that of a result, or it is one of rounded scales."""
    (own, clear), *honest = (_factor(x, y, each) for each in _errors(x, y, bad, rng))
    return own <= _ROUNDED * np.finfo(x.dtype).eps / 2 or clear <= _SHIFTS * max(each for _, each in honest)


def is_bias_in_doubt(x, y, bad, rng):
    """Return whether correct programs make mean errors of columns as clear as those of a result."""
    own, *honest = (_bias(x, y, each) for each in _errors(x, y, bad, rng))
    return own <= _SHIFTS * max(honest)


def _factor(x, y, error):
    """Return the size of the factor that fits errors best, and by how much it exceeds the spread of what is left."""
    exact, weight = _weighted(x, y)
    factor = (weight * exact * error).sum() / (weight * exact * exact).sum()
    left = np.sqrt((weight * (error - factor * exact) ** 2).sum())
    return abs(factor), float(abs(factor) * np.sqrt((weight * exact * exact).sum()) / left) if left else np.inf


def _bias(x, y, error):
    """Return how much the mean errors of the columns exceed the spread of what they leave."""
    weight = _weighted(x, y)[1]
    mean = (weight * error).sum(axis=0) / np.maximum(weight.sum(axis=0), 1e-300)
    left = np.sqrt((weight * (error - mean) ** 2).sum())
    return float(np.sqrt((weight * mean * mean).sum()) / left) if left else np.inf


def _weighted(x, y):
    squares = (f64(x) ** 2) @ (f64(y) ** 2)
    return f64(x) @ f64(y), np.where(squares > 0, 1 / np.where(squares > 0, squares, 1), 0)


def _errors(x, y, bad, rng):
    """Yield the errors of the result, and those of correct programs; of a large product, the latter are estimated."""
    exact = f64(x) @ f64(y)
    yield f64(bad) - exact
    with np.errstate(all="ignore"):
        for made in (*directed(x, y, x.dtype), *rearranged(x, y, rng), *orders(x, y, x.dtype, rng)):
            yield f64(made) - exact
