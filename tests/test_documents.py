"""What the documents show is what the program says: every example is run.

`python -m tests.test_documents` writes the console examples anew; read the difference before committing it.
"""

import contextlib
import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from floatlab.cli.main import main

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def examples() -> list:
    """Return (document, command, expected output) for every `$ floatlab …` in a console fence."""
    found = []
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        for fence in re.findall(r"^```console\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
            for part in re.split(r"^\$ ", fence, flags=re.MULTILINE)[1:]:
                command, _, expected = part.partition("\n")
                found.append(pytest.param(command, expected, id=f"{document.name}: {command}"))
    return found


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


@pytest.mark.parametrize(("command", "expected"), examples())
def test_console_examples_print_what_they_show(command, expected):
    assert answer(command).rstrip("\n") == expected.rstrip("\n")


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


if __name__ == "__main__":
    for name, command in PICTURES.items():
        (ROOT / "docs" / "images" / name).write_text(answer(command), encoding="utf-8")
    for each in DOCUMENTS:
        written = re.sub(
            r"^```console\n\$ (.*)\n(?:.*\n)*?```$",
            lambda fence: f"```console\n$ {fence[1]}\n{answer(fence[1])}```",
            each.read_text(encoding="utf-8"),
            flags=re.MULTILINE,
        )
        each.write_text(written, encoding="utf-8")
