"""Blind cases: two results, their inputs, and the true reason why the results differ.

The cases are those that users have (other kernels, other precisions, bugs), independent of the engine's method.
"""

from dataclasses import dataclass, field

import numpy as np

from tests.reduce import blind_doubts as doubts
from tests.reduce import blind_faults as faults
from tests.reduce import blind_inputs as of_inputs
from tests.reduce import blind_precision as precision
from tests.reduce import blind_ways as ways
from tests.reduce.blind_ways import DTYPES, NAMES, library

DISTRIBUTIONS = ("normal", "positive", "lognormal", "sparse", "badly scaled")
SHAPES = ("tiny", "small", "medium", "long", "thin", "large")
WEIGHTS = (0.1, 0.3, 0.35, 0.1, 0.12, 0.03)
ROUNDING = frozenset({"order", "fma", "accumulator", "compensated", "products", "partials"})


@dataclass
class Case:
    """A pair of results and the truth about it.

    A diagnosis is right if its names contain one of the sets of `names`, and all its other names are in `also`.
    """

    label: str
    x: np.ndarray
    y: np.ndarray
    actual: np.ndarray
    expected: np.ndarray
    status: str
    names: tuple[frozenset, ...]
    also: frozenset = frozenset()
    where: object = None
    # Other right statuses, if an ideal observer could not decide the case (see `blind_doubts`).
    statuses: frozenset = field(default_factory=frozenset)


def shape_of(rng, kind):
    if kind == "tiny":
        return tuple(int(n) for n in rng.integers(1, 5, 3))
    if kind == "small":
        return tuple(int(n) for n in rng.integers(3, 24, 3))
    if kind == "medium":
        return tuple(int(n) for n in rng.integers(20, 120, 3))
    if kind == "long":
        return int(rng.integers(4, 40)), int(rng.integers(500, 2001)), int(rng.integers(4, 40))
    if kind == "thin":
        thin = [int(rng.integers(1, 4)), int(rng.integers(10, 800)), int(rng.integers(20, 200))]
        return tuple(thin) if rng.random() < 0.5 else (thin[2], thin[1], thin[0])
    return int(rng.integers(100, 201)), int(rng.integers(200, 2001)), int(rng.integers(100, 201))


def inputs(rng, shape, dtype, distribution):
    m, k, n = shape
    x, y = rng.standard_normal((m, k)), rng.standard_normal((k, n))
    half = dtype == "fp16"
    if distribution == "positive":
        x, y = rng.random((m, k)), rng.random((k, n))
    elif distribution == "lognormal":
        x, y = (np.sign(v) * np.exp((0.7 if half else 2.0) * rng.standard_normal(v.shape)) for v in (x, y))
    elif distribution == "sparse":
        x, y = x * (rng.random(x.shape) < 0.15), y * (rng.random(y.shape) < 0.5)
    elif distribution == "badly scaled":
        wide = 2 if half else 20
        x, y = x * 2.0 ** rng.integers(-wide, wide, (m, 1)), y * 2.0 ** rng.integers(-wide, wide, (1, n))
    if half:  # far from overflow
        most = np.abs(x @ y).max()
        x = x / 2.0 ** max(0, np.ceil(np.log2(max(most, 1) / 1000)))
    return x.astype(DTYPES[dtype]), y.astype(DTYPES[dtype])


class Draw:
    """The material of a case: inputs, their dtype, and random numbers."""

    def __init__(self, rng, x, y, dtype):
        self.rng, self.x, self.y, self.name = rng, x, y, dtype
        self.keeps_dtypes = False  # whether the results have another dtype than the inputs
        self.dtype = DTYPES[dtype]
        self.m, self.k, self.n = x.shape[0], x.shape[1], y.shape[1]

    def cast(self, made):
        with np.errstate(all="ignore"):
            return np.asarray(made).astype(self.dtype)

    def good(self):
        return library(self.x, self.y, self.rng)

    def other(self):
        """Another order, and the names of causes that it brings."""
        kind = int(self.rng.integers(5))
        fma = bool(self.rng.random() < 0.5) and self.name != "float64"
        x, y, wide = self.x, self.y, self.dtype
        if kind == 0:
            return self.cast(ways.serial(x, y, wide, fma))
        if kind == 1:
            return self.cast(ways.serial(x, y, wide, fma, range(self.k - 1, -1, -1)))
        if kind == 2:
            return self.cast(ways.lanes(x, y, wide, 2 ** int(self.rng.integers(1, 5)), fma))
        if kind == 3:
            return self.cast(ways.split(x, y, int(self.rng.integers(2, 9))))
        return self.cast(ways.serial(x, y, wide, fma, self.rng.permutation(self.k)))


