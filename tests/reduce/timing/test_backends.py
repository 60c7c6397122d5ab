"""One product on several backends: NumPy, other libraries if they are installed, absent ones by name, and fake GPUs."""

import sys
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.reduce.results.judgements import DifferenceCause
from floatlab.reduce.timing import measurement
from floatlab.reduce.timing.backends import ALL, in_one_format, multiply_on, parse_backends
from tests.reduce.timing.test_devices import Tensor, fake_cupy, fake_torch

rng = np.random.default_rng(4)
A, B = rng.random((30, 200)).astype(np.float32), rng.random((200, 20)).astype(np.float32)


@pytest.fixture
def _alone(monkeypatch):
    for library in ("torch", "jax", "cupy"):
        monkeypatch.setitem(sys.modules, library, None)


@pytest.mark.usefixtures("_alone")
def test_absent_backends_are_named_and_numpy_is_there():
    steps = []
    found = multiply_on(A, B, "all", 3, lambda total, noun: steps.append(-total) or steps.append)
    assert [run.name for run in found.runs] == ["numpy"]
    assert [each.name for each in found.absent] == [*ALL[1:]]
    assert all("torch" in each.reason or "jax" in each.reason or "cupy" in each.reason for each in found.absent)
    (run,) = found.runs
    assert len(run.rest.runs) == 3
    assert min(run.sent, run.first, run.fetched, *run.rest.runs) > 0
    assert np.array_equal(run.codes.view(np.float32), A @ B)
    assert run.repeats
    assert run.judgement.causes == (DifferenceCause.ORDER,)
    assert not found.pairs
    assert steps[0] == -6 * 5
    assert sum(steps[1:]) == 5  # the remaining steps belong to the absent backends


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_installed_libraries_differ_by_rounding_only(dtype):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    held = np.dtype(getattr(ml_dtypes, dtype, dtype))
    a, b = A.astype(held), B.astype(held)
    found = multiply_on(a, b, "numpy,torch,jax", 1)
    if dtype == "bfloat16":
        assert ("numpy", "its product of bfloat16 is in binary32") in {(e.name, e.reason) for e in found.absent}
    else:
        assert found.runs[0].name == "numpy"
    assert len(found.runs) + len(found.absent) == 3
    assert len(found.pairs) == len(found.runs) * (len(found.runs) - 1) // 2
    exact = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(a[3], b[:, 4], strict=True))
    for run in found.runs:
        # In binary16 it is one of several causes, since inputs rounded to bfloat16 cause differences of the same size.
        assert DifferenceCause.ORDER in run.judgement.causes
        assert run.codes.dtype.itemsize == held.itemsize
        value = Fraction(float(run.codes.view(held)[3, 4]))
        assert abs(value - exact) <= 200 * exact * Fraction(float(ml_dtypes.finfo(held).eps))
    for pair in found.pairs:
        assert DifferenceCause.ORDER in pair.judgement.causes
        assert 0 < pair.equal <= 600
        assert pair.q_rms <= pair.q_largest


def test_a_gpu_that_rounds_its_inputs_is_found_out(monkeypatch):
    torch = fake_torch()
    narrow = lambda x: quantize(x, "tf32").astype(np.float32)  # noqa: E731
    monkeypatch.setattr(Tensor, "__matmul__", lambda x, y: Tensor(x.log, narrow(x.values) @ narrow(y.values)))
    monkeypatch.setitem(sys.modules, "torch", torch)
    found = multiply_on(A, B, ("numpy", "torch:cuda"), 2)
    (pair,) = found.pairs
    assert pair.names == ("numpy", "torch:cuda")
    assert DifferenceCause.TF32 in pair.judgement.causes
    assert DifferenceCause.ORDER not in pair.judgement.causes
    gpu = found.runs[1]
    assert DifferenceCause.TF32 in gpu.judgement.causes
    assert found.nearest.name == "numpy"
    assert "allow_tf32 True" in gpu.settings
    # Each run sends both matrices. The clock is read after both have arrived, and again after the product has arrived.
    sent = ["to float32", "to cuda"] * 2 + ["synchronize 0"] * 2
    assert torch.log == ["synchronize 0", *[*sent, "synchronize 0", "cpu"] * (1 + 2)]


