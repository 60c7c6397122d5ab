"""`floatlab compare A B --inputs X Y`: q, and the cause of the difference of two products."""

import json

import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.cli.main import main
from floatlab.reduce.results.products import matmul


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("products")
    rng = np.random.default_rng(3)
    x, y = (rng.random((80, 80)).astype(np.float32) for _ in range(2))
    made = {
        "x": x,
        "y": y,
        "serial": matmul(x, y),
        "fused": matmul(x, y, fma=True),
        "bf16": (quantize(x, "bf16") @ quantize(y, "bf16")).astype(np.float32),
        "short": (x @ y - np.outer(x[:, 3], y[3])).astype(np.float32),
    }
    for name, array in made.items():
        np.save(folder / f"{name}.npy", array)
    return {name: str(folder / f"{name}.npy") for name in made}


def compare(capsys, *words):
    status = main(["compare", *words])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), err


@pytest.mark.parametrize(
    ("other", "status", "verdict"),
    [
        ("fused", 0, "No: this is rounding (FMA), "),
        (
            "bf16",
            1,
            "by a choice of precision: inputs rounded in B (bfloat16, to nearest, both inputs).",
        ),
        ("short", 1, "Yes: term 3 of B is missing."),
    ],
)
def test_the_cause_is_named(capsys, files, other, status, verdict):
    found, out, _ = compare(capsys, files["serial"], files[other], "--inputs", files["x"], files["y"])
    assert found == status
    assert verdict in out
    assert "allclose" in out


def test_json_has_the_numbers(capsys, files):
    _, out, _ = compare(capsys, files["serial"], files["fused"], "--inputs", files["x"], files["y"], "--json")
    judged = json.loads(out)["judgement"]
    assert judged["causes"] == ["order"]
    assert judged["terms"] == 80
    assert judged["q"]["limit"] == 160
    assert [each["cause"] for each in judged["trials"]] == ["order", "tf32", "fp16", "bf16", "term"]


def test_vectors_are_a_row_and_a_column(capsys):
    assert "the same bits" in compare(capsys, "3", "3.0000001", "--inputs", "1", "3")[1]  # all are binary32
    assert "No: all numbers are equal." in compare(capsys, "7", "7", "--inputs", "1,2", "3,2", "--op", "dot")[1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["7", "7", "--inputs", "1,2", "3,2,1"], "shapes (2,) and (3,) do not make a product"),
        (["7,1", "7,1", "--inputs", "1,2", "3,2"], "a product of (2,) and (2,) is one number"),
        (["7", "7", "--op", "dot"], "--op needs --inputs"),
        (["7", "7", "--inputs", "1", "2", "--op", "conv"], "--op: 'conv' is not an operation: matmul, linear, dot"),
        (["7", "7", "--inputs", "nowhere.npy", "2"], "nowhere.npy"),
    ],
)
def test_bad_inputs_get_one_line(capsys, words, said):
    status, out, err = compare(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_what_each_array_equals_is_said(capsys, files):
    words = (files["serial"], files["fused"], "--inputs", files["x"], files["y"])
    _, out, _ = compare(capsys, *words)
    assert "actual all 6,400 elements equal serial" in out
    assert "expected all 6,400 elements equal serial with FMA" in out
    assert "cause explained by FMA alone serial → serial with FMA" in out
    wire = json.loads(compare(capsys, *words, "--json")[1])["attribution"]
    assert wire["verdict"] == "explained by FMA alone"
    assert [each["given"] for each in wire["observed"]] == ["actual", "expected"]
    assert wire["observed"][0]["explanations"][0] == {
        "way": "serial", "matching": 6400, "total": 6400, "elements": 6400, "fits": True, "code": None,
    }  # fmt: skip
    _, out, _ = compare(capsys, files["serial"], files["bf16"], "--inputs", files["x"], files["y"])
    assert "expected no candidate gives more than 0.098 % of its elements" in out
    assert "cause" not in out.partition("What each equals")[2]


def test_one_element_that_is_wrong_is_found(capsys, files, tmp_path):
    wrong = np.load(files["serial"])
    wrong[41, 7] *= np.float32(1.5)
    np.save(tmp_path / "wrong.npy", wrong)
    _, out, _ = compare(capsys, str(tmp_path / "wrong.npy"), files["fused"], "--inputs", files["x"], files["y"])
    assert "Yes: element (41, 7) of A is wrong; all others agree within rounding." in out
    assert "at (41, 7)" in out.partition("Size: q")[2]


def test_results_of_two_formats_are_not_attributed(capsys):
    words = ("7", "7@fp64", "--inputs", "1,2", "3,2", "--fp32")
    assert "cause the formats, binary32 and binary64, differ" in compare(capsys, *words)[1]
    assert "attribution" not in json.loads(compare(capsys, *words, "--json")[1])


def test_numbers_that_are_not_finite_do_not_end_the_analysis(capsys, files, tmp_path):
    wrong, x = np.load(files["serial"]), np.load(files["x"])
    wrong[41, 7], x[3, 4] = np.nan, np.nan
    good = matmul(x, np.load(files["y"]))
    wrong[3] = np.nan
    for name, array in (("wrong", wrong), ("x", x), ("good", good)):
        np.save(tmp_path / f"{name}.npy", array)
    words = [str(tmp_path / f"{name}.npy") for name in ("wrong", "good", "x")]
    status, out, err = compare(capsys, *words[:2], "--inputs", words[2], files["y"])
    assert (status, err) == (1, "")
    assert "Yes: element (41, 7) of A is NaN; all others agree." in out
    assert "Size: q" not in out
    assert "judgement" not in json.loads(compare(capsys, *words[:2], "--inputs", words[2], files["y"], "--json")[1])


def test_there_is_one_verdict(capsys, files):
    _, out, _ = compare(capsys, files["serial"], files["bf16"], "--inputs", files["x"], files["y"])
    first, _, details = out.partition("Size: q")
    assert first.startswith("No: this is rounding, by a choice of precision")
    assert "inputs rounded to bf16" in details
    assert "rounding?" not in out
    assert "look for a bug" not in out
    assert "not by rounding" not in out


def test_whether_it_is_rounding_stands_above_the_verdict(capsys, files):
    plain = compare(capsys, files["serial"], files["bf16"])[1]
    assert ("if these are products of X and Y, --inputs X Y finds out whether the difference is rounding") in " ".join(
        plain.split()
    )
    told = compare(capsys, files["serial"], files["fused"], "--inputs", files["x"], files["y"])[1]
    told = " ".join(told.split("equal bits")[0].split())
    assert told.startswith("No: this is rounding (FMA)")
    assert "--inputs" not in told
