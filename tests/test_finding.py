"""The index docs/finding.md: each row leads to one file, which defines the function, class or constant named."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import floatlab

ROOT = Path(__file__).resolve().parents[1]
HOUSE = Path(floatlab.__file__).parent
PAGE = ROOT / "docs" / "finding.md"
ROW = re.compile(r"^\| (?P<term>.+) \| `(?P<file>[^`]+)` \| `(?P<name>[^`]+)` \| (?P<note>.*?) ?\|$")


def table() -> list[str]:
    """Return the rows of the index, without heads of tables."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("|")]
    return [line for line in lines if line != "|---|---|---|---|" and not line.startswith("| look for |")]


def rows() -> list[re.Match[str]]:
    """Return the rows that `ROW` can read."""
    return [found for line in table() if (found := ROW.match(line))]


def sorting_key(term: str) -> str:
    """Return a term as it is sorted: without case and signs, so that `--ftz` stands under F."""
    return re.sub(r"[^a-z0-9 ]", "", term.lower()).strip()


def path_of(file: str) -> Path:
    """Return the file of a row: below the package, or below the repository."""
    return HOUSE / file if (HOUSE / file).is_file() else ROOT / file


def names_bound(node: ast.AST) -> list[str]:
    """Return the names that a statement of a module or a class defines."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    return [each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)]


@cache
def definitions(path: Path) -> frozenset[str]:
    """Return the names that a Python file defines; those in a class as `Class.name`."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        found.update(names_bound(node))
        if isinstance(node, ast.ClassDef):
            found.update(f"{node.name}.{name}" for inner in node.body for name in names_bound(inner))
    return frozenset(found)


def is_defined(name: str, path: Path) -> bool:
    """Return whether a Python file defines a name, or another file has it as a word."""
    if path.suffix == ".py":
        return name in definitions(path)
    return re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", path.read_text(encoding="utf-8")) is not None


def test_every_row_names_one_file_and_one_name():
    assert [line for line in table() if not ROW.match(line)] == []
    assert len(rows()) > 250


@pytest.mark.parametrize("file", sorted({row["file"] for row in rows()}))
def test_files_exist_and_define_the_names(file):
    path = path_of(file)
    assert path.is_file(), f"docs/finding.md names {file}"
    missing = [row["name"] for row in rows() if row["file"] == file and not is_defined(row["name"], path)]
    assert not missing, f"docs/finding.md: {file} does not define {', '.join(missing)}"


def test_terms_are_sorted_and_unique():
    terms = [row["term"] for row in rows()]
    assert terms == sorted(terms, key=lambda term: (sorting_key(term), term))
    assert len(set(terms)) == len(terms)


def test_rows_stand_under_their_letter():
    letter = ""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            letter = line.removeprefix("## ").lower()
        elif found := ROW.match(line):
            first = sorting_key(found["term"])[0]
            assert ("0 to 9" if first.isdigit() else first) == letter, found["term"]
