"""The mutation guard: if any case of the kernel is changed, a small set of the real tests must fail.

`increments` has one case for each direction; each is replaced by plausible wrong versions. A mutant that passes all
checks would be a mistake that the tests do not detect.
"""

import pytest

from floatlab.numbers import projection
from floatlab.numbers.rounding import Direction
from floatlab.numbers.rounding import increments as right
from tests import oracle
from tests.numbers import small, test_projection

CHECKED = [fmt for fmt in small.SMALL if fmt.name in ("e2m1fn", "e3m1", "p3109_k4p2se")]

# Plausible wrong versions, by direction.
MUTANTS = {
    "RNE": {
        "ties away": lambda negative, odd, inexact, half, tie: half,
        "ties toward zero": lambda negative, odd, inexact, half, tie: half and not tie,
        "ties to odd": lambda negative, odd, inexact, half, tie: half and not (tie and odd),
        "odd always steps": lambda negative, odd, inexact, half, tie: half and odd,
    },
    "RNA": {
        "ties to even": lambda negative, odd, inexact, half, tie: half and (odd or not tie),
        "ties toward zero": lambda negative, odd, inexact, half, tie: half and not tie,
        "away": lambda negative, odd, inexact, half, tie: inexact,
    },
    "RTZ": {
        "to nearest": lambda negative, odd, inexact, half, tie: half,
        "away": lambda negative, odd, inexact, half, tie: inexact,
    },
    "RTP": {
        "signs exchanged": lambda negative, odd, inexact, half, tie: inexact and negative,
        "away": lambda negative, odd, inexact, half, tie: inexact,
        "only from half on": lambda negative, odd, inexact, half, tie: half and not negative,
    },
    "RTN": {
        "signs exchanged": lambda negative, odd, inexact, half, tie: inexact and not negative,
        "away": lambda negative, odd, inexact, half, tie: inexact,
        "only from half on": lambda negative, odd, inexact, half, tie: half and negative,
    },
    "RTO": {
        "to even": lambda negative, odd, inexact, half, tie: inexact and odd,
        "exact numbers too": lambda negative, odd, inexact, half, tie: not odd,
        "toward zero": lambda negative, odd, inexact, half, tie: False,
    },
    "RAZ": {
        "to nearest": lambda negative, odd, inexact, half, tie: half,
        "toward zero": lambda negative, odd, inexact, half, tie: False,
        "exact numbers too": lambda negative, odd, inexact, half, tie: True,
    },
}  # fmt: skip


def flipped(negative, odd, inexact, half, tie, direction):
    return not right(direction, negative, odd, inexact, half, tie)


def failing_checks() -> set[str]:
    """Run the grid and the monotonicity tests as they stand; return the directions that any of them rejects."""
    failed = set()
    for fmt in CHECKED:
        try:
            test_projection.test_every_direction_and_overflow_rule_over_a_dense_grid_of_rationals(fmt)
        except AssertionError:
            failed.add("grid")
        for direction in oracle.DIRECTIONS:
            try:
                test_projection.test_rounding_is_monotone_over_the_grid(fmt, direction)
            except (AssertionError, TypeError):
                failed.add(f"monotone {direction}")
    return failed


def mutate(monkeypatch, direction: Direction, wrong) -> None:
    def increments(which, negative, odd, inexact, half, tie):
        if which is direction:
            return wrong(negative, odd, inexact, half, tie)
        return right(which, negative, odd, inexact, half, tie)

    monkeypatch.setattr(projection, "increments", increments)


def test_the_checks_pass_without_a_mutation():
    assert failing_checks() == set()


@pytest.mark.one_in(7)
@pytest.mark.parametrize("direction", MUTANTS)
def test_a_flipped_case_is_noticed(direction, monkeypatch):
    turned = Direction(direction)
    mutate(monkeypatch, turned, lambda *facts: flipped(*facts, direction=turned))
    failed = failing_checks()
    assert "grid" in failed
    # No other direction changes. This one is no longer monotone, except RTZ, which then always steps away from zero.
    assert failed - {"grid"} == ({f"monotone {direction}"} if direction != "RTZ" else set())


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("direction", "mutant"), [(direction, mutant) for direction, ways in MUTANTS.items() for mutant in ways]
)
def test_a_subtler_mistake_is_noticed(direction, mutant, monkeypatch):
    mutate(monkeypatch, Direction(direction), MUTANTS[direction][mutant])
    assert "grid" in failing_checks()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("a tie that sticky does not break", lambda rest2, unit, sticky: (rest2 != 0, rest2 >= unit, rest2 == unit)),
        ("half taken for above half", lambda rest2, unit, sticky: (rest2 != 0 or sticky, rest2 >= unit, False)),
        ("sticky forgotten", lambda rest2, unit, sticky: (rest2 != 0, rest2 >= unit, rest2 == unit)),
    ],
)
def test_a_mistake_in_weighing_the_tail_is_noticed(name, wrong, monkeypatch):
    monkeypatch.setattr(projection, "tail", wrong)
    assert "grid" in failing_checks(), name


def test_a_stochastic_step_turned_around_is_noticed(monkeypatch):
    monkeypatch.setattr(
        projection, "increments_stochastic", lambda rest2, unit, drawn, *_: drawn >= (rest2 << 31) // unit
    )
    with pytest.raises(AssertionError):
        test_projection.test_stochastic_rounding_over_a_dense_grid_of_rationals(CHECKED[0])
