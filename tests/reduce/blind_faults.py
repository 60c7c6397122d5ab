"""Bugs for blind cases: each takes a good product and returns a bad one, its true names, others that fit, and where.

If the shape makes causes indistinguishable (with one row, a bias per column could be any row), the names contain all
causes that give the same bits.
"""

import numpy as np

from tests.reduce import blind_doubts as doubts
from tests.reduce.blind_ways import f64, library, narrow

ANY = ({"elements"}, {"region"}, {"not-the-product"}, {"bias"}, {"scale"})


def changed(good, bad):
    return (f64(good) != f64(bad)) & ~(np.isnan(f64(good)) & np.isnan(f64(bad)))


def size(d, good):
    """Return the typical magnitude of the numbers of the product."""
    return float(np.sqrt(np.mean(f64(good)[np.isfinite(f64(good))] ** 2))) or 1.0


def rough(d):
    """Return the relative difference that two legitimate results of the dtype may have."""
    return {"float32": 2.0**-24, "float64": 2.0**-53, "fp16": 2.0**-11, "bf16": 2.0**-8}[d.name]


def magnitude(d):
    return np.abs(f64(d.x)) @ np.abs(f64(d.y))


def beyond(d, good, bad, most=None):
    """Return which elements differ by more than rounding in this dtype can explain."""
    return np.abs(f64(bad) - f64(good)) > 4 * rough(d) * (d.k + 4) * magnitude(d)


def boxed(mask):
    r, c = np.where(mask.any(1))[0], np.where(mask.any(0))[0]
    return (int(r[0]), int(r[-1]) + 1), (int(c[0]), int(c[-1]) + 1)


