"""`floatlab sum`, `dot` and `matmul`: known results, consistent JSON, and clear errors."""

import json
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import FloatArray, matmul
from floatlab.arrays import decode
from floatlab.arrays.blocks import encode_blocks
from floatlab.cli.main import main
from floatlab.verbs.reduce.page import _upward


def ask(capsys, *words):
    status = main([*words])
    out, err = capsys.readouterr()
    return status, out, err


def code(capsys, *words):
    status, out, err = ask(capsys, *words, "--quiet=code")
    assert (status, err) == (0, "")
    return out.strip()


# Computed with exact rationals, and with hardware; those of `paper` are printed in it.
FORUM = [
    ("serial", False, "0x3d6533f0"),
    ("serial", True, "0x3d6533f6"),
    ("((0 1) (2 3))", False, "0x3d6533e0"),
    ("((0 1) (2 3))", True, "0x3d653400"),
    ("pairwise", True, "0x3d653400"),
    ("reversed", False, "0x3d6533e0"),
    ("reversed", True, "0x3d65340c"),
]
PAPER = [("serial", False, "0x3d653510"), ("serial", True, "0x3d653501"), ("((0 1) (2 3))", False, "0x3d653500")]


@pytest.mark.parametrize(
    ("preset", "schedule", "fma", "found"),
    [("forum", *row) for row in FORUM] + [("paper", *row) for row in PAPER],
)
def test_the_example_that_everyone_quotes(capsys, preset, schedule, fma, found):
    words = ["dot", "--preset", preset, "--schedule", schedule, "--fma" if fma else "--no-fma"]
    assert code(capsys, *words) == found


def test_a_wide_accumulator_rounded_once_gives_the_nearest_number(capsys):
    assert code(capsys, "dot", "--preset", "forum", "--accumulator", "fp64", "--fp32") == "0x3d653409"
    _, out, _ = ask(capsys, "dot", "--preset", "forum")
    assert "0.055957829502951028644" in out
    assert "89.1 = sum of" in out
    assert "printed, with seven digits" in out


SHORT = [
    ["dot", "--preset", "forum"],
    ["dot", "--preset", "forum", "--fma"],
    ["dot", "--preset", "forum", "--fma", "--schedule", "((0 1) (2 3))"],
    ["dot", "--preset", "forum", "--fma", "--schedule", "fused(3)"],
    ["dot", "--preset", "paper", "--accumulator", "fp64", "--products", "fp16"],
    ["dot", "0.1,0.1,3", "0.1,0.1,0.3", "--bf16", "--fma", "--schedule", "((0 1) 2)"],
    ["dot", "0.1,0.2,3,7", "0.1,-0.1,0.3,1", "--machine", "hopper.f16.f32"],
    ["dot", "0.1,0.2,3", "0.1,-0.1,0.3", "--machine", "cdna1.bf16.f32"],
    ["sum", "1,0.001,0.001,0.001", "--fp16", "--adder", "neumaier"],
    ["sum", "1,0.001,0.001,0.001", "--fp16", "--adder", "double", "--accumulator", "fp32"],
    ["sum", "1,0.001,0.001,0.001", "--fp16", "-r", "SR", "--seed", "5"],
    ["dot", "1,0.001,0.001", "0.3,0.7,0.9", "--fp16", "-r", "SR", "--seed", "5", "--fma"],
    ["sum", "0.1", "--fp16"],
    ["dot", "0.1", "0.3", "--fp16", "--fma"],
    ["dot", "0.1", "3", "--machine", "ada.e5m2.f32", "--fp16"],
    ["sum", "0.1", "--fp64", "--accumulator", "fp16", "--adder", "klein"],
]


def exactly(datum):
    return Fraction(datum["exact"])


