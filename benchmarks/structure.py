"""How large the package is, and how much of it one question goes through: `python -m benchmarks.structure`.

Prints lines of code a room (no docstrings, comments or blank lines), the largest files and folders, mentions of `Any`,
and for a few commands the modules that they load and the files of the package in which they enter a function.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from pathlib import Path

HOUSE = Path(__file__).resolve().parents[1] / "floatlab"
COMMANDS = {
    "show": ["show", "1.12156456132", "--fp16"],
    "compare": ["compare", "0.1,0.2,0.3", "0.1,0.2,0.30000001", "--fp32"],
    "train": ["train", "1.125", "--update", "0.00041999", "--steps", "101"],
}
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_COUNTED = """
import contextlib, io, sys
entered = set()
def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        entered.add(frame.f_code.co_filename)
from floatlab.cli.main import main
sys.setprofile(enter)
with contextlib.redirect_stdout(io.StringIO()):
    main({words!r})
sys.setprofile(None)
loaded = [name for name in sys.modules if name.split(".")[0] == "floatlab"]
print(len(loaded), len({{file for file in entered if file.startswith({house!r})}}))
"""


def code_lines(text: str) -> int:
    """Return how many lines of a module hold code: neither blank, nor comment, nor docstring.

    >>> code_lines('"One."\\n\\nx = (1,\\n     2)  # two\\n# three\\n')
    2
    """
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and type(first.value.value) is str:
                docstrings.update(range(first.lineno, (first.end_lineno or 0) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - docstrings)


def paths_of_a_question(words: list[str]) -> tuple[int, int]:
    """Return how many modules of the package a command loads, and in how many of its files it enters a function."""
    script = _COUNTED.format(words=words, house=str(HOUSE))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE.parent)
    loaded, entered = map(int, done.stdout.split())
    return loaded, entered


def main() -> None:
    """Print today's figures."""
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(HOUSE.rglob("*.py"))}
    lines = {path: code_lines(text) for path, text in texts.items()}
    rooms: Counter[str] = Counter()
    folders: Counter[Path] = Counter()
    for path, count in lines.items():
        inside = path.relative_to(HOUSE).parts
        rooms[inside[0] if len(inside) > 1 else "."] += count
        folders[path.parent.relative_to(HOUSE)] += 1
    print(f"lines of code: {sum(lines.values()):,} in {len(lines)} files")
    for room, count in sorted(rooms.items()):
        print(f"  {room:<12}{count:>7,}")
    tall = {path: text.count("\n") for path, text in texts.items() if text.count("\n") > 400}
    print(f"files over 400 lines: {', '.join(f'{p.relative_to(HOUSE)} {n}' for p, n in tall.items()) or 'none'}")
    wide = {folder: count for folder, count in folders.items() if count > 16}
    print(f"folders over 16 files: {', '.join(f'{f} {n}' for f, n in wide.items()) or 'none'}")
    any_lines = sum(bool(re.search(r"\bAny\b", line)) for text in texts.values() for line in text.splitlines())
    print(f"lines with Any: {any_lines}")
    print(f"{'':<10}{'modules loaded':>16}{'files entered':>16}")
    for name, words in COMMANDS.items():
        loaded, entered = paths_of_a_question(words)
        print(f"{name:<10}{loaded:>16}{entered:>16}")


if __name__ == "__main__":
    main()
