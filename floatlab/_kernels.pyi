from collections.abc import Buffer  # type: ignore[attr-defined]  # of Python 3.12; read by type checkers only
from typing import Any

def run(
    word_size: int,
    operation: int,
    operands: tuple[tuple[Buffer, int, Buffer | None], ...],
    to: Buffer,
    to_size: int,
    code_size: int,
    to_reading: Buffer | None,
    flags: Buffer | None,
    marks: Buffer | None,
    recipe: Buffer | None,
    first: int,
    negative_zero: bool,
) -> int: ...
def count(flags: Buffer, counts: Buffer) -> None: ...
def accumulate(sums: Buffer, x: Buffer, y: Buffer, fma: bool) -> None: ...
def walk(
    registers: Buffer,
    rows: int,
    stages: bytes,
    inputs: tuple[tuple[int, Buffer], ...],
    outputs: tuple[tuple[int, Buffer], ...],
    every: int,
    watched: tuple[int, ...],
    finite: tuple[int, ...],
    last: Buffer,
    moves: Buffer,
    steps: int,
    first: int,
) -> int: ...
def reset_mode() -> Any: ...  # what restore_mode takes
def restore_mode(mode: Any) -> None: ...