def test_what_changes_from_run_to_run_is_told(monkeypatch):
    noise = iter(range(100))
    cupy = fake_cupy()
    monkeypatch.setattr(
        Tensor, "__matmul__", lambda x, y: Tensor(x.log, x.values @ y.values + np.float32(next(noise) * 2**-10))
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    found = multiply_on(A, B, "cupy,numpy", 2)
    assert [run.repeats for run in found.runs] == [False, True]


def fake_clock(monkeypatch):
    """A clock that advances only if a test moves it."""
    clock = SimpleNamespace(now=0.0)
    monkeypatch.setattr(measurement, "perf_counter", lambda: clock.now)
    return clock


def test_transfers_and_products_are_timed_apart(monkeypatch):
    """A device with known times for sending, multiplying and fetching, by which it advances a clock."""
    clock, cupy, products = fake_clock(monkeypatch), fake_cupy(), iter((100.0, 5.0, 8.0, 6.0, 7.0))

    def multiply(x, y):
        clock.now += next(products)
        return Tensor(x.log, x.values @ y.values)

    def asarray(values):
        clock.now += 0.5
        return Tensor(cupy.log, values)

    def get(tensor):
        clock.now += 0.25
        return tensor.values

    cupy.asarray = asarray
    monkeypatch.setattr(Tensor, "__matmul__", multiply)
    monkeypatch.setattr(Tensor, "get", get)
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    found = multiply_on(A, B, "numpy,cupy", 4)
    numpy, gpu = found.runs
    assert (gpu.first, gpu.rest.runs) == (100.0, (5.0, 8.0, 6.0, 7.0))
    assert (gpu.sending.runs, gpu.fetching.runs) == ((1.0,) * 4, (0.25,) * 4)
    assert (gpu.sent, gpu.fetched) == (1.0, 0.25)
    assert gpu.complete.runs == (6.25, 9.25, 7.25, 8.25)
    assert (gpu.rest.minimum, gpu.rest.median, gpu.rest.spread) == (5.0, 6.5, 1.5)
    assert gpu.gigaflops == 2 * 30 * 200 * 20 / 6.5 / 1e9
    assert (numpy.rest.runs, numpy.gigaflops) == ((0.0,) * 4, None)  # its work does not advance the clock here
    assert found.fastest is numpy
    assert found.complete_ranking.fastest == "numpy"


def test_a_product_that_is_faster_may_be_slower_with_its_transfers(monkeypatch):
    clock = fake_clock(monkeypatch)
    torch, cupy = fake_torch(), fake_cupy()
    times = {id(torch.log): 3.0, id(cupy.log): 1.0}

    def multiply(x, y):
        clock.now += times[id(x.log)]
        return Tensor(x.log, x.values @ y.values)

    def asarray(values):
        clock.now += 4.0
        return Tensor(cupy.log, values)

    cupy.asarray = asarray
    monkeypatch.setattr(Tensor, "__matmul__", multiply)
    for name, module in (("torch", torch), ("cupy", cupy)):
        monkeypatch.setitem(sys.modules, name, module)
    found = multiply_on(A, B, "torch:cuda,cupy", 4)
    assert found.ranking.names == ("cupy", "torch:cuda")
    assert (found.ranking.fastest, found.complete_ranking.fastest) == ("cupy", "torch:cuda")


def test_a_backend_that_fails_later_is_absent(monkeypatch):
    calls = iter(range(100))

    def multiply(x, y):
        if next(calls) == 2:
            raise RuntimeError("the device was lost")
        return Tensor(x.log, x.values @ y.values)

    monkeypatch.setattr(Tensor, "__matmul__", multiply)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    found = multiply_on(A, B, "cupy,numpy", 5)
    assert [(each.name, each.reason) for each in found.absent] == [("cupy", "the device was lost")]
    assert [(run.name, len(run.rest.runs)) for run in found.runs] == [("numpy", 5)]
    assert next(calls) == 3


def test_an_interrupt_keeps_complete_rounds(monkeypatch):
    calls = iter(range(100))

    def multiply(x, y):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return Tensor(x.log, x.values @ y.values)

    monkeypatch.setattr(Tensor, "__matmul__", multiply)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    found = multiply_on(A, B, "cupy,numpy", 20, keep_interrupted=True)
    assert found.interrupted
    assert [len(run.rest.runs) for run in found.runs] == [3, 3]


def test_a_library_that_refuses_is_no_failure(monkeypatch):
    def refuse(*_):
        raise RuntimeError("CUDA out of memory. Tried to allocate much")

    monkeypatch.setattr(Tensor, "__matmul__", refuse)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    found = multiply_on(A, B, "cupy,numpy", 1)
    assert [(each.name, each.reason) for each in found.absent] == [("cupy", "CUDA out of memory")]
    assert [run.name for run in found.runs] == ["numpy"]


def test_an_interrupt_goes_through(monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Tensor, "__matmul__", interrupted)
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    with pytest.raises(KeyboardInterrupt):
        multiply_on(A, B, "cupy", 1)


def test_numbers_that_are_not_finite_are_compared_and_not_judged(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", fake_cupy())
    big = np.full((3, 3), 300, np.float16)
    big[0] = 1
    found = multiply_on(big, big, "numpy,cupy", 1)
    assert found.runs[0].judgement is None
    assert found.pairs[0].judgement is None
    assert (found.pairs[0].equal, found.pairs[0].ulps) == (9, 0)


def test_names():
    assert parse_backends() == ALL
    assert parse_backends("jax:cpu, torch:cpu,cupy:cuda,all")[:3] == ("jax", "torch", "cupy")
    assert len(parse_backends("all,all,numpy")) == len(ALL)
    for names, said in (
        ("nunpy", "'nunpy' is not a backend.*did you mean 'numpy'"),
        ("torch:cudda", "did you mean 'cuda'"),
        ("torch:", "'torch:' is not a backend"),
        ("", "'' is not a backend"),
        ("numpy,,jax", "'' is not a backend"),
    ):
        with pytest.raises(UnsupportedError, match=said):
            parse_backends(names)


def test_what_is_no_product_is_refused():
    for a, b, runs in ((A, A, 1), (A[0], B, 1), (A, B.astype(np.float64), 1), (A[:0], B, 1), (A, B, 0)):
        with pytest.raises(UnsupportedError):
            multiply_on(a, b, "numpy", runs)
    with pytest.raises(UnsupportedError, match="libraries multiply in"):
        in_one_format([A, B], parse_format("e4m3"))
