"""The rules of the house: who may import, print and open what, and what the face shows."""

import ast
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import floatlab

HOUSE = Path(floatlab.__file__).parent
MODULES = sorted(HOUSE.rglob("*.py"))


def calls(path: Path, name: str) -> list[int]:
    """Return the lines on which a module calls a built-in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name
    ]


def imported_by(command: str) -> set[str]:
    """Return the modules that a process has imported after a command."""
    script = f"import sys, contextlib, io\n{command}\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


def room_of(path: Path) -> str:
    """Return the room of the house in which a module lies, or its own name where it stands in the package itself."""
    return path.relative_to(HOUSE).parts[0]


def names_of(paths) -> list[str]:
    return [str(path.relative_to(HOUSE)) for path in paths]


def test_only_the_command_line_prints():
    assert names_of(path for path in MODULES if room_of(path) != "cli" and calls(path, "print")) == []


def test_files_are_opened_only_where_files_are_the_business():
    allowed = [HOUSE / "tui" / "app" / "settings.py", HOUSE / "arrays" / "container" / "storage.py"]
    others = (path for path in MODULES if room_of(path) not in ("cli", "files", "vectors") and path not in allowed)
    assert names_of(path for path in others if calls(path, "open")) == []


def test_textual_is_known_to_the_explorer_only():
    textual = re.compile(r"^\s*(from|import) textual", re.MULTILINE)
    others = (path for path in MODULES if room_of(path) != "tui")
    assert names_of(path for path in others if textual.search(path.read_text(encoding="utf-8"))) == []


def test_a_room_is_a_screenful_of_ideas():
    assert names_of(path for path in MODULES if len(path.read_text(encoding="utf-8").splitlines()) > 450) == []


@pytest.mark.parametrize(
    "command",
    [
        ["show", "1.5", "--fp16", "--interval"],
        ["show", "bits:0x38", "--dialects"],
        ["show", "1/3", "--fp16", "--json"],
        ["convert", "1.1", "--through", "fp32,fp16"],
        ["formats", "e4m3"],
        ["add", "1.125", "0.1", "--fp16"],
        ["fma", "1.1", "1.2", "-1.3", "--fp16", "--json"],
        ["cmp", "1", "2", "--fp16"],
        ["toint", "2.5", "--fp16"],
        ["block", "957", "0.1", "--to", "mxfp4"],
        ["block", "957", "0.1", "--to", "nvfp4", "--json"],
    ],
    ids=" ".join,
)
def test_the_scalar_verbs_start_light(command):
    script = (
        "from floatlab.cli.main import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert main({command!r}) == 0"
    )
    heavy = {"numpy", "rich", "textual", "dataclasses", "typing", "ml_dtypes", "torch", "inspect", "ctypes"}
    assert not heavy & imported_by(script)


def test_importing_the_package_opens_no_room():
    assert not {name for name in imported_by("import floatlab") if name.startswith("floatlab.")}


def test_the_face_shows_what_it_says():
    assert set(floatlab.__all__) == set(floatlab._ROOM_OF)
    for name in floatlab.__all__:
        assert getattr(floatlab, name) is not None
    assert set(floatlab.__all__) <= set(dir(floatlab))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        floatlab.nonsense  # noqa: B018


def test_every_public_function_says_what_it_does():
    silent = []
    for path in MODULES:
        module = ast.parse(path.read_text(encoding="utf-8"))
        classes = [node for node in module.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for node in [*module.body, *(inner for each in classes for inner in each.body)]:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node):
                silent.append(f"{path.relative_to(HOUSE)}:{node.lineno} {node.name}")
    assert silent == []


def test_faces_and_their_stubs_name_the_same():
    for room in ("arrays", "training"):
        stub = (HOUSE / room / "__init__.pyi").read_text(encoding="utf-8")
        names = [
            name.asname for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom) for name in node.names
        ]
        assert sorted(names) == import_module(f"floatlab.{room}").__all__, room
