"""`floatlab compare`: status, files of every kind, pictures, progress, and arrays larger than memory."""

import json
import os
import pty
import re
import signal
import subprocess
import sys

import numpy as np
import pytest

from tests.cli.conftest import PROGRAM


@pytest.fixture
def saved(tmp_path):
    """Save an array under a name; return its path."""

    def save(name, x):
        np.save(tmp_path / name, x)
        return str(tmp_path / name)

    return save


def test_within_is_0_beyond_is_1(command, saved):
    x = np.linspace(0, 1, 100, dtype=np.float32)
    a, b = saved("a.npy", x), saved("b.npy", x * np.float32(1.0001))
    assert command("compare", a, a).status == 0
    ended = command("compare", a, b)
    assert (ended.status, ended.err) == (1, "")
    assert "not close: 99 of 100 elements (99 %) lie beyond" in " ".join(ended.out.split())
    assert command("compare", a, b, "--rtol", "1e-3").status == 0
    assert command("compare", a, b, "--atol", "1").status == 0
    assert command("compare", a, b, "--quiet").out == "99\n"


def test_shapes_that_do_not_go_together_are_a_difference(command):
    ended = command("compare", "1,2", "1,2,3")
    assert ended.status == 1
    assert "the shapes 2 and 3 cannot be broadcast" in ended.out
    assert command("compare", "1,2", "1,2,3", "--json").status == 1
    assert command("compare", "1,2", "1,2,3", "--quiet").out == "shapes\n"


def test_nan_is_near_nan_only_on_request(command):
    assert command("compare", "nan,1", "nan,1").status == 1
    assert command("compare", "nan,1", "nan,1", "--equal-nan").status == 0


def test_text_takes_the_format_of_what_it_stands_beside(command, saved, tmp_path):
    x = np.float16([0.1, 0.2])
    ended = command("compare", saved("a.npy", x), "0.1,0.2", "--json")
    assert (ended.status, json.loads(ended.out)["equal_bits"]) == (0, 2)
    (tmp_path / "b.txt").write_text("0.1\n0.2\n")
    ended = command("compare", str(tmp_path / "b.txt"), saved("a.npy", x), "--json")
    assert json.loads(ended.out)["equal_bits"] == 2


def test_both_tolerances_are_pytorchs_too(command):
    record = json.loads(command("compare", "1", "1.5", "--rtol", "0.25", "--atol", "0.25", "--json").out)
    assert (record["assert_close"]["rtol"], record["assert_close"]["atol"]) == (0.25, 0.25)
    record = json.loads(command("compare", "1", "1.5", "--rtol", "0.25", "--json").out)
    assert (record["assert_close"]["rtol"], record["allclose"]["rtol"]) == (1e-7, 0.25)


def test_the_worst_are_as_many_as_asked_for(command):
    record = json.loads(command("compare", "1,2,3,4", "4,3,2,1", "--worst", "3", "--json").out)
    assert len(record["worst"]) == 3


def test_raw_numbers(command, saved, tmp_path):
    x = np.arange(6, dtype=np.float32)
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    raw = str(tmp_path / "x.bin")
    a = saved("a.npy", x.reshape(2, 3))
    assert command("compare", raw, a, "--dtype", "f32", "--shape", "2x3").status == 0
    assert command("compare", raw, raw, "--dtype", "f32").status == 0
    assert command("compare", a, raw, "--dtype", "f32").status == 1


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ((), "compare takes two arrays, not 0"),
        (("1",), "compare takes two arrays, not 1"),
        (("1", "2", "3"), "compare takes two arrays, not 3"),
        (("1", "-"), "compare does not read standard input"),
        (("1", "nowhere.npy"), "'nowhere.npy' is not a file, nor a list of numbers"),
        (("1", "2", "--rtol", "-1"), "--rtol takes a finite number from 0 on, not '-1'"),
        (("1", "2", "--atol", "x"), "--atol takes a finite number from 0 on, not 'x'"),
        (("1", "2", "--rtol", "nan"), "--rtol takes a finite number"),
        (("1", "2", "--worst", "x"), "--worst takes a whole number"),
        (("1", "2", "--dtype", "f32"), "--dtype is for files of raw numbers"),
        (("1", "2", "--shape", "2"), "--shape is for files of raw numbers"),
        (("1", "2", "--fp16", "--fp32"), "counts the ulps of one format, but -f names binary16, binary32"),
        (("1", "2", "--html", ""), "--html '' names no file"),
        (("1", "2", "--html", "x.png"), "--html writes HTML: name a file that ends in .html, not 'x.png'"),
        (("1", "2", "--html", "/nowhere/x.html"), "--html '/nowhere/x.html' cannot be written"),
        (("1", "2", "-f", "fp128"), "binary128"),
        (("1,,2", "2"), "a number is missing"),
        (("random:gauss:3", "2"), "unknown distribution 'gauss'"),
        (("/dev/zero", "1"), "'/dev/zero' is a device, not a file"),
        (("1", "2", "--tol", "1"), "unknown option '--tol'"),
    ],
)
def test_bad_usage_is_one_line_and_2(command, words, named):
    ended = command("compare", *words)
    assert (ended.status, ended.out) == (2, "")
    assert named in ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_name_that_a_terminal_would_obey(command):
    ended = command("compare", "1", "\x1b[2Jx\n.npy")
    assert ended.status == 2
    assert len(ended.err.splitlines()) == 1
    assert "\x1b" not in ended.err


