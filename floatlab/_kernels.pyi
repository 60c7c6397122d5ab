from collections.abc import Buffer  # type: ignore[attr-defined]  # of Python 3.12; read by type checkers only

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
    recipe: bytes,
    first: int,
    negative_zero: bool,
) -> int: ...
def read_codes(codes: Buffer, code_size: int, words: Buffer, word_size: int, reading: Buffer) -> None: ...
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
def reset_mode() -> bytes: ...
def restore_mode(mode: bytes) -> None: ...
