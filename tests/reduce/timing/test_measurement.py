"""Statistics of timings, and the conclusions that they allow, on given times, without a clock."""

import statistics
from random import Random

import pytest

from floatlab.errors import UnsupportedError
from floatlab.reduce.timing import measurement
from floatlab.reduce.timing.measurement import Timing, check_counts, operations_of, rank, take_turns, timed
from floatlab.verbs.timing.page import fastest_words


def test_statistics_are_those_of_the_runs():
    timing = Timing((4.0, 1.0, 2.0, 16.0, 8.0))
    assert (timing.total, timing.average, timing.cumulative) == (31.0, 6.2, (4.0, 5.0, 7.0, 23.0, 31.0))
    assert (timing.minimum, timing.median, timing.spread) == (1.0, 4.0, 6.0)
    runs = tuple(float(n * n % 31) for n in range(24))
    low, _, high = statistics.quantiles(runs, method="inclusive")
    assert Timing(runs).spread == pytest.approx(high - low, rel=1e-15)
    assert Timing(runs).median == statistics.median(runs)


def test_operations_in_the_median_time():
    assert operations_of((3, 5, 7)) == 210
    assert Timing((9.0, 0.5, 0.25)).gigaflops(operations_of((1000, 1000, 1000))) == 4.0
    assert Timing((0.0,)).gigaflops(210) is None


def test_one_disturbed_run_does_not_hide_the_fastest():
    ranking = rank({"slow": Timing((3.0, 3.1, 3.0, 3.2, 3.1)), "fast": Timing((1.0, 1.1, 2.9, 1.0, 1.1))})
    assert ranking.names == ("fast", "slow")
    assert (ranking.fastest, ranking.candidates) == ("fast", ("fast",))
    assert fastest_words(ranking) == "fastest fast: median 1.1 s; then slow, median 3.1 s"


def test_a_spread_as_large_as_the_difference_names_no_winner():
    for last, named in ((3.0, False), (3.25, True)):  # medians 1 and 3, or 1 and 3.25; spread 2
        ranking = rank({"a": Timing((1.0,) * 5), "b": Timing((last - 1, last - 1, last, last + 1, last + 1))})
        assert (ranking.fastest == "a") is named
        assert ranking.candidates == (("a",) if named else ("a", "b"))
        assert ranking.difference == (0.0 if named else 2.0)
    assert ranking.fastest == "a"
    ranking = rank({"b": Timing((2.0, 2.0, 3.0, 4.0, 4.0)), "a": Timing((1.0,) * 5), "c": Timing((9.0,) * 5)})
    assert fastest_words(ranking) == (
        "a and b cannot be told apart: their medians differ by 2 s, the spread is 2 s; slower: c"
    )


def test_runs_that_overlap_name_no_winner():
    """The medians differ by more than the spreads, but one of five runs of a is slower than b."""
    ranking = rank({"a": Timing((1.0, 1.0, 1.0, 1.0, 9.0)), "b": Timing((2.0, 2.0, 2.0, 2.0, 2.0))})
    assert (ranking.difference, ranking.spread) == (1.0, 0.0)
    assert ranking.fastest is None
    assert fastest_words(ranking) == (
        "a and b cannot be told apart: their runs overlap, though their medians differ by 1 s, the spread is 0 µs"
    )


@pytest.mark.parametrize(
    ("runs", "slow", "named"),
    [(4, 0, True), (4, 1, False), (5, 1, False), (10, 1, True), (10, 2, False), (20, 4, True), (20, 5, False)],
)
def test_the_more_runs_the_more_of_them_may_be_disturbed(runs, slow, named):
    """Of a's runs, `slow` take longer than all of b's: as many as Mann and Whitney's test allows at 2 %."""
    a, b = Timing((1.0,) * (runs - slow) + (90.0,) * slow), Timing((3.0,) * runs)
    assert (rank({"a": a, "b": b}).fastest == "a") is named


@pytest.mark.parametrize("runs", [4, 5, 8, 20])
def test_chance_alone_rarely_names_a_winner(runs):
    draw = Random(runs).lognormvariate
    timings = [Timing(tuple(draw(0, 1) for _ in range(runs))) for _ in range(800)]
    named = sum(rank({"a": a, "b": b}).fastest is not None for a, b in zip(timings[::2], timings[1::2], strict=True))
    assert named <= 0.03 * 400


def test_three_that_cannot_be_told_apart():
    wide = (1.0, 1.0, 2.0, 3.0, 3.0)
    ranking = rank({name: Timing(tuple(t + i / 4 for t in wide)) for i, name in enumerate("abc")})
    assert ranking.candidates == ("a", "b", "c")
    assert fastest_words(ranking) == (
        "a, b and c cannot be told apart: their medians differ by up to 500 ms, the spread is up to 2 s"
    )


@pytest.mark.parametrize(("runs", "said"), [(1, "1 run does not show"), (3, "3 runs do not show")])
def test_few_runs_name_no_winner(runs, said):
    ranking = rank({"a": Timing((1.0,) * runs), "b": Timing((50.0,) * runs)})
    assert ranking.fastest is None
    assert fastest_words(ranking).startswith(said)
    assert fastest_words(ranking).endswith("--runs 4 or more")
    assert (Timing((1.0,) * runs).spread is None) is (runs == 1)


def test_one_alone_is_no_contest():
    assert fastest_words(rank({"a": Timing((1.0,))})) == "only a was timed"
    assert rank({}).fastest is None


def test_turns_come_in_another_order_each_round():
    seen = []
    made = take_turns(("a", "b", "c", "d"), lambda name: seen.append(name) or len(seen), 6)
    rounds = [tuple(seen[i : i + 4]) for i in range(0, 24, 4)]
    assert all(sorted(each) == ["a", "b", "c", "d"] for each in rounds)
    assert len(set(rounds)) > 2
    assert made["b"] == [i + 1 for i, name in enumerate(seen) if name == "b"]


@pytest.mark.parametrize("stop", range(1, 13))
def test_an_interrupt_keeps_complete_rounds_where_it_is_asked_to(stop):
    calls = []

    def measure(_):
        calls.append(0)
        if len(calls) == stop:
            raise KeyboardInterrupt
        return len(calls)

    if stop <= 3:
        with pytest.raises(KeyboardInterrupt):
            take_turns("abc", measure, 4, keep_interrupted=True)
    else:
        assert {len(each) for each in take_turns("abc", measure, 4, keep_interrupted=True).values()} == {
            (stop - 1) // 3
        }
    calls.clear()
    with pytest.raises(KeyboardInterrupt):
        take_turns("abc", measure, 4)


def test_the_clock_is_read_before_and_after(monkeypatch):
    monkeypatch.setattr(measurement, "perf_counter", iter((5.0, 7.5)).__next__)
    assert timed(divmod, 7, 2) == ((3, 1), 2.5)


@pytest.mark.parametrize("count", [0, -1, 1.5, "3"])
def test_counts_are_whole_numbers_from_one_on(count):
    with pytest.raises(UnsupportedError, match=r"runs must be a whole number of at least 1"):
        check_counts(runs=count)
