"""`floatlab reveal` on the command line: claims, JSON, and clear results if no claim can be made."""

import json
import sys

import numpy as np
import pytest

from floatlab.cli.main import main

CALLS = np.random.default_rng(1)


def random(x):
    return float(CALLS.integers(0, 64))


def in_some_order(x):
    """Add in an order that depends on the data: small numbers are added backwards, unlike the probes."""
    x = x if np.abs(x).max() > 1e9 or np.ptp(x) == 0 else x[::-1]
    return x.dtype.type(np.add.accumulate(x)[-1])


def reveal(capsys, *words):
    status = main(["reveal", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_what_numpy_does_is_told(capsys):
    status, out, err = reveal(capsys, "numpy.sum", "--terms", "8")
    assert (status, err) == (0, "")
    assert "(((0 1) (2 3)) ((4 5) (6 7)))" in out
    assert "32 of 32 random sums have the same bits" in out


def talking(x):
    print("a word of the target")
    return np.sum(x)


def leaving(x):
    sys.exit(0)


def test_what_a_target_prints_is_no_answer(capsys):
    status, out, err = reveal(capsys, f"{__name__}:talking", "--json", "--terms", "3")
    assert (status, json.loads(out)["terms"]) == (0, 3)
    assert set(err.splitlines()) == {"a word of the target"}


def test_a_target_that_leaves_does_not_take_the_answer_along(capsys):
    status, out, err = reveal(capsys, f"{__name__}:leaving", "--terms", "3")
    assert (status, out) == (2, "")
    assert err.endswith("leaving raises SystemExit: 0\n")


def test_one_word_and_one_object(capsys):
    assert reveal(capsys, "numpy.sum", "--quiet", "--terms", "100")[1] == "numpy\n"
    wire = json.loads(reveal(capsys, "numpy.sum", "--json", "--terms", "3")[1])
    assert wire["nodes"] == [[0, 1], [3, 2]]
    assert wire["claim"] == wire["replays"][0]
    assert wire["claim"]["ways"][0]["accumulator"] == "binary32"


def test_without_a_matching_replay_there_is_no_claim(capsys):
    status, out, _ = reveal(capsys, f"{__name__}:in_some_order", "--terms", "12")
    assert status == 1
    assert "no claim is made" in " ".join(out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["numpy.max"], "numpy.max is not a sum along a tree: the sum of 64 ones is not 64"),
        ([f"{__name__}:random"], "gives two results"),
        (["math:fsum"], "a huge number absorbs no terms"),
        (["numpy.smu"], "did you mean 'sum'"),
        ([], "reveal takes one target, not 0"),
        (["numpy.sum", "numpy.dot"], "reveal takes one target, not 2"),
        (["numpy.sum", "--terms", "0"], "--terms"),
        (["numpy.sum", "--terms", "9e9"], "--terms"),
        (["numpy.sum", "--dtype", "float8"], "dtype must be one of"),
        (["numpy.sum", "--dtype", "e4m3"], "dtype must be one of"),
        (["numpy.sum", "--fp16"], "reveal has no --fp16: --dtype fp16"),
        (["numpy.sum", "--kind", "add"], "kind must be one of"),
    ],
)
def test_bad_questions_get_one_line(capsys, words, said):
    status, out, err = reveal(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
