"""`floatlab compare A B --inputs X Y --op OP --bias B`: operations of several products, and printed arrays."""

import json

import numpy as np
import pytest

from floatlab.cli.main import main


@pytest.fixture(scope="module")
def layer(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layer")
    rng = np.random.default_rng(1)
    x, y, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 8, 50), (30, 50), (30,)))
    good = x @ y.T + bias
    wrong = good.copy()
    wrong[:, 2:5, 4:9] = 0
    made = {"x": x, "y": y, "bias": bias, "good": good, "wrong": wrong, "plain": x @ y.T, "total": x.sum(-1)}
    for name, array in made.items():
        np.save(folder / f"{name}.npy", array)
    return {name: str(folder / f"{name}.npy") for name in made}


def compare(capsys, *words):
    status = main(["compare", *words])
    out, err = capsys.readouterr()
    return status, out, err


def test_a_layer_with_a_bias(capsys, layer):
    words = (
        layer["good"],
        layer["wrong"],
        "--inputs",
        layer["x"],
        layer["y"],
        "--op",
        "linear",
        "--bias",
        layer["bias"],
    )
    status, out, _ = compare(capsys, *words)
    assert status == 1
    assert out.split("\n")[0].strip() == "Yes: [0:4, 2:5, 4:9] of B are zero; all others agree."
    assert "Causes of the difference, as results of linear" in out
    found = json.loads(compare(capsys, *words, "--json")[1])["diagnosis"]
    assert (found["status"], found["nearer"]) == ("bug", "actual")
    assert found["causes"][0]["where"] == [[[0, 4], [2, 5], [4, 9]]]


def test_a_bias_that_is_not_told(capsys, layer):
    _, out, _ = compare(capsys, layer["plain"], layer["good"], "--inputs", layer["x"], layer["y"], "--op", "linear")
    assert out.split("\n")[0].strip() == "Yes: B is the product plus one number per column (a bias)."


def test_a_sum_of_one_input(capsys, layer):
    _, out, _ = compare(capsys, layer["total"], layer["total"], "--inputs", layer["x"], "1", "--op", "sum")
    assert out.split("\n")[0].strip() == "No: all numbers are equal."


def test_printed_arrays_are_inputs(capsys):
    x, y = "[[0.3, 1.7], [2.9, 0.1]]", "tensor([[0.7, 0.2],\n        [1.1, 3.3]], device='cuda:0')"
    a = np.float32([[0.3, 1.7], [2.9, 0.1]]) @ np.float32([[0.7, 0.2], [1.1, 3.3]])
    with np.printoptions(floatmode="unique"):
        status, out, _ = compare(capsys, repr(a), f"tensor({a.tolist()}, dtype=torch.float32)", "--inputs", x, y)
    assert status == 0
    assert "No: all numbers are equal." in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["--op", "matmul"],
            "x has shape (4, 8, 50) and y (30, 50): the last axis of x is summed, so y of shape (50, N)",
        ),
        (["--op", "linea"], "did you mean 'linear'?"),
        (["--op", "einsum:ij"], "not a contraction of two operands"),
        (["--op", "conv2d:stride"], "is not a setting"),
        (["--op", "sum"], "sum takes one input"),
        (["--op", "conv2d"], "conv2d: x has shape (4, 8, 50) and y (30, 50)"),
        (["--op", "einsum:bij,kj->kbi"], "actual has shape (4, 8, 30), and einsum of these inputs gives (30, 4, 8)"),
        (["--op", "linear", "--bias", "[1, 2, 3]"], "(30,) would fit"),
        (["--op", "linear", "--bias", "nowhere.npy"], "nowhere.npy"),
    ],
)
def test_what_does_not_fit_is_one_line(capsys, layer, words, said):
    status, out, err = compare(capsys, layer["good"], layer["wrong"], "--inputs", layer["x"], layer["y"], *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_bias_needs_inputs(capsys):
    assert (
        compare(capsys, "1,2", "1,2", "--bias", "1")[2]
        == "floatlab: --bias needs --inputs: it is added to the product of the inputs\n"
    )


@pytest.mark.parametrize("verb", ["sum", "dot", "matmul", "compare"])
def test_every_verb_takes_printed_arrays(capsys, verb, tmp_path):
    text = "array([1., 2., 4.], dtype=float32)" if verb != "matmul" else "[[1, 2],\n [3, 4]]"
    (tmp_path / "x.txt").write_text(text)
    words = [text, str(tmp_path / "x.txt")] if verb != "sum" else [text]
    assert main([verb, *words, "--quiet"]) == 0
    quiet = {"sum": "7", "dot": "21", "compare": "0"}.get(verb)
    assert quiet is None or capsys.readouterr().out.strip() == quiet


def test_observed_arrays_are_divided_at_outer_commas(capsys):
    x = "[[1.5, 2.5], [3.5, 4.5]]"
    assert main(["matmul", x, "[[1, 0], [0, 1]]", "--observed", f"{x},{x}", "--quiet"]) == 0
    assert capsys.readouterr().out == "one computation gives both\n"


@pytest.mark.parametrize("name", ["w.pt", "w.pkl"])
def test_pickles_are_refused_in_one_line(capsys, name, tmp_path):
    (tmp_path / name).write_bytes(b"")
    status, out, err = compare(capsys, str(tmp_path / name), "1,2")
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert 'python -c "import sys, ' in err
