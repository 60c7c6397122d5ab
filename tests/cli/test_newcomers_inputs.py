"""`floatlab compare` with typical inputs of users: an answer, or one line that names the culprit and what would fit."""

import json
import pickle
import struct

import numpy as np
import pytest

from floatlab.cli.main import main

LINEAR = "with --op linear, for which Y has the shape (outputs, inputs), they do"
PRINTED = (
    "tensor([[ 0.5000, -1.2500],\n        [ 1.0000,  2.0000]], "
    "device='cuda:0', dtype=torch.float16, requires_grad=True)"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Inputs x (4, 5) and y (5, 3) with results in files of many kinds."""
    folder, rng = tmp_path_factory.mktemp("brought"), np.random.default_rng(0)
    x, y, batch = (rng.standard_normal(shape, np.float32) for shape in ((4, 5), (5, 3), (2, 4, 5)))
    a = x @ y
    b, nan = a.copy(), a.copy()
    b[1, 2], nan[0, 0] = 9, np.nan
    whole = np.arange(20).reshape(4, 5), np.arange(15).reshape(5, 3)
    arrays = {
        "x": x, "y": y, "a": a, "b": b, "nan": nan, "xb": batch, "ab": batch @ y, "xi": whole[0], "yi": whole[1],
        "ai": whole[0] @ whole[1], "big": a.astype(">f4"), "xbig": x.astype(">f4"), "fortran": np.asfortranarray(a),
        "complex": a + 1j, "bool": a > 0, "text": np.array(["a"]), "none": np.zeros((0, 3), np.float32),
        "x0": np.zeros((0, 5), np.float32), "scalar": np.float32(3), "row": x[0], "column": y[:, 0],
        "dot": x[0] @ y[:, 0], "wide": a.astype(np.longdouble), "bias3": np.ones(3, np.float32),
        "bias4": np.ones(4, np.float32), "image": rng.random((1, 4, 8, 8), np.float32),
        "kernel": rng.random((6, 4, 3, 3), np.float32), "record": np.zeros(3, [("p", "f4")]),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "both.npz", a=a, b=b)
    header = json.dumps({"a": {"dtype": "F32", "shape": [4, 3], "data_offsets": [0, a.nbytes]}}).encode()
    (folder / "a.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + a.tobytes())
    np.savetxt(folder / "a.csv", a, delimiter=",")
    np.savetxt(folder / "six.txt", a, fmt="%.6g")
    (folder / "names.csv").write_text("c0,c1\n1,2\n")
    (folder / "semicolons.csv").write_text("1;2\n3;4\n")
    (folder / "printed.txt").write_text(f"tensor({a.tolist()}, device='cuda:0', grad_fn=<MmBackward0>)\n")
    (folder / "dots.txt").write_text("[[0.1 0.2 ... 0.3]\n [0.1 0.2 ... 0.3]]")
    (folder / "w.pt").write_bytes(b"PK\x03\x04" + bytes(50))
    (folder / "w.pkl").write_bytes(pickle.dumps(x))
    (folder / "empty.txt").write_bytes(b"")
    return folder


def told(capsys, monkeypatch, folder, words):
    monkeypatch.chdir(folder)
    status = main(["compare", *words])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), err


@pytest.mark.parametrize(
    ("words", "first"),
    [
        ("a.npy b.npy --inputs x.npy y.npy", "Yes: element (1, 2) of B is wrong"),
        ("both.npz::a both.npz::b --inputs x.npy y.npy", "Yes: element (1, 2) of B is wrong"),
        ("a.safetensors::a b.npy --inputs x.npy y.npy", "Yes: element (1, 2) of B is wrong"),
        ("a.csv a.npy --inputs x.npy y.npy", "No: all numbers are equal."),
        ("printed.txt a.npy --inputs x.npy y.npy", "No: all numbers are equal."),
        ("six.txt a.npy --inputs x.npy y.npy", "No: this is rounding"),
        ("big.npy a.npy --inputs xbig.npy y.npy", "No: all numbers are equal."),
        ("fortran.npy a.npy --inputs x.npy y.npy", "No: all numbers are equal."),
        ("ai.npy ai.npy --inputs xi.npy yi.npy", "No: all numbers are equal."),
        ("ab.npy ab.npy --inputs xb.npy y.npy", "No: all numbers are equal."),
        ("dot.npy dot.npy --inputs row.npy column.npy", "No: all numbers are equal."),
        ("nan.npy a.npy --inputs x.npy y.npy", "Yes: element (0, 0) of A is NaN"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk", "Yes: element (1, 2) of B is wrong"),
        ("bool.npy bool.npy", "bool.npy and bool.npy: the same bits"),
        ("none.npy none.npy", "none.npy and none.npy: the same bits"),
        ("scalar.npy 3", "scalar.npy and 3: the same bits"),
        (["[[0.5, -1.25], [1, 2]]", PRINTED], "[[0.5, -1.25], [1, 2]] and tensor"),
        (["Parameter containing:\ntensor([1., 2.], requires_grad=True)", "1,2"], "Parameter containing:"),
        (["torch.tensor([1.,2.],dtype=torch.bfloat16)", "[1,2]"], "torch.tensor([1.,2.],dtype=torch.bfloat16) and"),
        (["tf.Tensor([1. 2.], shape=(2,), dtype=float32)", "1,2"], "tf.Tensor([1. 2.], shape=(2,), dtype=float32) and"),
        (["Array([1.5], dtype=float32)", "jnp.array([1.5])"], "Array([1.5], dtype=float32) and jnp.array([1.5])"),
        (["array([1, 2])", "tensor([1,2], dtype=torch.int64)"], "array([1, 2]) and tensor([1,2], dtype=torch.int64)"),
    ],
)
def test_what_people_bring_is_answered(capsys, monkeypatch, folder, words, first):
    words = words.split() if isinstance(words, str) else words
    status, out, err = told(capsys, monkeypatch, folder, words)
    assert status in (0, 1)
    assert err == ""
    assert out.startswith(first)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("both.npz a.npy", "'both.npz' has 2 arrays: choose one as FILE::NAME, from 'a', 'b'"),
        ("both.npz::q a.npy", "'both.npz' has no array 'q'; it has 'a', 'b'"),
        ("names.csv a.npy", "'names.csv' line 1: 'c0' is not a number"),
        ("names.csv a.npy", "; a line of titles must begin with #"),
        ("semicolons.csv a.npy", "; the numbers of a row are separated by commas or spaces"),
        ("dots.txt a.npy", "'dots.txt' has an ellipsis (…), so some numbers are missing"),
        ("w.pt a.npy", "convert it: python -c"),
        ("w.pkl a.npy", "convert it: python -c"),
        ("empty.txt a.npy", "'empty.txt' has no numbers"),
        ("text.npy a.npy", "'text.npy' holds '<U1'"),
        ("record.npy a.npy", "'record.npy' holds '[('p', '<f4')]'"),
        ("wide.npy a.npy", "wide.npy must be an array of floats or integers, not of float128"),
        ("complex.npy a.npy", "give its real and imaginary parts"),
        ("a.npy b.npy --inputs x.npy", "--inputs needs X Y"),
        (
            "a.npy b.npy --inputs y.npy x.npy",
            "shapes (5, 3) and (4, 5) do not make a product; in the other order they",
        ),
        ("a.npy b.npy --inputs x.npy x.npy", f"shapes (4, 5) and (4, 5) do not make a product; {LINEAR}"),
        ("a.npy b.npy --inputs x.npy 1,2", "the sums run along the last axis of X, so Y must have the shape (5, N)"),
        ("a.npy b.npy --inputs scalar.npy y.npy", "matmul: x has shape () and y (5, 3): both need at least one axis"),
        (
            "a.npy row.npy --inputs x.npy y.npy",
            "a product of (4, 5) and (5, 3) has shape (4, 3), but expected has shape (5,)",
        ),
        ("none.npy none.npy --inputs x0.npy y.npy", "shapes (0, 5) and (5, 3) give a result without elements"),
        ("a.npy b.npy --inputs x.npy y.npy --op sum", "sum takes one input: give 1 in place of y"),
        ("a.npy b.npy --inputs x.npy 1 --op linear", "y is (outputs, inputs), so y of shape (OUT, 5) would fit"),
        ("a.npy b.npy --inputs x.npy 1 --op sum:5", "sum: x has shape (4, 5), so it has no axis 5"),
        ("a.npy b.npy --inputs x.npy 1 --op sum:x", "the axes of a sum are written like sum:0,2 or sum:all"),
        ("a.npy b.npy --inputs x.npy y.npy --op mm", "--op: 'mm' is not an operation: matmul, linear, dot"),
        ("a.npy b.npy --inputs x.npy y.npy --op torch.matmul", "did you mean 'matmul'?"),
        ("a.npy b.npy --inputs x.npy y.npy --op dot:3", "dot has no settings, but '3' follows its colon"),
        (
            "a.npy b.npy --inputs x.npy y.npy --bias bias4.npy",
            "a bias of shape (4,) cannot be broadcast to the result",
        ),
        ("a.npy b.npy --inputs x.npy y.npy --bias nowhere", "'nowhere' is not a file, nor a list of numbers"),
        (["a.npy", "b.npy", "--inputs", "x.npy", "y.npy", "--bias", ""], "--bias '' names no array"),
        (["a.npy", "b.npy", "--inputs", "", "y.npy"], "--inputs '' names no array"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk>ik", "'>' at character 6 is not a label"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:i1,jk->ik", "'1' at character 2 is not a label"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk,kl->il", "it labels 3 operands, but there are two"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij->i", "it labels 1 operand, but there are two"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk->i,k", "the result has a comma"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:...i...,jk->ik", "each array has at most one ellipsis"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk->il", "'l' is in no operand"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk->ii", "'i' occurs twice"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ijl,jk->ik", "'ijl' labels 3 axes, but x has 2"),
        ("a.npy b.npy --inputs x.npy y.npy --op einsum:ij,jk->", "einsum of these inputs gives one number"),
        ("a.npy b.npy --inputs image.npy kernel.npy --op conv2d", "conv2d of these inputs gives (1, 6, 6, 6)"),
        ("a.npy b.npy --inputs image.npy kernel.npy --op conv2d:groups=3", "3 groups do not divide"),
        ("a.npy b.npy --inputs image.npy kernel.npy --op conv2d:stride=0", "stride must be at least 1"),
        ("a.npy b.npy --inputs image.npy x.npy --op conv2d", "x is (N, C, H, W) or (C, H, W)"),
        (["[[1, 2], [3]]", "1"], "has lists of 2 numbers and one of 1"),
        (["[[1, 2], [3, 4]", "1"], "has a bracket that is not closed"),
        (["(1, 2, 3)", "1"], "lists are in square brackets"),
        (["1 2 3", "1"], "numbers of a list are separated by commas"),
        (["[1, None]", "1"], "'None' is not a number"),
        (["[1+2j]", "1"], "'1+2j' is not a number"),
        (["[]", "1"], "has an empty list"),
        (["", "1"], "'' is not a file, nor a list of numbers"),
        (["<tf.Tensor: shape=(1,), dtype=float32, numpy=array([1.])>", "1"], "give the array after numpy="),
        (["tensor([1.], dtype=torch.complex64)", "1"], "has dtype 'torch.complex64'"),
        (["tensor([0.5], dtype=torch.int64)", "1"], "has dtype int64, and numbers that are not of this dtype"),
    ],
)
def test_what_cannot_be_answered_is_one_line(capsys, monkeypatch, folder, words, said):
    words = words.split() if isinstance(words, str) else words
    status, out, err = told(capsys, monkeypatch, folder, words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
