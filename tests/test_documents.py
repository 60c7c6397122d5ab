"""What the documents show is what the program says: every example is run.

`python -m tests.test_documents` writes the console examples anew; read the difference before committing it.
"""

import contextlib
import doctest
import io
import re
import shlex
import tempfile
from pathlib import Path

import pytest

from floatlab.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def parts(fence: str) -> list:
    """Return (the commands before it that write files, command, expected output) for every command of a fence.

    `$ floatlab … > NAME` writes a file, which the commands after it read; it shows nothing.
    """
    found, before = [], []
    for part in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
        command, _, expected = part.partition("\n")
        if WRITES.search(command):
            before.append(command)
        else:
            found.append((tuple(before), command, expected))
    return found


WRITES = re.compile(r" > (\w+\.txt)$")
FENCE = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)


def examples() -> list:
    """Return what `parts` gives for every `$ floatlab …` in a console fence."""
    return [
        pytest.param(*part, id=f"{document.name}: {part[1]}")
        for document in DOCUMENTS
        for fence in FENCE.findall(document.read_text(encoding="utf-8"))
        for part in parts(fence)
    ]


PICTURES = {
    "show-fp16.svg": "floatlab show 1.12156456132 --fp16 --svg -",
    "fma-fp16.svg": "floatlab fma 1.0009765625 1.0009765625 -1.001953125 --fp16 --svg -",
}


def answer(command: str) -> str:
    program, *words = shlex.split(command)
    assert program == "floatlab"
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main(words)
    return out.getvalue()


def answer_after(before: tuple[str, ...], command: str) -> str:
    """Return the answer where other commands have written files."""
    if not before:
        return answer(command)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for each in before:
            plain, name, _ = WRITES.split(each)
            Path(name).write_text(answer(plain), encoding="utf-8")
        return answer(command)


@pytest.mark.parametrize(("before", "command", "expected"), examples())
def test_console_examples_print_what_they_show(before, command, expected):
    assert answer_after(before, command).rstrip("\n") == expected.rstrip("\n")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_console_examples_mean_the_same_to_a_shell(document):
    for command in re.findall(r"^\$ (floatlab .*)$", document.read_text(encoding="utf-8"), re.MULTILINE):
        plain = WRITES.split(command)[0] if WRITES.search(command) else command
        signs = shlex.shlex(plain, posix=True, punctuation_chars="()<>|&;")
        signs.whitespace_split = True
        assert list(signs) == shlex.split(plain), f"{document.name}: quote what a shell would not pass on: {command}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_print_what_they_show(document):
    failed, _ = doctest.testfile(str(document), module_relative=False)
    assert not failed


@pytest.mark.parametrize(("name", "command"), PICTURES.items())
def test_pictures_are_what_the_command_draws(name, command):
    assert (ROOT / "docs" / "images" / name).read_text(encoding="utf-8") == answer(command)


def test_documents_name_files_that_exist():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"


def anew(fence: str) -> str:
    """Return a fence with the output of each of its commands written anew."""
    shown = [f"$ {command}\n" for command in re.findall(r"^\$ (.*)$", fence, re.MULTILINE) if WRITES.search(command)]
    shown += [f"$ {command}\n{answer_after(before, command)}" for before, command, _ in parts(fence)]
    return f"```console\n{''.join(shown)}```"


if __name__ == "__main__":
    for name, command in PICTURES.items():
        (ROOT / "docs" / "images" / name).write_text(answer(command), encoding="utf-8")
    for each in DOCUMENTS:
        written = FENCE.sub(lambda found: anew(found[1]), each.read_text(encoding="utf-8"))
        each.write_text(written, encoding="utf-8")