def order(d):
    return d.good(), d.other(), "rounding", ({"order"}, {"fma"}), {"fma", "accumulator", "order"}


def runs(d):
    """Two runs of the same library: in batches of rows, in blocks of columns, with padding, or in other layouts."""
    if d.dtype.itemsize == 2:
        return None
    also = {"order", "fma", "accumulator", "compensated"}
    return d.x @ d.y, ways.run(d.x, d.y, d.rng), "rounding", ({"order"}, {"fma"}), also


def fma(d):
    if d.name == "float64":
        return None
    if d.dtype.itemsize == 2:
        return None
    terms = range(d.k) if d.rng.random() < 0.7 else range(d.k - 1, -1, -1)
    return (*(d.cast(ways.serial(d.x, d.y, d.dtype, f, terms)) for f in (True, False)), "rounding", {"fma"}, {"order"})


def accumulator(d):
    if d.name == "float64":
        return None
    if d.name == "float32" and d.rng.random() < 0.5:
        made = ways.stepwise(d.x, d.y, str(d.rng.choice(["fp16", "bf16"])))
    elif d.dtype.itemsize == 2:
        made = ways.stepwise(d.x, d.y, NAMES[d.name])
    else:
        made = ways.f64(d.x) @ ways.f64(d.y)
    if not np.isfinite(d.cast(made)).all():  # an overflow, which is a separate kind of case
        return None
    return (
        d.good(),
        d.cast(made),
        "rounding",
        {"accumulator"},
        {"order", "fma", "products", "compensated", "output-rounded"},
    )


def compensated(d):
    if d.name not in ("float32", "float64"):
        return None
    return d.good(), ways.kahan(d.x, d.y, d.dtype), "rounding", {"compensated"}, {"accumulator", "order", "fma"}


def partials(d):
    if d.name != "float32" or d.k < 4:
        return None
    count = int(d.rng.choice([2, 2, 4, 8]))
    made = ways.split(d.x, d.y, count, str(d.rng.choice(["fp16", "bf16"])))
    names = ({"partials"}, {"products"}) if count >= d.k else {"partials"}  # blocks of one term are products
    return d.good(), made, "rounding", names, {"order", "fma"}


def products(d):
    if d.name != "float32" or d.m * d.n * d.k > 2e7:
        return None
    made = ways.rounded_products(d.x, d.y, str(d.rng.choice(["fp16", "bf16"])), np.float32)
    return d.good(), made, "rounding", {"products"}, {"order", "fma"}


def rounded_inputs(d, x, y):
    return library(d.cast(x), d.cast(y)) if d.dtype.itemsize > 2 else d.cast(ways.f64(x) @ ways.f64(y))


def inputs_rounded(d):
    kinds = {"float32": ["tf32", "bf16", "fp16"], "float64": ["fp32", "tf32", "bf16", "fp16"], "fp16": ["bf16"]}
    if d.name == "bf16":
        return None
    name, how = str(d.rng.choice(kinds[d.name])), str(d.rng.choice(["rne", "rna", "rz"]))
    side = int(d.rng.integers(4))
    x = d.x if side == 1 else ways.narrow(d.x, name, how)
    y = d.y if side == 2 else ways.narrow(d.y, name, how)
    if name == "fp16" and not (np.isfinite(x).all() and np.isfinite(y).all()):
        return None
    return d.good(), rounded_inputs(d, x, y), "rounding", {"inputs-rounded"}, {"order", "fma", "accumulator"}


