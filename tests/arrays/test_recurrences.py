"""Recurrences: the compiled walk makes the bits that operations on arrays make, step by step."""

from itertools import pairwise

import numpy as np
import pytest

import floatlab as fl
from floatlab import arrays
from floatlab.arrays.lanes import compiled
from floatlab.arrays.recurrences import Recurrence, RecurrenceStage, drawing
from floatlab.numbers.rounding import STREAM

DIRECTIONS = ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ", "SR")
NAMES = ("fp16", "bf16", "fp32", "fp64", "e4m3", "e5m2fnuz", "e2m3fn", "e5m10f", "tf32", "e8m20")
OPERATIONS = ("add", "subtract", "multiply", "divide", "sqrt", "fma", "convert")
COUNT, STEPS, EVERY = 5, 24, 3


def stages(rng, rounding, overflow):
    """Return a line of stages on rows a to f, g being what is given; w is pulled back towards it in the end."""
    rows, found = [*"abcdef"], []
    for i in range(6):
        operation = OPERATIONS[rng.integers(len(OPERATIONS))]
        many = {"sqrt": 1, "convert": 1, "fma": 3}.get(operation, 2)
        context = fl.Context(rounding, seed=i, overflow=overflow, flush_results=bool(rng.integers(8) == 0))
        operands = tuple(rng.choice([*rows, "g", "w"], many).tolist())
        format = fl.parse_format(NAMES[rng.integers(len(NAMES))])
        found.append(RecurrenceStage(rows[rng.integers(6)], operation, operands, format, context))
    fp32 = fl.parse_format("fp32")
    return [
        *found,
        RecurrenceStage("w", "fma", ("g", "g", "w"), fp32, fl.Context()),
        RecurrenceStage("w", "sqrt", ("w",), fp32, fl.Context()),
    ]


def step_by_step(lines, rows, given):
    """Do the steps with `operate` and `quantize`, one row after the other."""
    for k, row in enumerate(given):
        rows["g"] = row
        for stage in lines:
            context = stage.context
            if context.rounding is fl.Direction.SR:
                context = context.replace(seed=(context.seed + k * COUNT * STREAM) % (1 << 64))
            operands = [rows[name] for name in stage.operands]
            if stage.operation == "convert":
                made = arrays.quantize(operands[0], stage.format, context=context)
            else:
                made = arrays.operate(stage.operation, operands, stage.format, context=context)
            rows[stage.to] = made.astype(np.float64)
        yield {name: each.copy() for name, each in rows.items()}


