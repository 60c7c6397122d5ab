"""The command that compares all float32: on ranges of them, and with wrong results, which it must detect."""

import numpy as np
import pytest

from tests.exhaustive import every_float32

STRETCHES = {  # a few thousand bit patterns each, where roundings into binary16 and e4m3 are decided
    "zero": 0, "below the smallest of binary16": 0x337FF800, "of e4m3": 0x3A7FF800, "ties of one": 0x3F87F800,
    "largest of e4m3": 0x43E7F800, "largest of binary16": 0x477FE800, "infinity and NaNs": 0x7F7FF800,
    "negative": 0xBF800000, "the last": 0xFFFFF000,
}  # fmt: skip


@pytest.mark.parametrize("first", STRETCHES.values(), ids=STRETCHES)
@pytest.mark.parametrize("to", ["fp16", "e4m3"])
def test_a_stretch_has_no_differences(to, first):
    assert every_float32.differences((to, None, first, 0x1000)) == (0x1000, 0, [])


def test_the_command_says_what_it_did(capsys):
    assert every_float32.main(["--first", "0x3f800000", "--last", "0x3f8fffff", "--processes", "1"]) == 0
    out, err = capsys.readouterr()
    assert "binary32 → fp16, lane chosen: 1,048,576 values, differences: 0" in out
    assert "binary32 → e4m3, lane chosen: 1,048,576 values, differences: 0" in out
    assert "100.0%" in err
    assert "0:00 left" in err


def test_what_differs_is_shown(capsys, monkeypatch):
    right = every_float32.encode

    def wrong(x, format, **rest):
        return right(x, format, **rest) + (x == np.float32(1.5))

    monkeypatch.setattr(every_float32, "encode", wrong)
    assert (
        every_float32.main(["--to", "e4m3", "--first", "0x3fbfff00", "--last", "0x3fc000ff", "--processes", "1"]) == 1
    )
    assert "0x3fc00000 = 0x1.8000000000000p+0: 0x3d, expected 0x3c" in capsys.readouterr().out