@pytest.mark.parametrize("words", SHORT, ids=" ".join)
def test_errors_of_all_entries_add_up_to_the_error_of_the_result(capsys, words):
    status, out, _ = ask(capsys, *words, "--json")
    wire = json.loads(out)
    assert status == 0
    operands = [[exactly(each) for each in side] for side in wire["operands"]]
    exact = sum((np.prod(row) for row in zip(*operands, strict=True)), Fraction(0))
    assert Fraction(wire["exact"]) == exact
    assert Fraction(wire["error"]["exact"]) == exactly(wire["result"]) - exact
    entries = wire["nodes"]
    assert sum(Fraction(each["error"]["exact"]) for each in entries) == exactly(wire["result"]) - exact
    # The last node is the result, and the error of a node is its value minus the exact sum of its operands.
    assert entries[-1]["value"] == wire["result"] or entries[-1]["kind"] == "node"
    given = [np.prod(row) for row in zip(*operands, strict=True)]
    values = [exactly(e["value"]) if e["value"] else given[e["id"]] for e in entries if e["id"] is not None]
    for each in entries:
        if each["kind"] == "node":
            added = sum(values[i] for i in each["arguments"])
            assert Fraction(each["error"]["exact"]) == values[each["id"]] - added


def test_fused_products_are_told_from_rounded_ones(capsys):
    words = ["dot", "0.1,0.1,3", "0.1,0.1,0.3", "--bf16", "--fma", "--json"]
    alone = [each["value"] is not None for each in json.loads(ask(capsys, *words)[1])["nodes"][:3]]
    assert alone == [True, False, False]
    words += ["--schedule", "((1 0) 2)"]
    alone = [each["value"] is not None for each in json.loads(ask(capsys, *words)[1])["nodes"][:3]]
    assert alone == [False, True, False]


def test_long_sums_name_the_worst_nodes(capsys, tmp_path):
    values = np.random.default_rng(3).standard_normal(30_000).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    status, out, _ = ask(capsys, "sum", str(tmp_path / "x.npy"))
    assert status == 0
    assert "The 5 roundings with the largest errors" in out
    wire = json.loads(ask(capsys, "sum", str(tmp_path / "x.npy"), "--schedule", "numpy", "--json")[1])
    assert float(wire["result"]["shortest"]) == pytest.approx(float(values.sum()), rel=1e-7)
    assert np.float32(wire["result"]["shortest"]) == values.sum()
    assert (wire["nodes"], wire["operands"], len(wire["worst"])) == (None, None, 5)


def test_the_worst_of_many_are_sorted_and_products_are_among_them(capsys):
    big = ",".join(["1"] * 20)
    wire = json.loads(ask(capsys, "dot", f"{big},1.001", f"{big},1.001", "--fp16", "--json")[1])
    errors = [abs(Fraction(each["error"]["exact"])) for each in wire["nodes"]]
    worst = [abs(Fraction(each["error"]["exact"])) for each in wire["worst"]]
    assert worst == [each for each in sorted(errors, reverse=True)[:5] if each]
    assert {each["kind"] for each in wire["worst"]} == {"node", "term"}
    tensor = ["dot", "random:uniform:100:seed=1", "random:uniform:100:seed=2", "--machine", "volta.f16.f32"]
    assert "with the largest errors" in ask(capsys, *tensor)[1]


@given(st.fractions(min_value=0).filter(bool))
def test_bounds_are_rounded_up_to_three_digits(x):
    assert x <= Fraction(_upward(x)) <= x * Fraction(101, 100)


def test_very_long_sums_leave_the_worst_out(capsys, monkeypatch):
    monkeypatch.setattr("floatlab.verbs.reduce.page._SEARCHED", 1500)
    words = ["sum", "random:uniform:2000:seed=1", "--fp32"]
    assert "the worst roundings are not determined for 2,000 terms" in ask(capsys, *words)[1]
    assert json.loads(ask(capsys, *words, "--json")[1])["worst"] == []


def test_text_is_read_into_the_other_arrays_format(capsys, tmp_path):
    np.save(tmp_path / "x.npy", np.float16([1, 2, 3]))
    wire = json.loads(ask(capsys, "dot", "0.1,0.2,0.3", str(tmp_path / "x.npy"), "--json")[1])
    assert (wire["format"], wire["operands"][0][0]["code"]) == ("binary16", "0x2e66")


def test_tensor_cores_say_whose_model_they_are(capsys):
    _, out, _ = ask(capsys, "dot", "1,2", "3,4", "--machine", "a100.f16.f32")
    assert "model of A100" in out
    assert "arXiv:2512.07004" in out


