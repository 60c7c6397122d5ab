"""All public functions give the same results in every floating-point mode that another library may set."""

import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Thread
from types import FunctionType

import numpy as np
import pytest

import floatlab as fl
from floatlab import fpmode
from floatlab.arrays.lanes import dispatch
from floatlab.errors import UnsupportedError
from floatlab.reduce.reveal.revelation import examine
from floatlab.reduce.timing.backends import multiply_on
from tests.fpmode_cases import CASES, SINGLES, STATED, TIES, TINY
from tests.fpmodes import FLUSHING, MODES, bits_of, exactly, foreign, mode, set_mode, settable

pytestmark = settable
arrays, training = fl.arrays, fl.training


@pytest.fixture(scope="module")
def expected():
    """Return what all cases give in the default mode."""
    assert fpmode.is_default()
    return {name: exactly(ask()) for name, ask in CASES.items()}


def test_every_public_function_has_a_case():
    rooms = {"": (fl, fl.__all__), "arrays.": (arrays, arrays.__all__), "training.": (training, training.__all__)}
    public = {
        room + name
        for room, (module, names) in rooms.items()
        for name in names
        if isinstance(getattr(module, name), FunctionType)
    }
    cases = {word.strip(",") for name in CASES for word in name.split()} | {"arrays.load", "training.train"}
    assert public - cases == set()


OFTEN = ("upward", "toward zero", "flushed results", "both flushed")


@pytest.mark.parametrize(
    "name", [each if each in OFTEN else pytest.param(each, marks=pytest.mark.slow) for each in MODES]
)
def test_no_mode_changes_an_answer(name, expected):
    wrong = []
    for case, ask in CASES.items():
        if case in ("reveal", "examine") and name not in FLUSHING[:3]:
            continue  # `reveal` raises an error in these modes
        with foreign(name):
            assert not fpmode.is_default()
            found = ask()
            left = mode()
        if exactly(found) != expected[case]:
            wrong.append(case)
        assert left == bits_of(name), f"{case} does not restore the mode"
    assert wrong == []


def test_an_error_restores_the_mode_too():
    for name in MODES:
        with foreign(name):
            with pytest.raises(fl.FloatlabError):
                fl.sum([1.0], "nonsense")
            with pytest.raises(fl.FloatlabError):
                fl.compare([1.0], [2.0], rtol=-1)
            with pytest.raises(ZeroDivisionError):
                fl.train("1", lambda w, step: 1 / (step - step), lr=1, steps=2)
            assert mode() == bits_of(name)


def test_guards_within_guards():
    with foreign("both flushed"):
        with fpmode.DefaultMode():
            with fpmode.DefaultMode():
                assert fpmode.is_default()
            assert fpmode.is_default()
        assert mode() == bits_of("both flushed")


