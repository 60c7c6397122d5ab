"""Conversion of all float32: to binary16, compared with NumPy's cast, and to e4m3, compared with the scalar codec.

    python -m tests.exhaustive.every_float32 [--to fp16|e4m3] [--lane LANE] [--processes N]

It takes minutes. All codes are compared. For binary16, numbers and infinities must be those of NumPy's cast. NumPy
leaves signaling NaNs signaling, and sets the last bit if the payload would become 0; floatlab quiets NaNs (IEEE
754-2019, 6.2), so that this bit is not needed. Therefore a NaN is compared with NumPy's NaN after quieting: the same
sign and the same payload, except for that bit. For e4m3, the expected codes are in a table of 65,536 entries made by
the scalar codec: the rounding depends only on the upper 16 bits, if the lower bits are OR-ed into the last of these.
Progress is written to standard error, the verdict to standard output. The status is 1 if a value differs (the first
such values are printed), and 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from contextlib import ExitStack
from functools import lru_cache
from multiprocessing import get_context

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.errors import FloatlabError
from floatlab.formats import parse_format
from floatlab.numbers import Datum, convert

BLOCK = 1 << 20
EVERY = 1 << 32
SHOWN = 10  # differences of a block, and in all
IGNORE_INTERRUPTS = (signal.SIGINT, signal.SIG_IGN)  # in worker processes: the main process ends them


def expected_fp16(bits: np.ndarray) -> np.ndarray:
    """Return NumPy's codes for the bits of float32, its NaNs quieted."""
    with np.errstate(all="ignore"):
        codes = bits.view(np.float32).astype(np.float16).view(np.uint16)
    nans = (bits & 0x7FFFFFFF) > 0x7F800000
    if nans.any():
        left = ((bits[nans] >> 13) & 0x3FF).astype(np.uint16)  # digits of the payload that fit into binary16
        codes[nans] = (codes[nans] & 0xFC00) | 0x0200 | left
    return codes


@lru_cache(maxsize=1)
def table_e4m3() -> np.ndarray:
    """Return the scalar codec's codes for the 65,536 upper halves."""
    source, fmt = parse_format("binary32"), parse_format("e4m3")
    return np.array([convert(Datum(source, half << 16), fmt).result.code for half in range(1 << 16)], np.uint8)


def expected_e4m3(bits: np.ndarray) -> np.ndarray:
    """Return the table's codes for the bits of float32."""
    return table_e4m3()[(bits >> np.uint32(16)) | ((bits & np.uint32(0xFFFF)) != 0)]


EXPECTED = {"fp16": expected_fp16, "e4m3": expected_e4m3}


def differences(task: tuple[str, str | None, int, int]) -> tuple[int, int, list[tuple[int, int, int]]]:
    """Compare one block; return how many values it had, how many differ, and the first that do."""
    to, lane, first, count = task
    bits = np.arange(first, first + count, dtype=np.uint64).astype(np.uint32)
    ours, theirs = encode(bits.view(np.float32), to, lane=lane), EXPECTED[to](bits)
    wrong = np.flatnonzero(ours != theirs)
    return count, len(wrong), [(int(bits[i]), int(ours[i]), int(theirs[i])) for i in wrong[:SHOWN]]


class Progress:
    """Progress on standard error: a bar on a terminal, else a line for every tenth."""

    def __init__(self, name: str, total: int) -> None:
        self.name, self.total, self.done = name, total, 0
        self.began = time.monotonic()
        self.live = sys.stderr.isatty()
        self.told = 0.0  # the time on a terminal, the number of values elsewhere

    def step(self, count: int) -> None:
        """Count values as done, and update the output if it is time."""
        self.done += count
        elapsed, share = time.monotonic() - self.began, self.done / self.total
        due = elapsed - self.told > 0.2 if self.live else share - self.told >= 0.1
        if not due and share < 1:
            return
        self.told = elapsed if self.live else share
        rate = self.done / max(elapsed, 1e-9)
        left = int((self.total - self.done) / rate)
        line = f"{share:6.1%}  {rate / 1e6:6.1f} million a second  {left // 60}:{left % 60:02} left"
        if self.live:
            bar = "#" * round(30 * share)
            print(f"\r{self.name} [{bar:.<30}] {line} ", end="\n" if share == 1 else "", file=sys.stderr, flush=True)
        else:
            print(f"{self.name} {line}", file=sys.stderr, flush=True)


def compare(to: str, lane: str | None, processes: int, first: int, last: int) -> int:
    """Compare a range of bit patterns; print the verdict, and return the number of differences."""
    tasks = [(to, lane, start, min(BLOCK, last + 1 - start)) for start in range(first, last + 1, BLOCK)]
    progress = Progress(f"binary32 → {to}", last + 1 - first)
    total, found = 0, []
    with ExitStack() as stack:
        if processes == 1:
            verdicts = map(differences, tasks)
        else:
            pool = stack.enter_context(get_context("spawn").Pool(processes, signal.signal, IGNORE_INTERRUPTS))
            verdicts = pool.imap(differences, tasks)
        for count, wrong, shown in verdicts:
            total += wrong
            found += shown[: SHOWN - len(found)]
            progress.step(count)
    seconds = time.monotonic() - progress.began
    print(
        f"binary32 → {to}, lane {lane or 'chosen'}: {progress.done:,} values, differences: {total:,}, {seconds:.0f} s"
    )
    for bits, ours, theirs in found:
        value = np.uint32(bits).view(np.float32).item()
        print(f"  {bits:#010x} = {value.hex()}: {ours:#x}, expected {theirs:#x}")
    return total


def number(word: str) -> int:
    """Read a bit pattern, 0x3f800000 or in decimal."""
    return int(word, 0)


def main(argv: list[str] | None = None) -> int:
    """Run the command; return its status."""
    summary = str(__doc__).partition("\n")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.exhaustive.every_float32", description=summary)
    parser.add_argument("--to", choices=EXPECTED, action="append", help="one format only")
    parser.add_argument("--lane", choices=("compiled", "numpy"), help="the lane of floatlab.arrays; it chooses itself")
    parser.add_argument("--processes", type=int, default=os.cpu_count(), metavar="N")
    parser.add_argument("--first", type=number, default=0, metavar="BITS", help="start at this bit pattern")
    parser.add_argument("--last", type=number, default=EVERY - 1, metavar="BITS", help="and end at this one")
    given = parser.parse_args(argv)
    if not 0 <= given.first <= given.last < EVERY:
        parser.error("the first bit pattern is at most the last, and the last at most 0xffffffff")
    if given.processes < 1:
        parser.error("at least one process")
    try:
        encode([1.0], "fp16", lane=given.lane)
    except FloatlabError as refusal:
        parser.error(str(refusal))
    try:
        wrong = [compare(to, given.lane, given.processes, given.first, given.last) for to in given.to or EXPECTED]
    except KeyboardInterrupt:
        print("\ninterrupted: not all values were compared", file=sys.stderr)
        return 130
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
