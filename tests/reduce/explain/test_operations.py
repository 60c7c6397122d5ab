"""Operations split into matrix products, compared with NumPy and with a convolution added term by term."""

import itertools
import re
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.reduce.explain.operations import products_of
from floatlab.reduce.explain.operations.boxes import join_boxes, unflatten_range


def integers(seed, *shapes):
    rng = np.random.default_rng(seed)
    return [rng.integers(-9, 10, shape).astype(np.float32) for shape in shapes]


def values(source):
    return np.asarray(fl.arrays.decode(source.codes, source.format), np.float64)


def rebuild(products):
    """Compute an operation from its products, and check that `index`, `result` and `boxes` place each element alike."""
    made = np.full(products.shape, np.nan)
    for number in range(len(products)):
        x, y = products.factors_with_bias(number)
        block = values(x) @ values(y)
        assert block.shape == (products.rows, products.columns)
        for row, column in np.ndindex(*block.shape):
            at = products.index(number, row, column)
            assert np.isnan(made[at])
            made[at] = block[row, column]
    assert not np.isnan(made).any()
    found = products.checked(made, "made")
    for number in range(len(products)):
        x, y = products.factors_with_bias(number)
        np.testing.assert_array_equal(values(products.result(found, number)), values(x) @ values(y))
        part = np.zeros(products.shape, int)
        for box in products.boxes(number):
            part[tuple(slice(*span) for span in box)] += 1
        assert part.sum() == part.astype(bool).sum() == products.rows * products.columns
    return made


def convolve(x, y, bias=None, stride=(1, 1), padding=((0, 0), (0, 0)), dilation=(1, 1), groups=1):
    """Return the convolution as torch.nn.functional.conv2d defines it, added term by term."""
    x = np.pad(x, [(0, 0), (0, 0), *padding])
    outputs, inner, *kernel = y.shape
    sides = [(n - d * (k - 1) - 1) // s + 1 for n, d, k, s in zip(x.shape[2:], dilation, kernel, stride, strict=True)]
    made = np.zeros((len(x), outputs, *sides))
    for at in np.ndindex(*made.shape):
        n, o, h, w = at
        first = o // (outputs // groups) * inner
        for c, i, j in np.ndindex(inner, *kernel):
            pixel = x[n, first + c, h * stride[0] + i * dilation[0], w * stride[1] + j * dilation[1]]
            made[at] += float(pixel) * float(y[o, c, i, j])
    return made if bias is None else made + bias[:, None, None]


SHAPES = [
    ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
    ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (6, 4, 5)), ((1, 3, 4), (2, 4, 5)), ((2, 6, 3, 4), (1, 6, 4, 5)),
    ((4,), (2, 4, 5)), ((2, 3, 4), (4,)), ((1, 1), (1, 1)), ((2, 3, 1), (2, 1, 5)), ((3, 1), (1, 1, 2)),
]  # fmt: skip


@pytest.mark.parametrize(("x", "y"), SHAPES)
def test_matmul_as_numpy(x, y):
    a, b = integers(1, x, y)
    np.testing.assert_array_equal(rebuild(products_of("matmul", a, b)), np.matmul(a, b))


def test_a_batch_with_one_matrix_is_one_product():
    a, b = integers(2, (2, 3, 4), (4, 5))
    products = products_of("matmul", a, b)
    assert (len(products), products.rows, products.columns, products.terms) == (1, 6, 5, 4)
    ((x, y),) = products
    assert np.shares_memory(x, a)
    assert np.shares_memory(y, b)
    assert len(products_of("matmul", b.T, a.transpose(0, 2, 1))) == 1


@pytest.mark.parametrize(
    ("x", "y"), [((3, 4), (4, 5)), ((2, 3, 4), (6, 4, 5)), ((4,), (4,)), ((4,), (2, 4, 5)), ((3, 4), (4,))]
)
def test_dot_as_numpy(x, y):
    a, b = integers(3, x, y)
    np.testing.assert_array_equal(rebuild(products_of("dot", a, b)), np.dot(a, b))


@pytest.mark.parametrize("x", [(4,), (3, 4), (2, 3, 4)])
@pytest.mark.parametrize("with_bias", [False, True])
def test_linear(x, with_bias):
    a, w, bias = integers(4, x, (5, 4), (5,))
    found = rebuild(products_of("linear", a, w, bias if with_bias else None))
    np.testing.assert_array_equal(found, a @ w.T + bias * with_bias)