def single(d):
    if d.name != "float64":
        return None
    made = (d.x.astype(np.float32) @ d.y.astype(np.float32)).astype(np.float64)
    return d.good(), made, "rounding", {"inputs-rounded"}, {"accumulator", "output-rounded", "order", "fma"}


def inputs_quantized(d):
    if d.dtype.itemsize == 2:
        return None
    axes = (None, None) if d.rng.random() < 0.5 else (1, 0)
    sides = [ways.quantized(v, axis) for v, axis in zip((d.x, d.y), axes, strict=True)]
    if d.rng.random() < 0.3:
        sides[0] = ways.f64(d.x)
    return d.good(), rounded_inputs(d, *sides), "rounding", {"inputs-quantized"}, {"order", "fma"}


def inputs_split(d):
    if d.name != "float32":
        return None
    count, most = ((2, 2), (3, 3), (2, 2))[int(d.rng.integers(3))]
    made = ways.split_product(d.x, d.y, count, most)
    also = {"order", "fma", "accumulator", "compensated"}
    if count == 3:  # as exact as binary32, so only the order differs
        return d.good(), made, "rounding", ({"inputs-split"}, {"order"}), also
    return d.good(), made, "rounding", {"inputs-split"}, also


def output_rounded(d):
    if d.dtype.itemsize == 2:
        return None
    name = str(d.rng.choice(["bf16", "fp16", "tf32"] if d.name == "float32" else ["bf16", "fp16", "fp32"]))
    made = d.cast(ways.narrow(d.good(), name))
    if not np.isfinite(ways.f64(made)).all():  # numbers beyond the format's largest, which users must be told about
        return d.good(), made, "bug", {"nan"}, ROUNDING | {"output-rounded"}
    return d.good(), made, "rounding", {"output-rounded"}, {"order", "fma", "accumulator"}


def flush_to_zero(d):
    if d.name != "float32":
        return None
    least = 2.0**-126
    # Inputs, or results, near the smallest normal number.
    if d.rng.random() < 0.5:
        x = (ways.f64(d.x) * 2.0**-126).astype(np.float32)
        y, z = d.y, ways.flushed(x, least).astype(np.float32)
        made = z @ y
    else:
        scale = float(np.abs(ways.f64(d.x) @ ways.f64(d.y)).max()) or 1.0
        x = (ways.f64(d.x) * 2.0**-64).astype(np.float32)
        y = (ways.f64(d.y) * 2.0**-62 / scale).astype(np.float32)
        made = x @ y
    d.x, d.y = x, y
    return x @ y, ways.flushed(made, least).astype(np.float32), "rounding", {"flush-to-zero"}, {"order", "fma"}


RNDS = (order, fma, accumulator, compensated, partials, products, inputs_rounded, single, inputs_quantized)
RNDS += (inputs_split, output_rounded, flush_to_zero, runs)


def plain(kind):
    """Return a kind of case with only a fault: in an otherwise equal result, or in a result of another order."""

    def made(d):
        good = d.good()
        found = kind(d, good if d.rng.random() < 0.6 else d.other())
        if found is None:
            return None
        bad, names, also, where = found
        return good, bad, "bug", names, also | ROUNDING, where

    made.__name__ = kind.__name__
    return made


def with_tf32(kind):
    """Return a kind of case with a fault in a result whose inputs were rounded: both must be named."""

    def made(d):
        if d.name != "float32":
            return None
        x, y = (ways.narrow(v, "tf32").astype(np.float32) for v in (d.x, d.y))
        good, d.base = d.good(), x @ y
        if np.array_equal(good, d.base):
            return None
        found = kind(d, d.base)
        if found is None:
            return None
        bad, names, also, where = found
        alternatives = (names,) if isinstance(names, set) else names
        pairs = tuple({"inputs-rounded", *each} for each in alternatives)
        # If any other cause is accepted, an unknown cause is accepted, too.
        return good, bad, "bug", pairs + alternatives * (len(alternatives) > 2), also | ROUNDING, where

    made.__name__ = f"tf32 and {kind.__name__}"
    return made


