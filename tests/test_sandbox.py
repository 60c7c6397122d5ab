"""A confined process: it can read files of one folder or none, and cannot write files or import typed names."""

import os
import sys

import numpy as np
import pytest

from floatlab import sandbox
from floatlab.arrays.container.storage import save
from floatlab.atomic_write import replacing
from floatlab.cli.main import main
from floatlab.errors import FloatlabError, RefusedError
from floatlab.files import open_array
from floatlab.files.listing import completed, entries
from floatlab.reduce.reveal.targets import target_of
from floatlab.tui.app.settings import session_file, write_session
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question


@pytest.fixture
def places(tmp_path):
    """Make a folder to serve, and secret files beside it."""
    inside, outside = tmp_path / "served", tmp_path / "secret"
    (inside / "sub").mkdir(parents=True)
    outside.mkdir()
    (tmp_path / "served2").mkdir()  # its name begins with the name of the served folder
    for folder in (inside, inside / "sub", outside, tmp_path / "served2"):
        np.save(folder / "a.npy", np.arange(3.0))
        np.savez(folder / "b.npz", x=np.ones(2), y=np.ones(2))
        (folder / "t.txt").write_text("1 2 3\n")
    (inside / "link.npy").symlink_to(outside / "a.npy")
    (inside / "link.npz").symlink_to(outside / "b.npz")
    (inside / "away").symlink_to(outside)
    (inside / "within.npy").symlink_to("sub/a.npy")
    return inside, outside


INSIDE = ["a.npy", "./sub/../a.npy", "sub/a.npy", "b.npz::x", "t.txt", "within.npy"]
OUTSIDE = ["../secret/a.npy", "../secret/b.npz::x", "../secret/t.txt", "../secret/none.npy", "link.npy", "link.npz::x",
    "away/a.npy", "away/none.npy", "away/t.txt", "../served2/a.npy", "sub/../../secret/a.npy", "/etc/hostname", "/etc",
    "/proc/self/environ", "..", "../none", "/none.txt"]  # fmt: skip


def said(word):
    """Return the error message for reading an array."""
    with pytest.raises(FloatlabError) as caught, open_array(word):
        pass
    return str(caught.value)


@pytest.mark.parametrize("word", INSIDE)
def test_files_of_the_folder_are_read(places, confine, word):
    confine(str(places[0]))
    with open_array(word) as source:
        assert source.size > 1
    with open_array(str(places[0] / word)) as source:
        assert source.size > 1


@pytest.mark.parametrize("word", OUTSIDE)
def test_no_others_are_and_nothing_is_said_of_them(places, confine, word):
    confine(str(places[0]))
    assert "lies outside the folder whose files may be read here" in said(word)
    with pytest.raises(RefusedError):
        open_array(os.path.join(str(places[0]), word)).close() if not word.startswith("/") else open_array(word)
    assert completed(word) is None
    with pytest.raises(FloatlabError):
        entries(word.partition("::")[0])


@pytest.mark.parametrize("word", [*INSIDE, *OUTSIDE, "a", "nowhere.npy", "", "::", "x::y"])
def test_without_a_folder_there_are_no_files(places, confine, monkeypatch, word):
    monkeypatch.chdir(places[0])
    confine()
    assert said(word).endswith("files cannot be read here (tui --serve --files DIR makes DIR readable)")
    assert completed(word) is None
    with pytest.raises(RefusedError):
        entries(word)
    with pytest.raises(RefusedError):
        entries("")


@pytest.mark.parametrize("word", ["1,2,3", "1.5", "random:normal:3:seed=1", "0.1,2@fp16"])
def test_arrays_that_are_no_files_are_read_all_the_same(confine, word):
    confine()
    with open_array(word) as source:
        assert source.size >= 1


def test_the_list_of_a_folder_shows_no_way_out(places, confine):
    confine(str(places[0]))
    assert [each.name for each in entries("")] == ["sub/", "a.npy", "b.npz", "t.txt", "within.npy"]
    assert [each.word for each in entries("b.npz")] == ["b.npz::x", "b.npz::y"]
    assert completed("wi") == "within.npy"
    assert completed("li") is None


