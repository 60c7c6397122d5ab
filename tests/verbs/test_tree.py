"""Trees as rows: every node and every term is in exactly one row, whatever the tree, and no row is nested deeply."""

import numpy as np
import pytest

from floatlab import dot
from floatlab import sum as add_up
from floatlab.numbers.datum import shortest
from floatlab.page.model import text_of
from floatlab.reduce.plan.plan import Plan
from floatlab.verbs.reduce.tree import Tree, tree_of

ORDERS = [
    "serial", "reversed", "pairwise", "numpy", "adjacent", "folded", "lanes(4)", "blocked(7)", "splitk(3)", "fused(5)",
    "blocked(16, lanes(4), reversed)", "unrolled(8, lanes(8))", "halving(4, fused(4))", "sorted(up)",
    "permuted((2 0 1))", "(0 (1 (2 (3 4))))",
]  # fmt: skip
RNG = np.random.default_rng(5)


def unfold(tree):
    """Return the rows if everything is unfolded, elided runs too."""
    unfolded = tree.everything
    while True:
        rows = tree.rows(unfolded)
        runs = {row.key for row in rows if row.key[0] == "run"} - unfolded
        if not runs:
            return rows
        unfolded |= runs


def sizes(order):
    return {"permuted((2 0 1))": [3], "(0 (1 (2 (3 4))))": [5]}.get(order, [1, 2, 3, 17, 200])


@pytest.mark.parametrize("order", ORDERS)
def test_every_addition_and_every_term_stands_in_one_row(order):
    for n in sizes(order):
        found = add_up(RNG.standard_normal(n).astype(np.float32), order)
        plan, rows = found.plan, unfold(tree_of(found))
        added = [row.id for row in rows if row.key[0] in ("link", "many")]
        assert sorted(added) == list(range(n, plan.root + 1))
        terms = [row.key[-1] for row in rows if row.key[0] in ("link", "part") and row.key[-1] < n]
        assert sorted(terms) == list(range(n))
        assert len({row.key for row in rows}) == len(rows)
        assert max(row.depth for row in rows) <= 4 * np.log2(n + 1) + 4


@pytest.mark.parametrize("order", ["serial", "numpy", "fused(5)"])
def test_the_sum_so_far_is_the_nodes(order):
    found = add_up(RNG.standard_normal(200).astype(np.float32), order)
    for row in unfold(tree_of(found)):
        if row.key[0] in ("link", "many"):
            assert text_of(row.cells[2]) == shortest(found.nodes[row.id - 200].value)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("order", ORDERS)
def test_any_node_is_brought_into_sight(order):
    for n in sizes(order):
        found = add_up(RNG.standard_normal(n).astype(np.float32), order)
        tree = tree_of(found)
        for id in range(n, found.plan.root + 1, 7):
            rows = tree.rows(tree.keys_to_show(id))
            assert any(row.id == id and row.key[0] in ("link", "many") for row in rows), (order, n, id)
            assert len(rows) < 400


def test_the_columns_of_a_row_are_as_many_as_the_header():
    x = RNG.standard_normal(60).astype(np.float32)
    for found in (
        add_up(x),
        add_up(x, adder="kahan"),
        add_up(x, format="bf16", accumulator="fp32"),
        dot(x, x),
        dot(x, x, fma=True),
        dot(x, x, machine="hopper.f16.f32"),
        dot(x, x, "fused(8)"),
        add_up([float("nan"), 1.0, float("inf")]),
        dot([float("inf"), 1.0], [0.0, 1.0], fma=True),
        add_up([1.5]),
        add_up([1.1], format="fp16"),
    ):
        tree = tree_of(found)
        assert {len(row.cells) for row in unfold(tree)} == {len(tree.header)}
    bare = Tree(add_up(x, "numpy").plan)
    assert {len(row.cells) for row in unfold(bare)} == {len(bare.header)}


def test_the_worst_come_first():
    found = add_up([1.0, 2**-24, 1.0, 2**24, 1.0, 1.0], format="fp32")
    tree = tree_of(found)
    entries = {each.id: each.error for each in tree.entries}
    errors = [abs(entries[id]) for id in tree.worst]
    assert errors == sorted(errors, reverse=True)
    assert errors[0] == max(abs(error) for error in entries.values() if error is not None)


def test_names_of_parts():
    tree = Tree(Plan.from_tree((((0, 2), 4), (1, 3))))
    names = [text_of(row.cells[0]).strip() for row in tree.rows(frozenset({("part", 8)}))]
    assert names == ["▾ 5 terms", "▸ x0, x2 … x4", "+ ▸ x1, x3"]
    assert tree_of(add_up(np.ones(5000, np.float32))) is None
