"""`floatlab train`: numbers equal to those of NumPy loops, written files, and one-line errors."""

import csv
import io
import json
import os
import re
import signal
import sys

import numpy as np
import pytest

from tests.cli.test_compare import started, told

UPDATES = ("train", "1.125", "--update", "0.00041999", "--steps", "101")


def rows(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_the_worked_example_is_told(command):
    ended = command(*UPDATES)
    assert (ended.status, ended.err) == (0, "")
    assert "1.167429447174072265625" in ended.out  # the exact value of the master copy
    words = " ".join(ended.out.split())
    assert "a plain it never moved: the update is under half an ulp" in words
    assert "0.43017578125 ulp of the starting weight" in words
    assert "b master 1.125 1.126 1.146 1.167 −4.27e-4 101" in words


@pytest.mark.parametrize("update", ["0.00041999", "0.12457275390625"])
def test_every_step_is_numpys(command, update):
    ended = command(
        "train", "1.125", "--update", update, "--steps", "101", "--csv", "-", "--remedies", "plain,master,fp32"
    )
    half, copy, single = np.float16(1.125), np.float32(1.125), np.float32(1.125)
    given, wide = np.float16(update), np.float32(update)
    for k, row in enumerate(rows(ended.out)):
        assert int(row["step"]) == k
        assert float(row["plain"]) == half
        assert (float(row["master"]), float(row["master carried"])) == (np.float16(copy), copy)
        assert float(row["fp32"]) == single
        half, copy, single = np.float16(half + given), np.float32(copy + given), np.float32(single + wide)
    assert k == 101


def test_one_update_digit_by_digit(command):
    ended = command("train", "step", "1.125", "0.00041999", "--weights", "fp16", "--grads", "fp16")
    assert ended.status == 0
    for words in (
        "sum          1.0010000000|01101110001 × 2^0",
        "tail below half → keep",
        "no: the update is 0.43017578125 ulp of w",
        "moves up     just above 2^-11, 0.5 ulp  smallest 0x1001 0.0004888",
    ):
        assert words in ended.out


def test_below_a_power_of_two_the_way_down_is_half(command):
    wire = json.loads(command("train", "step", "1", "--grad", "1", "--lr", "2^-12", "--fp16", "--json").out)
    assert (wire["moved"], wire["why"]) == (False, "tie")
    assert [wire["counts"][way]["bound"] for way in ("up", "down")] == ["1/2048", "1/4096"]
    assert wire["stages"][1]["derivation"]["result"]["code"] == "0x3c00"


def test_a_master_copy_is_what_the_update_meets(command):
    ended = command("train", "step", "1", "--grad", "0.5", "--lr", "1e-4", "--fp16", "--remedies", "master")
    assert "no: the update is" in ended.out
    assert "the master copy moved, but is rounded to the same number in binary16" in " ".join(ended.out.split())


def test_gradients_come_from_files(command, tmp_path):
    grads = np.random.default_rng(1).standard_normal((30, 4)).astype(np.float32)
    np.save(tmp_path / "g.npy", grads)
    np.save(tmp_path / "w.npy", np.float32([1, 2, 3, 4]))
    words = (str(tmp_path / "w.npy"), "--grad", str(tmp_path / "g.npy"), "--lr", "2^-7", "--remedies", "fp32")
    found = rows(command("train", *words, "--csv", "-").out)
    assert len(found) == 31 * 4
    w = np.float32([1, 2, 3, 4])
    for row in grads:
        w = w - np.float32(2.0**-7) * row
    assert [float(row["fp32"]) for row in found[-4:]] == w.tolist()


def test_seeds_make_draws_that_come_again(command):
    words = (*UPDATES, "--remedies", "stochastic", "--quiet=code")
    first, again, other = (command(*words, "--seed", seed).out for seed in ("1", "1", "2"))
    assert first == again != other


def test_the_record_of_a_run(command):
    wire = json.loads(command(*UPDATES, "--json").out)
    assert wire["reference"] == {"kind": "exact", "final": ["116741899/100000000"]}
    lines = {line["name"]: line for line in wire["remedies"]}
    assert (lines["plain"]["stalled"], lines["plain"]["why"]) == (0, "below half")
    assert lines["master"]["carried"] == [1.167429447174072265625]
    assert lines["fp32"]["final"][0]["code"] == "0x3f956def"


def test_networks_over_seeds(command):
    words = (
        "network",
        "--problem",
        "linear",
        "--configs",
        "fp32,e4m3",
        "--steps",
        "30",
        "--samples",
        "4",
        "--lr",
        "0.05",
    )
    ended = command("train", *words, "--seeds", "2")
    assert ended.status == 0
    assert "e4m3 is worse than fp32, beyond the noise of 2 seeds" in " ".join(ended.out.split())
    wire = json.loads(command("train", *words, "--seeds", "2", "--json").out)
    assert [each["name"] for each in wire["configurations"]] == ["fp32", "e4m3"]
    assert wire["seeds"] == [0, 1]
    later = json.loads(command("train", *words, "--json", "--seed", "1").out)
    assert later["configurations"][0]["losses"] == wire["configurations"][0]["losses"][1:]
    found = rows(command("train", *words, "--csv", "-").out)
    assert {(row["configuration"], row["seed"]) for row in found} == {("fp32", "0"), ("e4m3", "0")}


def test_gradients_that_underflow(command, tmp_path):
    grads = np.random.default_rng(3).lognormal(-14, 3, 2000)
    np.save(tmp_path / "g.npy", grads)
    wire = json.loads(command("train", "underflow", str(tmp_path / "g.npy"), "--fp16", "--json").out)
    half = grads.astype(np.float16)
    assert wire["zero"] == int((half == 0).sum()) > 0
    assert wire["subnormal"] == int(((half != 0) & (half < 2.0**-14)).sum())
    scaled = (grads * wire["safe_scale"]).astype(np.float16)
    assert np.isfinite(scaled).all()
    assert grads.max() * wire["safe_scale"] * 2 >= 65520
    assert sum(count for _, count in wire["histogram"]) == 2000
    assert "zero or smallest" in command("train", "underflow", str(tmp_path / "g.npy")).out


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["x^3", "1.5", "--reported", "6.75"], 0, "rounding and truncation explain the mismatch"),
        (["x^3", "1.5", "--reported", "6.8"], 1, "a bug"),
        (["x^3", "1.5", "--reported", "6.8", "--h", "1e-7"], 0, "unclear"),
        (["math:atan", "1", "--fp16"], 0, "its derivative is 0.5"),
        (["sin", "1", "--derivative", "0.5"], 0, "its derivative is 0.5"),
    ],
)
def test_difference_quotients(command, words, status, said):
    ended = command("train", "check", *words)
    assert (ended.status, ended.err) == (status, "")
    assert said in " ".join(ended.out.split())