def same(a, b):
    """Compare bits, NaNs apart, whose payloads rows of binary64 do not keep for others."""
    nans = np.isnan(a)
    return np.array_equal(nans, np.isnan(b)) and np.array_equal(
        np.where(nans, 0, a).view(np.uint64), np.where(nans, 0, b).view(np.uint64)
    )


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lane", [None, "numpy"])
@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_a_walk_is_its_operations(rounding, lane):
    rng = np.random.default_rng(DIRECTIONS.index(rounding))
    for case in range(3 if lane is None else 1):
        lines = stages(rng, rounding, ("native", "saturate")[case % 2])
        start = {name: rng.standard_normal(COUNT) * 2.0 ** rng.integers(-9, 9, COUNT) for name in "abcdef"}
        start["a"][:2] = 0.0, -0.0
        start["w"] = np.ones(COUNT)
        given = np.float64(np.float32(rng.standard_normal((STEPS, COUNT))))
        walk = Recurrence([*"abcdefgw"], lines, lane)
        rows = walk.rows(COUNT, start)
        outputs = {name: np.empty((STEPS // EVERY, COUNT)) for name in "abcdef"}
        last, moves = np.zeros(COUNT, np.int64), np.zeros(COUNT, np.int64)
        for first, many in ((0, 1), (1, 16), (17, 7)):
            part = {name: each[first // EVERY : (first + many) // EVERY] for name, each in outputs.items()}
            given_now = {"g": given[first : first + many]}
            assert walk.walk(rows, many, given_now, part, EVERY, ("w",), (), last, moves, first) == many
        expected = list(step_by_step(lines, {"w": start["w"]} | {n: start[n].copy() for n in "abcdef"}, given))
        for name in "abcdef":
            for k in range(EVERY, STEPS + 1, EVERY):
                assert same(outputs[name][k // EVERY - 1], expected[k - 1][name]), (lines, name, k)
        w = [np.ones(COUNT), *(each["w"] for each in expected)]
        moved = np.array([a != b for a, b in pairwise(w)])
        assert moves.tolist() == moved.sum(axis=0).tolist()
        assert last.tolist() == [max(np.flatnonzero(column) + 1, default=0) for column in moved.T]


def test_a_walk_ends_where_a_row_is_no_number():
    fp16 = fl.parse_format("fp16")
    walk = Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fp16, fl.Context())])
    rows = walk.rows(2, {"w": 0.0, "u": [20000.0, 1.0]})
    assert walk.walk(rows, 10, finite=("w",)) == 4
    assert rows[0].tolist() == [np.inf, 4.0]


def test_one_number_a_step_is_for_all_elements():
    walk = Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fl.parse_format("fp64"), fl.Context())])
    rows = walk.rows(3, {"w": [0.0, 1.0, 2.0]})
    walk.walk(rows, 2, {"u": np.array([0.25, 0.5])})
    assert rows[0].tolist() == [0.75, 1.75, 2.75]


def test_draws_go_on():
    context = fl.Context("SR", seed=2**64 - 1)
    assert drawing(context, 0) is context
    assert drawing(fl.Context(), 3) == fl.Context()


def test_refusals():
    with pytest.raises(fl.FloatlabError, match="binary128 has numbers that binary64 does not hold"):
        Recurrence("w", [RecurrenceStage("w", "convert", ("w",), fl.parse_format("fp128"), fl.Context())])
    if compiled.is_built():
        odd = RecurrenceStage("w", "convert", ("w",), fl.parse_format("fp64"), fl.Context("RTO"))
        with pytest.raises(fl.FloatlabError, match="lane compiled cannot do all of these stages"):
            Recurrence("w", [odd], "compiled")


@pytest.mark.skipif(not compiled.is_built(), reason="there is no kernel")
def test_the_kernel_checks_what_it_is_given():
    good = Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fl.parse_format("fp16"), fl.Context())])._packed
    rows, last, out = np.zeros((5, 2)), np.zeros(2, np.int64), np.zeros((3, 2))

    def walk(rows=rows, many=5, stages=good, inputs=(), outputs=(), every=1, watched=(), finite=(), last=last, steps=3):
        return compiled.walk(rows, many, stages, inputs, outputs, every, watched, finite, last, last.copy(), steps, 0)

    assert walk(outputs=((0, out),)) == 3
    for wrong in (
        {"many": 0}, {"many": 3}, {"stages": good[:-1]}, {"inputs": ((9, out),)}, {"inputs": ((0, out[:1]),)},
        {"outputs": ((0, out[:2]),)}, {"outputs": ((-1, out),)}, {"every": 0}, {"watched": (5,)}, {"watched": (-1,)},
        {"finite": (5,)}, {"finite": (0,) * 40}, {"watched": ("w",)},
        {"last": np.zeros(1, np.int64)}, {"steps": -1}, {"inputs": ((0, out),) * 40},
        {"stages": b"\xff" * len(good)}, {"stages": good.replace(good[:8], b"\x0a" + bytes(7), 1)},
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError), match=r"\w"):
            walk(**wrong)


@pytest.mark.skipif(not compiled.is_built(), reason="there is no kernel")
def test_the_kernel_multiplies_no_sizes_that_wrap():
    good = Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fl.parse_format("fp16"), fl.Context())])._packed
    rows, last, out = np.zeros((5, 4)), np.zeros(4, np.int64), np.zeros(4)

    def walk(steps, first=0, every=1, inputs=(), outputs=()):
        return compiled.walk(rows, 5, good, inputs, outputs, every, (), (), last, last.copy(), steps, first)

    # 2^62 steps of 4 numbers are 2^64, which is 0 in 64 bits; 2^64 - 1 steps and one more are none.
    for wrong in (
        {"steps": 2**62, "outputs": ((0, out[:0]),)}, {"steps": 2**62, "inputs": ((0, out[:0]),)},
        {"steps": 2**62 + 1, "outputs": ((0, out),)}, {"steps": 2**63 - 1},
        {"steps": 1, "first": 2**64 - 1, "outputs": ((0, out[:0]),)}, {"steps": 3, "first": 2**64 - 3, "every": 3},
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"step"):
            walk(**wrong)


@pytest.mark.skipif(not compiled.is_built(), reason="there is no kernel")
def test_the_kernel_takes_no_memory_that_lies_askew():
    good = Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fl.parse_format("fp16"), fl.Context())])._packed
    whole = np.zeros(8 * 20 + 1, np.uint8)
    askew, rows, last = whole[1:], np.zeros(20), np.zeros(4, np.int64)
    apart = askew[:32]

    def walk(rows=rows, last=last, moves=last, stages=good, inputs=(), outputs=()):
        return compiled.walk(rows, 5, stages, inputs, outputs, 1, (), (), last, moves, 1, 0)

    padded = bytearray(1 + len(good))
    padded[1:] = good
    for wrong in (
        {"rows": askew}, {"last": apart}, {"moves": apart}, {"stages": memoryview(padded)[1:]},
        {"inputs": ((0, apart),)}, {"outputs": ((0, apart),)},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="does not lie at a multiple of 8 bytes"):
            walk(**wrong)
