"""Names with control characters, of files, of tensors and in arguments: every verb shows them escaped."""

import io
import os
import re
import unicodedata
from contextlib import redirect_stderr, redirect_stdout
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab.cli.main import main
from floatlab.errors import printable
from floatlab.page.text_layout import ANSI
from tests.files.making import safetensors, tensor

HOSTILE = "\x1b]0;title\x07\x1b[31m\x9b2J\x85\x7f\u202e\u2066\u200f\ufeff\u2028"
OWN_COLOURS = re.compile(rf"\x1b\[(?:0|{'|'.join(sorted(set(ANSI.values())))})m")
# Characters that a terminal interprets, reorders or does not show.
OBEYED = {"Cc", "Cf", "Cs", "Cn", "Co", "Zl", "Zp"}

pieces = st.sampled_from(["\x1b", "\x1b[31m", "\x1b[0m", "\x1b]52;c;QQ==\x07", "\x9b", "\x85", "\x90", "\u202e",
    "\u2067", "\u200f", "\u2028", "\r", "\b", "\t", "\n", "\x7f", "\udc9b", "\ufffe", "\U000e0001", "😀", "é", "a", "1",
    ".", ",", "::", "@", "[", "$", "=", ":", "-"])  # fmt: skip
names = st.lists(pieces | st.characters(exclude_characters="/\0", max_codepoint=0xFF), min_size=1, max_size=8).map(
    lambda parts: "".join(parts)[:40]
)
MANNERS = [[], ["--color", "always"], ["--ascii"], ["--json"], ["--quiet"], ["--svg", "-"], ["--width", "30"]]


