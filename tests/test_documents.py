"""The examples in the documents: each is run, and its output must be that of the program.

`python -m tests.test_documents` writes the console examples anew; read the difference before committing it.
"""

import contextlib
import doctest
import importlib
import io
import re
import shlex
import tempfile
from pathlib import Path

import pytest

import floatlab
from floatlab.cli.main import main
from tests.auditing.making import example_folder, needs_examples

ROOT = Path(__file__).resolve().parents[1]
HOUSE = Path(floatlab.__file__).parent
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


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
    """Return the results of `parts` for all console fences."""
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
    where = example_folder() if needs_examples(command) else contextlib.nullcontext()
    with where, contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        main(words)
    return out.getvalue()


def answer_after(before: tuple[str, ...], command: str) -> str:
    """Return the output of a command after other commands that write files."""
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


LINK = re.compile(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)")


def linked(document: Path) -> set[Path]:
    """Return the files that a document points to."""
    targets = LINK.findall(document.read_text(encoding="utf-8"))
    return {(document.parent / target).resolve() for target, _ in targets if target}


def anchors(document: Path) -> set[str]:
    """Return the names by which others point to a document's headings."""
    titles = re.findall(r"^#+ (.*)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_somewhere(document):
    for target, anchor in LINK.findall(document.read_text(encoding="utf-8")):
        file = document.parent / target if target else document
        assert file.exists(), f"{document.name} points to {target}"
        assert not anchor or anchor in anchors(file), f"{document.name} points to {target}#{anchor}"


def test_the_index_leads_to_every_page():
    assert set(DOCUMENTS) - linked(ROOT / "docs" / "index.md") == {ROOT / "docs" / "index.md"}


def test_the_index_lists_the_decisions_by_title():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    for path in (ROOT / "docs" / "decisions").glob("*.md"):
        number, _, title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ").partition(". ")
        assert path.name.startswith(f"{int(number):04}-")
        assert f"| [{number}](decisions/{path.name}) | {title} |" in index, path.name


def test_the_first_page_is_short():
    assert len((ROOT / "README.md").read_bytes()) <= 6 * 1024


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_files_and_modules_that_documents_name_exist(document):
    """Paths such as `reduce/plan/` are those of the package."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for path in re.findall(r"`([\w.]+(?:/[\w.-]+)*/(?:[\w-]+\.(?:py|c|h))?)`", text):
        assert (ROOT / path).exists() or (HOUSE / path).exists(), f"{document.name} names {path}"
    for name in re.findall(r"`(floatlab(?:\.\w+)+)", text):
        if not name.endswith((".json", ".toml")):
            assert is_importable(name), f"{document.name} names {name}"


def is_importable(name: str) -> bool:
    """Return whether a dotted name is a module, or a name that a module or a class defines."""
    found = floatlab
    for part in name.split(".")[1:]:
        try:
            found = getattr(found, part)
        except AttributeError:
            try:
                found = importlib.import_module(f"{found.__name__}.{part}")
            except ImportError:
                return False
    return True


def test_commands_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for name in re.findall(r"\bmake ([a-z-]+)", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")):
        assert re.search(rf"^{name}:", makefile, re.MULTILINE), f"CONTRIBUTING.md says make {name}"


@pytest.mark.parametrize(
    "path", [".pre-commit-config.yaml", *(f".github/workflows/{name}.yml" for name in ("tests", "lint", "wheels"))]
)
def test_settings_of_other_programs_are_yaml(path):
    yaml = pytest.importorskip("yaml")
    settings = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    if path.startswith(".github"):
        assert settings["name"]
        for job in settings["jobs"].values():
            assert job["runs-on"]
            assert all(("uses" in step) != ("run" in step) for step in job["steps"])
    else:
        assert {hook["id"] for hook in settings["repos"][0]["hooks"]} == {"ruff", "ruff-format", "mypy"}


def anew(fence: str) -> str:
    """Return a fence with the output of its commands updated."""
    shown = [f"$ {command}\n" for command in re.findall(r"^\$ (.*)$", fence, re.MULTILINE) if WRITES.search(command)]
    shown += [f"$ {command}\n{answer_after(before, command)}" for before, command, _ in parts(fence)]
    return f"```console\n{''.join(shown)}```"


if __name__ == "__main__":
    for name, command in PICTURES.items():
        (ROOT / "docs" / "images" / name).write_text(answer(command), encoding="utf-8")
    for each in DOCUMENTS:
        written = FENCE.sub(lambda found: anew(found[1]), each.read_text(encoding="utf-8"))
        each.write_text(written, encoding="utf-8")
