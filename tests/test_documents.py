"""What the documents show is what the program says: every console example is run."""

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


@pytest.mark.parametrize(("command", "expected"), examples())
def test_console_examples_print_what_they_show(command, expected, capsys):
    program, *words = shlex.split(command)
    assert program == "floatlab"
    main(words)
    assert capsys.readouterr().out.rstrip("\n") == expected.rstrip("\n")


def test_documents_name_files_that_exist():
    for document in DOCUMENTS:
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name} points to {target}"
