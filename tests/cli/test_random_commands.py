"""Random command lines of the verbs on arrays: every combination gives an answer or a one-line error."""

import json

import numpy as np
import pytest

from floatlab.cli.main import main

ARRAYS = {"sum": 1, "dot": 2, "matmul": 2, "compare": 2}
WORDS = [
    "a.npy", "m.npy", "n.npy", "cut.npy", "c.npz::a", "c.npz::no", "t.txt", "nowhere.npy", ".", "1,2,3", "1;2;3",
    "1,2@bf16", "0.1,inf,nan", "1,,2", "1@", "@", "", "random:normal:3", "random:normal:3x4",
    "random:uniform:4x3:seed=2", "random:normal:1000000000x1000000000",
    "random:normal:-1", "random:x:3", "random:normal:3:std=nan", "1/3,2^-24",
]  # fmt: skip
FORMATS = ["fp16", "fp32", "fp64", "bf16", "e4m3", "e2m1", "e8m0", "mxfp4", "posit8", "e15m112", "fp16,fp32", ""]
SCHEDULES = [
    "serial", "pairwise", "numpy", "sorted(down)", "blocked(2, lanes(2), pairwise)", "fused(2)", "((0 1) 2)",
    "permuted((2 0 1))", "permuted((0 0 1))", "blocked(0)", "lanes(10000000000000000000000)", "(" * 2000, "(0 0)",
    "reversed(" * 100, "sorted(sorted)", "٣", "", "\x1b[31m", "(0 1))",
]  # fmt: skip
NUMBERS = ["0", "1", "-1", "nan", "inf", "1e400", "x", "", "٣", "1e-3", "99999999999999999999"]
FILES = [".", "/nowhere/x", ""]
OPTIONS = {
    "-f": FORMATS, "--width": NUMBERS, "--svg": FILES, "--json": None, "--quiet": None, "--nope": None,
}  # fmt: skip
SUMS = {
    "--schedule": SCHEDULES, "--adder": ["kahan", "double", "x"], "--accumulator": FORMATS, "-r": ["RTZ", "SR", "x"],
    "--absent": ["error", "nan"], "--ftz": None, "--seed": NUMBERS,
}  # fmt: skip
PRODUCTS = SUMS | {
    "--products": FORMATS, "--fma": None, "--machine": ["hopper.f16.f32", "x"],
    "--observed": [*NUMBERS, "1,2", "a.npy"],
}  # fmt: skip
OWN = {
    "sum": SUMS,
    "dot": PRODUCTS | {"--preset": ["forum", "x"], "--difference": NUMBERS},
    "matmul": PRODUCTS | {"--ways": None, "--runs": ["1", "0", "x"], "--block-size": ["1", "0", "x"]},
    "compare": {
        "--rtol": NUMBERS, "--atol": NUMBERS, "--equal-nan": None, "--dtype": ["f32", "e2m1", "O", "x"],
        "--shape": ["3", "2x4", "x", "99999999999999999999"], "--worst": NUMBERS, "--html": FILES, "--op": ["dot", "x"],
    },
}  # fmt: skip


def command(draw):
    verb = draw.choice([*ARRAYS])
    words = [draw.choice(WORDS) for _ in range(ARRAYS[verb] + draw.choice([0] * 20 + [-1, 1]))]
    for option, values in (OPTIONS | OWN[verb]).items():
        if draw.random() < 0.15:
            words += [option] if values is None else [f"{option}={draw.choice(values)}"]
    return [verb, *words]


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    draw = np.random.default_rng(1)
    for name, shape in (("a.npy", 3), ("m.npy", (3, 4)), ("n.npy", (4, 3))):
        np.save(name, draw.normal(size=shape).astype(np.float32))
    (tmp_path / "cut.npy").write_bytes((tmp_path / "a.npy").read_bytes()[:-1])
    np.savez("c.npz", a=np.ones(3), b=np.ones(3))
    (tmp_path / "t.txt").write_text("1 2 3\n")


@pytest.mark.parametrize("count", [250, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_command_lines(count, files, generator, capsys):
    answered = 0
    for _ in range(count):
        words = command(generator)
        status = main(words)
        out, err = capsys.readouterr()
        assert status in (0, 1, 2), (words, err)
        if status == 2:
            said, *place = err.splitlines()
            assert out == "", words
            assert said.startswith("floatlab: "), words
            assert not place or (len(place) == 2 and place[1].strip() == "^"), (words, err)
            assert "".join(err.splitlines()).isprintable(), words
        else:
            answered += 1
            if any(each == "--json" for each in words) and "--svg=" not in words:
                assert all(json.loads(line) for line in out.splitlines()), words
    assert answered  # at least one succeeds; most are rejected
