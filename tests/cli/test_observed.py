"""`floatlab dot --observed`: the example from a forum, and clear errors."""

import json

import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.cli.main import main
from floatlab.files import open_arrays
from floatlab.reduce.results.products import matmul

FORUM = ("dot", "--preset", "forum", "--observed", "0.0559577,0.0559577569366", "--difference", "8.19563865662e-08")


def run(capsys, *words):
    status = main([*words])
    out, err = capsys.readouterr()
    return status, " ".join(out.split()), err


def test_the_forum_question_is_answered(capsys):
    status, out, err = run(capsys, *FORUM)
    assert (status, err) == (0, "")
    assert "verdict explained by order and FMA together" in out
    assert "0x3d6533e0 → 0x3d6533f0 → 0x3d6533f6 order +16, FMA +6 ulps" in out
    assert "0x3d6533e0 → 0x3d653400 → 0x3d6533f6 FMA +32, order −10 ulps" in out
    assert "pairwise → serial with FMA" in out


def test_json_has_pairs_and_paths(capsys):
    wire = json.loads(run(capsys, *FORUM, "--json")[1])
    assert wire["verdict"] == "explained by order and FMA together"
    assert [pair["differ_by"] for pair in wire["pairs"]] == [["order", "FMA"]] * 3
    assert [[["order", 16], ["FMA", 6]], [["FMA", 32], ["order", -10]]] in [pair["paths"] for pair in wire["pairs"]]