def test_linear_of_one_output():
    a, w, bias = integers(4, (3, 4), (4,), (1,))
    np.testing.assert_array_equal(rebuild(products_of("linear", a, w, bias)), a @ w + bias)


@pytest.mark.parametrize(("words", "axes"), [("sum", -1), ("sum:all", None), ("sum:0", 0), ("sum:0,-1", (0, 2))])
def test_sum_as_numpy(words, axes):
    [a] = integers(5, (2, 3, 4))
    np.testing.assert_array_equal(rebuild(products_of(words, a)), a.sum(axes))
    np.testing.assert_array_equal(rebuild(products_of(words, a, 1.0)), a.sum(axes))


EINSUMS = [
    ("ij,jk->ik", (3, 4), (4, 5)), ("ij,jk->ki", (3, 4), (4, 5)), ("ij,jk", (3, 4), (4, 5)),
    ("ij,kj->ik", (3, 4), (5, 4)),
    ("bij,bjk->bik", (2, 3, 4), (2, 4, 5)), ("bhqd,bhkd->bhqk", (2, 3, 4, 5), (2, 3, 6, 5)), ("i,i->", (4,), (4,)),
    ("i,j->ij", (3,), (4,)), ("i,j->ji", (3,), (4,)), ("ij,ij->", (3, 4), (3, 4)), ("ij,ij->ij", (3, 4), (3, 4)),
    ("ijk,kjl->il", (2, 3, 4), (4, 3, 5)), ("...ij,...jk->...ik", (2, 3, 4), (2, 4, 5)),
    ("...ij,jk->...ik", (7, 2, 3, 4), (4, 5)),
    ("...ij,...jk", (2, 1, 3, 4), (3, 4, 5)), ("ii,ij->j", (3, 3), (3, 4)), ("iij,jk->ik", (3, 3, 4), (4, 2)),
    ("ij,jk->k", (3, 4), (4, 5)), ("ij,k->jk", (3, 4), (5,)), ("ab,cd->acbd", (2, 3), (4, 5)),
    ("bi,bj->ijb", (2, 3), (2, 4)),
    ("i...,i...->...", (3, 4, 2), (3, 4, 1)), ("ij,jk->ik", (3, 1), (4, 5)), (",->", (), ()),
    ("i j, j k -> i k", (3, 4), (4, 5)),
    ("bqhd,bkhd->bhqk", (2, 3, 2, 4), (2, 5, 2, 4)),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "x", "y"), EINSUMS)
def test_einsum_as_numpy(spec, x, y):
    a, b = integers(6, x, y)
    np.testing.assert_array_equal(rebuild(products_of(f"einsum:{spec}", a, b)), np.einsum(spec, a, b))


@given(st.data())
@settings(max_examples=150, deadline=None)
def test_any_einsum_as_numpy(data):
    sizes = {label: data.draw(st.integers(1, 3)) for label in "abcd"}
    x = data.draw(st.lists(st.sampled_from("abcd"), max_size=4))
    y = data.draw(st.lists(st.sampled_from("abcd"), max_size=4))
    out = data.draw(st.permutations(sorted({*x, *y})))[: data.draw(st.integers(0, 4))]
    spec = f"{''.join(x)},{''.join(y)}->{''.join(out)}"
    a, b = integers(7, [sizes[each] for each in x], [sizes[each] for each in y])
    np.testing.assert_array_equal(rebuild(products_of(f"einsum:{spec}", a, b)), np.einsum(spec, a, b))


CONVOLUTIONS = [
    ("", {}), ("stride=2", {"stride": (2, 2)}), ("padding=1", {"padding": ((1, 1), (1, 1))}),
    ("stride=2x1,padding=0x2,dilation=1x2", {"stride": (2, 1), "padding": ((0, 0), (2, 2)), "dilation": (1, 2)}),
    ("padding=same", {"padding": ((1, 1), (0, 1))}),
    ("padding=same,dilation=2", {"padding": ((2, 2), (1, 1)), "dilation": (2, 2)}),
    ("padding=valid", {}),
]  # fmt: skip