@pytest.mark.parametrize("width", [20, 46, 80, 200])
def test_pages_keep_to_their_width(capsys, width):
    for words in SHORT:
        _, out, _ = ask(capsys, *words, "--width", str(width), "--ascii")
        assert out.isascii()
        assert max(map(len, out.splitlines())) <= max(width, 24)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sum"], "sum needs an array"),
        (["sum", "1,2", "3"], "sum takes one array, not 2; separate the numbers of an array by commas"),
        (["dot", "1,2"], "dot takes two arrays, not 1"),
        (["dot", "1,2", "3"], "needs as many numbers in a as in b, not 2 and 1"),
        (["sum", "1,2;3,4"], "shape (2, 2)"),
        (["dot", "-", "-"], "has only one array"),
        (["sum", "1,2", "--schedule", "lans(2)"], "did you mean 'lanes'"),
        (["sum", "1,2", "--schedule", "((0 1) 2)"], "3 terms"),
        (["sum", "1,2", "--adder", "kahn"], "kahan"),
        (["sum", "1,2", "--fp16", "--fp32"], "sum has one result"),
        (["sum", "1,2", "--accumulator", "fp16,fp32"], "--accumulator takes one format"),
        (["sum", "1,2", "--fma"], "--fma"),
        (["dot", "--preset", "form"], "forum"),
        (["dot", "1", "2", "--preset", "forum"], "do not name others"),
        (["dot", "1", "2", "--machine", "hoper.f16.f32"], "hopper"),
        (["dot", "1", "2", "--machine", "hopper.f16.f32", "--fma"], "fixed by the machine"),
        (["matmul", "1,2", "3"], "do not make a matrix product"),
        (["matmul", "1,2;3", "4,5"], "rows"),
        (["matmul", "1,2"], "matmul takes two arrays"),
        (["matmul", "--preset", "forum"], "--preset"),
        (["sum", "nowhere.npy"], "nowhere.npy"),
        (["sum", "1,abc"], "'abc'"),
    ],
)
def test_refusals_are_clear(capsys, words, said):
    status, out, err = ask(capsys, *words)
    assert (status, out) == (2, "")
    assert said in err
    assert err.startswith("floatlab: ")


def test_a_caret_stands_under_what_is_wrong(capsys):
    status, out, err = ask(capsys, "sum", "1,2", "--schedule", "blocked(2, lans)")
    first, typed, caret, end = err.split("\n")
    assert (status, out, end) == (2, "", "")
    assert "'lans'" in first
    assert typed[caret.index("^") :].startswith("lans")


def test_what_is_no_number(capsys):
    status, out, _ = ask(capsys, "sum", "inf,-inf,1", "--fp16")
    assert status == 0
    assert "a term is not finite" in out
    assert "invalid" in out
    wire = json.loads(ask(capsys, "sum", "60000,60000", "--fp16", "--json")[1])
    assert wire["result"]["class"] == "positiveInfinity"
    assert wire["flags"] == ["overflow", "inexact"]
    assert (wire["exact"], wire["error"]) == ("120000/1", {"exact": None, "ulps": None})


@pytest.mark.parametrize("more", [[], ["--fma"], ["--schedule", "pairwise"], ["--machine", "hopper.f16.f32"]], ids=str)
def test_each_element_of_a_matrix_product_is_a_dot_product(capsys, tmp_path, more):
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((3, 20)).astype(np.float16), rng.standard_normal((20, 4)).astype(np.float16)
    np.save(tmp_path / "a.npy", a)
    np.save(tmp_path / "b.npy", b)
    status, out, _ = ask(capsys, "matmul", str(tmp_path / "a.npy"), str(tmp_path / "b.npy"), "--json", *more)
    wire = json.loads(out)
    assert (status, wire["shape"], wire["terms"]) == (0, [3, 4], 20)
    missed, q = [], []
    for each in wire["elements"]:
        i, j = each["index"]
        np.save(tmp_path / "x.npy", a[i])
        np.save(tmp_path / "y.npy", b[:, j].copy())
        one = json.loads(ask(capsys, "dot", str(tmp_path / "x.npy"), str(tmp_path / "y.npy"), "--json", *more)[1])
        assert (each["value"], each["exact"], each["error"]) == (one["result"], one["exact"], one["error"])
        missed.append(abs(float(Fraction(each["error"]["ulps"]))))
        size = sum(abs(Fraction(float(x)) * Fraction(float(y))) for x, y in zip(a[i], b[:, j], strict=True))
        u = Fraction(1, 2 ** (24 if "--machine" in more else 11))
        q.append(float(abs(Fraction(each["error"]["exact"])) / (u * size)))
    assert wire["error"]["ulps_largest"] == pytest.approx(max(missed))
    assert wire["error"]["ulps_rms"] == pytest.approx(np.sqrt(np.mean(np.square(missed))))
    assert wire["q"]["largest"] == pytest.approx(max(q))
    assert wire["q"]["rms"] == pytest.approx(np.sqrt(np.mean(np.square(q))))
    assert wire["nearest"] == sum(each <= 0.5 for each in missed)
    largest = [abs(float(Fraction(each["error"]["ulps"]))) for each in wire["worst"]]
    assert largest == sorted(missed, reverse=True)[:5]