def test_a_product_is_attributed_from_a_file(capsys, tmp_path):
    rng = np.random.default_rng(1)
    x, y = rng.random((20, 30)).astype(np.float32), rng.random((30, 10)).astype(np.float32)
    for name, array in (("x", x), ("y", y), ("z", matmul(x, y, "lanes(8)", fma=True))):
        np.save(tmp_path / f"{name}.npy", array)
    words = [str(tmp_path / f"{name}.npy") for name in "xyz"]
    _, out, _ = run(capsys, "matmul", *words[:2], "--observed", words[2])
    assert "lanes(8) with FMA all" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("dot", "1,2", "3,4", "--observed", "x"), "x"),
        (("dot", "1,2", "3,4", "--observed", "1,2,3"), "not 3"),
        (("sum", "1,2", "--observed", "pear"), "pear"),
        (("sum", "1,2", "--targets", "numpy.sum"), "--targets needs --observed"),
        (("dot", "1,2", "3,4", "--observed", "11", "--targets", "numpy.pear"), "pear"),
        (
            ("dot", "1,2", "3,4", "--difference", "1"),
            ("--difference needs --observed: it is the difference of two results"),
        ),
        (("dot", "1,2", "3,4", "--observed", "11", "--difference", "1"), "--difference needs two results"),
        (("matmul", "1,2", "3;4", "--observed", "nowhere.npy"), "nowhere.npy"),
    ],
)
def test_bad_questions_get_one_line(capsys, words, said):
    status, out, err = run(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_sum_is_attributed(capsys):
    _, out, _ = run(capsys, "sum", "1,0x1p-24,0x1p-24", "--observed", "1.0000001,1")
    assert "reversed 0x3f800001 1.0000001" in out
    _, out, _ = run(capsys, "sum", "1,0x1p-24,0x1p-24", "--observed", "1.0000001", "--quiet")
    assert out.startswith("reversed")


def test_rows_and_two_arrays_are_attributed(capsys, tmp_path):
    _, out, _ = run(capsys, "sum", "1,2;3,4", "--observed", "3,7")
    assert "3,7: serial" in out
    rng = np.random.default_rng(1)
    x, y = rng.random((20, 30)).astype(np.float32), rng.random((30, 10)).astype(np.float32)
    for name, array in (("x", x), ("y", y), ("z", matmul(x, y)), ("t", matmul(x, y, fma=True))):
        np.save(tmp_path / f"{name}.npy", array)
    words = [str(tmp_path / f"{name}.npy") for name in "xyzt"]
    _, out, _ = run(capsys, "matmul", *words[:2], "--observed", ",".join(words[2:]))
    assert "verdict explained by FMA alone serial → serial with FMA" in out


def test_what_alone_does_not_explain_it_is_said(capsys):
    _, out, _ = run(capsys, *FORUM)
    assert "together: +22 ulps from the first to the second" in out
    assert "not by FMA alone: of 14 pairs of candidates that differ only in this, none gives both results" in out
    assert "serial → serial with FMA: 0x3d6533f0 → 0x3d6533f6, +6 ulps" in out
    wire = json.loads(run(capsys, *FORUM, "--json")[1])
    assert [(each["cause"], each["ulps"]) for each in wire["refuted"]] == [("FMA", 6), ("order", -16)]
    assert wire["refuted"][0]["codes"] == ["0x3d6533f0", "0x3d6533f6"]


def test_a_result_that_nothing_gives_is_told_beside_what_is_given_instead(capsys):
    _, out, _ = run(capsys, "sum", "1,0x1p-24,0x1p-24", "--observed", "1.5")
    assert "No candidate gives 1.5; results of the candidates candidate code value serial 0x3f800000 1" in out


def test_lists_say_how_much_they_leave_out(capsys):
    _, out, _ = run(capsys, "dot", "--preset", "forum", "--observed", "0.06,0.0559577569366")
    assert "and 26 other candidates" in out
    assert "pairs of candidates that give both results, the first 6 " in out
    _, out, _ = run(capsys, "dot", "--preset", "forum", "--observed", "0.06,0.056")
    assert "one computation gives both" in out
    assert "pairs of ways" not in out


def test_an_array_has_shares_and_no_codes(capsys):
    _, out, _ = run(capsys, "sum", "1,2;3,4", "--observed", "3,7")
    assert "candidate share serial all" in out


@pytest.fixture(scope="module")
def product():
    """Words for two factors, and their values."""
    words = ("random:uniform:4x50:low=-1:seed=1@fp32", "random:uniform:50x3:low=-1:seed=2@fp32")
    with open_arrays(words) as opened:
        return words, [each.whole() for each in opened]


def printed(array, form):
    return "[" + ", ".join("[" + ", ".join(form % each for each in row) + "]" for row in array) + "]"


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", ["%.4f", "%.6g", "%.3e", "%.8g"])
@pytest.mark.parametrize("named", ["word", "tensor", "file"])
def test_printed_matrices_mean_all_that_print_so(command, product, tmp_path, form, named):
    words, (x, y) = product
    text = printed(matmul(x, y), form)
    if named == "file":
        (tmp_path / "seen.txt").write_text(text)
    observed = {"word": text, "tensor": f"tensor({text}, device='cuda:0')", "file": str(tmp_path / "seen.txt")}[named]
    found = json.loads(command("matmul", *words, "--observed", observed, "--json").out)
    assert "serial" in [each["way"] for each in found["observed"][0]["explanations"] if each["fits"]]


def test_printed_digits_that_no_way_gives_are_told(command, product):
    words, (x, y) = product
    wrong = matmul(x, y)
    wrong[2, 1] += 0.001
    assert "none of" in command("matmul", *words, "--observed", printed(wrong, "%.4f")).out


def test_printed_sums_of_rows(command):
    found = command("sum", "0.1,0.2;0.3,0.4", "--fp32", "--observed", "0.30,0.70").out
    assert found.startswith("  0.30,0.70: serial, and 4 more")


@pytest.mark.parametrize("direction", ["RNE", "RNA", "RTZ"])
def test_tf32_is_named_by_its_direction(command, product, tmp_path, direction):
    words, factors = product
    x, y = (np.asarray(quantize(each, "tf32", rounding=direction), np.float32) for each in factors)
    np.save(tmp_path / "seen.npy", matmul(x, y))
    found = json.loads(command("matmul", *words, "--observed", str(tmp_path / "seen.npy"), "--json").out)
    ways = [each["way"] for each in found["observed"][0]["explanations"] if each["fits"]]
    assert any("tf32" in way and direction in way for way in ways), ways
