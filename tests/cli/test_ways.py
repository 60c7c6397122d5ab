"""`floatlab matmul --ways`: a table of times, errors and differences, and clear errors."""

import json

import pytest

from floatlab.cli.main import main
from floatlab.reduce.timing import measurement, partitions

MATRICES = ("random:uniform:24x80:seed=1", "random:uniform:80x16:seed=2")


def matmul(capsys, *words):
    status = main(["matmul", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_all_ways_are_timed_and_held_to_the_exact_product(capsys):
    status, out, err = matmul(capsys, *MATRICES, "--ways", "--runs", "2")
    assert (status, err) == (0, "")
    for words in (
        "in 5 ways (blocks of 64 terms)",
        "by element",
        "by row",
        "by column",
        "whole",
        "in blocks",
        "cumulative",
        "minimum median",
        "GFLOP/s",
        "spread: the interquartile range",
        "largest q",
        "sum of 2 runs",
        "verdict 2 runs do not show which is fastest: use --runs 4 or more",
        "to the exact product",
    ):
        assert words in " ".join(out.split())


@pytest.mark.parametrize("width", ["80", "40"])
def test_the_page_fits(capsys, width):
    out = matmul(capsys, *MATRICES, "--ways", "--runs", "5", "--width", width)[1]
    assert max(map(len, out.splitlines())) <= int(width)
    assert "2 × rows × terms" in " ".join(out.split())


@pytest.mark.parametrize("format", ["--fp32", "--fp64"])
def test_json_has_every_run(capsys, format):
    wire = json.loads(matmul(capsys, *MATRICES, "--ways", "--runs", "3", "--json", format)[1])
    assert [len(way["seconds"]) for way in wire["ways"]] == [3] * 5
    assert all(0 < way["largest_q"] < 80 for way in wire["ways"])
    assert [row[i] for i, row in enumerate(wire["ulps_apart"])] == [0] * 5
    assert (wire["shape"], wire["block_size"]) == ([24, 80, 16], 64)
    assert (wire["runs"], wire["runs_asked"], wire["interrupted"]) == (3, 3, False)
    for way in wire["ways"]:
        assert (way["minimum"], way["median"]) == (min(way["seconds"]), sorted(way["seconds"])[1])
        assert way["spread"] == pytest.approx((max(way["seconds"]) - way["minimum"]) / 2)
        assert way["gflops"] == pytest.approx(2 * 24 * 80 * 16 / way["median"] / 1e9)
    assert wire["fastest"]["name"] is None
    assert len(wire["fastest"]["candidates"]) == 5
    assert wire["nearest"]


def test_the_size_of_blocks_changes_the_bits(capsys):
    apart = {}
    for size in ("1", "80", "1000"):
        wire = json.loads(matmul(capsys, *MATRICES, "--ways", "--runs", "1", "--block-size", size, "--json")[1])
        assert wire["block_size"] == int(size)
        apart[size] = wire["ulps_apart"][3][4]
        assert all(way["spread"] is None for way in wire["ways"])
    assert apart["80"] == apart["1000"] == 0


def test_no_winner_is_named_that_the_runs_do_not_show(capsys, monkeypatch):
    """Use a clock on which each computation takes a fixed time; then one on which all take the same time."""
    seconds = {"by element": 5.0, "by row": 3.0, "by column": 3.0, "whole": 1.0, "in blocks": 2.0}
    for time, said in (
        (seconds.get, "fastest whole: median 1 s; then in blocks, median 2 s"),
        ({**seconds, "in blocks": 1.0}.get, "whole and in blocks cannot be told apart: their medians differ by 0 µs"),
    ):
        now = [0.0]

        def moved(name, multiply, now=now, time=time):
            def product(a, b, **options):
                now[0] += time(name)
                return multiply(a, b, **options)

            return product

        with monkeypatch.context() as patch:
            patch.setattr(measurement, "perf_counter", lambda now=now: now[0])
            for name, multiply in partitions.PARTITIONS.items():
                if name != "in blocks":
                    patch.setitem(partitions.PARTITIONS, name, moved(name, multiply))
            patch.setattr(partitions, "_in_blocks", moved("in blocks", partitions._in_blocks))
            out = matmul(capsys, *MATRICES, "--ways", "--runs", "4")[1]
            assert said in " ".join(out.split())
            quiet = matmul(capsys, *MATRICES, "--ways", "--runs", "4", "--quiet")[1]
            assert quiet == ("whole\n" if "fastest" in said else "whole,in blocks\n")


def test_ctrl_c_shows_what_was_timed(capsys, monkeypatch):
    calls = iter(range(100))

    def interrupted(a, b):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return a @ b

    monkeypatch.setitem(partitions.PARTITIONS, "whole", interrupted)
    status, out, _ = matmul(capsys, *MATRICES, "--ways", "--runs", "50")
    assert status == 130
    assert "interrupted after 2 of 50 runs" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*MATRICES, "--ways", "--fma"), "--ways and --fma exclude each other: --ways times NumPy's own products"),
        ((*MATRICES, "--ways", "--bf16"), "--ways times NumPy"),
        ((*MATRICES, "--ways", "--runs", "0"), "--runs"),
        ((*MATRICES, "--ways", "--block-size", "0"), "--block-size takes a whole number from 1"),
        ((*MATRICES, "--backends", "--block-size", "8"), "--block-size needs --ways"),
        ((*MATRICES, "--block-size", "8"), "--block-size needs --ways: it is the number of terms in a block"),
        ((*MATRICES, "--runs", "3"), "--runs needs --ways or --backends"),
        ((MATRICES[0], "--ways"), "two arrays, not 1"),
        ((MATRICES[0], MATRICES[0], "--ways"), "shapes do not match"),
    ],
)
def test_bad_questions_get_one_line(capsys, words, said):
    status, out, err = matmul(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
