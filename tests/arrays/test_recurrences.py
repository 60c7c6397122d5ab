"""Recurrences: the compiled loop gives the same bits as array operations, step by step."""

import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import numpy as np
import pytest

import floatlab as fl
from floatlab import arrays
from floatlab.arrays.lanes import compiled
from floatlab.arrays.recurrences import Recurrence, RecurrenceStage, advance_draws
from floatlab.numbers.rounding import STREAM

DIRECTIONS = ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ", "SR")
NAMES = ("fp16", "bf16", "fp32", "fp64", "e4m3", "e5m2fnuz", "e2m3fn", "e5m10f", "tf32", "e8m20")
OPERATIONS = ("add", "subtract", "multiply", "divide", "sqrt", "fma", "convert")
COUNT, STEPS, EVERY = 5, 24, 3


def stages(rng, rounding, overflow):
    """Return random stages on rows a to f; g is the given row, towards which the last stage moves w."""
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
    """Do the steps with `operate` and `quantize`, row by row."""
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
    """Return whether the bits are equal; for NaNs, only whether both are NaN, since rows of binary64 lose payloads."""
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
    assert advance_draws(context, 0) is context
    assert advance_draws(fl.Context(), 3) == fl.Context()


def test_refusals():
    with pytest.raises(fl.FloatlabError, match="binary128 has numbers that binary64 does not hold"):
        Recurrence("w", [RecurrenceStage("w", "convert", ("w",), fl.parse_format("fp128"), fl.Context())])
    if compiled.is_built():
        odd = RecurrenceStage("w", "convert", ("w",), fl.parse_format("fp64"), fl.Context("RTO"))
        with pytest.raises(fl.FloatlabError, match="lane compiled cannot do all of these stages"):
            Recurrence("w", [odd], "compiled")


@pytest.fixture
def program():
    """A program of one stage on steps of five rows, and its only reading."""
    if not compiled.is_built():
        pytest.skip("there is no kernel")
    return Recurrence("wu", [RecurrenceStage("w", "add", ("w", "u"), fl.parse_format("fp16"), fl.Context())])._program(
        frozenset()
    )


def run(program, states, marks, count, steps, packed=None):
    given = program.packed if packed is None else packed
    return compiled._kernels.run(given, (states, marks), tuple(program.readings), count, steps, 0)


def test_the_kernel_checks_what_it_is_given(program):
    states, marks, good = np.zeros((4, 5, 2)), np.zeros(2, np.uint8), program.packed
    assert run(program, states, marks, 2, 3) == (3, 0)
    assert run(program, states, marks, 0, 3) == (3, 0)
    assert run(program, states, marks, 2, 3, b"") == (3, 0)
    # Eleven numbers, and then the places: buffer, row, stride, size, reading. Steps have 5 of the 20 rows.
    operand, to, marks_place = 11, 11 + 3 * 5, 11 + 5 * 5
    for field, number in (
        (operand, -1), (operand, 3), (operand, 2**62), (operand + 1, -1), (operand + 1, 10), (operand + 1, 2**62),
        (operand + 2, -1), (operand + 2, 10), (operand + 2, 2**63 - 1), (operand + 3, 0), (operand + 3, 3),
        (operand + 3, 16), (operand + 4, 0), (to, -1), (to, 2), (to + 1, 10), (to + 2, 8), (to + 3, 2), (to + 4, 0),
        (marks_place, -1), (marks_place, 3), (marks_place + 1, 1), (marks_place + 3, 8),
        (0, 2), (1, 10), (1, -1), (3, 3), (4, 6), (4, -1), (4, 2), (7, 4), (8, 1),
    ):  # fmt: skip
        packed = good[: 8 * field] + number.to_bytes(8, sys.byteorder, signed=True) + good[8 * field + 8 :]
        with pytest.raises(ValueError, match=r"\w"):
            run(program, states, marks, 2, 3, packed)
    for wrong in (
        (states[:3], marks, 2, 3), (states[:, :4], marks, 2, 3), (states, marks[:1], 2, 3), (states, None, 2, 3),
        (None, marks, 2, 3), (states, marks, 2, 4), (states, marks, 2, -1), (states, marks, -2, 3),
        (states, marks, 3, 3), (states, marks, 2, 3, good[:-1]), (states, marks, 2, 3, b"\xff" * len(good)),
        (states, marks, 2, 3, good[:8] + b"\x0a" + good[9:]), (bytes(4 * 5 * 2 * 8), marks, 2, 3),
    ):  # fmt: skip
        with pytest.raises((ValueError, TypeError, BufferError), match=r"\w"):
            run(program, *wrong)


def test_the_kernel_multiplies_no_sizes_that_wrap(program):
    states, marks = np.zeros((2, 5, 4)), np.zeros(4, np.uint8)
    # 2^62 steps of 4 numbers are 2^64, which is 0 in 64 bits.
    for count, steps in ((4, 2**62), (4, 2**61), (4, 2**63 - 1), (2**62, 1), (2**61, 1), (2**60, 2**62)):
        with pytest.raises(ValueError, match=r"row|out of range"):
            run(program, states, marks, count, steps)


def test_the_kernel_takes_no_memory_that_lies_askew(program):
    askew = np.zeros(8 * 5 * 2 * 4 + 1, np.uint8)[1:]
    with pytest.raises(ValueError, match="not an aligned buffer"):
        run(program, askew, np.zeros(2, np.uint8), 2, 3)
    reading = np.zeros(256 * 8 + 1, np.uint8)[1:]
    fp8 = Recurrence("w", [RecurrenceStage("w", "sqrt", ("w",), fl.parse_format("e4m3"), fl.Context())])._program(
        frozenset()
    )
    with pytest.raises(ValueError, match="a reading does not"):
        compiled._kernels.run(fp8.packed, (np.zeros((2, 4, 2)), np.zeros(2, np.uint8)), (reading,), 2, 1, 0)


def test_threads_may_walk_at_the_same_time():
    bf16 = fl.parse_format("bf16")
    recurrence = Recurrence(["w", "u"], [RecurrenceStage("w", "add", ("w", "u"), bf16, fl.Context())])

    def walk(update: float) -> list[float]:
        rows = recurrence.rows(64, {"w": 1.0, "u": update})
        recurrence.walk(rows, 500)
        return rows[0].tolist()

    updates = [2.0**-k for k in range(8)] * 4
    expected = [walk(update) for update in updates]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(walk, updates)) == expected
