"""Maps of the orders of whole products: known kernels, implementations made at random, and the BLAS installed here."""

import math

import numpy as np
import pytest

import floatlab as fl
from benchmarks.order_maps import FIXED, measured, random_shapes
from floatlab.errors import UnsupportedError
from floatlab.reduce.plan.grouped_schedules import SERIAL
from floatlab.reduce.plan.schedules import PAIRWISE, Reversed
from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.probing import NotASum
from tests.reduce.openblas_kernel import is_called
from tests.reduce.reveal.generated import Generated, fma

GRAMS = {"A@A.T": lambda a: a @ a.T, "A.T@A": lambda a: (stored := np.ascontiguousarray(a.T)).T @ stored}


def random_operands(shape, dtype, rng):
    rows, terms, columns = shape
    return rng.standard_normal((rows, terms)).astype(dtype), rng.standard_normal((terms, columns)).astype(dtype)


def assert_replays(found, target, dtype="float32", products=3):
    rng = np.random.default_rng(7)
    for _ in range(products):
        a, b = random_operands(found.shape, dtype, rng)
        assert found.share == 1, found.text
        assert np.array_equal(found.replay(a, b), target(a, b).reshape(found.labels.shape)), found.text


def test_fma_of_the_generated_implementations_is_exact():
    rng = np.random.default_rng(3)
    a, b, c = (
        rng.standard_normal(2000).astype(np.float32) * np.float32(2.0) ** rng.integers(-20, 20, 2000) for _ in "abc"
    )
    assert np.array_equal(fma(a, b, c), fl.arrays.fma(a, b, c, "fp32"))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("seed", range(6))
def test_any_implementation_is_mapped(seed):
    made = Generated(seed)
    assert_replays(order_map(made, made.shape, made.dtype, kind="matmul"), made, made.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6, 206))
def test_two_hundred_implementations_are_mapped(seed):
    made = Generated(seed)
    assert_replays(order_map(made, made.shape, made.dtype, kind="matmul"), made, made.dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    "shape", [(64, 64, 64), (5, 33, 7), (1, 40, 9), (30, 41, 1), (1, 77, 1), (7, 1, 6), (37, 300, 41)]
)
def test_the_installed_blas_is_replayed(shape, dtype):
    assert_replays(fl.reveal("numpy.matmul", shape=shape, dtype=dtype), np.matmul, dtype)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("layout", ["A.T@B", "A@B.T", "A.T@B.T"])
@pytest.mark.parametrize("shape", [(20, 35, 30), (1, 50, 12), (13, 200, 1)])
def test_transposed_operands_have_orders_of_their_own(layout, shape):
    def laid(a, b):
        left = np.ascontiguousarray(a.T).T if layout.startswith("A.T") else a
        return left @ (np.ascontiguousarray(b.T).T if layout.endswith("B.T") else b)

    assert_replays(fl.reveal("numpy.matmul", shape=shape, layout=layout), laid)


