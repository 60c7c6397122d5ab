"""The rules of the code: layers, sizes, the modules that may import, print and open files, and the public names.

Known violations are listed in `tests/house_debts.py`. A list may only shrink: a new violation fails, and so does an
entry that is no longer true. `python -m tests.test_house` removes such entries; run `ruff format` after it.
"""

import ast
import inspect
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

import floatlab
from tests import house_debts as debts

HOUSE = Path(floatlab.__file__).parent
MODULES = sorted(HOUSE.rglob("*.py"))
TEXTS = {path: path.read_text(encoding="utf-8") for path in MODULES}
SOURCES = [*MODULES, *HOUSE.rglob("*.c"), *HOUSE.rglob("*.h")]

MOST_LINES, MOST_FILES = 400, 16
# The modules that may open files; all other modules call these.
OPENERS = ("cli", "files", "vectors", "atomic_write.py", "arrays/container/storage.py", "tui/app/settings.py")
# The modules that may import a framework, but only inside a function.
FRAMEWORKS = {"torch", "jax", "cupy", "tensorflow"}
FRAMEWORK_USERS = ("other_libraries.py", "reduce/reveal/targets.py", "reduce/timing", "arrays/container/coded.py")
# Rooms that must not import NumPy: those below the arrays, and those that only draw or write.
WITHOUT_NUMPY = ("formats", "numbers", "arith", "vectors", "page", "wire", "cli")
# Layers 0 and 1, where a plain import for types alone would make `floatlab show` start later.
LOWEST = ("__init__.py", "formats", "numbers", "record.py", "errors.py", "presenter.py", "fpmode.py", "atomic_write.py")


@cache
def trees() -> dict[Path, ast.Module]:
    """Return the syntax tree of each module, parsed when a test of this file first needs them."""
    return {path: ast.parse(text) for path, text in TEXTS.items()}


def place(path: Path) -> str:
    """Return a file's path inside the package, with slashes."""
    return path.relative_to(HOUSE).as_posix()


def lies_in(path: Path, places: tuple[str, ...]) -> bool:
    """Return whether a file is one of these files, or is in one of these folders."""
    return any(place(path) == name or place(path).startswith(f"{name}/") for name in places)


