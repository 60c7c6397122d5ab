"""The explorer as a program: in a real terminal (a pseudo one), under signals, and behind a server."""

import os
import select
import signal
import subprocess
import sys
import time

import pytest

pty = pytest.importorskip("pty", reason="there are no pseudo terminals here")
termios = pytest.importorskip("termios", reason="there are no terminals here")

PATIENCE = 30.0  # seconds, enough for a slow machine
CLEAN = (b"\x1b[?1049l", b"\x1b[?25h", b"\x1b[?1000l")  # restore the first screen, show the cursor, release the mouse


class Terminal:
    """A program on a pseudo terminal of 80×24."""

    def __init__(self, tmp_path, *words, code=None, **environment):
        self.master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (24, 80))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        env = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(tmp_path), **environment}
        env = {name: value for name, value in env.items() if value is not None}
        start = ["-m", "floatlab", "tui", *words] if code is None else ["-c", code]
        self.program = subprocess.Popen(
            [sys.executable, *start], stdin=slave, stdout=slave, stderr=slave, env=env, start_new_session=True
        )
        self.seen = b""

    def read_until(self, text, since=0):
        """Read until a text has come."""
        end = time.monotonic() + PATIENCE
        while text not in self.seen[since:]:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-500:]!r}"
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    self.seen += os.read(self.master, 65536)
                except OSError:
                    break
            elif self.program.poll() is not None:
                break
        assert text in self.seen[since:], f"{text!r} did not come: {self.seen[-500:]!r}"

    def press(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Wait for the end; return the status, and check that the terminal is as it was."""
        end = time.monotonic() + PATIENCE
        while self.program.poll() is None:
            assert time.monotonic() < end, "it does not end"
            if select.select([self.master], [], [], 0.1)[0]:
                self.seen += os.read(self.master, 65536)
        while select.select([self.master], [], [], 0.2)[0]:
            self.seen += os.read(self.master, 65536)
        after = termios.tcgetattr(self.slave)
        assert after[:4] == self.before[:4]
        for sign in CLEAN:
            assert sign in self.seen
        os.close(self.slave)
        os.close(self.master)
        return self.program.returncode


@pytest.fixture
def terminal(tmp_path):
    opened = []

    def open_terminal(*words, **more):
        opened.append(Terminal(tmp_path, *words, **more))
        return opened[-1]

    yield open_terminal
    for each in opened:
        if each.program.poll() is None:
            each.program.kill()
            each.program.wait()


def test_it_starts_answers_resizes_and_quits(terminal):
    shown = terminal("show", "0.1", "--fp16")
    shown.read_until(b"0x2e66")
    shown.press(b"+")
    shown.read_until(b"0x2e67")
    before = len(shown.seen)
    termios.tcsetwinsize(shown.slave, (20, 46))
    shown.program.send_signal(signal.SIGWINCH)
    shown.read_until(b"0x2e67", before)
    shown.press(b"q")
    assert shown.end() == 0
    again = terminal()
    again.read_until(b"0x2e67")  # where it was left
    again.press(b"\x11")  # Ctrl+Q
    assert again.end() == 0


def test_bytes_that_are_not_utf8_are_one_character_each(terminal):
    shown = terminal("show", "0.1", "--fp16")
    shown.read_until(b"0x2e66")
    shown.press(b"/0.\xff5\xe91")
    shown.read_until("0.\ufffd5\ufffd1".encode())
    shown.press(b"\x1b[200~7\xe9" + b"8" * 9000 + b"q\x1b[201~")  # pasted, so the q is no key
    shown.press(b"\x1b")
    time.sleep(0.5)  # as long as the driver waits for the rest of a sequence
    shown.press(b"u+")
    shown.read_until(b"0x2e67")
    shown.press(b"\xc3")  # the first byte of a character
    shown.press(b"q")
    assert shown.end() == 0
    assert b"Traceback" not in shown.seen


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=lambda n: str(n)
)
def test_signals_leave_the_terminal_clean(terminal, number, status):
    shown = terminal("show", "0.1", "--fp16")
    shown.read_until(b"0x2e66")
    shown.program.send_signal(number)
    assert shown.end() == status


LONG = ["sum", "random:normal:4000000", "--schedule", "serial", "-f", "e5m30"]  # takes longer than PATIENCE


@pytest.mark.parametrize("words", [["show", "0.1", "--fp16"], pytest.param(LONG, marks=pytest.mark.slow)])
def test_a_closed_terminal_ends_it(terminal, words):
    shown = terminal(*words)  # a terminal that does not control the process sends no signal
    shown.read_until(b"Quit")
    os.close(shown.master)
    shown.program.wait(PATIENCE)
    assert shown.program.returncode == 129
    os.close(shown.slave)


@pytest.mark.slow
def test_quitting_does_not_wait_for_a_sum(terminal):
    shown = terminal(*LONG)
    shown.read_until(b"Esc stops")
    shown.press(b"\x11")
    assert shown.end() == 0


CRASHES = [
    (b"v", "from floatlab.tui.screens.inspect.screen import InspectScreen as Broken", "action_view"),
    (b"x", "from textual._xterm_parser import XTermParser as Broken", "feed"),  # on the thread that reads the terminal
]


@pytest.mark.parametrize(("key", "module", "method"), CRASHES, ids=["key", "reader"])
def test_a_crash_leaves_one_line(terminal, key, module, method):
    shown = terminal(
        code="import sys\n"
        f"{module}\n"
        f"kept = Broken.{method}\n"
        f"Broken.{method} = lambda self, *by: 1 / 0 if by != ('',) else kept(self, *by)\n"
        "from floatlab.cli.main import run\n"
        "sys.argv = ['floatlab', 'tui', '--new', '0.5']\n"
        "run()\n"
    )
    shown.read_until(b"0x3800")
    shown.press(key)
    assert shown.end() == 70
    words = shown.seen.rpartition(b"\x1b[?1049l")[2]
    assert words.count(b"floatlab: ") == 1
    assert b"an internal error (" in words
    assert b"Traceback" not in words


def test_without_colour_there_is_none(terminal):
    shown = terminal("add", "1.125", "0.1", "--fp16", NO_COLOR="1")
    shown.read_until(b"Quit")
    shown.press(b"q")
    assert shown.end() == 0
    assert b"\x1b[38;" not in shown.seen
    assert not any(b"\x1b[%dm" % code in shown.seen for code in range(30, 38))


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", ["linux", "vt100", "xterm", "screen"])
def test_simple_terminals_will_do(terminal, kind):
    shown = terminal("show", "0.1", "--fp16", TERM=kind, COLORTERM=None)
    shown.read_until(b"0x2e66")
    shown.press(b"q")
    assert shown.end() == 0


def test_leaving_does_not_wait_for_a_library(terminal, tmp_path):
    (tmp_path / "torch.py").write_text("import time\ntime.sleep(60)\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    shown = terminal("show", "0.1", "--fp16", PYTHONPATH=path)
    shown.read_until(b"0x2e66")
    shown.press(b"vvvv")
    shown.read_until(b"asking the libraries")
    began = time.monotonic()
    shown.press(b"q")
    assert shown.end() == 0
    assert time.monotonic() - began < 20


def test_a_server_can_start_it_without_a_terminal():
    env = {**os.environ, "TEXTUAL_DRIVER": "textual.drivers.web_driver:WebDriver", "COLUMNS": "80", "ROWS": "24"}
    program = subprocess.Popen(
        [sys.executable, "-m", "floatlab", "tui", "--new", "show", "0.1", "--fp16"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env,
    )  # fmt: skip
    seen, end = b"", time.monotonic() + PATIENCE
    try:
        while b"0x2e66" not in seen:
            assert time.monotonic() < end, seen[-300:]
            if select.select([program.stdout], [], [], 0.2)[0]:
                seen += os.read(program.stdout.fileno(), 65536)
            assert program.poll() is None
    finally:
        program.kill()
        program.communicate()
