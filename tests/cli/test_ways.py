"""`floatlab matmul --ways`: a table of times, errors and distances, and clear refusals."""

import json

import pytest

from floatlab.cli.main import main

MATRICES = ("random:uniform:24x80:seed=1", "random:uniform:80x16:seed=2")


def matmul(capsys, *words):
    status = main(["matmul", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_all_four_are_timed_and_held_to_the_exact_product(capsys):
    status, out, err = matmul(capsys, *MATRICES, "--ways", "--runs", "2")
    assert (status, err) == (0, "")
    for words in (
        "by element",
        "by column",
        "whole",
        "in blocks",
        "cumulative",
        "largest q",
        "sum of 2 runs",
        "verdict",
    ):
        assert words in out


@pytest.mark.parametrize("format", ["--fp32", "--fp64"])
def test_json_has_every_run(capsys, format):
    wire = json.loads(matmul(capsys, *MATRICES, "--ways", "--runs", "3", "--json", format)[1])
    assert [len(way["seconds"]) for way in wire["ways"]] == [3] * 4
    assert all(0 < way["largest_q"] < 80 for way in wire["ways"])
    assert [row[i] for i, row in enumerate(wire["ulps_apart"])] == [0] * 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*MATRICES, "--ways", "--fma"), "--ways and --fma exclude each other: --ways times NumPy's own products"),
        ((*MATRICES, "--ways", "--bf16"), "--ways times NumPy"),
        ((*MATRICES, "--ways", "--runs", "0"), "--runs"),
        ((*MATRICES, "--runs", "3"), "--runs needs --ways or --backends"),
        ((MATRICES[0], "--ways"), "two arrays, and 1 were given"),
        ((MATRICES[0], MATRICES[0], "--ways"), "shapes do not go together"),
    ],
)
def test_bad_questions_get_one_line(capsys, words, said):
    status, out, err = matmul(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
