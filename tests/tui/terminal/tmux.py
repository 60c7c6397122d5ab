"""The explorer in a real terminal: tmux sends keys and clicks, and captures what a person would see."""

import itertools
import os
import shutil
import subprocess
import sys
from time import monotonic, sleep

PATIENCE = 60.0  # seconds: a machine that is slow, not an explorer that hangs
_QUIET = 0.6  # seconds without a change after which a screen is complete
_NUMBERS = itertools.count()


def why_absent():
    """Return why sessions cannot run here; an empty text if they can."""
    return "" if shutil.which("tmux") else "tmux is not installed"


class Session:
    """The explorer in a terminal of tmux, with a server and settings of its own; it runs in the folder `home`."""

    def __init__(self, home, words=(), size=(80, 24)):
        self._socket = f"floatlab-test-{os.getpid()}-{next(_NUMBERS)}"
        width, height = map(str, size)
        folders = {"XDG_STATE_HOME": f"{home}/state", "XDG_CONFIG_HOME": f"{home}/config"}
        variables = folders | {"COLORTERM": "truecolor"}  # the theme depends on it
        settings = [word for name, value in variables.items() for word in ("-e", f"{name}={value}")]
        program = [sys.executable, "-m", "floatlab", "tui", *words]
        self._tmux("-f", os.devnull, "new-session", "-d", "-x", width, "-y", height, "-c", home, *settings, *program)
        self._tmux("set", "-g", "status", "off")
        self._tmux("set", "-g", "escape-time", "0")

    def _tmux(self, *words):
        done = subprocess.run(["tmux", "-L", self._socket, *words], capture_output=True, text=True, check=True)
        return done.stdout

    def press(self, *keys):
        """Send keys by tmux's names: Enter, Escape, BSpace, F2, Up; any other text is typed."""
        for key in keys:
            named = len(key) > 1 and key[0].isupper() and " " not in key
            self._tmux("send-keys", *(() if named else ("-l",)), key)

    def click(self, text):
        """Click the first place where the screen shows a text; wait for the text."""
        self.sees(text)
        y, row = next((y, row) for y, row in enumerate(self.screen().splitlines()) if text in row)
        x = row.index(text) + 1
        for end in "Mm":  # the button goes down, and up again (SGR mouse reports)
            self._tmux("send-keys", "-l", f"\x1b[<0;{x + 1};{y + 1}{end}")

    def looks(self, text):
        """Return the first line that shows a text, with its styles."""
        return next(row for row in self.screen(styles=True).splitlines() if text in row)

    def screen(self, styles=False):
        """Return the text of the screen now; if `styles`, with the control sequences of the styles."""
        captured = self._tmux("capture-pane", "-p", *(["-e"] if styles else []))
        return "\n".join(row.replace("\u00a0", " ").rstrip() for row in captured.splitlines())

    def shows(self, *texts):
        """Wait until the screen shows all texts and does not change any more; return it."""
        end, last, since = monotonic() + PATIENCE, "", monotonic()
        while True:
            now = self.screen()
            if now != last:
                last, since = now, monotonic()
            elif all(text in now for text in texts) and monotonic() - since > _QUIET:
                return now
            assert monotonic() < end, f"{texts} did not come:\n{now}"
            sleep(0.05)

    def sees(self, *texts):
        """Wait until the screen shows all texts, which may be there for a moment only."""
        end = monotonic() + PATIENCE
        while not all(text in self.screen() for text in texts):
            assert monotonic() < end, f"{texts} did not come:\n{self.screen()}"
            sleep(0.02)

    def ends(self):
        """Wait until the explorer has ended, so that its session is written."""
        end = monotonic() + PATIENCE
        program = ["tmux", "-L", self._socket, "has-session"]
        while not subprocess.run(program, capture_output=True, check=False).returncode:
            assert monotonic() < end, "the explorer did not end"
            sleep(0.02)

    def close(self):
        """End the explorer and the server of this session."""
        subprocess.run(["tmux", "-L", self._socket, "kill-server"], capture_output=True, check=False)
