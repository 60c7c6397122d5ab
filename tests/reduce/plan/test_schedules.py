import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab.errors import PlanError
from floatlab.reduce import Plan, parse_schedule
from floatlab.reduce.plan.grouped_schedules import Blocked, Interleaved, Lanes, SplitK, Unrolled
from floatlab.reduce.plan.schedules import (
    NAMED,
    Adjacent,
    ExplicitTree,
    Folded,
    Fused,
    Halving,
    Permuted,
    Reversed,
    Serial,
    Sorted,
)

ANY_SIZE = [
    "serial", "reversed", "pairwise", "numpy", "adjacent", "folded", "blocked(3)", "blocked(4, pairwise)",
    "blocked(64, lanes(8), pairwise)", "lanes(1)", "lanes(3, pairwise, serial)", "lanes(4, fused(2))", "splitk(4)",
    "splitk(3, fused(4), pairwise)", "fused(1)", "fused(4)", "unrolled(4, lanes(4))", "halving(5)",
    "halving(20, serial, 8)", "reversed(blocked(5, numpy, folded))", "blocked(2, serial, lanes(2))",
    "interleaved(4, 2)", "blocked(32, interleaved(4, 2))", "interleaved(6, 3)", "interleaved(5, 1)",
]  # fmt: skip


def schedules():
    """Every schedule that has an order for any number of terms, inside each other."""
    count = st.integers(1, 9)
    simple = st.sampled_from([Serial(), Adjacent(), Folded(), *NAMED.values()]) | st.builds(Fused, count)
    simple |= st.builds(lambda part, passes: Interleaved(part * passes, passes), count, count)
    return st.recursive(
        simple,
        lambda inner: (
            st.builds(Reversed, inner)
            | st.builds(Blocked, count, inner, inner)
            | st.builds(SplitK, count, inner, inner)
            | st.builds(Lanes, count, inner, inner)
            | st.builds(Unrolled, count, inner)
            | st.builds(Halving, count, inner)
            | st.builds(lambda m, inner: Halving(2 * m + 3, inner, m), count, inner)
        ),
        max_leaves=4,
    )


@given(schedules(), st.integers(1, 60))
def test_every_schedule_is_a_tree_of_all_terms(schedule, n):
    batches, plan = schedule.batches(n), schedule.plan(n)
    assert sorted(plan.order) == list(range(n))
    assert (batches.nodes, batches.depth) == (len(plan.nodes), plan.depth)


@given(schedules() | st.builds(Sorted, st.sampled_from(["up", "down"]), schedules()))
def test_the_text_of_a_schedule_means_it(schedule):
    assert parse_schedule(schedule.text) == schedule
    assert parse_schedule(schedule.text.upper().replace(",", " , ")) == schedule


@given(st.permutations(range(6)), schedules())
def test_trees_and_permutations_come_back(places, inner):
    for schedule in (
        Permuted(tuple(places), inner),
        ExplicitTree(inner.plan(7)),
        Lanes(2, ExplicitTree(inner.plan(5))),
    ):
        assert parse_schedule(schedule.text) == schedule


def numpy_tree(lo, n):
    """NumPy's pairwise sum, as its own loop is written."""
    if n < 8:
        tree = lo
        for i in range(1, n):
            tree = (tree, lo + i)
        return tree
    if n <= 128:
        r = [lo + j for j in range(8)]
        for i in range(8, n - n % 8, 8):
            r = [(r[j], lo + i + j) for j in range(8)]
        tree = (((r[0], r[1]), (r[2], r[3])), ((r[4], r[5]), (r[6], r[7])))
        for i in range(n - n % 8, n):
            tree = (tree, lo + i)
        return tree
    half = n // 2
    half -= half % 8
    return (numpy_tree(lo, half), numpy_tree(lo + half, n - half))


@pytest.mark.parametrize("n", [*range(1, 20), 127, 128, 129, 136, 255, 256, 257, 999, 1000, 4096, 5001])
def test_numpys_order_is_the_one_of_its_loop(n):
    assert parse_schedule("numpy").plan(n).canonical() == Plan.from_tree(numpy_tree(0, n)).canonical()


def test_trees_of_known_schedules():
    trees = {
        ("blocked(3, serial, pairwise)", 8): "(((0 1) 2) (((3 4) 5) (6 7)))",
        ("splitk(3)", 7): "((((0 1) 2) ((3 4) 5)) 6)",
        ("lanes(4)", 6): "(((0 4) (1 5)) (2 3))",
        ("lanes(4, serial, serial)", 3): "((0 1) 2)",
        ("fused(4)", 10): "(((0 1 2 3) 4 5 6 7) 8 9)",
        ("fused(4)", 3): "(0 1 2)",
        ("fused(1)", 3): "((0 1) 2)",
        ("adjacent", 7): "(((0 1) (2 3)) ((4 5) 6))",
        ("folded", 6): "(((0 3) (2 5)) (1 4))",
        ("pairwise", 6): "((0 (1 2)) (3 (4 5)))",
        ("permuted((2 0 1), pairwise)", 3): "(2 (0 1))",
        ("blocked(4, ((0 1) (2 3)))", 8): "(((0 1) (2 3)) ((4 5) (6 7)))",
    }
    for (text, n), tree in trees.items():
        assert parse_schedule(text).plan(n).text == tree


