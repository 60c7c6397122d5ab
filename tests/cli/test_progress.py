"""Progress on standard error."""

from floatlab.cli import progress


class Clock:
    """A clock that is set by hand."""

    def __init__(self):
        self.now = 0.0

    def monotonic(self):
        return self.now


def test_a_log_has_a_line_each_minute(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    add = progress.Bar().begin(4_000_000_000, "bytes of 12 tensors")
    for clock.now in range(0, 200, 5):
        add(20_000_000)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert all(each.startswith("floatlab: [") and "GB of 12 tensors" in each and "left" in each for each in lines)


def test_little_work_writes_nothing(monkeypatch, capsys):
    clock = Clock()
    monkeypatch.setattr(progress, "time", clock)
    add = progress.Bar().begin(100, "elements")
    for clock.now in range(59):
        add(1)
    assert capsys.readouterr().err == ""