def module_name(path: Path) -> str:
    parts = path.relative_to(HOUSE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {module_name(path): path for path in MODULES}


@cache
def calls(path: Path) -> frozenset[str]:
    """Return what a module calls, as its text: `print`, `os.open`, `path.read_text`."""
    return frozenset(ast.unparse(node.func) for node in ast.walk(trees()[path]) if isinstance(node, ast.Call))


def methods(path: Path) -> set[str]:
    """Return the names of all methods that a module calls."""
    return {call.rpartition(".")[2] for call in calls(path) if "." in call}


@cache
def imports(path: Path) -> frozenset[str]:
    """Return what a module imports anywhere, as dotted names."""
    return frozenset(name for node in ast.walk(trees()[path]) for name in imported_names(node))


def imported_names(node: ast.AST) -> list[str]:
    """Return what one statement imports, as dotted names, also where it calls `import_module`."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module") and node.args:
        return [str(node.args[0].value)] if isinstance(node.args[0], ast.Constant) else []
    return []


def import_graph() -> dict[str, set[str]]:
    """Return the modules of the package that each module imports anywhere, also in functions and for types only.

    `floatlab/__init__.py` is omitted: it names all public subpackages, but imports them only when they are used.
    """
    graph: dict[str, set[str]] = {}
    for name, path in NAMES.items():
        found = {each if each in NAMES else each.rpartition(".")[0] for each in imports(path)}
        graph[name] = {each for each in found if each in NAMES and each not in (name, "floatlab")}
    del graph["floatlab"]
    return graph


def circles(graph: dict[str, set[str]]) -> set[frozenset[str]]:
    """Return the sets of modules that import each other, directly or by way of others (Tarjan's algorithm)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: set[frozenset[str]] = set()

    def visit(name: str) -> None:
        number[name] = lowest[name] = len(number)
        stack.append(name)
        for other in graph[name]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[name] = min(lowest[name], lowest[other])
        if lowest[name] == number[name]:
            place_on_stack = stack.index(name)
            members = frozenset(stack[place_on_stack:])
            del stack[place_on_stack:]
            if len(members) > 1:
                found.add(members)

    for name in graph:
        if name not in number:
            visit(name)
    return found


def shared_class_names() -> set[str]:
    """Return the names that several public classes of the package have."""
    counted = Counter(
        node.name
        for tree in trees().values()
        for node in tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name for name, count in counted.items() if count > 1}


def tall_files() -> set[str]:
    return {place(path) for path in SOURCES if len(path.read_text(encoding="utf-8").splitlines()) > MOST_LINES}


def wide_folders() -> set[str]:
    counted = Counter(path.parent for path in SOURCES)
    return {place(folder) for folder, count in counted.items() if count > MOST_FILES}


def lines_with_any() -> int:
    def uses(node: ast.AST) -> bool:
        return (isinstance(node, ast.Name) and node.id == "Any") or (isinstance(node, ast.alias) and node.name == "Any")

    return sum(len({node.lineno for node in ast.walk(tree) if uses(node)}) for tree in trees().values())


def loaded_by_show() -> set[str]:
    """Return the modules of the package that `floatlab show` loads."""
    loaded = imported_by(answering(["show", "1.5", "--fp16"]))
    return {name for name in loaded if name.split(".")[0] == "floatlab"}


def guarded_modules() -> set[str]:
    """Return the files that import for types alone although `floatlab show` starts without them."""
    needed = loaded_by_show()
    return {
        place(path)
        for name, path in NAMES.items()
        if "TYPE_CHECKING = False" in TEXTS[path] and name not in needed and not lies_in(path, LOWEST)
    }


def untold_functions() -> set[str]:
    """Return the public functions whose docstring lacks a section, or lacks a parameter in the section Parameters."""
    untold = set()
    for room in (floatlab, floatlab.arrays, floatlab.training):
        for name in room.__all__:
            function = inspect.unwrap(getattr(room, name))
            if not inspect.isfunction(function):
                continue
            sections = re.split(r"^(\w+)\n-+$", inspect.getdoc(function) or "", flags=re.MULTILINE)
            told = dict(zip(sections[1::2], sections[2::2], strict=True))
            listed = re.findall(r"^(\S[^:\n]*?)(?: :.*)?$", told.get("Parameters", ""), re.MULTILINE)
            names = {each.strip(" *") for line in listed for each in line.split(",")}
            if not {"Returns", "Examples"} <= told.keys() or not inspect.signature(function).parameters.keys() <= names:
                untold.add(f"{room.__name__}.{name}")
    return untold


def answering(command: list[str]) -> str:
    """Return a script that answers a command and discards the answer."""
    return (
        "from floatlab.cli.main import main\n"
        f"with contextlib.redirect_stdout(io.StringIO()): assert main({command!r}) == 0"
    )


def imported_by(script: str) -> set[str]:
    """Return the modules that a process has imported after a script."""
    script = f"import sys, contextlib, io\n{script}\nsys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stderr.split())


MEASURED = {
    "CIRCLES": lambda: circles(import_graph()),
    "SHARED_CLASS_NAMES": shared_class_names,
    "TALL_FILES": tall_files,
    "WIDE_FOLDERS": wide_folders,
    "UNTOLD_FUNCTIONS": untold_functions,
}
COUNTED = {
    "LINES_WITH_ANY": lines_with_any,
    "GUARDED_MODULES": lambda: len(guarded_modules()),
}


def is_owed(debt: str, breach: str | frozenset[str]) -> bool:
    """Return whether a violation is on the list, or is part of a larger cycle that is."""
    return any(breach == entry or (debt == "CIRCLES" and breach < entry) for entry in getattr(debts, debt))


@pytest.mark.parametrize("debt", MEASURED)
def test_what_the_house_owes_only_shrinks(debt):
    today = MEASURED[debt]()
    assert [each for each in today if not is_owed(debt, each)] == [], f"{debt}: new breaches of a rule"
    gone = getattr(debts, debt) - today
    assert gone == set(), f"{debt}: no longer true; python -m tests.test_house takes them off the list"


@pytest.mark.parametrize("debt", COUNTED)
def test_counts_only_shrink(debt):
    assert COUNTED[debt]() <= getattr(debts, debt)


def test_circles_of_imports_are_found():
    graph = {"a": {"b"}, "b": {"c", "d"}, "c": {"a"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert circles(graph) == {frozenset("abc"), frozenset("de")}


def test_layers():
    """The contracts in pyproject.toml: imports go down only."""
    cli = pytest.importorskip("importlinter.cli")
    settings = HOUSE.parent / "pyproject.toml"
    if not settings.exists():
        pytest.skip("there is no pyproject.toml beside the package")
    assert cli.lint_imports(config_filename=str(settings), no_cache=True) == 0


def test_only_the_command_line_prints():
    assert [place(path) for path in MODULES if not lies_in(path, ("cli",)) and "print" in calls(path)] == []


def test_files_are_opened_only_where_files_are_the_business():
    openers, by_path = {"open", "os.open", "os.fdopen"}, {"read_text", "read_bytes", "write_text", "write_bytes"}
    others = [path for path in MODULES if not lies_in(path, OPENERS)]
    assert [place(path) for path in others if calls(path) & openers or methods(path) & by_path] == []


def test_textual_is_known_to_the_explorer_only():
    others = (path for path in MODULES if not lies_in(path, ("tui",)))
    assert [place(path) for path in others if "textual" in packages(imports(path))] == []


def test_frameworks_are_imported_inside_functions_and_in_few_places():
    for path, tree in trees().items():
        allowed = lies_in(path, FRAMEWORK_USERS)
        assert allowed or not FRAMEWORKS & packages(imports(path)), place(path)
        assert not FRAMEWORKS & top_packages(tree.body), f"{place(path)} imports a framework as it starts"


def test_rooms_below_the_arrays_start_without_numpy():
    rooms = [path for path in MODULES if lies_in(path, WITHOUT_NUMPY)]
    assert [place(path) for path in rooms if "numpy" in top_packages(trees()[path].body)] == []


def packages(names) -> set[str]:
    """Return the packages of these modules."""
    return {name.split(".")[0] for name in names}


def top_packages(nodes) -> set[str]:
    """Return the packages that these statements import."""
    return packages(name for node in nodes for name in imported_names(node))


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
    heavy = {"numpy", "rich", "textual", "dataclasses", "typing", "ml_dtypes", "torch", "inspect", "ctypes"}
    assert not heavy & imported_by(answering(command))


def test_importing_the_package_opens_no_room():
    assert not {name for name in imported_by("import floatlab") if name.startswith("floatlab.")}


def test_the_face_shows_what_it_says():
    assert set(floatlab.__all__) == set(floatlab._ROOM_OF)
    for name in floatlab.__all__:
        assert getattr(floatlab, name) is not None
    assert set(floatlab.__all__) <= set(dir(floatlab))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        floatlab.nonsense  # noqa: B018


def _is_overload(node: ast.AST) -> bool:
    """Return whether a function is only an overload, which precedes the documented function."""
    return any(isinstance(each, ast.Name) and each.id == "overload" for each in getattr(node, "decorator_list", ()))


def test_every_public_function_says_what_it_does():
    silent = []
    for path, module in trees().items():
        classes = [node for node in module.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
        for node in [*module.body, *(inner for each in classes for inner in each.body)]:
            public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if public and not ast.get_docstring(node) and not _is_overload(node):
                silent.append(f"{place(path)}:{node.lineno} {node.name}")
    assert silent == []


def written(value: object) -> str:
    """Return a list of debts as Python."""
    if isinstance(value, int):
        return str(value)
    if not value:
        return "set()"
    entries = [
        f"    frozenset({{{', '.join(map(repr, sorted(each)))}}}),"
        for each in sorted(value, key=sorted)
        if isinstance(each, frozenset)
    ] or [f"    {name!r}," for name in sorted(value)]
    return "\n".join(["{", *entries, "}"]).replace("'", '"')


def shrink() -> None:
    """Remove the entries of `tests/house_debts.py` that are no longer true."""
    path = Path(debts.__file__)
    text = path.read_text(encoding="utf-8")
    left = {name: {each for each in measure() if is_owed(name, each)} for name, measure in MEASURED.items()}
    left |= {name: min(getattr(debts, name), count()) for name, count in COUNTED.items()}
    for name, value in left.items():
        start = re.search(rf"^{name}(?:: [^=\n]+)? = ", text, re.MULTILINE).end()
        end = (
            re.compile(r"(?:\{.*?^\}|set\(\)|\d+)(?:  # fmt: skip)?$", re.MULTILINE | re.DOTALL)
            .match(text, start)
            .end()
        )
        text = text[:start] + written(value) + text[end:]
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    shrink()


def test_faces_and_their_stubs_name_the_same():
    for room in ("arrays", "reduce", "training"):
        stub = (HOUSE / room / "__init__.pyi").read_text(encoding="utf-8")
        names = [
            name.asname for node in ast.parse(stub).body if isinstance(node, ast.ImportFrom) for name in node.names
        ]
        assert sorted(names) == import_module(f"floatlab.{room}").__all__, room
