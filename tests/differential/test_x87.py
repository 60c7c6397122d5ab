"""This machine's x87 unit: the NaN that an instruction returns, all other special operands, and precision control."""

import ctypes
import platform
import shutil
import subprocess

import pytest

from floatlab import Context, arith, convert
from floatlab.formats import parse_format
from floatlab.numbers import Datum
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.verbs.arithmetic.storing import store
from tests.arith.test_precision_control import cases

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")

pytestmark = pytest.mark.skipif(
    COMPILER is None or platform.machine() not in ("x86_64", "AMD64", "i686"),
    reason="needs an x86 processor and a C compiler",
)

# Operands are 16 bytes apart; `fldt` and `fstpt` move 80 bits without interpreting them.
SOURCE = r"""
#include <stddef.h>
unsigned short control = 0x37f; /* of fninit: nearest, 64 digits, no traps */
#define LOOP(name, text) \
void name(size_t count, const char *a, const char *b, char *out, unsigned short *status) { \
    for (size_t i = 0; i < count; i++) \
        __asm__ volatile("fninit\n\tfldcw %4\n\t" text "\n\tfninit" \
            : : "r"(a + 16 * i), "r"(b + 16 * i), "r"(out + 16 * i), "r"(status + i), "m"(control) \
            : "memory", "st", "st(1)"); \
}
#define BINARY(name, text) LOOP(name, "fldt (%1)\n\tfldt (%0)\n\t" text "\n\tfnstsw (%3)\n\tfstpt (%2)")
#define UNARY(name, text) LOOP(name, "fldt (%0)\n\t" text "\n\tfnstsw (%3)\n\tfstpt (%2)")
BINARY(add, "fadd %%st(1), %%st")
BINARY(subtract, "fsub %%st(1), %%st")
BINARY(multiply, "fmul %%st(1), %%st")
BINARY(divide, "fdiv %%st(1), %%st")
BINARY(remainder_, "fprem1")
UNARY(sqrt_, "fsqrt")
UNARY(round_, "frndint")
LOOP(to_f32, "fldt (%0)\n\tfstps (%2)\n\tfnstsw (%3)")
LOOP(to_f64, "fldt (%0)\n\tfstpl (%2)\n\tfnstsw (%3)")
LOOP(from_f32, "flds (%0)\n\tfnstsw (%3)\n\tfstpt (%2)")
LOOP(from_f64, "fldl (%0)\n\tfnstsw (%3)\n\tfstpt (%2)")
"""

STORES = {"to_f32": "binary32", "to_f64": "binary64"}
BINARY = {
    "add": arith.add, "subtract": arith.subtract, "multiply": arith.multiply, "divide": arith.divide,
    "remainder_": arith.remainder,
}  # fmt: skip
UNARY = {"sqrt_": arith.sqrt, "round_": arith.round_to_integral}
CONVERSIONS = {
    "to_f32": ("x87", "fp32"),
    "to_f64": ("x87", "fp64"),
    "from_f32": ("fp32", "x87"),
    "from_f64": ("fp64", "x87"),
}
STATUS = {"invalid": 1, "divide_by_zero": 4, "overflow": 8, "underflow": 16, "inexact": 32}
CONTEXT = Context(nan="x86")
DIRECTIONS = {"RNE": 0, "RTN": 1, "RTP": 2, "RTZ": 3}  # the field RC of the control word
PRECISIONS = {24: 0, 53: 2, 64: 3}  # the field PC
X87 = parse_format("x87")


@pytest.fixture(scope="module")
def unit(tmp_path_factory):
    folder = tmp_path_factory.mktemp("x87")
    (folder / "x87.c").write_text(SOURCE)
    built = subprocess.run(
        [COMPILER, "-O1", "-shared", "-fPIC", "-o", "x87.so", "x87.c"], cwd=folder, capture_output=True, text=True
    )
    if built.returncode:
        pytest.skip(f"the compiler does not take GNU assembly: {built.stderr.splitlines()[:1]}")
    return ctypes.CDLL(str(folder / "x87.so"))


def run(unit, name: str, a: list[int], b: list[int], context: Context = CONTEXT) -> list[tuple[int, int]]:
    """Return the 16 bytes that each instruction left, and its status word's exceptions."""
    control = 0x3F | PRECISIONS[context.precision] << 8 | DIRECTIONS[context.rounding.value] << 10
    ctypes.c_uint16.in_dll(unit, "control").value = control
    packed = [b"".join(code.to_bytes(16, "little") for code in codes) for codes in (a, b)]
    out, status = ctypes.create_string_buffer(16 * len(a)), (ctypes.c_uint16 * len(a))()
    getattr(unit, name)(ctypes.c_size_t(len(a)), *packed, out, status)
    codes = [int.from_bytes(out.raw[16 * i : 16 * i + 16], "little") for i in range(len(a))]
    return list(zip(codes, status, strict=True))