@pytest.mark.parametrize(("words", "options"), CONVOLUTIONS)
@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("with_bias", [False, True])
def test_conv2d(words, options, groups, with_bias):
    x, y, bias = integers(8, (2, 4, 6, 5), (8, 4 // groups, 3, 2), (8,))
    bias = bias if with_bias else None
    expected = convolve(x, y, bias, groups=groups, **options)
    found = products_of(f"conv2d:{words}".rstrip(":"), x, y, bias)
    assert len(found) == groups
    np.testing.assert_array_equal(rebuild(found), expected)
    np.testing.assert_array_equal(rebuild(products_of(f"conv2d:{words}", x[0], y, bias)), expected[0])


def test_conv2d_as_torch():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x, y, bias = integers(8, (2, 4, 6, 5), (8, 2, 3, 2), (8,))
    expected = torch.nn.functional.conv2d(*map(torch.tensor, (x, y, bias)), (2, 1), (0, 2), (1, 2), 2).numpy()
    found = products_of("conv2d:stride=2x1,padding=0x2,dilation=1x2,groups=2", x, y, bias)
    np.testing.assert_array_equal(rebuild(found), expected)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (3, 1), (3, 5), (2, 1, 1), (2, 3, 5), (2, 1, 5), (2, 3, 1)])
def test_any_bias_that_broadcasts(shape):
    a, b, bias = integers(9, (2, 3, 4), (4, 5), shape)
    np.testing.assert_array_equal(rebuild(products_of("matmul", a, b, bias)), a @ b + bias)


def test_formats_that_numpy_lacks():
    x, y, bias = (fl.FloatArray(each, "bf16") for each in integers(10, (1, 2, 4, 4), (3, 2, 3, 3), (3,)))
    products = products_of("conv2d:padding=1", x, y, bias)
    assert products.factors_with_bias(0)[1].format.name == "bfloat16"
    plain = [np.asarray(each.astype("fp32")) if hasattr(each, "astype") else each for each in (x, y, bias)]
    expected = convolve(*map(np.asarray, plain), padding=((1, 1), (1, 1)))
    np.testing.assert_array_equal(rebuild(products), expected)


def test_a_bias_of_a_wider_format_keeps_its_numbers():
    x, y = (each.astype(np.float16) for each in integers(11, (3, 4), (5, 4)))
    bias = np.float32([0.1, 0.2, 0.3, 0.4, 0.5])
    assert products_of("linear", x, y, bias).factors_with_bias(0)[1].format.name == "binary32"
    assert (
        products_of("linear", x, y, bias.astype(np.float16).astype(np.float32)).factors_with_bias(0)[1].format.name
        == "binary16"
    )


@pytest.mark.parametrize(
    ("words", "x", "y", "said"),
    [
        (
            "matmul",
            (3, 4),
            (5, 6),
            "x has shape (3, 4) and y (5, 6): the last axis of x is summed, so y of shape (4, N) would fit",
        ),
        ("matmul", (3, 4), (6, 4), "they fit the operation linear"),
        ("matmul", (), (4,), "at least one axis"),
        ("matmul", (2, 3, 4), (3, 4, 5), "batches of 2 and 3 cannot be broadcast"),
        ("linear", (3, 4), (4, 5), "y of shape (OUT, 4) would fit; they fit the operation matmul"),
        ("linear", (3, 4), (2, 5, 4), "y of shape (OUT, 4) would fit"),
        ("dot", (3, 4), (5,), "y of shape (4,) would fit"),
        ("einsum:ij,jk->ik", (3, 4), (5, 6), "4 and 5"),
        ("einsum:ij,jk->ik", (3, 4), (4,), "'jk' labels 2 axes, but y has 1"),
        ("einsum:ii,ij->j", (3, 4), (3, 4), "axes with the same label need the same length"),
        ("einsum:ij->i", (3, 4), (4,), "not a contraction of two operands"),
        ("einsum:ij,jk->iz", (3, 4), (4, 4), "each label of the result"),
        ("einsum:ij,jk->ii", (3, 4), (4, 4), "each label of the result"),
        ("einsum:ij,jk->...i", (3, 4), (4, 4), "no operand has one"),
        ("einsum:i....j,jk", (3, 4), (4, 4), "not a contraction"),
        ("conv2d", (3, 4), (4, 4), "x is (N, C, H, W) or (C, H, W)"),
        ("conv2d", (1, 4, 8, 8), (3, 2, 3, 3), "2 groups do not divide 3 outputs of y"),
        ("conv2d", (1, 3, 8, 8), (4, 2, 3, 3), "y of shape (4, 3, …) would fit"),
        ("conv2d:groups=3", (1, 4, 8, 8), (4, 2, 3, 3), "conv2d"),
        ("conv2d", (1, 4, 2, 8), (4, 4, 3, 3), "a kernel that spans 3×3 does not fit into 2×8"),
        ("conv2d:stride=0", (1, 4, 8, 8), (4, 4, 3, 3), "stride must be at least 1"),
        ("conv2d:strid=2", (1, 4, 8, 8), (4, 4, 3, 3), "is not a setting"),
        ("conv2d:padding=same,stride=2", (1, 4, 8, 8), (4, 4, 3, 3), "requires a stride of 1"),
        ("conv2d:padding=999999", (1, 4, 8, 8), (4, 4, 3, 3), "elements"),
        ("conv2d:groups=2x2", (1, 4, 8, 8), (4, 4, 3, 3), "is not a setting"),
        ("sum", (3, 4), (3, 4), "sum takes one input"),
        ("sum:5", (3, 4), None, "no axis 5"),
        ("sum:x", (3, 4), None, "sum:0,2"),
        ("sum", (), None, "no axis -1"),
        ("matmul", (3, 4), None, "matmul takes two inputs"),
        ("matmul", (3, 0), (0, 4), "nothing to add"),
        ("conv", (3, 4), (4, 4), "'conv' is not an operation: matmul, linear, dot"),
        ("matmul:2", (3, 4), (4, 4), "has no settings"),
    ],
)
def test_what_does_not_fit_is_said_in_one_line(words, x, y, said):
    with pytest.raises(UnsupportedError, match=re.escape(said)) as refusal:
        products_of(words, np.zeros(x, np.float32), None if y is None else np.zeros(y, np.float32))
    assert "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("words", "bias", "said"),
    [
        ("linear", (4,), "5 outputs, so a bias of shape (5,) would fit"),
        ("linear", (3, 5), "(5,) would fit"),
        ("matmul", (4,), "cannot be broadcast to"),
    ],
)
def test_a_bias_that_does_not_fit(words, bias, said):
    y = (5, 4) if words == "linear" else (4, 5)
    with pytest.raises(UnsupportedError, match=re.escape(said)):
        products_of(words, np.ones((3, 4)), np.ones(y), np.ones(bias))