def test_each_thread_has_its_own_mode(expected):
    """The threads of a pool began in other modes; of several threads, only one may have another mode."""
    tested = ("sum tiny", "sum ties", "compare formats", "FloatArray.tolist", "FloatArray operators")
    names = [None, *MODES]
    wrong = []

    def work(name):
        if name is not None:
            set_mode(bits_of(name))
        before = mode()
        found = {case: CASES[case]() for case in tested}
        wrong.extend((name, case) for case in tested if not right(case, found[case]))
        if mode() != before:
            wrong.append((name, "the mode"))

    def right(case, found):
        with fpmode.DefaultMode():
            return exactly(found) == expected[case]

    threads = [Thread(target=work, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        for name in (*MODES, None):
            pool.submit(set_mode, 0 if name is None else bits_of(name)).result()
            for case in tested:
                made = pool.submit(CASES[case]).result()
                assert exactly(made) == expected[case], (name, case)
    assert wrong == []
    assert mode() == 0


@pytest.mark.parametrize("lane", ["numpy", "compiled"])
def test_our_own_threads_compute_in_the_default_mode(lane, monkeypatch):
    """A new thread has the mode of the thread that starts it. Each part of an array sets the default mode itself."""
    if lane == "compiled" and not arrays.lanes.compiled.is_built():
        pytest.skip("there is no extension")
    monkeypatch.setattr(dispatch, "BLOCK", 64)
    x = np.tile(SINGLES, 50)
    wanted = [arrays.add(x, x[::-1], fmt, lane=lane) for fmt in ("fp32", "fp16")]
    seen = []
    guarded = dispatch.DefaultMode.__enter__

    def enter(self):
        seen.append(fpmode.is_default())
        set_mode(bits_of("both flushed"))  # as loading a library in this thread may do
        return guarded(self)

    with foreign("upward"):
        found = [arrays.add(x, x[::-1], fmt, lane=lane, threads=4) for fmt in ("fp32", "fp16")]
    monkeypatch.setattr(dispatch.DefaultMode, "__enter__", enter)
    found += [arrays.add(x, x[::-1], fmt, lane=lane, threads=4) for fmt in ("fp32", "fp16")]
    assert len(seen) >= 8
    assert [exactly(each) for each in found] == [exactly(each) for each in wanted * 2]


def _adds(x):
    """Add as a library does, in whatever mode it is called."""
    return np.add.accumulate(x)[-1]


def test_a_library_is_examined_in_the_mode_of_its_user():
    assert not examine(_adds, 8).flushes
    for name in ("flushed results", "flushed inputs", "both flushed"):
        with foreign(name):
            found = examine(_adds, 8)
            assert mode() == bits_of(name)
        assert found.flushes
        assert found.schedule.text == "serial"
        assert found.claim is not None
    with foreign("upward"), pytest.raises(UnsupportedError, match="rounds to nearest, which it does not"):
        examine(_adds, 8)


def test_a_mode_that_an_examined_function_leaves_behind_is_its_users():
    def careless(x):
        set_mode(bits_of("both flushed"))
        return _adds(x)

    before = mode()
    try:
        plan = fl.reveal(careless, 8)
        assert mode() == bits_of("both flushed")
    finally:
        set_mode(before)
    assert plan.text == fl.reveal(_adds, 8).text


def test_backends_multiply_in_the_mode_of_their_user():
    tiny = np.full((2, 2), 2.0**-74, np.float32)  # the products are subnormal
    with foreign("both flushed"):
        (run,) = multiply_on(tiny, tiny, "numpy", 1).runs
        assert mode() == bits_of("both flushed")
    assert run.codes.tolist() == [[0, 0], [0, 0]]
    assert run.errors.largest == 4.0  # the lost results, 2 · 2^-148, are 4 · 2^-149


@pytest.fixture
def unknown(monkeypatch):
    """Forget how modes are set, as in a process that has just begun."""
    monkeypatch.setattr(fpmode, "_known_setter", None)
    return monkeypatch


def test_the_c_library_sets_the_mode_where_there_is_no_extension(unknown):
    unknown.setitem(sys.modules, "floatlab._kernels", None)
    for name in MODES:
        with foreign(name):
            assert fl.sum(TINY[:2]).result.code == 3
            assert fl.sum(TIES).result.code == 0x3F800000
            assert mode() == bits_of(name)
    assert fpmode._known_setter is not None


def test_a_mode_that_cannot_be_set_is_refused(unknown):
    def no_library(*_):
        raise OSError("there is none")

    unknown.setattr(fpmode, "_setter_of_the_c_library", no_library)
    unknown.setitem(sys.modules, "floatlab._kernels", None)
    words = {
        "upward": "this thread rounds upward, and",
        "toward zero": "this thread rounds downward or toward zero, and",
        "both flushed": "this thread flushes subnormal numbers to zero, and",
    }
    for name, said in words.items():
        for ask in (lambda: fl.sum(TIES), lambda: fl.compare(TINY, TINY), STATED.tolist):
            with foreign(name), pytest.raises(UnsupportedError, match=f"^{said} floatlab cannot set") as told:
                ask()
            assert "\n" not in str(told.value)
        with foreign(name):
            assert float(fl.add(0.5, 0.25, format="fp16").result) == 0.75  # integers need no mode
    assert float(fl.sum(TIES)) == 1


def test_a_setter_that_sets_nothing_is_found_out(unknown):
    """Simulate a C library that reports success without setting the mode."""
    unknown.setattr(fpmode, "_known_setter", (lambda: "before", lambda mode: None))
    with foreign("upward"), pytest.raises(UnsupportedError, match="rounds upward"):
        fl.sum(TIES)


def test_torch_flushes_and_floatlab_does_not(expected):
    torch = pytest.importorskip("torch", reason="torch is not installed")
    if not torch.set_flush_denormal(True):
        pytest.skip("torch cannot flush on this processor")
    try:
        assert not fpmode.is_default()
        found = {name: CASES[name]() for name in CASES}
        assert not fpmode.is_default()
        sums = fl.sum(torch.from_numpy(TINY[:2])).result.code, examine("torch.sum", 8).flushes
    finally:
        torch.set_flush_denormal(False)
    assert [name for name in CASES if exactly(found[name]) != expected[name]] == []
    assert sums == (3, True)


def test_a_generator_is_not_guarded():
    def numbers():
        yield 1

    with pytest.raises(AssertionError):
        fpmode.in_default_mode(numbers)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODES)
def test_constants_do_not_depend_on_the_mode_of_their_import(name, tmp_path):
    """Python rounds literals as it compiles a module, in the mode of that thread, and caches what it compiled."""
    import subprocess

    script = (
        "import numpy, fractions, decimal, floatlab as fl\n"
        "from tests.fpmodes import set_mode, bits_of\n"
        f"set_mode(bits_of({name!r}))\n"
        "total = fl.sum([2.0**-149, 2.0**-148], format='fp32')\n"
        "found = fl.compare([1.0], [1 + 2.0**-20]).allclose.rtol, total.result.code\n"
        "set_mode(0)\n"
        "print(found[0].hex(), found[1])"
    )
    done = subprocess.run(
        [sys.executable, "-X", f"pycache_prefix={tmp_path}", "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == [(1e-5).hex(), "3"]