def test_an_ascii_page_in_46_columns(command):
    for words in (UPDATES, ("train", "step", "1", "1e-4", "--fp16"), ("train", "check", "exp", "0")):
        out = command(*words, "--ascii", "--width", "46").out
        assert out.isascii()
        assert max(map(len, out.splitlines())) <= 46


def test_csv_beside_the_page(command, tmp_path):
    path = tmp_path / "steps.csv"
    ended = command(*UPDATES, "--csv", str(path))
    assert "Outcome of each remedy" in ended.out
    assert len(rows(path.read_text())) == 102
    ended = command("train", "underflow", "1e-9,1", "--csv", "-")
    assert ended.out.splitlines() == ["exponent,gradients", "-30,1", "0,1"]


def test_a_plot_needs_matplotlib(command, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = command(*UPDATES, "--plot", str(tmp_path / "x.png"))
    assert (ended.status, ended.out) == (3, "")
    assert "--plot needs matplotlib" in ended.err


def test_plots_are_written(command, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    assert command(*UPDATES, "--plot", str(tmp_path / "x.png")).status == 0
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")


def test_ctrl_c_ends_it_quietly(environment, tmp_path):
    process, terminal = started(["train", "1", "--update", "1e-9", "--steps", "1000000000"], environment, tmp_path)
    assert re.match(rb"\r\[#*\.*\] +\d+ %  [\d,]+ steps a second, \d+ (s|min) left", os.read(terminal, 1000))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    words = told(terminal)
    assert words.endswith("\r\x1b[K")
    assert "Traceback" not in words
    with process.stdout:
        assert process.stdout.read() == b""


BAD = """
nan --update 1 | start must be a finite number, not 'nan'
step -inf 1 | the weight must be a finite number, not '-inf'
70000 --update 1 | start 70000 is beyond binary16, whose largest is 65504
1 --update nan | update must be a finite number, not 'nan'
1 --grad inf --lr 1 | gradient must be a finite number, not 'inf'
1 --grad 1 | a gradient needs a learning rate: --lr L
1 --grad 1 --lr nan | the learning rate must be a finite number above 0, not 'nan'
1 --update 1 --lr 3 | --lr needs a gradient, --grad G; an update is added without it
1 --update 1 --grad 1 --lr 1 | both were given
1 | neither was
step 1 | train step takes an update (train step W U
1 --update 1 --remedies static:0 | the scale of static must be a finite number above 0, not '0'
1 --update 1 --remedies mastr | did you mean 'master'?
1 --update 1 --remedies plain,,master | a name is missing between commas
1 --grad 1 --lr 1 --optimizer adm | did you mean 'adam'?
1 --update 1 --grads e8m0 | no zero and no sign
1 --update 1 --weights e8m0 | no zero and no sign
1 --update 1 --fp128 | arrays do not support it
1 --update 1 --fp16 --weights bf16 | both name the format of the weights
1 --update 1 --fp16 --bf16 | one format
1 --update 1 --steps 1e30 | --steps takes a whole number from 0 to 1,000,000,000
1 --update 1 --steps -5 | --steps takes a whole number
1 --update 1 --every 0 | --every takes a whole number from 1
1 --update 1,2,3 --steps 5 | update has numbers for 3 steps, not for 5
1 --update 1 --master fp32 | --master is not an option of train W (only of: step)
1 --update 1 --csv /nowhere/x | cannot be written
1 --update 1 --csv - --json | both write to standard output
1 --update 1 --csv '' | names no file
network --configs fp33 | did you mean 'fp32'?
network --configs fp16+mastre | did you mean 'master'?
network --problem cubic | problem must be one of
network --seeds 0 | --seeds takes a whole number from 1
network --steps 0 | --steps takes a whole number from 1
network --noise nan | noise must be a finite number from 0 up
network --lr 0 | the learning rate must be a finite number above 0
network --fp16 | takes its formats from --configs
network 3 | no values
underflow nowhere.npy | 'nowhere.npy' is not a file
underflow 1,2 --scale 0 | the loss scale must be a finite number above 0
underflow 1,2 --grads e8m0 | no zero and no sign
underflow 1,2 --lr 3 | --lr is not an option of train underflow
check six 1 | did you mean 'sin'?
check sin nan | x must be a finite number
check sin 1e50 | is beyond binary32
check sin 1 --reported x | the reported derivative must be a finite number
check sin 1 --h 1 | --h needs --reported: it is the step for checking D
check sin 1 -r RTZ | --rounding is not an option of train check
check log -1 | log is not defined at -1
check 1/x 0 | 1/x is not defined at 0
check sys:exit 1 | 'sys:exit' raises SystemExit
check os:getcwd 1 | raises TypeError
check math:nosuch 1 | 'math' has no 'nosuch'
check math:pi 1 | is not a function
step 1,2 3 | a step takes one number
step 1 2 --weights nvfp4 | one weight cannot be in nvfp4
step 1 2 3 | takes a weight and an update
step 1 2 --remedies fp33 | there is no remedy 'fp33'
stap 1 2 | did you mean 'step'?
- --update 1 | does not read standard input
"""


@pytest.mark.parametrize("line", [each for each in BAD.splitlines() if each])
def test_bad_questions_get_one_line(command, line):
    import shlex

    words, _, said = line.partition(" | ")
    ended = command("train", *shlex.split(words))
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_numbers_beyond_binary64_are_told(command):
    for words in (("1e400", "--update", "1"), ("1", "--update", "1e400"), ("1", "--grad", "0.1,-1e400", "--lr", "1")):
        ended = command("train", *words)
        assert (ended.status, ended.out) == (2, "")
        assert "is beyond binary64, in which runs are recorded" in ended.err
    assert command("train", "step", "1", "1e400", "-f", "fp128", "--quiet").out == "1e400\n"


def test_what_diverges_warns_of_nothing(command):
    ended = command("train", "65504", "--update", "65504", "--remedies", "plain,kahan,master", "--csv", "-")
    assert (ended.status, ended.err) == (0, "")
    assert command("train", "1", "--update", "random:uniform:3", "--steps", "0", "--remedies", "plain").status == 0


def test_beside_a_reference_that_diverged_nothing_is_good(command):
    words = ("--configs", "fp32,fp8+master", "--lr", "100", "--steps", "30", "--samples", "4", "--hidden", "4")
    out = " ".join(command("train", "network", *words).out.split())
    assert "fp32 diverged, so the other configurations have no reference" in out
    assert "not compared" in out
    assert "as good" not in out


def test_what_stands_still_without_a_reason_has_no_colon(command, tmp_path):
    np.save(tmp_path / "g.npy", np.full(5, 1e-5))
    out = command("train", "1", "--grad", str(tmp_path / "g.npy"), "--lr", "0.1", "--remedies", "plain").out
    assert "it never moved (weights in binary16)" in out


def test_a_check_without_numbers_is_a_record_all_the_same(command):
    out = command("train", "check", "sqrt", "0.001", "--reported", "15.8", "--h", "0.1", "--json").out
    found = json.loads(out, parse_constant=pytest.fail)
    assert (found["check"]["quotient"], found["check"]["verdict"]) == ("nan", "unclear")


@pytest.mark.parametrize("words", [("1", "--update", "1"), ("check", "x^3", "1"), ("1,2", "--update", "1e-4")])
def test_charts_fit_into_twenty_columns(command, words):
    out = command("train", *words, "--width", "20").out
    assert max(len(line) for line in out.splitlines()) <= 20


def test_one_configuration_twice(command):
    words = ("network", "--problem", "linear", "--configs", "fp32,fp32", "--steps", "3", "--samples", "4", "--json")
    found = json.loads(command("train", *words).out)["configurations"]
    assert (len(found), found[0]["losses"]) == (2, found[1]["losses"])


def test_records_beyond_memory_are_refused_at_once(command):
    ended = command("train", "1", "--update", "1", "--steps", "1000000000", "--every", "1")
    assert (ended.status, ended.out) == (2, "")
    assert "recording every 1 steps would store 1,000,000,001 numbers" in ended.err
