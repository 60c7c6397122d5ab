"""Completion: the scripts have all options of the tables, and bash completes with its script."""

import shutil
import subprocess
import sys

import pytest

from floatlab.verbs.completion.options import SHELLS
from floatlab.verbs.registry import VERBS, verb_named


def script(command, shell):
    pytest.importorskip("shtab", reason="shtab writes the scripts")
    ended = command("completion", shell)
    assert (ended.status, ended.err) == (0, "")
    return ended.out


@pytest.mark.parametrize("shell", SHELLS)
def test_every_verb_and_every_listed_option_is_in_the_script(command, shell):
    text = script(command, shell)
    for name in VERBS:
        assert name in text
        for option in verb_named(name).options:
            if option.explanation:
                assert option.flag.removeprefix("--") in text, (name, option.flag)


def completed(text, *words):
    """Return the completions that bash offers for the last word."""
    words = ("floatlab", *words)
    quoted = " ".join(f"'{word}'" for word in words)
    asked = f"{text}\nCOMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _shtab_floatlab\n"
    asked += "printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash"], input=asked, capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_bash_completes_verbs_options_and_choices(command):
    text = script(command, "bash")
    assert completed(text, "con") == ["convert"]
    assert completed(text, "show", "--dir") == ["--directions"]
    assert completed(text, "add", "--fp1") == ["--fp16", "--fp128"]
    assert completed(text, "show", "1", "--overflow", "s") == ["saturate"]
    assert completed(text, "completion", "b") in (["bash"], [])
    assert {"nvfp4", "nvfp4/16x16", "e4m3/128x128"} <= set(completed(text, "block", "--to", ""))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "completion takes one shell: bash zsh fish"),
        (["bsh"], "did you mean 'bash'?"),
        (["bash", "zsh"], "takes one shell"),
        (["bash", "--json"], "unknown option '--json'"),
    ],
)
def test_what_is_typed_wrong_is_named(command, words, message):
    ended = command("completion", *words)
    assert (ended.status, ended.out) == (2, "")
    assert message in ended.err


def test_without_shtab_the_line_that_installs_it_is_told(command, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    ended = command("completion", "bash")
    assert (ended.status, ended.out) == (3, "")
    assert "pip install 'floatlab[completion]'" in ended.err