def test_long_regular_schedules_are_a_few_steps():
    for text, most in (("serial", 1), ("lanes(8)", 4), ("numpy", 40), ("pairwise", 24), ("fused(16)", 3)):
        batches = parse_schedule(text).batches(1_000_000)
        assert len(batches.each) <= most
        assert batches.nodes == (999_999 if text != "fused(16)" else 62_500)


@pytest.mark.parametrize("text", ["permuted((1 0))", "((0 1) 2)", "blocked(4, (0 1))"])
def test_a_schedule_for_so_many_terms_refuses_others(text):
    with pytest.raises(PlanError, match=r"is for \d terms, not"):
        parse_schedule(text).plan(7)


@pytest.mark.parametrize("n", [0, -1, 1 << 40])
def test_sums_of_nothing_or_too_much_have_no_order(n):
    with pytest.raises(PlanError, match="from 1 to"):
        parse_schedule("serial").batches(n)


def test_an_explicit_tree_takes_a_plan():
    with pytest.raises(PlanError, match=r"tree takes a Plan, which Plan\.from_tree makes, not 'x'"):
        ExplicitTree("x")


def test_sorted_depends_on_the_numbers():
    with pytest.raises(PlanError, match="without them it has no plan"):
        parse_schedule("sorted").plan(3)
    assert Sorted().places(np.array([3.0, np.nan, 1.0, 1.0])).tolist() == [2, 3, 0, 1]


@pytest.mark.parametrize(
    ("text", "why", "place"),
    [
        ("blocked(64, lane(8))", "did you mean 'lanes'", 12),
        ("", "the end is not a schedule", 0),
        ("serial serial", "ends before 'serial'", 7),
        ("serial(8)", "takes no arguments", 7),
        ("blocked", "needs a number", 0),
        ("blocked()", "needs a number", 0),
        ("blocked(pairwise)", "takes a number", 8),
        ("blocked(8", "of blocked", 9),
        ("blocked(8,)", "is not a schedule", 10),
        ("blocked(0)", "from 1", 0),
        ("blocked(-1)", "takes a number", 8),
        ("blocked(99999999999999999999)", "at most 2^28", 8),
        ("lanes(8, serial, serial, serial)", "one too many", 25),
        ("blocked(4, sorted)", "outermost", 11),
        ("sorted(left)", "up or down", 7),
        ("permuted((0 2))", "every number", 0),
        ("permuted((0 (1 2)))", "without brackets", 9),
        ("permuted(2)", "terms such as", 9),
        ("((0 1) 2", "never closed", 0),
        ("((0) 1)", "two numbers", 1),
        ("(0 1 1)", "numbers them from 0 to 2|twice", 0),
        ("(0 x)", "a tree takes", 3),
        ("lanes(٣)", "takes a number", 6),
        ("halving(4, serial, 8)", "limit from 15", 0),
        ("serial\n)", "ends before", 7),
    ],
)
def test_errors_show_the_place(text, why, place):
    with pytest.raises(PlanError, match=why.replace("^", r"\^")) as caught:
        parse_schedule(text)
    *_, caret = str(caught.value).split("\n")
    assert caret == "  " + " " * place + "^"


def test_errors_in_long_text_show_the_place_in_a_window():
    text = "(" * 500 + "0 1)" + "x" + " 3)" * 499
    with pytest.raises(PlanError) as caught:
        parse_schedule(text)
    _, window, caret = str(caught.value).split("\n")
    assert window[caret.index("^")] == "x"
    assert len(window) < 80


def test_nesting_is_bounded_and_deep_trees_are_not():
    with pytest.raises(PlanError, match="deep"):
        parse_schedule("reversed(" * 5000 + "serial" + ")" * 5000)
    deep = "(" * 9999 + "0" + "".join(f" {i})" for i in range(1, 10_000))
    assert parse_schedule(deep).plan(10_000).depth == 9999
    with pytest.raises(PlanError, match="characters"):
        parse_schedule("x" * (1 << 21))


@pytest.mark.parametrize("given", [None, 3, b"serial", ["serial"]])
def test_other_things_are_no_schedules(given):
    with pytest.raises(PlanError, match="a schedule must be text"):
        parse_schedule(given)


WORDS = [
    "serial",
    "blocked",
    "lanes",
    "numpy",
    "sorted",
    "permuted",
    "fused",
    "up",
    "(",
    ")",
    ",",
    " ",
    "0",
    "1",
    "8",
    "x",
]


@given(st.text(max_size=30) | st.lists(st.sampled_from(WORDS), max_size=14).map("".join))
def test_any_text_is_a_schedule_or_an_error_with_a_place(text):
    try:
        schedule = parse_schedule(text)
    except PlanError as error:
        what, shown, caret = str(error).split("\n")
        assert what
        assert re.fullmatch(r" *\^", caret)
        assert 2 <= caret.index("^") <= len(shown) + 1
    else:
        assert parse_schedule(schedule.text) == schedule