def test_matrices_with_what_is_no_number(capsys):
    status, out, _ = ask(capsys, "matmul", "inf,2;1,2", "1;1", "--fp16")
    assert status == 0
    assert "1 of 2 elements" in out
    assert ask(capsys, "matmul", "inf", "1", "--fp16")[0] == 0
    assert ask(capsys, "matmul", "0,0", "0;0", "--fp16", "--quiet=code")[1] == "0x0000\n"
    assert ask(capsys, "matmul", "1,2;3,4", "1,0;0,1", "--fp16", "--quiet")[1] == "1,2\n3,4\n"


def test_only_some_rows_of_large_products_are_measured(capsys, monkeypatch):
    monkeypatch.setattr("floatlab.reduce.results.product_error.MOST_EXACT", 1000)
    words = ["matmul", "random:uniform:50x10:seed=1", "random:uniform:10x5:seed=2", "--bf16"]
    wire = json.loads(ask(capsys, *words, "--json")[1])
    assert wire["looked_at"] == 100
    assert "100 of 250 elements" in ask(capsys, *words)[1]
    assert all(each["error"]["ulps"] != "0" for each in wire["worst"])


def test_scales_of_blocks_are_numbers_or_codes_in_a_file(capsys, tmp_path):
    rng = np.random.default_rng(3)
    a, b = encode_blocks(rng.standard_normal((2, 64)), "mxfp4"), encode_blocks(rng.standard_normal((64, 3)), "mxfp4", 0)
    names = [str(tmp_path / f"{name}.npy") for name in ("a", "b", "sa", "sb", "na", "nb")]
    numbers = [decode(each.scales, "e8m0") for each in (a, b)]
    values = [decode(each.codes, "e2m1") for each in (a, b)]
    for name, array in zip(names, (*values, a.scales, b.scales, *numbers), strict=True):
        np.save(name, array)
    found = [
        code(capsys, "matmul", *names[:2], "--machine", "b200.mxf4.f32", "--scale-a", left, "--scale-b", right)
        for left, right in (names[2:4], names[4:])
    ]
    assert found[0] == found[1]
    factors = (FloatArray.from_codes(each.codes, "e2m1") for each in (a, b))
    wanted = matmul(*factors, machine="b200.mxf4.f32", scales=(a.scales, b.scales))
    assert found[0].split("\n") == [
        ",".join(f"0x{each:08x}" for each in row) for row in wanted.view(np.uint32).tolist()
    ]
    status, out, err = ask(capsys, "matmul", *names[:2], "--machine", "b200.mxf4.f32", "--scale-a", names[2])
    assert (status, out) == (2, "")
    assert err == "floatlab: --machine b200.mxf4.f32 needs --scale-b: one scale for every 32 numbers\n"


def test_scales_are_typed_as_numbers_or_codes(capsys):
    asked = ["matmul", "random:normal:4x32:seed=1", "random:normal:32x4:seed=2"]
    asked += ["--machine", "blackwell.mxf8f6f4.f32", "--scale-b", "1,1,1,1", "--scale-a"]
    results = {code(capsys, *asked, typed) for typed in ("1,1,2,0.5", "bits:0x7f,1,bits:0x80,bits:0b01111110")}
    assert len(results) == 1
    status, out, err = ask(capsys, *asked, "bits:0x7f,1,1,3")
    assert (status, out) == (2, "")
    assert "'bits:0x7f,1,1,3': in a list with codes, every scale must be a number of e8m0fnu" in err