@pytest.mark.parametrize("layout", GRAMS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_matrix_times_itself_is_replayed(layout, dtype):
    rng = np.random.default_rng(1)
    for rows, terms in ((24, 40), (9, 130)):
        found = order_map("numpy.matmul", (rows, terms, rows), dtype, layout=layout)
        a = rng.standard_normal((rows, terms)).astype(dtype)
        made, real = found.replay(a), GRAMS[layout](a)
        claimed = ~np.isnan(made)
        # Nehalem's kernel computes the last element of 9 × 9 by itself; one element cannot be probed in rows.
        assert claimed.sum() >= made.size - 1, found.text
        assert np.array_equal(made[claimed], real[claimed]), found.text


def test_the_map_says_which_rows_and_columns():
    def tiles(a, b):
        made = np.zeros((len(a), b.shape[1]), a.dtype)
        for k in range(a.shape[1]):
            made += a[:, k, None] * b[k]
        edge = np.zeros_like(made)
        for k in reversed(range(a.shape[1])):
            edge += a[:, k, None] * b[k]
        made[4::6], made[5::6] = edge[4::6], edge[5::6]
        return made

    found = order_map(tiles, (24, 16, 10), kind="matmul")
    assert [each.schedule for each in found.classes] == [SERIAL, Reversed()]
    assert [each.fused for each in found.classes] == [False, False]
    assert [each.accumulator.name for each in found.classes] == ["binary32", "binary32"]
    assert found.plan is None
    assert found.text == (
        "66.7 % (rows 0–3, 6–9, … 18–21, all columns): serial\n33.3 % (rows 4–5, 10–11, … 22–23, all columns): reversed"
    )
    assert (found.labels[4:6] == 1).all()
    assert (found.labels[:4] == 0).all()
    assert repr(found) == "OrderMap(tests.tiles, 24 × 16 × 10: 2 orders, 1 explained)"


def test_products_in_one_order_have_a_plan():
    found = fl.reveal(lambda a, b: np.add.reduce(a[:, :, None] * b[None], axis=1), kind="matmul", shape=(5, 9, 4))
    assert found.plan is not None
    assert found.plan.canonical() == SERIAL.plan(9)
    assert len(found.classes) == 1


def test_matrix_and_vector():
    found = order_map("numpy.matmul", (20, 30), kind="matvec")
    assert found.shape == (20, 30, 1)
    assert_replays(found, lambda a, b: a @ b[:, 0])


def test_batches_of_products():
    found = fl.reveal("numpy.matmul", shape=(3, 10, 25, 6))
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((3, 10, 25), np.float32), rng.standard_normal((3, 25, 6), np.float32)
    assert (found.shape, found.batch, found.share) == ((30, 25, 6), 3, 1)
    assert np.array_equal(found.replay(a, b), a @ b)
    with pytest.raises(UnsupportedError, match="this map is for"):
        found.replay(a[0], b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_narrow_formats(dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed").bfloat16

    def serial(a, b):
        total = np.zeros((len(a), b.shape[1]), np.float32)
        for k in range(a.shape[1]):
            total = total + np.float32(a[:, k, None]) * np.float32(b[k])
        return total.astype(a.dtype)

    found = order_map(serial, (6, 30, 5), np.dtype(dtype).name, kind="matmul")
    assert found.classes[0].accumulator.name == "binary32"
    assert_replays(found, serial, dtype)


def kahan(a, b, terms):
    total = np.zeros((len(a), b.shape[1]), a.dtype)
    rest = total.copy()
    for k in terms:
        y = a[:, k, None] * b[k] - rest
        t = total + y
        rest, total = (t - total) - y, t
    return total


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("step", [1, -1])
def test_kahan_in_a_tile(dtype, step):
    def target(a, b):
        made = a @ b
        made[:3, 2:] = kahan(a[:3], b[:, 2:], range(a.shape[1])[::step])
        return made

    found = order_map(target, (9, 30, 8), dtype, kind="matmul")
    assert_replays(found, target, dtype)
    text = "serial" if step == 1 else "reversed"
    assert f"25 % (rows 0–2, columns 2–7): {text}, compensated (kahan)" in found.text.splitlines()
    again = fl.from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert_replays(again, target, dtype)


def test_exact_sums_are_not_called_compensated():
    def target(a, b):
        return np.array([[math.fsum(row * column) for column in b.T] for row in a.astype(float)]).astype(a.dtype)

    with pytest.raises(NotASum, match="adds exactly"):
        order_map(target, (3, 20, 2), kind="matmul")


def test_what_is_none_is_called_so():
    def random(a, b):
        return np.float32(np.random.default_rng().random()) * (a @ b)

    def maximum(a, b):
        return (a[:, :, None] * b[None]).max(axis=1)

    for function, words in ((random, "two results for the same terms"), (maximum, "is not a sum along a tree")):
        with pytest.raises(NotASum, match=words):
            order_map(function, (8, 12, 6), kind="matmul")


def test_elements_that_are_no_sum_are_left_out():
    def partly(a, b):
        made = np.add.reduce(a[:, :, None] * b[None], axis=1)
        made[0] = (a[0, :, None] * b).max(axis=0)
        return made

    found = order_map(partly, (10, 12, 6), kind="matmul")
    assert found.share == pytest.approx(0.9)
    assert found.classes[1].plan is None
    assert found.classes[1].agreement == 0
    assert "10 % (row 0, all columns): not found: " in found.text
    a, b = random_operands(found.shape, np.float32, np.random.default_rng(5))
    made = found.replay(a, b)
    assert np.isnan(made[0]).all()
    assert np.array_equal(made[1:], partly(a, b)[1:])


def test_classes_that_only_random_data_tell_apart_are_told_apart():
    def corner(a, b):
        products = a[:, :, None] * b[None]
        made = np.add.reduce(products, axis=1)
        made[2, 3] = np.add.reduce(products[2, [*range(20), 21, 20, *range(22, 40)], 3])
        return made

    found = order_map(corner, (6, 40, 5), kind="matmul")
    assert found.labels.sum() == found.labels[2, 3] == 1
    assert_replays(found, corner)


def test_elements_that_agree_by_chance_are_not_claimed():
    def mixed(a, b):
        wide = (a[:, 5:].astype(np.float64) @ b[5:].astype(np.float64)).astype(np.float32)
        return np.add.reduce(a[:, :5, None] * b[:5], axis=1) + wide  # few terms, so another order often gives its bits

    found = order_map(mixed, (25, 10, 36), kind="matmul")
    for seed in range(3):
        a, b = random_operands(found.shape, np.float32, np.random.default_rng(seed))
        made = found.replay(a, b)
        assert (np.isnan(made) | (made == mixed(a, b))).all()


def test_results_in_the_other_byte_order():
    found = order_map(lambda a, b: np.add.reduce(a[:, :, None] * b, axis=1).astype(">f4"), (4, 9, 3), kind="matmul")
    assert found.text == "100 % (all rows, all columns): serial"


def test_bad_questions_are_named():
    for shape, options in (
        ((3, 4), {"kind": "matmul"}),
        ((3, 4, 5, 6, 7), {}),
        ((3, 4, 5, 6), {"layout": "A.T@B"}),
        ((0, 4, 5), {}),
        ("3x4x5", {}),
        ((3, 4, 5), {"layout": "B@A"}),
        ((3, 4, 5), {"layout": "A@A.T"}),
        ((3, 4, 5), {"kind": "sum"}),
        ((1 << 20, 4, 1 << 20), {}),
    ):
        with pytest.raises(UnsupportedError):
            order_map("numpy.matmul", shape, **options)
    with pytest.raises(UnsupportedError, match="this map is for"):
        order_map("numpy.matmul", (3, 4, 5)).replay(np.ones((4, 4)), np.ones((4, 5)))


def test_progress_reaches_all_elements():
    told = []
    order_map("numpy.matmul", (12, 20, 9), progress=lambda done, of: told.append((done, of)))
    assert told[-1] == (108, 108)


# 204 random shapes in all, and the three fixed ones for each kernel and number of threads, in float32 and float64.
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
PARTS = 3


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_of_openblas_is_replayed(kernel, threads, part):
    shapes = [*FIXED, *random_shapes(17, 5000, 100 * KERNELS.index(kernel) + threads)][part::PARTS]
    chosen, *rows = measured(kernel, threads, shapes)
    if not is_called(chosen["kernel"], kernel):
        pytest.skip(f"this processor runs {chosen['kernel']}, and not {kernel}")
    assert len(rows) == 2 * len(shapes)
    for row in rows:
        assert row["replayed"] >= 0.99, row
        assert row["explained"] >= 0.99, row
        assert row["replayed"] == 1 or tuple(row["shape"]) not in FIXED or kernel not in ("Haswell", "Zen"), row


def test_pairwise_blocks_are_named():
    def blocks(a, b):
        products = a[:, :, None] * b[None]
        parts = [products[:, low] + products[:, low + 1] for low in range(0, a.shape[1], 2)]
        while len(parts) > 1:
            parts = [one + other for one, other in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    assert order_map(blocks, (4, 16, 3), kind="matmul").classes[0].schedule == PAIRWISE


def test_nothing_is_claimed_of_what_no_candidate_gives():
    def toward_zero(a, b):
        total = np.zeros((len(a), b.shape[1]), a.dtype)
        for k in range(a.shape[1]):
            exact = total.astype(np.float64) + a[:, k, None] * b[k]
            total = exact.astype(np.float32)
            total = np.where(np.abs(total) > np.abs(exact), np.nextafter(total, np.float32(0)), total)
        return total

    found = order_map(toward_zero, (6, 40, 5), kind="matmul")
    assert found.share == 0
    assert found.classes[0].agreement == 0
    assert "its tree is known" in found.text


def blocks_in_binary16(a, b):
    parts = [(a[:, k : k + 8] @ b[k : k + 8]).astype(np.float16) for k in range(0, a.shape[1], 8)]
    return np.cumsum(np.stack(parts), axis=0, dtype=np.float32)[-1]


def result_in_binary16(a, b):
    made = np.zeros((len(a), b.shape[1]), np.float16)
    for k in range(0, a.shape[1], 7):
        made = (made + (a[:, k : k + 7] @ b[k : k + 7]).astype(np.float16)).astype(np.float16)
    return made.astype(np.float32)


def running_sum_in_binary16(a, b):
    made = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(a.shape[1]):
        made = made + a[:, k, None] * b[k]
        made = made.astype(np.float16).astype(np.float32) if k % 5 == 4 else made
    return made


def wide_blocks(a, b):
    made = np.zeros((len(a), b.shape[1]), np.float32)
    for k in range(0, a.shape[1], 6):
        made = made + (a[:, k : k + 6].astype(np.float64) @ b[k : k + 6].astype(np.float64)).astype(np.float32)
    return made


def narrow_blocks_of_binary64(a, b):
    made = np.zeros((len(a), b.shape[1]))
    for k in range(0, a.shape[1], 6):
        made = made + (a[:, k : k + 6] @ b[k : k + 6]).astype(np.float32)
    return made


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("target", "dtype", "words"),
    [
        (blocks_in_binary16, "float32", "5 partial sums kept in binary16"),
        (result_in_binary16, "float32", "11 partial sums kept in binary16"),
        (running_sum_in_binary16, "float32", "serial, 8 partial sums kept in binary16"),
        (wide_blocks, "float32", "accumulator binary64, 12 partial sums kept in binary32"),
        (narrow_blocks_of_binary64, "float64", "7 partial sums kept in binary32"),
    ],
)
def test_partial_sums_kept_in_another_format_are_found(target, dtype, words):
    found = order_map(target, (6, 40, 5), dtype, kind="matmul")
    assert words in found.text
    assert_replays(found, target, dtype)
    assert_replays(fl.from_json(found.to_json()), target, dtype)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("seed", range(4))
def test_any_implementation_that_keeps_partial_sums_is_mapped(seed):
    made = Generated(seed, keeps=True)
    assert_replays(order_map(made, made.shape, made.dtype, kind="matmul"), made, made.dtype)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4, 104))
def test_a_hundred_implementations_that_keep_partial_sums_are_mapped(seed):
    made = Generated(seed, keeps=True)
    assert_replays(order_map(made, made.shape, made.dtype, kind="matmul"), made, made.dtype)
