"""TestFloat's and SoftFloat's vectors: every line, bits and flags, as `floatlab vectors check` reads them."""

import gzip

import pytest

from floatlab import Context
from floatlab.vectors import check_lines, parse_function
from tests.conftest import ORACLES

# The architectures of the NaN vectors, and floatlab's names for them.
NAN_RULES = {"x86sse": "x86", "riscv": "riscv", "armvfp2": "arm"}
FOLDERS = ("testfloat", "testfloat_hard", "nan_variants")
FILES = sorted(path for folder in FOLDERS for path in (ORACLES / folder).glob("*.txt.gz"))


def context_of(folder: str, words: list[str]) -> Context:
    """Return the context that a file's name describes: FUNCTION.MODE[.tininess_before] or FUNCTION.ARCHITECTURE."""
    if folder == "nan_variants":
        return Context(nan=NAN_RULES[words[1]])
    mode = "near_even" if words[1] == "any" else words[1]
    return Context(rounding=mode, nan="x86", tininess="before" if "tininess_before" in words else "after")


@pytest.mark.one_in(5)
@pytest.mark.skipif(not FILES, reason="the vectors made by others are not on this machine (../shared/oracles)")
@pytest.mark.parametrize("path", FILES or [ORACLES], ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_line_agrees_in_bits_and_flags(path):
    words = path.name.removesuffix(".txt.gz").split(".")
    lines = 0
    with gzip.open(path, "rt") as file:
        for found in check_lines(file, parse_function(words[0]), context_of(path.parent.name, words)):
            lines += 1
            assert found is None, f"{path.name} line {found.number}: {found.line}"
    assert lines
