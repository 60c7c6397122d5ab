"""The size of the package, and the part of it that single commands use: `python -m benchmarks.structure`.

Prints the lines of code of each subpackage (without docstrings, comments and blank lines), files and folders beyond the
size limits, and the lines with `Any`. For some commands, it also prints the number of modules that they load, and the
number of files of the package in which they call a function. Goals are beside the numbers, and `!` marks a number that
misses its goal.
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
MOST_LINES, MOST_FILES = 400, 16  # limits of a file and of a folder, which tests/test_house.py checks
MOST_ANY = 250  # a goal: lines with Any
COMMANDS = {
    "show": ["show", "1.12156456132", "--fp16"],
    "compare": ["compare", "0.1,0.2,0.3", "0.1,0.2,0.30000001", "--fp32"],
    "train": ["train", "1.125", "--update", "0.00041999", "--steps", "101"],
}
# Goals: most modules loaded, and most files entered; None if there is no goal.
COMMAND_GOALS = {"show": (35, 22), "compare": (None, 35), "train": (75, 45)}
_NO_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
_COUNTED = """
import contextlib, inspect, io, sys
entered = set()
def enter(frame, event, argument):
    if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:  # a function; not a module, not a class
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
    """Return the number of lines of a module that contain code: neither blank, nor comment, nor docstring.

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


def modules_and_files(words: list[str]) -> tuple[int, int]:
    """Return the number of modules of the package that a command loads, and of files in which it calls a function."""
    script = _COUNTED.format(words=words, house=str(HOUSE))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=HOUSE.parent)
    loaded, entered = map(int, done.stdout.split())
    return loaded, entered


def with_goal(figure: int, goal: int | None) -> str:
    """Return a number and its goal as text, with a mark if the number misses the goal.

    >>> with_goal(865, 250), with_goal(30, 35), with_goal(7, None)
    ('865 (goal 250) !', '30 (goal 35)', '7')
    """
    if goal is None:
        return f"{figure:,}"
    return f"{figure:,} (goal {goal:,}){' !' if figure > goal else ''}"


def main() -> None:
    """Print the current numbers and the goals."""
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
    tall = {path.relative_to(HOUSE): len(text.splitlines()) for path, text in texts.items()}
    print_beyond(f"files over {MOST_LINES} lines", tall, MOST_LINES)
    print_beyond(f"folders over {MOST_FILES} files", folders, MOST_FILES)
    any_lines = sum(bool(re.search(r"\bAny\b", line)) for text in texts.values() for line in text.splitlines())
    print(f"lines with Any: {with_goal(any_lines, MOST_ANY)}")
    print(f"{'':<10}{'modules loaded':<22}files entered")
    for name, words in COMMANDS.items():
        loaded, entered = map(with_goal, modules_and_files(words), COMMAND_GOALS[name])
        print(f"{name:<10}{loaded:<22}{entered}")


def print_beyond(title: str, counts: dict[Path, int], limit: int) -> None:
    """Print the paths whose count exceeds the limit."""
    beyond = [f"{path} {count} !" for path, count in counts.items() if count > limit]
    print(f"{title}: {', '.join(beyond) or 'none'}")


if __name__ == "__main__":
    main()
