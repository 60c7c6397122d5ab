"""`floatlab matmul --backends`: times and differences, missing libraries, and clear errors."""

import json
import sys

import numpy as np
import pytest

from floatlab.cli.main import main
from tests.reduce.timing.test_devices import Tensor, fake_cupy

MATRICES = ("random:uniform:24x80:seed=1", "random:uniform:80x16:seed=2")


def matmul(capsys, *words):
    status = main(["matmul", *words])
    out, err = capsys.readouterr()
    return status, out, err


@pytest.fixture
def _alone(monkeypatch):
    for library in ("torch", "jax"):
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())


@pytest.mark.usefixtures("_alone")
def test_who_is_there_is_timed_and_compared(capsys):
    status, out, err = matmul(capsys, *MATRICES, "--backends", "--runs", "2")
    assert (status, err) == (0, "")
    for words in (
        "in binary32, on 2 backends",
        "first call",
        "sum of 2 more calls",
        "numpy and cupy",
        "absent torch:cuda: ",
        "absent jax: ",
        "cupy CuPy 14.0 on Fake GPU",
        "minimum median spread GFLOP/s",
        "sent in fetched in minimum",
        "verdict 2 runs do not show which is fastest: use --runs 4 or more",
        "in total 2 runs do not show",
        "nearest numpy and cupy to the exact product",
    ):
        assert words in " ".join(out.split())


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize("width", ["80", "40"])
def test_the_page_fits(capsys, width):
    out = matmul(capsys, *MATRICES, "--backends", "--runs", "5", "--width", width)[1]
    assert max(map(len, out.splitlines())) <= int(width)


@pytest.mark.usefixtures("_alone")
def test_ctrl_c_shows_what_was_timed(capsys, monkeypatch):
    calls = iter(range(100))

    def multiply(x, y):
        if next(calls) == 3:
            raise KeyboardInterrupt
        return Tensor(x.log, x.values @ y.values)

    monkeypatch.setattr(Tensor, "__matmul__", multiply)
    status, out, _ = matmul(capsys, *MATRICES, "--backends", "numpy,cupy", "--runs", "50", "--json")
    wire = json.loads(out)
    assert (status, wire["interrupted"], wire["runs"], wire["runs_asked"]) == (130, True, 2, 50)
    assert [len(each["seconds"]["rest"]) for each in wire["backends"]] == [2, 2]


@pytest.mark.usefixtures("_alone")
@pytest.mark.parametrize(("words", "format"), [((), "binary32"), (("--fp64",), "binary64"), (("--fp16",), "binary16")])
def test_json_has_every_time(capsys, words, format):
    wire = json.loads(matmul(capsys, *MATRICES, "--backends", "numpy,cupy,jax", "--runs", "3", "--json", *words)[1])
    assert wire["format"] == format
    assert [len(each["seconds"]["rest"]) for each in wire["backends"]] == [3, 3]
    assert [each["name"] for each in wire["absent"]] == ["jax"]
    for each in wire["backends"]:
        times, parts = each["seconds"], each["transfers"]
        assert (times["minimum"], times["median"]) == (min(times["rest"]), sorted(times["rest"])[1])
        assert each["gflops"] == pytest.approx(2 * 24 * 80 * 16 / times["median"] / 1e9)
        assert times["sent"] == parts["to_device"]["median"]
        assert times["fetched"] == parts["from_device"]["median"]
        runs = (parts["to_device"]["runs"], times["rest"], parts["from_device"]["runs"])
        assert each["total"]["runs"] == pytest.approx([sum(parts) for parts in zip(*runs, strict=True)])
        assert each["total"]["spread"] > 0
    assert wire["fastest"]["name"] is wire["fastest_with_transfers"]["name"] is None
    assert sorted(wire["fastest"]["candidates"]) == ["cupy", "numpy"]
    assert (wire["runs"], wire["interrupted"]) == (3, False)
    (pair,) = wire["pairs"]
    assert (pair["names"], pair["equal_bits"], pair["ulps"]) == (["numpy", "cupy"], 24 * 16, 0)
    assert "order" in pair["causes"]


def test_files_are_multiplied_in_their_own_format(capsys, tmp_path):
    for name, dtype in (("a", np.float64), ("b", np.float32)):
        np.save(tmp_path / f"{name}.npy", np.ones((3, 3), dtype))
    a, b = (str(tmp_path / f"{name}.npy") for name in "ab")
    for words, format in (((a, b), "binary64"), ((b, b), "binary32"), ((b, "1;2;3"), "binary32")):
        wire = json.loads(matmul(capsys, *words, "--backends", "numpy", "--runs", "1", "--json")[1])
        assert wire["format"] == format


@pytest.mark.usefixtures("_alone")
def test_nobody_there_is_a_part_that_is_missing(capsys):
    status, out, err = matmul(capsys, *MATRICES, "--backends", "jax")
    assert status == 3
    assert "on no backend" in out
    assert "jax" in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((*MATRICES, "--backends", "nunpy"), "did you mean 'numpy'"),
        (
            (*MATRICES, "--backends", "numpy", "--fma"),
            "--backends and --fma exclude each other",
        ),
        ((*MATRICES, "--backends", "numpy", "--ways"), "--ways and --backends exclude each other"),
        ((*MATRICES, "--backends", "numpy", "--e4m3"), "libraries multiply in"),
        ((*MATRICES, "--backends", "numpy", "--runs", "0"), "--runs"),
        ((MATRICES[0], "--backends", "numpy"), "two arrays, not 1"),
        ((MATRICES[0], MATRICES[0], "--backends", "numpy"), "shapes do not match"),
        (("1,2", "3,4", "--backends", "numpy"), "shapes do not match"),
    ],
)
def test_bad_questions_get_one_line(capsys, words, said):
    status, out, err = matmul(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
