"""Random bytes for the explorer in a terminal, until one of its ends: it ends as it should, without a traceback."""

import os
import random
import select
import signal
import time
from contextlib import suppress

import pytest

from tests.tui.test_terminal import Terminal, termios

STARTS = [
    "", "show 0.1 --fp16", "show 0.3 -f takum_log8,posit16,nf4", "add 0.1 0.2 --fp16", "dot --preset forum --fma",
    "sum random:normal:4000000 --schedule serial -f e5m30", "compare 1,2,3 1,2,3.1 --fp32", "formats fp16",
    "train 1.125 --update 0.00041999 --steps 101", "block 0.1 -2.5 3 7.3 --to nvfp4",
]  # fmt: skip
# Keys, pasted text, and answers of terminals; q would end the explorer, and ctrl+z stop it.
PIECES = [
    *(bytes([each]) for each in range(32, 127) if each != ord("q")), *(b"\x1b[%c" % each for each in b"ABCDFHIOZ"),
    *(b"\x1b[%d~" % each for each in (3, 5, 6, 15, 17, 18, 19, 20)), b"\x1bOQ", b"\x1bOR", b"\x1bOS", b"\r", b"\t",
    b"\x7f", b"\x10", b"\x12", b"\x1b", b"\x00", b"\x1f", b"\xff\xfe\x80", "é😀∞".encode(), b"\x1b[1;5C",
    b"\x1b[999;999R", b"\x1b[?1;2c", b"\x1b[<35;10;10M", b"\x1b[200~0.1+0.2\x1b[201~",
    b"\x1b[200~\x00\x1b[31mevil\x07\nline\x1b[201~",
    b"\x1b[200~" + b"9" * 20000 + b"\x1b[201~",
]  # fmt: skip
ENDS = {"ctrl+q": 0, "SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129, "closed": 129}
PATIENCE = 60.0  # seconds, also on a busy machine


def send(shown, data):
    """Send bytes while reading what the explorer draws, which else would wait for a reader."""
    os.set_blocking(shown.master, False)
    while data:
        try:
            data = data[os.write(shown.master, data) :]
        except BlockingIOError:
            read(shown, 0.01)
    os.set_blocking(shown.master, True)


def read(shown, seconds):
    end = time.monotonic() + seconds
    with suppress(OSError):  # it has ended
        while select.select([shown.master], [], [], max(end - time.monotonic(), 0))[0]:
            shown.seen = (shown.seen + os.read(shown.master, 65536))[-40000:]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_bytes_and_an_end(tmp_path, monkeypatch, seed):
    rng = random.Random(seed)
    monkeypatch.chdir(tmp_path)
    shown = Terminal(tmp_path, *rng.choice(STARTS).split(), TERM=rng.choice(["xterm-256color", "linux", "screen"]))
    shown.read_until(b"Quit" if seed % 4 else b"\x1b[?1049h")
    for _ in range(rng.randint(1, 25)):
        kind = rng.choices(("keys", "click", "wheel", "size"), (14, 4, 1, 1))[0]
        place = rng.randint(1, 80), rng.randint(1, 24)
        if kind == "keys":
            send(shown, b"".join(rng.choices(PIECES, k=rng.randint(1, 12))))
        elif kind == "click":
            send(shown, b"\x1b[<0;%d;%dM\x1b[<0;%d;%dm" % (*place, *place))
        elif kind == "wheel":
            send(shown, b"\x1b[<%d;%d;%dM" % (rng.choice((64, 65)), *place))
        else:
            termios.tcsetwinsize(shown.slave, rng.choice([(24, 80), (5, 20), (1, 1), (50, 160), (10, 30)]))
            shown.program.send_signal(signal.SIGWINCH)
        read(shown, rng.choice((0, 0.01, 0.05, 0.2)))
        if shown.program.poll() is not None:  # a click on Quit, or its row of the palette
            assert shown.program.returncode == 0, shown.seen[-2000:]
            assert b"Traceback" not in shown.seen
            return
    end = rng.choice([*ENDS])
    if end == "closed":
        os.close(shown.slave)
        os.close(shown.master)
        shown.program.wait(PATIENCE)
    else:
        if end == "ctrl+q":
            send(shown, b"\x1b[201~\x11")  # after a paste without an end
        else:
            shown.program.send_signal(getattr(signal, end))
        shown.end()
        assert b"Traceback" not in shown.seen
        assert b"internal error" not in shown.seen
    assert shown.program.returncode == ENDS[end]
