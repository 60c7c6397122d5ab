"""The location of the shared oracle files: beside the repository, on machines that have them."""

import gzip
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[3] / "shared" / "oracles"

needs_folder = pytest.mark.skipif(not FOLDER.is_dir(), reason="no folder shared/oracles beside the repository")


def lines(name: str):
    with gzip.open(FOLDER / name, "rt", encoding="utf-8") as text:
        for line in text:
            yield line.rstrip("\n")


def names(pattern: str) -> list[str]:
    """Return the files that match, or a placeholder, so that an absent folder is visible as skipped tests."""
    return sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob(pattern)) or [pattern]
