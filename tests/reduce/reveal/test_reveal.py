"""Orders found from outside: against the published algorithm written plainly, any trees, and real libraries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab.errors import FloatlabError, MissingPartError, PlanError, UnsupportedError
from floatlab.page.text_layout import to_text
from floatlab.reduce.plan.grouped_schedules import NUMPY, SERIAL, Blocked, Lanes
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import PAIRWISE, Fused, Reversed
from floatlab.reduce.reveal.probing import NotASum, plan_of
from floatlab.reduce.reveal.revelation import examine, reveal
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.verbs.from_json import document_of
from floatlab.verbs.reveal.page import reveal_page


def subtrees(plan):
    """Return the sets of terms that are added up in each node: the tree, whatever the order of operands."""
    below = [frozenset([i]) for i in range(plan.terms)]
    for node in plan.nodes:
        below.append(frozenset().union(*(below[each] for each in node)))
    return set(below)


def published(function, n):
    """The basic algorithm of FPRev (section 4 of the paper), plainly: sizes for all pairs, then the nodes by size."""
    meets = {}
    for i in range(n):
        for j in range(i + 1, n):
            x = np.ones(n, np.float32)
            x[i], x[j] = 2.0**100, -(2.0**100)
            meets[i, j] = n - int(function(x))
    found = {frozenset([i]) for i in range(n)}
    for (i, j), size in meets.items():
        terms = {i, j} | {k for k in range(n) if k not in (i, j) and meets[min(i, k), max(i, k)] <= size}
        assert len(terms) == size
        found.add(frozenset(terms))
    return found


@st.composite
def plans(draw):
    n = draw(st.integers(1, 16))
    ids, nodes = list(range(n)), []
    while len(ids) > 1:
        some = [ids.pop(draw(st.integers(0, len(ids) - 1))) for _ in range(min(len(ids), draw(st.integers(2, 4))))]
        nodes.append(tuple(some))
        ids.append(n + len(nodes) - 1)
    return Plan(n, tuple(nodes))


def meetings_of(plan):
    sets = subtrees(plan)
    return lambda first, second: np.array(
        [
            min(len(each) for each in sets if {i, j} <= each)
            for i, j in zip(first.tolist(), second.tolist(), strict=True)
        ],
        np.int64,
    )


@given(plans())
def test_any_tree_is_found(plan):
    assert subtrees(plan_of(meetings_of(plan), plan.terms)) == subtrees(plan)


@pytest.mark.parametrize("schedule", [SERIAL, Reversed(), PAIRWISE, NUMPY, Lanes(4), Blocked(7), Fused(3)], ids=str)
def test_schedules_are_found_and_named(schedule):
    for n in (3, 5, 16, 50):
        plan = schedule.plan(n)
        found = plan_of(meetings_of(plan), n)
        assert found.canonical() == plan.canonical()
        assert schedule_of(found).plan(n).canonical() == plan.canonical()


def test_few_probes_are_enough():
    for schedule, most in ((SERIAL, 1030), (Reversed(), 1030), (PAIRWISE, 12_000)):
        asked = []
        sizes = meetings_of_sizes(schedule.plan(1024))
        plan_of(lambda first, second: asked.append(len(first)) or sizes(first, second), 1024)  # noqa: B023
        assert sum(asked) <= most


def meetings_of_sizes(plan):
    """Return meetings by walking up the tree, for trees that are too large for sets."""
    n = plan.terms
    above, sizes = {}, [1] * n
    for id, node in enumerate(plan.nodes, n):
        sizes.append(sum(sizes[each] for each in node))
        above |= dict.fromkeys(node, id)

    def way(i):
        while i in above:
            i = above[i]
            yield i

    def meeting(i, j):
        mine = set(way(i))
        return sizes[next(each for each in way(j) if each in mine)]

    def meetings(first, second):
        return np.array([meeting(i, j) for i, j in zip(first.tolist(), second.tolist(), strict=True)])

    return meetings


FUNCTIONS = {
    "numpy.sum": np.sum,
    "numpy.dot": lambda x: np.dot(x, np.ones_like(x)),
    "numpy.einsum": lambda x: np.einsum("i,i", x, np.ones_like(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("n", [2, 7, 8, 20, 33])
def test_the_published_algorithm_finds_the_same_trees(name, n):
    assert subtrees(reveal(name, n)) == published(FUNCTIONS[name], n)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [1, 5, 40, 128, 333, 1000])
def test_what_numpy_adds_is_claimed_and_replayed(n, dtype):
    for name in ("numpy.sum", "numpy.einsum"):
        found = examine(name, n, dtype)
        assert found.claim is not None, (name, found.replays)
        assert found.claim.matching == found.claim.total == 32
    assert examine("numpy.sum", n, dtype).schedule.plan(n).canonical() == NUMPY.plan(n).canonical()


@pytest.mark.one_in(4)
@pytest.mark.parametrize(
    ("name", "kind"), [("numpy.matmul", "matmul"), ("numpy.matmul", "matvec"), ("numpy.dot", "dot")]
)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 16, 17, 20, 31, 32, 33, 40, 63, 100, 500])
def test_what_the_installed_blas_multiplies_is_claimed(name, kind, n):
    for dtype in ("float32", "float64"):
        found = examine(name, n, dtype, kind=kind)
        assert found.claim is not None, f"{name} n = {n} {dtype}: {found.replays[0]}"
        assert 1 <= found.agreeing <= found.elements


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("n", [24, 64, 130])
def test_the_first_element_of_a_product_has_the_tree_that_its_own_probes_show(n, dtype):
    # One probe per product, read at this element only, so that other elements have no effect.
    asked, ones = [], np.ones((n, 64), dtype)

    def first(x):
        rows = np.ones((64, n), dtype)
        rows[0] = x
        asked.append(x)
        return (rows @ ones)[0, 0]

    assert subtrees(reveal("numpy.matmul", n, dtype)) == subtrees(reveal(first, n, dtype))
    assert len(asked) > n


def chain(x, y, places, fused=()):
    """Add products one after the other in some order; those in `fused` are not rounded first."""
    total = np.zeros(np.broadcast_shapes(x.shape[1:], y.shape[1:]), x.dtype)
    wide = np.float64  # exact products of binary32; their sum is rounded twice, which does not matter for the data here
    for i in places:
        if i in fused:
            total = (x[i].astype(wide) * y[i].astype(wide) + total.astype(wide)).astype(x.dtype)
        else:
            total = total + x[i] * y[i]
    return total


def product(a, b, places, fused=()):
    return chain(np.asarray(a).T[:, :, None], np.asarray(b)[:, None, :], places, fused)


def test_elements_of_one_product_may_be_added_along_different_trees():
    forward, backward = range(20), range(19, -1, -1)

    def edges(a, b):
        made = product(a, b, backward)
        made[8:, 4:60] = product(a, b, forward)[8:, 4:60]
        return made

    found = examine(edges, 20, kind="matmul")
    assert found.schedule == Reversed()
    assert found.claim is not None
    assert (found.agreeing, found.elements) == (64 * 64 - 56 * 56, 64 * 64)
    words = to_text(reveal_page(found))
    assert "this order gives the bits of only 960 of 4,096 elements" in " ".join(words.split())
    wire = document_of(found)
    assert (wire["element"], wire["shape"], wire["elements_alike"]) == ([0, 0], [64, 64], 960)
    assert reveal(lambda a, b: edges(a, b).T, 20, kind="matmul").canonical() == Reversed().plan(20).canonical()
    rows = examine(lambda a, b: edges(a, b[:, None].repeat(64, 1))[:, 30], 20, kind="matvec")
    assert (rows.agreeing, rows.elements, rows.claim is not None) == (8, 64, True)
    assert "this order gives the bits of only 8 of 64 elements" in " ".join(to_text(reveal_page(rows)).split())


def test_elements_that_answer_alike_at_first_are_told_apart_by_their_replay():
    usual = [*range(36), 37, 36, *range(38, 64)]  # an exchange that only few pairs of terms show

    def corner(a, b):
        made = product(a, b, usual)
        made[0] = product(a, b, range(64))[0]
        return made

    found = examine(corner, 64, kind="matmul")
    assert found.schedule == SERIAL
    assert found.claim is not None
    assert (found.agreeing, found.elements) == (64, 4096)


def test_elements_with_one_tree_may_still_be_computed_in_different_ways():
    def half(a, b):
        made = product(a, b, range(12))
        made[:, 32:] = product(a, b, range(12), fused=range(1, 12))[:, 32:]
        return made

    found = examine(half, 12, kind="matmul")
    assert (found.schedule, found.agreeing) == (SERIAL, 64 * 32)
    assert found.claim is not None
    assert not found.claim.fma


@pytest.mark.parametrize("kind", ["dot", "matvec", "matmul"])
def test_fused_products_are_found_one_by_one(kind):
    fused = {1, 2, 3, 5, 6, 7, 11}

    def loop(x, y):
        if x.ndim == 1:
            return chain(x, y, range(14), fused)[()]
        made = product(x, y if y.ndim == 2 else y[:, None], range(14), fused)
        return made if y.ndim == 2 else made[:, 0]

    found = examine(loop, 14, kind=kind)
    assert found.claim is not None, found.replays
    assert isinstance(found.claim.adder, PartlyFused)
    assert set(found.claim.adder.fused) == fused
    assert found.agreeing == found.elements
    assert "products of 7 terms fused (1–3, 5–7, 11), all others rounded" in " ".join(
        to_text(reveal_page(found)).split()
    )
    assert document_of(found)["claim"]["ways"][0]["fused_terms"] == sorted(fused)


def test_what_differs_only_in_fused_products_is_told_apart_too():
    def first_row(a, b):
        made = product(a, b, range(12), fused=range(2, 9))
        made[0] = product(a, b, range(12), fused=range(4, 12))[0]
        return made

    found = examine(first_row, 12, kind="matmul")
    assert found.claim is not None
    assert (found.claim.adder.fused, found.agreeing) == (tuple(range(4, 12)), 64)


def test_no_claim_where_elements_change_their_way_with_the_data():
    def moody(a, b):
        mood = range(12) if np.abs(a).max() > 1e9 or np.ptp(a) == 0 else range(11, -1, -1)
        return product(a, b, mood)

    found = examine(moody, 12, kind="matmul")
    assert (found.claim, found.agreeing) == (None, None)
    assert "no claim is made" in " ".join(to_text(reveal_page(found)).split())


def test_a_function_of_ones_own():
    assert reveal(lambda x: (x[0] + x[1]) + (x[2] + x[3]), 4) == Plan.from_tree(((0, 1), (2, 3)))
    found = examine(lambda x: float(np.sum(x.astype(np.float64))), 16)
    assert found.claim is not None
    assert found.claim.candidate.adders[0].accumulator.name == "binary64"


def test_kahans_compensation_is_found():
    def target(x):
        total = rest = np.float32(0)
        for each in x[::-1]:
            y = each - rest
            t = total + y
            rest, total = (t - total) - y, t
        return total

    found = examine(target, 40)
    assert found.claim.adder.rule == "kahan"
    assert found.schedule.text == "reversed"
    assert "compensated (kahan)" in str(found.page())


def test_few_units_at_a_time_where_results_count_no_further():
    def add(x):
        total = x.dtype.type(0)
        for each in x:
            total = total + each
        return total

    assert reveal(add, 40, "float16").canonical() == SERIAL.plan(40).canonical()
    pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    assert reveal(add, 300, "bfloat16").canonical() == SERIAL.plan(300).canonical()


RANDOM = np.random.default_rng(1)


@pytest.mark.parametrize(
    ("target", "error", "words"),
    [
        (np.max, NotASum, "is not a sum along a tree: the sum of"),
        (np.prod, NotASum, "is not a sum along a tree: the sum of"),
        (lambda x: x[0] * len(x), NotASum, "is not a sum|do not leave a count"),
        (lambda x: RANDOM.random() * x.sum(), NotASum, "two results|is not a sum"),
        (lambda x: x, UnsupportedError, "not one number"),
        (lambda x: "text", UnsupportedError, "an array of floats or integers, not of str"),
        (lambda x: 1 / 0, UnsupportedError, "raises ZeroDivisionError"),
        (lambda: 0, UnsupportedError, "raises TypeError"),
        (3, UnsupportedError, "is not a function"),
        ("numpy.pi", UnsupportedError, "is not a function"),
        ("numpy.smu", UnsupportedError, "did you mean 'sum'"),
        ("scipy.sum", UnsupportedError, "module:function"),
        ("no_such_module:f", UnsupportedError, "cannot be imported"),
        ("sum", UnsupportedError, "library.function or module:function"),
    ],
)
def test_what_is_no_sum_gets_a_clear_answer(target, error, words):
    with np.errstate(all="ignore"), pytest.raises(error, match=words):
        reveal(target, 8)


def test_a_product_that_is_no_sum_is_named():
    def fragile(a, b):
        made = a @ b
        made[0, 0] = np.nan if np.ptp(a) else made[0, 0]
        return made

    with pytest.raises(NotASum, match="fragile is not a sum along a tree: a huge number at term 0"):
        reveal(fragile, 8, kind="matmul")


def test_bad_questions_are_named():
    for ask in (
        lambda: reveal(np.sum, 0),
        lambda: reveal(np.sum, 1 << 20),
        lambda: reveal(np.sum, "4"),
        lambda: reveal(np.sum, 4, "float8"),
        lambda: reveal(np.sum, 4, kind="add"),
    ):
        with pytest.raises(FloatlabError):
            ask()


def test_a_sum_that_changes_its_order_is_no_plan():
    def unsteady(x):
        order = np.argsort(-np.abs(x), kind="stable")
        return float(np.add.accumulate(x[order])[-1])

    with pytest.raises(PlanError):
        reveal(unsteady, 8)


def test_torch_multiplies_as_claimed():
    pytest.importorskip("torch", reason="torch is not installed")
    for n in (8, 64, 100):
        for kind in ("matmul", "matvec"):
            found = examine("torch.matmul", n, kind=kind)
            assert found.claim is not None, found.replays[:2]
        assert examine("torch.dot", n).claim is not None


def test_an_absent_library_is_named():
    try:
        import torch  # noqa: F401
    except ImportError:
        with pytest.raises(MissingPartError, match="pip install torch"):
            reveal("torch.sum", 4)