def elements(d, good):
    bad = np.array(good)
    count = int(min(d.rng.integers(1, 4), max(1, d.m * d.n // 50)))
    at = d.rng.choice(d.m * d.n, count, replace=False)
    amount = size(d, good) * d.rng.uniform(0.05, 3, count) * d.rng.choice([-1, 1], count)
    bad.flat[at] = d.cast(f64(bad.flat[at]) + amount)
    mask = changed(good, bad)
    if not mask.any() or not beyond(d, good, bad)[mask].all():
        return None
    if d.m * d.n < 6:
        return bad, ANY, {"region", "elements", "rows-moved", "columns-moved", "terms-missing"}, None
    return bad, ({"elements"}, {"region"}) if mask.sum() > 1 else {"elements"}, set(), ("elements", mask)


def region(d, good):
    if d.m * d.n < 24:
        return None
    rows, columns = (int(d.rng.integers(1, max(2, n // 2 + 1))) for n in (d.m, d.n))
    r, c = int(d.rng.integers(0, d.m - rows + 1)), int(d.rng.integers(0, d.n - columns + 1))
    box = slice(r, r + rows), slice(c, c + columns)
    bad = np.array(good)
    kind = int(d.rng.integers(3))
    if kind == 0:
        bad[box] = 0
    elif kind == 1:
        old = library(d.cast(d.rng.permutation(d.x, axis=1)), d.y)
        bad[box] = old[box]
    else:
        bad[box] = d.cast(f64(bad[box]) + size(d, good) * d.rng.standard_normal(bad[box].shape))
    mask = changed(getattr(d, "base", good), bad) & beyond(d, good, bad)
    if mask.sum() < 4 or (changed(good, bad)[box] & ~mask[box]).any():
        return None
    filled = mask[box].mean() > 0.75 and boxed(mask) == ((r, r + rows), (c, c + columns))
    also = {"rows-moved", "columns-moved"}
    return bad, {"region"} if filled and mask.sum() > 3 else ({"region"}, {"elements"}), also, ("region", mask)


def bias(d, good):
    axis = 0 if d.rng.random() < 0.7 else 1
    shape = (1, d.n) if axis == 0 else (d.m, 1)
    b = d.rng.standard_normal(shape) * size(d, good) * d.rng.uniform(0.1, 2)
    bad = d.cast(f64(good) + d.cast(b).astype(np.float64))
    if beyond(d, good, bad).mean() < 0.9:
        return None
    if min(d.m, d.n) < 4:
        return bad, (*ANY, {"rows-moved"}, {"columns-moved"}), {"elements", "region", "bias"}, None
    return bad, {"bias"}, set(), ("axis", axis)


def scale(d, good):
    factor = float(d.rng.choice([0.5, 2, -1, 1 / np.sqrt(d.k + 1), 3, 1.01 if rough(d) < 1e-4 else 1.5, 1 / 127]))
    bad = d.cast(f64(good) * factor)
    if beyond(d, good, bad).mean() < (0.9 if np.mean(f64(good) == 0) < 0.05 else 0.05):
        return None
    tiny = d.m * d.n < 6 or beyond(d, good, bad).sum() < 4
    return bad, ANY if tiny else {"scale"}, {"elements", "region", "bias"} if tiny else set(), None


def transposed_output(d, good):
    if d.m != d.n:
        return None
    bad = np.ascontiguousarray(good.T)
    mask = beyond(d, good, bad)
    if d.m < 5:
        return (bad, ({"transposed-output"}, *ANY), {"rows-moved", "columns-moved"}, None) if mask.any() else None
    return (bad, {"transposed-output"}, set(), None) if mask.sum() > 4 else None


def transposed_operand(d, good):
    if d.k != d.n:
        return None
    bad = library(d.x, np.ascontiguousarray(d.y.T))
    mask = beyond(d, good, bad)
    if d.k < 5 or d.m < 2:
        return (bad, ({"transposed-operand"}, *ANY), {"columns-moved", "region"}, None) if mask.any() else None
    return (bad, {"transposed-operand"}, set(), None) if mask.sum() > 4 else None


def moved(d, good, axis):
    count = good.shape[axis]
    if count < 3 or good.shape[1 - axis] < 3:
        return None
    kind = int(d.rng.integers(3))
    to = np.arange(count)
    if kind == 0:
        i, j = d.rng.choice(count, 2, replace=False)
        to[[i, j]] = j, i
    elif kind == 1:
        to = np.roll(to, int(d.rng.integers(1, count)))
    else:
        to = d.rng.permutation(count)
    bad = np.take(good, to, axis)
    mask = beyond(d, good, bad)
    if (mask.any(1 - axis) != (to != np.arange(count))).any() or not mask.any():
        return None
    name = ("rows-moved", "columns-moved")[axis]
    # Two rows of three numbers cannot be distinguished from wrong elements; a few short rows are little evidence.
    unsure = mask.sum() < 8 or min(good.shape) < 4
    where = ("moved", np.flatnonzero(to != np.arange(count)))
    return bad, ({name}, {"elements"}, {"region"}, {"columns-moved"}) if unsure else {name}, set(), where


def rows_moved(d, good):
    return moved(d, good, 0)


def columns_moved(d, good):
    return moved(d, good, 1)


def terms(d, good, sign):
    if d.k < 2:
        return None
    count = int(d.rng.integers(1, max(2, d.k // 4)))
    low = int(d.rng.choice([0, d.k - count, d.rng.integers(0, d.k - count + 1)]))
    ks = np.arange(low, low + count)
    x, y = np.array(d.x), np.array(d.y)
    if sign < 0:
        x[:, ks] = 0
        bad = library(x, y)
    else:
        bad = library(np.concatenate([x, x[:, ks]], 1), np.concatenate([y, y[ks]], 0))
    share = beyond(d, good, bad).mean()
    if share < 0.5:
        return None
    name = "terms-missing" if sign < 0 else "terms-twice"
    if d.k * 2 > d.m * d.n or d.k < 4:  # more unknowns than numbers
        # There are more sets of omitted terms than numbers to distinguish them.
        return bad, ({name}, *ANY), {"region"}, None
    return bad, {name}, set(), ("terms", ks)


def terms_missing(d, good):
    return terms(d, good, -1)


def terms_twice(d, good):
    return terms(d, good, 1)


def nan(d, good):
    bad = np.array(good)
    count = int(d.rng.integers(1, 4))
    at = d.rng.choice(d.m * d.n, min(count, d.m * d.n), replace=False)
    bad.flat[at] = d.cast(d.rng.choice([np.nan, np.inf, -np.inf], len(at)))
    return bad, {"nan"}, set(), ("elements", ~np.isfinite(f64(bad)))


def alone(d, good):
    """Return whether a product has enough numbers to show a change of all of them."""
    return min(d.m, d.n) >= 6 and d.k >= 4 and np.mean(f64(good) == 0) < 0.2


def rectified(d, good):
    bad = np.maximum(good, good.dtype.type(0))
    negative = beyond(d, good, bad) & (f64(good) < 0)
    if not alone(d, good) or len(np.unique(f64(good)[negative])) < 8:
        return None
    # A number near zero may be negative only because of rounding.
    return bad, {"clipped"}, set(), None


def clipped(d, good):
    most = float(np.quantile(np.abs(f64(good)), d.rng.uniform(0.5, 0.9)))
    bad = d.cast(np.clip(f64(good), -most, most))
    if not alone(d, good) or len(np.unique(f64(good)[beyond(d, good, bad)])) < 16:
        return None
    return bad, {"clipped"}, set(), None


def dropped(d, good):
    """Dropout: some elements are zero, the others are scaled."""
    gone = d.rng.random(good.shape) < d.rng.uniform(0.03, 0.2)
    bad = np.where(gone, 0, d.cast(f64(good) / 0.8)).astype(good.dtype)
    if (
        not alone(d, good)
        or not beyond(d, good, bad)[gone].all()
        or not gone.any()
        or beyond(d, good, bad).mean() < 0.9
    ):
        return None
    return bad, unless_narrow(d, {"scale", "elements"}), {"region"}, None


def unless_narrow(d, names):
    """Return the names of two simultaneous faults; results of 16 bits may have too few digits to show both."""
    return (names, {"not-the-product"}) if d.dtype.itemsize == 2 else names


def scale_and_bias(d, good):
    factor = d.rng.choice([0.125, 0.5, 2.0, d.k**-0.5])
    shape = ((1, 1), (1, d.n), (d.m, 1))[int(d.rng.integers(3))]
    bad = d.cast(f64(good) * factor + d.rng.uniform(1, 3, shape) * size(d, good))
    spread = np.abs(f64(good)).max() < 50 * np.median(np.abs(f64(good)))
    if not alone(d, good) or factor == 1 or beyond(d, good, bad).mean() < 0.9 or not spread:
        return None
    return bad, unless_narrow(d, {"scale", "bias"}), set(), None


def scale_and_element(d, good):
    bad = d.cast(f64(good) * d.rng.choice([0.125, 3.0]))
    if not alone(d, good) or beyond(d, good, bad).mean() < 0.9:
        return None
    at = int(d.rng.integers(bad.size))
    bad.flat[at] = d.cast(f64(bad.flat[at]) + 20 * size(d, good))
    return bad, unless_narrow(d, {"scale", "elements"}), set(), None


def tile_rows(d, good):
    """The last row of each tile is zero."""
    if d.m < 16 or d.n < 6 or np.mean(f64(good) == 0) > 0.05:
        return None
    bad = np.array(good)
    bad[7::8] = 0
    if not beyond(d, good, bad)[7::8].mean() > 0.9:
        return None
    return bad, {"region"}, {"elements"}, None


ALL = (elements, region, bias, scale, transposed_output, transposed_operand, rows_moved, columns_moved)
ALL += (terms_missing, terms_twice, nan)
ALL += (rectified, clipped, dropped, scale_and_bias, scale_and_element, tile_rows)


def overflow(d):
    """A result whose format cannot hold some of the numbers."""
    if d.name != "float32":
        return None
    exact = f64(d.x) @ f64(d.y)
    most = np.abs(exact).max()
    if not most:
        return None
    d.x = (f64(d.x) * (2e5 / most)).astype(np.float32)
    good = d.good()
    with np.errstate(all="ignore"):
        bad = good.astype(np.float16)
    if np.isfinite(bad).all() or np.isinf(bad).sum() > 4096:  # that are listed
        return None
    return good, bad, "bug", {"nan"}, {"output-rounded"}, ("elements", np.isinf(bad))


def unrelated(d):
    good = d.good()
    if d.m * d.n < 12 or d.k < 4:
        return None

    def noise():
        if d.rng.random() < 0.5:
            return d.cast(d.rng.standard_normal(good.shape) * size(d, good))
        # Each row and each column separately: a permutation of whole columns would move columns of the product.
        return library(d.cast(d.rng.permuted(f64(d.x), axis=1)), d.cast(d.rng.permuted(f64(d.y), axis=0)))

    kind = int(d.rng.integers(3))
    b = noise()
    a = good if kind == 0 else noise() if kind == 1 else d.cast(f64(b) * (1 + 1e-7))
    if beyond(d, good, b).mean() < 0.5 or (kind == 1 and beyond(d, good, a).mean() < 0.5):
        return None
    return a, b, "bug", {"not-the-product"}, set()


def small_element(d):
    """One element is wrong by some ulps; all others are equal bit for bit."""
    good = d.good()
    at = int(d.rng.integers(good.size))
    bad = np.array(good)
    ulps = int(d.rng.integers(2, 60))
    codes = bad.view({2: np.uint16, 4: np.uint32, 8: np.uint64}[bad.dtype.itemsize])
    if float(good.flat[at]) == 0:
        return None
    codes.flat[at] += ulps
    few = good.size < 40  # so few elements that another order may change only one
    few |= at // d.n >= d.m - 4 or at % d.n >= d.n - 4  # where libraries add in other orders
    in_doubt = doubts.is_element_in_doubt(d.x, d.y, bad, at, few, np.random.default_rng(at))
    statuses = {"rounding", "unknown"} if in_doubt else set()
    return good, bad, "bug", {"elements"}, {"region", "nan"}, ("elements", changed(good, bad)), statuses


def small_bias(d):
    """Each column has a bias as small as rounding. Only the means of long columns show this bias."""
    if d.name == "float64" or d.dtype.itemsize == 2:
        return None
    good, base = d.good(), d.other()
    noise = np.sqrt(np.mean((f64(base) - f64(d.x) @ f64(d.y)) ** 2, axis=0, keepdims=True))
    b = noise * d.rng.uniform(1, 4) * d.rng.choice([-1, 1], (1, d.n))
    bad = d.cast(f64(base) + b)
    seen = float(np.sqrt(np.sum(d.m * (b / np.where(noise == 0, 1, noise)) ** 2)))
    if seen < 30 * np.sqrt(np.sqrt(d.n)) or d.m < 20:
        return None
    in_doubt = doubts.is_bias_in_doubt(d.x, d.y, bad, np.random.default_rng(d.k))
    return good, bad, "bug", {"bias"}, {"order", "fma"}, None, {"unknown"} if in_doubt else set()


def small_scale(d):
    """All elements are scaled by a factor near one. The change is below the rounding error bound."""
    if d.dtype.itemsize == 2 or d.m * d.n < 100:
        return None
    good, base = d.good(), d.other()
    exact = narrow(f64(d.x) @ f64(d.y), "fp64")
    noise = np.sqrt(np.mean((f64(base) - exact) ** 2)) if d.name == "float32" else 2.0**-53 * size(d, good)
    factor = 1 + 2.0 * d.rng.uniform(1, 4) * noise / size(d, good) * d.rng.choice([-1, 1])
    bad = d.cast(f64(base) * factor)
    if abs(factor - 1) * np.sqrt(d.m * d.n) * size(d, good) < 30 * noise or d.name == "float64":
        return None
    if abs(factor - 1) < 2.0**-24:
        return None  # most numbers are rounded back to what they were
    in_doubt = doubts.is_factor_in_doubt(d.x, d.y, bad, np.random.default_rng(d.k))
    return good, bad, "bug", {"scale"}, {"order", "fma"}, None, {"unknown"} if in_doubt else set()