def run(*words):
    """Run a command; return its status and its output."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        status = main(list(words))
    return status, out.getvalue() + err.getvalue()


def obeyed(written, coloured=False):
    """Return the characters of a text that a terminal would interpret, except line ends."""
    left = OWN_COLOURS.sub("", written) if coloured else written
    return [ch for ch in left if ch != "\n" and unicodedata.category(ch) in OBEYED]


def commands(name, folder):
    """Return commands of all verbs that contain the name, as a file, as a tensor and as an argument."""
    one = os.path.join(folder, f"{name}.npy")
    np.save(one, np.ones(3, np.float32))
    several = os.path.join(folder, f"{name}.safetensors")
    inner = name.encode("utf-8", "replace").decode()
    with open(several, "wb") as file:
        file.write(safetensors({inner: tensor(), f"{inner}b": tensor(offsets=(8, 16))}, bytes(16)))
    zipped = os.path.join(folder, f"{name}.npz")
    np.savez(zipped, **{f"{inner}a": np.ones(2)}, b=np.ones(2))
    vectors = os.path.join(folder, f"{name}.txt")
    with open(vectors, "wb") as file:
        file.write(b"3C00 3C00 4001 00\n" * 25 + f"3C00 {name}\n".encode("utf-8", "surrogateescape"))
    return [
        ["compare", one, "1,2,4"], ["compare", one, one], ["compare", several, "1,2"], ["compare", zipped, "1,2"],
        ["compare", f"{several}::{inner}", "1,2"], ["compare", f"{zipped}::{inner}a", "1,2", "--inputs", one, one],
        ["compare", name, name, "--op", name], ["compare", one, "1,2,3", "--rtol", name, "--html", name + "/x"],
        ["sum", one], ["sum", several], ["sum", one, "--schedule", name], ["sum", one, "--observed", name],
        ["dot", one, one, "--machine", name], ["matmul", zipped, one, "--backends", name],
        ["reveal", name], ["reveal", f"numpy:{name}"], ["reveal", f"{name}:sum"],
        ["reveal", "numpy.sum", "--kind", name], ["train", "network", "--configs", name],
        ["train", one, "--update", "0.1", "--steps", "3"], ["train", "1", "--update", one, "--remedies", name],
        ["train", "check", name, "1"], ["train", "underflow", one, "--scale", "2"],
        ["show", name], [name], ["show", "1", "-f", name], ["show", "1", "--like", name], ["show", "1", "-r", name],
        ["convert", name, "--through", "fp16"], ["convert", "1", "--through", name], ["formats", name],
        ["add", name, "1"], ["fma", "1", "2", name], ["block", name, "--to", "mxfp4"], ["block", "1", "--to", name],
        ["vectors", "check", "f16_add", vectors], ["vectors", "check", "f16_add", vectors, "--all"],
        ["vectors", "check", name, vectors], ["vectors", "generate", name], ["tui", name], ["tui", "--theme", name],
        ["help", name], ["show", "1", f"--{name}"], ["show", "1", "--svg", f"{one}/x"],
    ]  # fmt: skip


def check(words, settings):
    status, written = run(*words, *settings)
    assert status in (0, 1, 2, 3), (words, written)
    assert written
    assert not obeyed(written, coloured="always" in settings), (words, settings, written)


@settings(max_examples=12, deadline=None)
@given(name=names, data=st.data())
def test_no_verb_writes_what_a_terminal_would_obey(name, data):
    with TemporaryDirectory() as folder:
        for words in data.draw(st.lists(st.sampled_from(commands(name, folder)), min_size=6, max_size=6)):
            check(words, data.draw(st.sampled_from(MANNERS)) if words[0] not in ("help", "tui", "vectors") else [])


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(name=names)
def test_no_verb_at_all_writes_what_a_terminal_would_obey(name):
    with TemporaryDirectory() as folder:
        for words in commands(name, folder):
            for settings in MANNERS if words[0] not in ("help", "tui", "vectors") else [[]]:
                check(words, settings)


@pytest.mark.parametrize("settings", MANNERS, ids=lambda settings: " ".join(settings) or "text")
def test_names_of_files_are_shown_escaped(tmp_path, settings):
    path = tmp_path / f"a{HOSTILE}.npy"
    np.save(path, np.ones(3))
    status, written = run("compare", str(path), "1,2,3", *settings)
    assert status == 1
    assert not obeyed(written, coloured="always" in settings)
    if settings in ([], ["--svg", "-"]):
        assert r"a\x1b]0;title\x07\x1b[31m\x9b2J" in "".join(written.split())


def test_names_of_tensors_are_shown_escaped(tmp_path):
    path = tmp_path / "model.safetensors"
    path.write_bytes(safetensors({"w\x1b[2J\u202e": tensor(), "b": tensor(offsets=(8, 16))}, bytes(16)))
    _, written = run("compare", f"{path}::w\x1b[2J\u202e", "1,2", "--color", "always", "--width", "200")
    assert r"w\x1b[2J\u202e" in written
    assert not obeyed(written, coloured=True)
    status, written = run("sum", str(path))
    assert status == 2
    assert r"'w\x1b[2J\u202e', 'b'" in written


def test_the_last_line_of_a_check_shows_names_escaped(tmp_path):
    path = tmp_path / "v\x1b[31m.txt"
    path.write_text("3C00 3C00 4001 00\n" * 25)
    status, written = run("vectors", "check", "f16_add", str(path))
    assert status == 1
    assert rf"{tmp_path}/v\x1b[31m.txt: 5 more lines differ; --all writes them" in written
    assert not obeyed(written)


def test_lines_of_vectors_are_shown_escaped(tmp_path):
    path = tmp_path / "v.txt"
    path.write_bytes(b"3C00 3C00 \x1b[31m4001 00\n")
    _, written = run("vectors", "check", "f16_add", str(path))
    assert not obeyed(written)


def test_pictures_keep_every_character_that_is_one(tmp_path):
    path = tmp_path / "a😀\x1b\x9b\ue000.npy"
    np.save(path, np.ones(3))
    page, picture = tmp_path / "page.html", tmp_path / "page.svg"
    assert run("compare", str(path), "1,1,1", "--svg", str(picture), "--html", str(page))[0] == 0
    shown = r"a😀\x1b\x9b\ue000.npy"
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    assert shown in root[0].text  # the title
    assert shown in "".join("".join(root[2].itertext()).split("\n"))
    assert page.read_text(encoding="utf-8").count("a😀\\x1b") >= 3  # both titles, and the page


@settings(max_examples=200, deadline=None)
@given(st.text())
def test_what_is_printable_stays_and_nothing_else(text):
    shown = printable(text)
    assert not obeyed(shown)
    assert "\n" not in shown
    assert text.isprintable() == (shown == text) or "\N{NO-BREAK SPACE}" in text
    assert printable(shown) == shown
