"""`block` on the command line: rows from a pipe, errors, and hints to it from other verbs."""

import json

import numpy as np
import pytest


def test_a_row_of_standard_input_is_a_block(feed):
    ended = feed(b"957 1\n\n1/3 -0.1@bf16\n", "block", "-", "--to", "mxfp4", "--quiet=code")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.splitlines() == ["0x86 0x7 0x0", "0x7b 0x7 0xb"]


def test_a_bad_row_is_named_and_the_rest_goes_on(feed):
    ended = feed(b"957 abc\n2\n", "block", "-", "--to", "mxfp4", "--json")
    assert ended.status == 2
    assert ended.err.startswith("floatlab: line 1: 'abc' is not a number")
    assert json.loads(ended.out)["result"]["values"] == ["2"]


def test_every_block_is_a_line_of_json(command):
    ended = command("block", *["1"] * 33, "--to", "mxfp4", "--json")
    records = [json.loads(each) for each in ended.out.splitlines()]
    assert [len(record["steps"]) for record in records] == [32, 1]


def test_negative_values_and_options_stand_in_any_order(command):
    plain = command("block", "-1.5", "-inf", "2", "--to", "mxint8", "-r", "RTZ")
    assert plain.status == 0
    assert plain == command("block", "-r", "RTZ", "-1.5", "--to", "mxint8", "-inf", "2")


def test_subnormal_elements_are_flushed_on_request(command):
    block = ("block", "0.3", "5", "-0.7", "--to", "mxfp4", "--quiet")
    assert command(*block).out.split() == ["0.5", "4", "-0.5"]
    assert command(*block, "--ftz").out.split() == ["0", "4", "-0"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["block", "1"], "block needs --to RECIPE"),
        (["block", "--to", "mxfp4"], "block needs a value, as in floatlab block 957 --to mxfp8_e4m3"),
        (["block", "1", "--to"], "--to needs RECIPE: the block format"),
        (["block", "1", "--to", "mxfp4", "--fp16"], "block has no --fp16: --to mxfp4 names the block format"),
        (["block", "1", "--to", "mxfp4", "--scale", "cel"], "did you mean 'ceil'?"),
        (["block", "1", "--to", "mxfp4", "--overflow", "native"], "unknown option '--overflow'"),
        (["block", "1", "--to", "mxfp4", "--seed", "x"], "--seed takes an integer"),
        (["block", "1", "--to", "nvfp4", "--tensor-scale", "-1"], "tensor_scale must be a positive number of binary32"),
        (["block", "1", "--to", "nvfp4", "--tensor-scale", "-1@bf16"], "of binary32, not '-1@bf16'"),
        (["block", "1,2;3", "--to", "mxfp4"], "the rows of '1,2;3' have 2 and 1 values"),
        (["block", "1,,2", "--to", "mxfp4"], "a number is missing between commas in '1,,2'"),
        (["block", "nothing.npy", "--to", "mxfp4"], "'nothing.npy' is not a file"),
        (["block", "1", "2", "--to", "mxfp4", "--at", "2"], "--at 2: there is no such element in an array of 2"),
        (["block", "1,2;3,4", "--to", "mxfp4", "--at", "0,2"], "no such element in an array of 2 × 2"),
        (
            ["block", "random:normal:9", "--to", "mxfp4", "--at", "x"],
            "--at takes the index of an element, such as 3,17",
        ),
        (["block", "random:normal:0", "--to", "mxfp4"], "the array has no elements"),
        (["block", "1@mxfp4", "--to", "mxfp4"], "mxfp4 is a block format"),
        (["show", "1", "-f", "mxfp4"], "mxfp4 is a block format: floatlab block VALUE… --to mxfp4 shows one"),
        (["tui", "block", "1"], "block needs --to RECIPE"),
        (["blok", "1"], "did you mean 'block'?"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(command, words, said):
    ended = command(*words)
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_text_that_is_no_recipe_is_marked_with_a_caret(command):
    for text, place in (("mxfp4:flor", 6), ("e4m3/12y", 5), ("block(e2m1 ue5m3)", 11), ("fp8/tensor", 0)):
        ended = command("block", "1", "--to", text)
        assert (ended.status, ended.out) == (2, "")
        assert ended.err.splitlines()[1:] == [f"  {text}", f"  {' ' * place}^"]


def test_a_file_is_shown_block_by_block_as_its_values_are(command, tmp_path):
    x = (np.arange(64, dtype=np.float32) - 20).reshape(2, 32)
    np.save(tmp_path / "x.npy", x)
    typed = command("block", ";".join(",".join(map(str, row)) for row in x.tolist()), "--to", "nvfp4", "--quiet=code")
    assert len(typed.out.splitlines()) == 4
    for at, line in zip(("0,15", "16", "1,0", "1,31"), typed.out.splitlines(), strict=True):
        part = command("block", str(tmp_path / "x.npy"), "--to", "nvfp4", "--at", at, "--quiet=code")
        assert (part.status, part.out.splitlines()) == (0, [line])


def test_a_number_is_a_number_even_if_a_file_has_its_name(command, tmp_path, monkeypatch):
    (tmp_path / "5").write_text("1 2 3")
    monkeypatch.chdir(tmp_path)
    assert command("block", "5", "--to", "mxfp4", "--quiet").out == "4\n"
