"""This machine's own arithmetic: binary32 and binary64 through NumPy, and a fused multiply-add through MPFR.

A tenth of the operands are random bits. The others are hard cases of rounding: near ties, near cancellation, at the
ends of the range. The default run uses a sample, the slow run a million.
"""

import gmpy2
import numpy as np
import pytest

from floatlab import arith, parse_format
from floatlab.numbers import Datum
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.vectors.functions import parse_function
from floatlab.vectors.generate import operand_codes

KINDS = {
    "f32": (np.uint32, np.float32, gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True)),
    "f64": (np.uint64, np.float64, gmpy2.context(precision=53, emin=-1073, emax=1024, subnormalize=True)),
}
UFUNCS = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "sqrt": np.sqrt}


def operands(name: str, count: int, seed: int) -> list[tuple[int, ...]]:
    function = parse_function(name)
    stream = operand_codes(function, 1, seed)
    draws = RandomIntegers(seed + 1)
    width = function.operands[0].width
    return [
        tuple(draws.below(1 << width) for _ in function.operands) if i % 10 == 0 else next(stream) for i in range(count)
    ]


def differ(kind: str, operation: str, count: int, seed: int) -> list[str]:
    code_type, float_type, _ = KINDS[kind]
    codes = operands(f"{kind}_{operation}", count, seed)
    columns = [np.array(column, dtype=code_type).view(float_type) for column in zip(*codes, strict=True)]
    with np.errstate(all="ignore"):
        want = UFUNCS[operation](*columns)
    expected, nan = want.view(code_type).tolist(), np.isnan(want).tolist()
    run = parse_function(f"{kind}_{operation}").run
    from floatlab import Context

    context, fmt = Context(), parse_format(kind)
    found = []
    for each, code, is_nan in zip(codes, expected, nan, strict=True):
        got, _ = run(each, context)
        if not (Datum(fmt, got).is_nan if is_nan else got == code):
            found.append(f"{kind}_{operation} {[hex(c) for c in each]}: {got:#x}, the machine gives {code:#x}")
    return found


def fma_differs(kind: str, count: int, seed: int) -> list[str]:
    code_type, float_type, context = KINDS[kind]
    fmt = parse_format(kind)
    found = []
    for each in operands(f"{kind}_mulAdd", count, seed):
        data = [Datum(fmt, code) for code in each]
        got = arith.fma(*data, fmt).result
        x, y, z = (float(d) for d in data)
        with gmpy2.context(context):
            want = gmpy2.fma(gmpy2.mpfr(x), gmpy2.mpfr(y), gmpy2.mpfr(z))
        code = int(np.array(float(want), dtype=float_type).view(code_type))
        if not (got.is_nan if gmpy2.is_nan(want) else got.code == code):
            found.append(f"{kind} fma {[hex(c) for c in each]}: {got.code:#x}, MPFR gives {code:#x}")
    return found


@pytest.mark.one_in(3)
@pytest.mark.parametrize("operation", UFUNCS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_machine_agrees_on_a_sample(kind, operation):
    assert differ(kind, operation, 8_000, seed=20_26) == []


@pytest.mark.parametrize("kind", KINDS)
def test_mpfr_agrees_on_a_sample_of_fma(kind):
    assert fma_differs(kind, 8_000, seed=7) == []


@pytest.mark.slow
@pytest.mark.parametrize("operation", UFUNCS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_machine_agrees_on_a_million_operations(kind, operation):
    assert differ(kind, operation, 84_000, seed=11) == []  # a million operations, divided among 12 kinds


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_mpfr_agrees_on_the_rest_of_the_million(kind):
    assert fma_differs(kind, 84_000, seed=13) == []