def nan(draws: RandomIntegers, fmt) -> int:
    """Return a NaN, quiet or signaling, whose payload is random or is one of few, so that ties are common."""
    payload = draws.below(fmt.quiet_bit) if draws.below(2) else draws.one_of([1, 2, fmt.quiet_bit - 1])
    quiet = draws.one_of([0, fmt.quiet_bit])
    return fmt.compose(bool(draws.below(2)), fmt.infinity_magnitude + (quiet | payload))


def special(draws: RandomIntegers, fmt) -> int:
    """Return a NaN, an infinity, a zero, a number near 1, or any bits (for x87: unsupported codes too)."""
    kind = draws.below(8)
    if kind < 4:
        return nan(draws, fmt)
    if kind < 6:
        return draws.below(1 << fmt.width)
    magnitude = draws.one_of([0, fmt.infinity_magnitude, fmt.bias << fmt.trailing_bits | draws.below(1 << 20)])
    return fmt.compose(bool(draws.below(2)), magnitude)


def check(unit, name: str, compute, source, target, operands: list[tuple[int, ...]]) -> int:
    """Assert that results and flags are those of the processor; return the number of NaN results."""
    a, b = [codes[0] for codes in operands], [codes[-1] for codes in operands]
    nans = 0
    for codes, (code, status) in zip(operands, run(unit, name, a, b), strict=True):
        done = compute(*(Datum(source, each) for each in codes))
        nans += done.result.is_nan
        if name == "remainder_" and not done.result.is_nan:
            continue  # fprem1 takes away 63 digits at a time
        raised = sum(STATUS[flag] for flag in done.flags.names)
        line = f"{name} {[hex(each) for each in codes]}"
        assert (done.result.code, raised) == (code, status & sum(STATUS.values())), line
    return nans


@pytest.mark.parametrize("name", BINARY)
def test_the_unit_keeps_the_same_nan_of_two(unit, name):
    draws = RandomIntegers(87)
    pairs = [(nan(draws, X87), nan(draws, X87)) for _ in range(2000)]
    assert check(unit, name, lambda *data: BINARY[name](*data, X87, CONTEXT), X87, X87, pairs) == len(pairs)


@pytest.mark.parametrize("name", BINARY)
def test_the_unit_agrees_on_special_operands(unit, name):
    draws = RandomIntegers(88)
    pairs = [(special(draws, X87), special(draws, X87)) for _ in range(2000)]
    assert check(unit, name, lambda *data: BINARY[name](*data, X87, CONTEXT), X87, X87, pairs) > 1000


@pytest.mark.parametrize("name", UNARY)
def test_the_unit_agrees_on_one_special_operand(unit, name):
    draws = RandomIntegers(89)
    operands = [(special(draws, X87),) for _ in range(1000)]
    assert check(unit, name, lambda x: UNARY[name](x, X87, CONTEXT), X87, X87, operands) > 400


@pytest.mark.parametrize("name", CONVERSIONS)
def test_the_unit_converts_special_operands_alike(unit, name):
    draws = RandomIntegers(90)
    source, target = (parse_format(each) for each in CONVERSIONS[name])
    operands = [(special(draws, source),) for _ in range(1000)]
    assert check(unit, name, lambda x: convert(x, target, CONTEXT), source, target, operands) > 400


@pytest.mark.one_in(6)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", ["add", "subtract", "multiply", "divide", "sqrt_"])
def test_the_unit_rounds_alike_under_precision_control(unit, name, direction, precision, generator):
    context = Context(direction, precision=precision, nan="x86")
    operands = [pair[:1] if name in UNARY else pair for pair in cases(generator, 300)]
    operation, results, seen, twice = (BINARY | UNARY)[name], [], set(), 0
    there = run(unit, name, [codes[0] for codes in operands], [codes[-1] for codes in operands], context)
    for codes, (code, status) in zip(operands, there, strict=True):
        done = operation(*(Datum(X87, each) for each in codes), X87, context)
        raised = sum(STATUS[flag] for flag in done.flags.names)
        assert (hex(done.result.code), raised) == (hex(code), status & sum(STATUS.values())), done
        results += [done] if done.result.is_finite else []
        seen |= set(done.flags.names)
    assert seen >= {"invalid", "inexact"}
    for instruction, format in STORES.items():
        codes = [done.result.code for done in results]
        for done, (code, status) in zip(results, run(unit, instruction, codes, codes, context), strict=True):
            stored = store(done, parse_format(format))
            width = stored.twice.result.format.width
            raised = sum(STATUS[flag] for flag in stored.twice.flags.names)
            assert (stored.twice.result.code, raised) == (code % (1 << width), status & sum(STATUS.values())), done
            twice += not stored.is_innocuous
    assert twice or precision > 24  # a result of 24 digits lacks some of binary64
