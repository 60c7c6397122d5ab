from collections.abc import Buffer  # type: ignore[attr-defined]  # of Python 3.12; read by type checkers only
from typing import Any

def run(
    program: Buffer,
    written: tuple[Buffer | None, ...],
    read: tuple[Buffer | None, ...],
    count: int,
    steps: int,
    first: int,
) -> tuple[int, int]: ...
def accumulate(sums: Buffer, x: Buffer, y: Buffer, fma: bool) -> None: ...
def reset_mode() -> Any: ...  # what restore_mode takes
def restore_mode(mode: Any) -> None: ...
