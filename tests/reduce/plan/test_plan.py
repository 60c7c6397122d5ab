import pytest

from floatlab.errors import PlanError
from floatlab.reduce import Plan


@pytest.mark.parametrize(
    ("terms", "nodes", "why"),
    [
        (0, (), "at least one term"),
        (2, (), "term 0 is never added"),
        (2, ((0, 0),), "term 0 is added twice"),
        (3, ((0, 1), (3, 1)), "term 1 is added twice"),
        (3, ((0, 1), (0, 2)), "term 0 is added twice"),
        (3, ((0, 1),), "term 2 is never added"),
        (4, ((0, 1), (2, 3)), "node 4 is never added"),
        (2, ((0, 3),), "nowhere"),
        (3, ((0, 4), (1, 2)), "later"),
        (2, ((0, -1),), "nowhere"),
        (2, ((0,), (1, 2)), "adds 1 number;"),
        (1, ((),), "adds 0 numbers"),
    ],
)
def test_what_is_no_tree_is_told(terms, nodes, why):
    with pytest.raises(PlanError, match=why):
        Plan(terms, nodes)


@pytest.mark.parametrize(
    ("tree", "why"),
    [
        ((0,), "adds 1 number"),
        ((0, 2), "are numbered from 0 to 1"),
        ((0, "1"), "not str"),
        ((0, True), "not bool"),
        (3, "the only term must be number 0"),
        (((0, 1), (1, 2)), "numbers them from|twice"),
    ],
)
def test_what_is_no_tree_of_terms_is_told(tree, why):
    with pytest.raises(PlanError, match=why):
        Plan.from_tree(tree)


def test_trees_come_back():
    tree = ((5, (0, 1)), (2, 3, 4), 6)
    plan = Plan.from_tree(tree)
    assert plan.to_tree() == tree
    assert plan.order == [5, 0, 1, 2, 3, 4, 6]
    assert plan.depth == 3
    assert plan.first_terms == [*range(7), 0, 0, 2, 0]
    assert plan.text == "((5 (0 1)) (2 3 4) 6)"
    assert Plan.from_tree([0, [1, 2]]) == Plan(3, ((1, 2), (0, 3)))


def test_a_deep_tree_costs_no_stack():
    tree = 0
    for i in range(1, 20_000):
        tree = (tree, i)
    plan = Plan.from_tree(tree)
    assert plan.depth == 19_999
    assert plan.canonical() == plan
    assert plan.text.startswith("((((")


def test_the_same_sums_have_one_canonical_plan():
    one = Plan.from_tree(((3, 2), (1, 0)))
    other = Plan.from_tree(((0, 1), (2, 3)))
    assert one != other
    assert one.canonical() == other.canonical() == other
