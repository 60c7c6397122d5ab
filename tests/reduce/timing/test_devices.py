"""Devices of NumPy, of other libraries if they are installed, absent ones by name, and fake GPUs."""

import sys
from contextlib import nullcontext
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from floatlab.arrays.conversion import decode
from floatlab.errors import MissingPartError, UnsupportedError
from floatlab.formats import parse_format
from floatlab.reduce.plan.grouped_schedules import NUMPY
from floatlab.reduce.reveal.revelation import reveal
from floatlab.reduce.timing.devices import DEVICES, AbsentDeviceError, device_of


@pytest.mark.parametrize("library", ["numpy", "torch", "jax"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bfloat16"])
def test_arrays_go_there_and_come_back_with_their_bits(library, dtype):
    pytest.importorskip(library)
    pytest.importorskip("ml_dtypes")
    device = device_of(library)
    values = np.array([[1.5, -0.0, np.inf], [2.0**-14, 0.15625, -96]])
    own = device.dtype(dtype)
    with device.scope(own):
        made = device.array(values, own)
        device.wait(made)
        found = device.fetch(made)
    assert found.format == parse_format(dtype)
    assert found.codes.shape == (2, 3)
    assert np.array_equal(decode(found.codes, found.format, np.float64), values)
    assert found.codes[0, 1] == 1 << found.format.width - 1  # the zero with a sign
    assert device.words
    assert all(isinstance(each, str) for each in device.settings(dtype))


def test_jax_keeps_binary64():
    pytest.importorskip("jax")
    assert reveal("jax.numpy.sum", 9, "float64").terms == 9


@pytest.mark.parametrize("place", ["jax", "jax.experimental"])
def test_jax_is_told_to_keep_binary64_where_it_wants_to_be(monkeypatch, place):
    """Newer versions have `jax.enable_x64`, which has no truth value; older ones `jax.experimental.enable_x64`."""

    class State:
        def __bool__(self):
            raise TypeError("bool() not supported")

        def __call__(self, wanted):
            return nullcontext(wanted)

    modules = {name: ModuleType(name) for name in ("jax", "jax.experimental")}
    modules["jax"].devices = lambda kind: [kind]
    modules[place].enable_x64 = State()
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    with device_of("jax").scope(np.float64) as wanted:
        assert wanted is True
    with device_of("jax").scope(np.float32) as wanted:
        assert wanted is None


@pytest.mark.parametrize(
    ("library", "name", "said"),
    [
        ("numpy", "cuda", "numpy has no device 'cuda'; it knows cpu"),
        ("torch", "cudda", "did you mean 'cuda'"),
        ("torch", "cuda:", "torch has no device"),
        ("torch", "cuda:1:2", "torch has no device"),
        ("jax", "cuda:-1", "jax has no device"),
    ],
)
def test_unknown_devices_are_refused_without_the_library(library, name, said):
    with pytest.raises(UnsupportedError, match=said):
        device_of(library, name)


@pytest.mark.parametrize("library", ["torch", "jax", "cupy"])
def test_a_library_that_is_not_installed_is_named(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingPartError, match=f"{library} .*pip install|cannot be imported"):
        device_of(library)


def test_a_broken_library_is_absent_too(monkeypatch, tmp_path):
    (tmp_path / "cupy.py").write_text("raise OSError('libcuda.so.1: cannot open shared object file')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    with pytest.raises(MissingPartError, match=r"cupy cannot be imported: libcuda\.so\.1"):
        device_of("cupy")


class Tensor:
    """An array of a fake library: the device does its work only when somebody waits for it."""

    def __init__(self, log, values):
        self.log, self.values = log, values

    def __matmul__(self, other):
        self.log.append("multiply")
        return Tensor(self.log, self.values @ other.values)

    def to(self, where):
        self.log.append(f"to {where}")
        return Tensor(self.log, self.values.astype(where) if isinstance(where, np.dtype) else self.values)

    def detach(self):
        return self

    def cpu(self):
        self.log.append("cpu")
        return self.values

    def get(self):
        self.log.append("get")
        return self.values


def fake_torch(count=2):
    """A torch with this number of GPUs, in a module that records the calls."""
    log = []
    made = ModuleType("torch")
    made.log, made.__version__ = log, "9.9"
    made.float16, made.float32, made.float64 = (np.dtype(name) for name in ("float16", "float32", "float64"))

    def zeros(size, device):
        kind, _, index = device.partition(":")
        if kind != "cuda" or int(index or 0) >= count:
            raise RuntimeError("CUDA error: invalid device ordinal\nmore of it")
        return Tensor(log, np.zeros(size))

    made.zeros = zeros
    made.from_numpy = lambda values: Tensor(log, values)
    made.get_float32_matmul_precision = lambda: "high"
    made.cuda = SimpleNamespace(
        synchronize=lambda index: log.append(f"synchronize {index}"), get_device_name=lambda index: f"Fake {index}"
    )
    matmul = SimpleNamespace(allow_tf32=True, allow_fp16_reduced_precision_reduction=True)
    made.backends = SimpleNamespace(cuda=SimpleNamespace(matmul=matmul))
    return made


def fake_cupy(count=1):
    """A cupy with this number of GPUs."""
    log = []
    made = ModuleType("cupy")
    made.log, made.__version__ = log, "14.0"
    made.zeros = lambda size: Tensor(log, np.zeros(size))
    made.asarray = lambda values: log.append("asarray") or Tensor(log, values)

    class Device:
        def __init__(self, index):
            self.index = index

        def __enter__(self):
            log.append(f"enter {self.index}")

        def __exit__(self, *_):
            log.append("leave")

        def synchronize(self):
            log.append(f"synchronize {self.index}")

    properties = SimpleNamespace(getDeviceCount=lambda: count, getDeviceProperties=lambda index: {"name": b"Fake GPU"})
    made.cuda = SimpleNamespace(Device=Device, runtime=properties)
    return made


def test_torch_on_a_gpu_is_waited_for(monkeypatch):
    torch = fake_torch()
    monkeypatch.setitem(sys.modules, "torch", torch)
    device = device_of("torch", "cuda:1")
    assert torch.log == ["synchronize 1"]
    torch.log.clear()
    x = device.array(np.ones((2, 2)), device.dtype("float32"))
    assert torch.log == ["to float32", "to cuda:1"]
    device.wait(x)
    assert device.fetch(x @ x).format.name == "binary32"
    assert torch.log[2:] == ["synchronize 1", "multiply", "cpu"]
    assert device.words == "PyTorch 9.9 on Fake 1"
    assert device.settings("float32")[:2] == ("float32_matmul_precision high", "allow_tf32 True")
    assert device.settings("float16")[0] == "allow_fp16_reduced_precision_reduction True"
    assert not any("allow" in each for each in device.settings("float64"))
    with pytest.raises(
        AbsentDeviceError, match=r"^torch:cuda:2: no such device \(CUDA error: invalid device ordinal\)$"
    ):
        device_of("torch", "cuda:2")


def test_a_setting_that_torch_does_not_tell_is_told_so(monkeypatch):
    torch = fake_torch()

    class Mixed:
        @property
        def allow_tf32(self):
            raise RuntimeError("mix of the legacy and new APIs to set the TF32 status")

    torch.backends.cuda.matmul = Mixed()
    monkeypatch.setitem(sys.modules, "torch", torch)
    assert "mix of the legacy" in device_of("torch", "cuda").settings("float32")[1]


def test_cupy_works_on_its_device(monkeypatch):
    cupy = fake_cupy()
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setenv("CUPY_TF32", "1")
    device = device_of("cupy")
    cupy.log.clear()
    with device.scope(np.dtype("float32")):
        x = device.array(np.ones((2, 2)), device.dtype("float32"))
        device.wait(x)
        found = device.fetch(x @ x)
    assert found.format.name == "binary32"
    assert cupy.log == ["enter 0", "asarray", "synchronize 0", "multiply", "get", "leave"]
    assert device.words == "CuPy 14.0 on Fake GPU"
    assert "CUPY_TF32 1" in device.settings("float32")
    with pytest.raises(AbsentDeviceError, match=r"no such device \(there are 1\)"):
        device_of("cupy", "cuda:1")


def test_only_jax_and_cupy_need_a_scope():
    assert isinstance(device_of("numpy").scope(np.float64), nullcontext)
    assert [*DEVICES] == ["numpy", "torch", "jax", "cupy"]


def test_orders_are_revealed_on_a_gpu(monkeypatch):
    cupy = fake_cupy()
    cupy.sum = lambda x: Tensor(cupy.log, np.sum(x.values))
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    assert reveal("cupy.sum", 20).canonical() == NUMPY.plan(20).canonical()
    assert "get" in cupy.log