def test_every_verb_that_reads_is_confined(places, confine):
    confine(str(places[0]))
    for verb, values, options in (
        ("compare", ("../secret/a.npy", "a.npy"), {}),
        ("compare", ("a.npy", "a.npy"), {"inputs": ("link.npz::x", "a.npy")}),
        ("compare", ("/etc/hostname", "1"), {"dtype": "int8"}),
        ("compare", ("../secret", "../secret"), {"only": "*"}),
        ("compare", ("b.npz", "../secret/a.npy"), {"only": "*"}),
        ("audit", ("../secret/m.safetensors",), {}),
        ("sum", ("link.npy",), {}),
        ("matmul", ("1,2;3,4", "1,2;3,4"), {"observed": "../secret/a.npy"}),
        ("dot", ("a.npy", "away/a.npy"), {}),
        ("train", ("../secret/a.npy",), {"update": "0.1"}),
        ("train", ("1",), {"update": "../secret/a.npy"}),
        ("train", ("underflow", "../secret/t.txt"), {}),
    ):
        with pytest.raises(RefusedError, match="lies outside the folder"):
            answer_question(Question(verb, values).having(**options))


@pytest.fixture
def evil(tmp_path, monkeypatch):
    """Put a module on the path that leaves a mark when it is imported."""
    (tmp_path / "evil_hook.py").write_text(
        f"open({str(tmp_path / 'mark')!r}, 'w').close()\ndef sum(*x): return 1.0\ndef f(x): return x\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "mark"
    sys.modules.pop("evil_hook", None)


@pytest.mark.parametrize(
    ("verb", "values"),
    [
        ("reveal", ("evil_hook:sum",)),
        ("reveal", ("numpy:sum",)),
        ("reveal", ("numpy.f2py.os.system",)),
        ("reveal", ("numpy.ctypeslib.load_library",)),
        ("reveal", ("numpy.testing.sys.exit",)),
        ("reveal", ("numpy.fromfile",)),
        ("train", ("check", "evil_hook:f", "1")),
        ("train", ("check", "math:atan", "1")),
    ],
)
def test_nothing_is_imported_by_a_name_that_was_typed(confine, evil, verb, values):
    confine()
    with pytest.raises(RefusedError, match="is refused here"):
        answer_question(Question(verb, values))
    assert not evil.exists()
    assert "evil_hook" not in sys.modules


def test_that_module_would_be_imported_otherwise(evil):
    with pytest.raises(FloatlabError):
        answer_question(Question("reveal", ("evil_hook:nothing",)))
    assert evil.exists()


def test_targets_of_an_observed_sum_are_confined(confine, evil):
    confine()
    question = Question("dot", ("1,2", "3,4")).having(observed="11", targets=("evil_hook:sum",))
    with pytest.raises(RefusedError, match="is refused here"):
        answer_question(question)
    assert not evil.exists()


def test_the_usual_functions_of_libraries_are_asked(confine):
    confine()
    assert target_of("numpy.dot").kind == "dot"


def test_nothing_is_written(places, confine, monkeypatch):
    inside = places[0]
    monkeypatch.setenv("XDG_STATE_HOME", str(inside / "state"))
    confine(str(inside))
    before = sorted(os.listdir())
    with pytest.raises(RefusedError, match="cannot write files"), replacing("new"):
        pass
    with pytest.raises(RefusedError):
        save("new.npz", np.ones(3))
    write_session({"questions": {}})
    assert not session_file().exists()
    assert main(["show", "1.5", "--svg", "picture.svg"]) == 2
    assert sorted(os.listdir()) == before


def test_it_is_for_good(places, confine):
    confine(str(places[0]))
    for again in (None, "/", str(places[1])):
        with pytest.raises(RefusedError, match="confined already"):
            confine(again)
    assert sandbox.confined()
    assert "lies outside" in said("../secret/a.npy")
    os.chdir(places[1])  # changing the working directory does not help
    assert "lies outside" in said("a.npy")


def test_a_folder_that_is_none(tmp_path, confine):
    with pytest.raises(OSError, match="No such file"):
        confine(str(tmp_path / "nowhere"))
    assert not sandbox.confined()


def test_the_whole_file_system_may_be_served(places, confine):
    confine("/")
    with open_array(str(places[1] / "a.npy")) as source:
        assert source.size == 3


def test_a_crash_leaves_no_file(confine, monkeypatch, capsys, tmp_path):
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr("floatlab.verbs.show.answer.answers", lambda *_: 1 / 0)
    assert main(["show", "1"]) == 70
    assert len(os.listdir(tmp_path)) == 1
    confine()
    assert main(["show", "1"]) == 70
    assert len(os.listdir(tmp_path)) == 1
    assert "these words" in capsys.readouterr().err