def test_html_and_svg_are_written(command, tmp_path):
    html, svg = tmp_path / "x.html", tmp_path / "x.svg"
    ended = command("compare", "1,2", "1,3", "--html", str(html), "--svg", str(svg))
    assert (ended.status, ended.err) == (1, "")
    assert "beyond tolerance" in svg.read_text()
    assert "<code>floatlab compare 1,2 1,3<" in html.read_text()


def test_a_plot_needs_matplotlib(command, tmp_path, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    ended = command("compare", "1,2", "1,3", "--plot", str(tmp_path / "x.png"))
    assert (ended.status, ended.out) == (3, "")
    assert "--plot needs matplotlib: pip install 'floatlab[plot]'" in ended.err


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_plots_are_written(command, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    words = ("random:uniform:50x50:seed=1@fp32", "random:uniform:50x50:seed=2@fp32")
    for ending, start in ((".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")):
        path = tmp_path / f"x{ending}"
        assert command("compare", *words, "--plot", str(path)).status == 1
        assert path.read_bytes().startswith(start)
    assert command("compare", "1,2,3", "1,2", "--plot", str(tmp_path / "y.png")).status == 1
    for bad in ("/nowhere/x.png", str(tmp_path / "x.nothing")):
        ended = command("compare", *words, "--plot", bad)
        assert (ended.status, ended.out, len(ended.err.splitlines())) == (2, "", 1)


def test_help_says_what_arrays_are(command):
    ended = command("compare", "--help")
    assert ended.status == 0
    assert ".safetensors::NAME" in ended.out


def sparse(path, size, ones=()):
    """Write a sparse .npy file of zeros and a few ones."""
    header = {"descr": "<f4", "fortran_order": False, "shape": (size // 32768, 32768)}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        start = file.tell()
        file.truncate(start + 4 * size)
        for place in ones:
            file.seek(start + 4 * place)
            file.write(np.float32(1).tobytes())
    return str(path)


def started(words, environment, tmp_path, parent=()):
    """Start a command with a terminal as standard error; return the process and the other end of the terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*parent, *PROGRAM, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=theirs, env=environment(),
        cwd=tmp_path,
    )  # fmt: skip
    os.close(theirs)
    return process, ours


def told(terminal):
    """Return the text that was written to a terminal until it was closed."""
    found = b""
    try:
        while piece := os.read(terminal, 65536):
            found += piece
    except OSError:  # Linux raises this at the end
        pass
    os.close(terminal)
    return found.decode()


def test_ctrl_c_ends_it_quietly(environment, tmp_path):
    path = sparse(tmp_path / "a.npy", 1 << 30)
    process, terminal = started(["compare", path, path], environment, tmp_path)
    assert re.match(rb"\r\[#*\.*\] +\d+ %  [\d,]+ elements a second, \d+ (s|min) left", os.read(terminal, 1000))
    process.send_signal(signal.SIGINT)
    assert process.wait(30) == 130
    words = told(terminal)
    assert words.endswith("\r\x1b[K")
    assert "Traceback" not in words
    with process.stdout:
        assert process.stdout.read() == b""


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    """Inputs of a product that takes seconds to diagnose, and two results of it."""
    folder, n = tmp_path_factory.mktemp("large"), 2000
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal((n, n), np.float32) for _ in range(2))
    parts = [x[:, k : k + 250] @ y[k : k + 250] for k in range(0, n, 250)]
    made = {"x": x, "y": y, "a": x @ y, "b": np.add.reduce(parts)}
    for name, array in made.items():
        np.save(folder / f"{name}.npy", array)
    return folder


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operation", ["matmul", "einsum:bij,jk->bik", "linear"])
def test_ctrl_c_shows_what_the_diagnosis_has_found(environment, products, operation):
    words = ["compare", "a.npy", "b.npy", "--inputs", "x.npy", "y.npy", "--op", operation, "--worst", "0"]
    if operation == "einsum:bij,jk->bik":
        for name in "abx":
            batch = np.load(products / f"{name}.npy").reshape(50, 40, 2000)
            np.save(products / f"{name}3.npy", batch)
        words[1:5] = ["a3.npy", "b3.npy", "--inputs", "x3.npy"]
    process, terminal = started(words, environment, products)
    seen = b""
    while b"diagnosis: step " not in seen:
        seen += os.read(terminal, 1000)
    process.send_signal(signal.SIGINT)
    with process.stdout:
        out, words = process.stdout.read().decode(), told(terminal)
    assert process.wait(60) in (0, 1)
    assert "Traceback" not in words
    assert words.endswith("\r\x1b[K")
    first, _, page = out.partition("\n\n")
    assert " ".join(first.split()).startswith("Stopped")
    assert "allclose" in page


# A forked process begins with the peak of its parent's memory: this small parent reports what its child needed.
WITH_PEAK = """
import resource, subprocess, sys
status = subprocess.call(sys.argv[1:])
print(f"peak {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10} MB", file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.slow
def test_four_gigabytes_each_in_little_memory(environment, tmp_path):
    size = 1 << 30
    a = sparse(tmp_path / "a.npy", size, (5, size // 2, size - 1))
    b = sparse(tmp_path / "b.npy", size, (5,))
    small_parent = sys.executable, "-c", WITH_PEAK
    process, terminal = started(["compare", a, b, "--json"], environment, tmp_path, small_parent)
    with process.stdout:
        words, out = told(terminal), process.stdout.read()
    assert process.wait() == 1
    assert int(re.search(r"peak (\d+) MB", words)[1]) < 500
    assert words.count("elements a second") > 3
    record = json.loads(out)
    assert (record["size"], record["allclose"]["failing"], record["equal_bits"]) == (size, 2, size - 2)
    assert [each["index"] for each in record["worst"]] == [[size // 65536, 0], [32767, 32767]]
