"""Call every function of the extension with random arguments: it may raise an error or return nonsense, but not crash.

    python -m tests.arrays.fuzz_kernels [--calls 1000000] [--seed 0]

Recipes, readings and stages are packed numbers, some of which are replaced. Buffers are too short or too long, are
misaligned, overlap, or are not buffers. Alone, this program finds only crashes. To find undefined behaviour, build the
extension with sanitizers and load their library first:

    gcc -shared -fPIC -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -DFLOATLAB_MOST=0 \\
        -I$(python -c "import sysconfig; print(sysconfig.get_paths()['include'])") floatlab/arrays/_kernels/module.c \\
        -o floatlab/_kernels.abi3.so -lm
    LD_PRELOAD=$(gcc -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 python -m tests.arrays.fuzz_kernels

The tests in tests/arrays can be run in the same way.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter

import numpy as np

from floatlab import Context, Direction, parse_format
from floatlab.arrays.block_job import kernel_for, saturating_context
from floatlab.arrays.lanes.compiled import (
    OPERATIONS,
    KernelProgram,
    _kernels,
    _place,
    packed_reading,
    packed_stage,
    reading_program,
)
from floatlab.arrays.lanes.parameters import DOUBLE, WORDS, can_round, container, rounding_rule_for
from floatlab.formats.recipes import parse_recipe

NAMES = ("fp16", "bf16", "fp32", "fp64", "e4m3", "e5m2fnuz", "e2m1", "e8m0", "tf32", "e7m23", "e10m52", "p3109_k8p3ue")
FORMATS = [parse_format(name) for name in NAMES]
ODD = (0, 1, 2, 7, 23, 31, 32, 52, 63, 64, 65, 127, 255, 256, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1)
NUMBERS = (*ODD, *(-each & (1 << 64) - 1 for each in ODD))
REFUSALS = (ValueError, TypeError, OverflowError, BufferError)


ARITY = {"convert": 1, "sqrt": 1, "sqrt_to_nearest": 1, "fma": 3, "fma_to_nearest": 3}  # of others, 2


class Fuzz:
    """Calls with random arguments, which depend only on the seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.memory = np.random.default_rng(seed).integers(0, 256, 1 << 15, np.uint8)

    def few(self) -> int:
        return self.random.choice((0, 1, 2, 3, 7, 8, 15, 33, 100, 300))

    def rarely(self, one_in: int = 12) -> bool:
        return self.random.randrange(one_in) == 0

    def number(self) -> int:
        return self.random.choice(NUMBERS) if self.rarely(2) else self.random.getrandbits(64)

    def room(self, size: int) -> object:
        """Return a buffer of this size; sometimes of another length, misaligned, overlapping, read-only, or none."""
        if self.rarely(40):
            return self.random.choice((None, b"", "text", 3, np.zeros((2, 3))[:, ::2], bytes(size)))
        if self.rarely(20):
            size = max(0, size + self.random.choice((-8, -1, 1, 8)))
        if self.rarely(3):  # a part of the shared memory
            at = self.random.randrange(64) * (1 if self.rarely() else 8)
            return self.memory[at : at + size]
        own = np.frombuffer(self.random.randbytes(size + 8), np.uint8).copy()
        at = self.random.randrange(1, 8) if self.rarely() else 0
        return own[at : at + size]

    def garbled(self, packed: object) -> object:
        """Return packed numbers, some of which are replaced."""
        if packed is None or self.rarely(2):
            return packed
        numbers = np.frombuffer(bytearray(memoryview(packed).cast("B")), np.uint8).copy()
        whole = numbers[: len(numbers) // 8 * 8].view(np.uint64)
        for _ in range(self.random.choice((1, 1, 1, 2, 5, 60))):
            if len(whole):
                whole[self.random.randrange(len(whole))] = self.number()
        return numbers[: -8 * self.random.randrange(1, 3)] if self.rarely(40) else numbers

    def context(self) -> Context:
        draw = self.random.choice
        return Context(
            draw([*Direction]), seed=self.random.getrandbits(64), overflow=draw(("native", "saturate", "propagate")),
            tininess=draw(("after", "before")), flush_inputs=draw((False, True)), flush_results=draw((False, True)),
        )  # fmt: skip

    def place(self, buffer: int, size: int, reading: int = -1) -> tuple[int, ...]:
        """Return the position of numbers; sometimes with a wrong buffer, row or size."""
        found = list(_place(buffer, size, reading))
        if self.rarely(40):
            found[self.random.randrange(5)] = self.random.choice((-1, 0, 1, 2, 3, 4, 8, 99, self.number()))
        return tuple(found)

    def call(self, program: object, written: list[object], read: list[object], count: int, steps: int = 1) -> object:
        """Call `run`, sometimes with invalid numbers."""
        if self.rarely(40):
            count = self.random.choice((-1, 0, 1, count + 1, 2**31, 2**60, 2**61, 2**62, 2**63 - 1))
        return _kernels.run(
            self.garbled(program), tuple(written), tuple(read), count, steps, self.number() & (1 << 64) - 1
        )

    def run(self) -> object:
        word, count = self.random.choice(WORDS), self.few()
        format = self.random.choice([each for each in FORMATS if can_round(word, each)])
        size, code = word.width // 8, container(format).itemsize
        operation = self.random.choice(OPERATIONS)
        many = ARITY.get(operation, 2)
        reading = packed_reading(format, word) if self.rarely(3) else None
        written = [
            self.room(count * (code if reading is None else size)), self.room(count) if self.rarely(2) else None,
            self.room(count),
        ]  # fmt: skip
        read, places = [self.garbled(reading)], []
        for _ in range(many):
            source = self.random.choice(FORMATS)
            held = container(source).itemsize
            as_words = self.rarely(2) or source.trailing_bits > word.trailing_bits
            places.append(self.place(3 + len(read), size if as_words else held, -1 if as_words else 4 + len(read)))
            read.append(self.room(count * (size if as_words else held)))
            if not as_words:
                read.append(self.garbled(packed_reading(source, word)))
        stage = packed_stage(
            operation, rounding_rule_for(format, self.context(), word), places,
            self.place(0, code if reading is None else size, 3), self.place(1, 1), self.place(2, 1),
        )  # fmt: skip
        return self.call(stage, written, read, count)

    def read_codes(self) -> object:
        word, format, count = self.random.choice(WORDS), self.random.choice(FORMATS[:-3]), self.few()
        if format.trailing_bits > word.trailing_bits:
            word = DOUBLE
        held, size = container(format).itemsize, word.width // 8
        program = reading_program(format, word)
        reading = self.garbled(packed_reading(format, word))
        return self.call(program, [self.room(count * size)], [self.room(count * held), reading], count)

    def walk(self) -> object:
        rows, count, steps = self.random.choice((1, 2, 5, 9)), self.random.choice((1, 2, 3, 9, 70)), self.few() % 9
        program = KernelProgram(rows)
        for _ in range(self.random.randrange(4)):
            format = self.random.choice([each for each in FORMATS if each.width <= 32 or each == DOUBLE])
            operation = self.random.choice(OPERATIONS)
            many = ARITY.get(operation, 2)
            operands = [
                (self.random.randrange(rows + self.rarely(40)), bool(self.random.randrange(2))) for _ in range(many)
            ]
            program.add(
                operation, operands, self.random.randrange(rows + self.rarely(40)),
                rounding_rule_for(format, self.context(), DOUBLE),
            )  # fmt: skip
        states = self.room((steps + 1) * rows * count * 8)
        if self.rarely() and program.packed:  # more steps than rows, which must be rejected
            steps = self.random.choice((steps + 1, 2**31, 2**61, 2**62, 2**63 - 1, -1))
        readings = [self.garbled(each) for each in program.readings]
        packed = program.packed if steps > 2**20 else self.garbled(program.packed)  # else stride 0 could take years
        if self.rarely(40):
            count += 1
        return _kernels.run(packed, (states, self.room(count)), tuple(readings), count, steps, self.number() % 2**64)

    def accumulate(self) -> object:
        kind = self.random.choice((np.float32, np.float64))
        inner, rows, columns = (self.random.choice((0, 1, 2, 5, 17)) for _ in range(3))

        def array(*shape: int) -> object:
            if self.rarely(20):
                shape = tuple(each + self.random.randrange(2) for each in shape)
            if self.rarely(4):
                return np.broadcast_to(kind(1.5), shape)
            made = np.zeros(shape, np.float32 if self.rarely(40) else kind)
            if self.rarely(20):
                whole = np.zeros(made.nbytes + 1, np.uint8)[1:]
                return whole.view(made.dtype).reshape(shape)
            return made[..., ::-1] if self.rarely(4) else made

        x, y = array(inner, rows, columns), array(inner, rows, columns)
        return _kernels.accumulate(array(rows, columns), x, y, self.rarely(2))

    def shift(self) -> int:
        return self.random.choice((*range(8, 32), 0, -1, 32, 2**31 - 1, 2**63 - 1))

    def entries(self, shift: int) -> object:
        return self.room(8 << (32 - shift)) if 18 < shift < 32 else self.room(64)

    def narrow(self) -> object:
        count, shift = self.few(), self.shift()
        return _kernels.look_up_narrow(self.room(4 * count), self.entries(shift), self.room(count), shift)

    def wide(self) -> object:
        count, starts = self.few(), self.room(4 << 16)
        entries = np.frombuffer(self.random.randbytes(1 << 10) * (8 << 6), np.uint8)
        shift = self.shift() if self.rarely(20) else 16
        return _kernels.look_up_wide(self.room(4 * count), entries, starts, self.room(2 * count), shift)

    def binades(self) -> object:
        count, shift = self.few(), self.shift() if self.rarely(20) else 23
        return _kernels.look_up_binades(self.room(4 * count), self.room(8 * 512), self.room(2 * count), shift)

    def registers(self) -> object:
        count, rest = self.few(), self.number() % 2**64 if self.rarely(40) else 0
        if self.rarely(2):
            return _kernels.look_up_few(self.room(4 * count), self.room(160), self.room(count), rest)
        return _kernels.look_up_bytes(self.room(4 * count), self.room(1024), self.room(count), rest)

    def take(self) -> object:
        count, size, wide = self.few(), self.random.choice((4, 8)), self.rarely(2)
        table = self.room(size << 16) if wide else self.room(size << 8)
        which = self.number() % 2**31 if self.rarely(20) else 2 * wide + (size == 8)
        return _kernels.take_words(self.room(count * (1 + wide)), table, self.room(count * size), which)

    def tally(self) -> object:
        """Measure random words; the limits are random numbers, for runs that may have the wrong length."""
        size, count, run = self.random.choice((4, 8)), self.few() * 7, self.random.choice((1, 2, 16, 1000, 10**6))
        limits = [self.room(8 * -(-count // run)) for _ in range(2)]
        size, run = (
            (self.number() % 2**63, run) if self.rarely(40) else (size, self.number() if self.rarely(40) else run)
        )
        return _kernels.tally(size, self.room(count * (size % 9)), self.room(count * (size % 9)), run, *limits)

    def blocks(self) -> object:
        """Round random blocks, by a rule with some random numbers."""
        name, size = (
            self.random.choice(("mxfp4", "mxint8", "nvfp4", "e4m3/8")),
            self.random.choice((1, 3, 16, 32, 1500)),
        )
        recipe = parse_recipe(name)
        context = saturating_context(Context(self.random.choice(("RNE", "RNA", "RTZ"))), recipe.format)
        kernel = kernel_for(recipe.format, recipe.rule, context, size)
        assert kernel is not None
        count, held = size * (self.few() % 40), container(recipe.format.scale).itemsize
        tables = [None if each is None or self.rarely(40) else self.garbled(each) for each in kernel.tables]
        outputs = [self.room(count // size * held), *(self.room(count * each) for each in (1, 4))]
        chosen = [each if self.rarely(2) or not i else None for i, each in enumerate(outputs)]
        return _kernels.round_blocks(self.garbled(kernel.packed_rule(1.0)), self.room(4 * count), *tables, *chosen)

    def elements(self) -> object:
        if self.rarely(2):
            size = self.number() % 2**63 if self.rarely(40) else self.random.choice((1, 2, 16, 100))
            return _kernels.largest_finite(self.room(4 * self.few() * min(size, 100)), size)
        blocks, size = self.few(), self.random.choice((1, 3, 16, 32, 1500))
        rooms = [self.room(each) for each in (blocks * size, 1024, 8 * blocks, 4 * blocks * size)]
        return _kernels.scale_elements(*rooms, self.rarely(2))

    def modes(self) -> object:
        if self.rarely(2):
            return _kernels.restore_mode(self.room(32))
        return _kernels.restore_mode(_kernels.reset_mode())


def fuzz(calls: int, seed: int = 0) -> Counter[str]:
    """Make random calls; return the numbers of successful and of rejected calls for each function."""
    drawn, found = Fuzz(seed), Counter[str]()
    entries = (*[drawn.run] * 8, *[drawn.read_codes] * 2, *[drawn.walk] * 4, drawn.accumulate, drawn.modes)
    entries += (
        *[drawn.tally] * 2,
        *[drawn.blocks] * 3,
        drawn.elements,
        drawn.narrow,
        drawn.wide,
        drawn.binades,
        drawn.registers,
        drawn.take,
    )
    with np.errstate(all="ignore"):
        for _ in range(calls):
            entry = drawn.random.choice(entries)
            try:
                entry()
                found[entry.__name__] += 1
            except REFUSALS:
                found[f"{entry.__name__} refused"] += 1
    return found


def main() -> None:
    """Make the requested calls, and print the counts."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for name, many in sorted(fuzz(given.calls, given.seed).items()):
        print(f"{name:20} {many:>9,}")


if __name__ == "__main__":
    main()