def test_a_result_of_another_shape():
    products = products_of("matmul", np.ones((3, 4)), np.ones((4, 5)))
    with pytest.raises(UnsupportedError, match=r"actual has shape \(5, 3\), and matmul .* gives \(3, 5\)"):
        products.checked(np.ones((5, 3)), "actual")
    assert products.checked(np.ones((1, 3, 5)), "actual").codes.shape == (3, 5)


def test_a_large_convolution_is_divided():
    x, y = np.zeros((5, 64, 112, 112), np.float32), np.zeros((8, 64, 3, 3), np.float32)
    products = products_of("conv2d:padding=1", x, y)
    assert len(products) == 5
    assert products.rows * products.terms <= 1 << 25
    assert products.shape == (5, 8, 112, 112)


@given(st.lists(st.integers(1, 4), min_size=1, max_size=4), st.data())
def test_ranges_of_flattened_axes(sizes, data):
    count = int(np.prod(sizes))
    first = data.draw(st.integers(0, count - 1))
    stop = data.draw(st.integers(first + 1, count))
    marked = np.zeros(sizes, int)
    for box in unflatten_range(first, stop, sizes):
        marked[tuple(slice(*span) for span in box)] += 1
    expected = np.zeros(count, int)
    expected[first:stop] = 1
    np.testing.assert_array_equal(marked.ravel(), expected)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), max_size=9))
def test_joined_boxes_hold_the_same(places):
    boxes = [((i, i + 1), (j, j + 1)) for i, j in places]
    held = {at for box in join_boxes(boxes) for at in itertools.product(*(range(*span) for span in box))}
    assert held == set(places)
    assert len(join_boxes(boxes)) <= len(set(places))


def test_every_error_is_floatlabs():
    for words in ("matmul", "linear", "dot", "einsum:ij,jk", "conv2d", "sum"):
        for x, y in itertools.product([(), (0,), (2,), (2, 3), (2, 3, 4), (2, 3, 4, 5)], repeat=2):
            with suppress(FloatlabError):
                products = products_of(words, np.zeros(x, np.float32), np.zeros(y, np.float32))
                assert len(products) * products.rows * products.columns == np.prod(products.shape)


def test_moved_elements_of_a_result_without_columns_are_rows():
    rng = np.random.default_rng(301)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 6, 40), 40))
    good = np.einsum("abk,k->ab", x, y)
    found = fl.compare(good, np.roll(good, 1, 0), inputs=(x, y), op="einsum:abk,k->ab").diagnosis
    assert found.names == ("rows-moved",), found.first