KINDS = {kind.__name__: kind for kind in RNDS}
KINDS |= {kind.__name__: plain(kind) for kind in faults.ALL}
KINDS |= {(kind := with_tf32(fault)).__name__: kind for fault in (faults.bias, faults.elements, faults.region)}
KINDS |= {kind.__name__: kind for kind in precision.ALL}
KINDS["unrelated"] = faults.unrelated
KINDS["overflow"] = faults.overflow
KINDS["small element"] = faults.small_element
KINDS["small bias"] = faults.small_bias
KINDS["small scale"] = faults.small_scale
# Kinds that are drawn only by name, so that the seeds of the others keep their cases.
INPUT_KINDS = {kind.__name__: kind for kind in of_inputs.ALL}


def case(seed, kind=None):
    """Return a blind case, which depends only on the seed; None if the kind is impossible for the dtype and shape."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(list(KINDS))) if kind is None else kind
    dtype = str(rng.choice(list(DTYPES), p=(0.5, 0.2, 0.15, 0.15)))
    size = str(rng.choice(SHAPES, p=WEIGHTS))
    distribution = str(rng.choice(DISTRIBUTIONS))
    shape = shape_of(rng, size)
    if kind in ("transposed_output", "transposed_operand"):  # only square ones keep their shape
        shape = (shape[0], shape[1], shape[0]) if kind == "transposed_output" else (shape[0], shape[2], shape[2])
    d = Draw(rng, *inputs(rng, shape, dtype, distribution), dtype)
    found = (KINDS | INPUT_KINDS)[kind](d)
    if found is None:
        return None
    a, b, status, names, also, *where = found
    if kind != "overflow" and not d.keeps_dtypes:
        a, b = d.cast(a), d.cast(b)
    second = b
    if rng.random() < 0.4:
        a, b = b, a
    terms = np.mean((ways.f64(d.x) != 0).astype(float) @ (ways.f64(d.y) != 0).astype(float))
    if status == "rounding" and (d.m * d.n < 64 or terms < 8):  # too few numbers: several causes give the same bits
        also = also | ROUNDING | ({"output-rounded"} if terms < 8 else set())
        also = also | ({"inputs-rounded", "inputs-quantized", "inputs-split"} if d.m * d.n <= 4 else set())
    names = (frozenset(names),) if isinstance(names, set | frozenset) else tuple(map(frozenset, names))
    if also >= ROUNDING:
        others = ROUNDING | ({"output-rounded"} & also)
        names += tuple(frozenset({each}) for each in others) * (status == "rounding")
    statuses = frozenset(where[1]) if len(where) > 1 else frozenset()
    if status == "rounding":  # several causes may give the very bits, or a choice may change less than the order does
        names += tuple(frozenset({each}) for each in sorted(doubts.twins(d.x, d.y, (a, b))))
        if doubts.is_mere_order(d.x, d.y, second, np.random.default_rng(seed)):
            names += (frozenset({"order"}), frozenset({"fma"}))
        if doubts.bits(d.x, d.y, second) < doubts.ONE_NUMBER:
            statuses |= {"unknown"}
        stray = np.isfinite(ways.f64(a)) != np.isfinite(ways.f64(b))
        if stray.any():  # sums in a narrow format overflowed: an infinity is a fault, whatever choice made it
            status, names = "bug", tuple(each | {"nan"} for each in names)
    elif d.m * d.n <= 2 and doubts.may_be_coarse(d.x, d.y, second):
        statuses |= {"unknown"}
    label = f"{kind} {dtype} {distribution} {'x'.join(map(str, shape))} seed {seed}"
    if np.array_equal(ways.f64(a), ways.f64(b), equal_nan=True):
        both_wrong = names if kind == "unrelated" else ()  # a diagnosis may add that the equal results are both wrong
        status, names, statuses = "identical", (frozenset(), *both_wrong), frozenset()
    return Case(label, d.x, d.y, a, b, status, names, frozenset(also), where[0] if where else None, statuses)


def cases(count, start=0, kind=None):
    """Yield `count` blind cases."""
    seed = start
    while count:
        made = case(seed, kind)
        seed += 1
        if made is not None:
            count -= 1
            yield made
