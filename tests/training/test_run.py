"""Many steps: every value equal to loops in NumPy and ml_dtypes, whatever the remedy and the lane."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.lanes import compiled
from floatlab.training.loss_scale import LossScale
from floatlab.training.optimizers import SGD, Adam, Updates
from floatlab.training.setup import Setup
from floatlab.training.trainer import Trainer
from tests.training import loops

STEPS, FEW = 1000, 120
LANES = [pytest.param(None, id="fast"), pytest.param("numpy", id="numpy")]


def gradients(seed=1, steps=STEPS, small=-14, large=2):
    """Return gradients of many sizes, all of them numbers of binary32."""
    rng = np.random.default_rng(seed)
    return np.float64(np.float32(rng.standard_normal(steps) * 2.0 ** rng.integers(small, large, steps)))


def trained(setup, given=None, optimizer=None, start=1.125, lane=None, lr=0.01):
    """Return a run; NumPy, which goes stage by stage, does the first steps only."""
    given = gradients() if given is None else given
    given = given[: len(given) if lane is None else FEW]
    trainer = Trainer(start, given, SGD(lr) if optimizer is None else optimizer, setup, lane=lane)
    trainer.advance(len(given))
    return trainer.run


def assert_equal(found, expected):
    assert found.steps in (STEPS, FEW)
    assert found.values[1:].tolist() == list(itertools.islice(expected, found.steps))


def test_the_worked_example_as_numpy_computes_it():
    found = fl.train("1.125", update="0.00041999", steps=101, remedies="plain master kahan")
    half, single, mine = np.float16(1.125), np.float32(1.125), np.float16(0.00041999)
    s, c = np.float16(1.125), np.float16(0)
    assert float(mine) == 0.000420093536376953125
    for k in range(1, 102):
        half, single = half + mine, single + np.float32(mine)
        y = mine - c
        t = s + y
        c, s = (t - s) - y, t
        assert found["plain"].values[k] == half == 1.125
        assert found["master"].kept[k] == single
        assert found["master"].values[k] == np.float16(single)
        assert (found["kahan"].values[k], found["kahan"].compensation[k]) == (s, c)
    kept = found["master"].kept
    assert kept[[1, 2, 51, 100, 101]].tolist() == [
        1.1254200935363770, 1.125840187072754, 1.1464247703552246, 1.1670093536376953, 1.167429447174072265625,
    ]  # fmt: skip
    assert (found["kahan"].final, found["kahan"].carried[-1]) == (1.1669921875, 1.1674294471740723)
    assert [line.stalled for line in found.lines] == [0, None, None]
    assert found.reference.final(101) == [Fraction("1.125") + 101 * Fraction("0.00041999")]


def test_the_worked_example_with_the_large_update():
    found = fl.train("1.125", update="0.12457275390625", steps=101, remedies="plain master")
    half, single = np.float16(1.125), np.float32(1.125)
    for k in range(1, 102):
        half, single = half + np.float16(0.12457275390625), single + np.float32(0.12457275390625)
        assert found["plain"].values[k] == half
        assert found["master"].kept[k] == single
    assert found["plain"].values[1] == 1.25
    assert found["master"].kept[1] == 1.24957275390625


def test_stochastic_rounding_of_the_worked_example_has_its_mean():
    found = fl.train([1.125] * 2000, update="0.00041999", steps=101, remedies="stochastic")["stochastic"].final
    assert abs(found.mean() - 1.16743) < 4 * 0.00486 / np.sqrt(2000)
    assert abs(found.std() - 0.00486) < 4 * 0.00486 / np.sqrt(4000)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize(
    ("kind", "name", "digits", "least"), [(loops.HALF, "fp16", 11, -24), (loops.BRAIN, "bf16", 8, -133)]
)
class TestOneFormat:
    def test_plain(self, kind, name, digits, least, lane):
        found = trained(Setup(name), lane=lane)
        assert_equal(found, loops.plain(1.125, gradients(), 0.01, kind))
        assert 0 < found.moves[0] < STEPS

    def test_master(self, kind, name, digits, least, lane):
        found = trained(Setup(name, master="fp32"), lane=lane)
        assert_equal(found, loops.master(1.125, gradients(), 0.01, kind))

    def test_stochastic(self, kind, name, digits, least, lane):
        found = trained(Setup(name, stochastic=True, context=fl.Context(seed=77)), lane=lane)
        assert_equal(found, loops.drawn(1.125, gradients(), 0.01, kind, digits, least, 77))

    def test_kahan(self, kind, name, digits, least, lane):
        found = trained(Setup(name, compensated=True), lane=lane)
        assert_equal(found, loops.kahan(1.125, gradients(), 0.01, kind))

    def test_wide(self, kind, name, digits, least, lane):
        found = trained(Setup(name, accumulator="fp32", update="fp32"), lane=lane)
        assert_equal(found, loops.wide(1.125, gradients(), 0.01, kind))

    def test_static_scaling(self, kind, name, digits, least, lane):
        given = gradients(2, small=-30, large=-10)
        found = trained(Setup(name, master="fp32", scaling=LossScale(4096)), given, lane=lane, lr=1.0)
        assert_equal(found, loops.master(1.125, given, 1.0, kind, 4096.0))

    def test_momentum(self, kind, name, digits, least, lane):
        found = trained(Setup(name), optimizer=SGD(0.01, momentum=0.9), lane=lane)
        assert_equal(found, loops.momentum(1.125, gradients(), 0.01, kind, 0.9))


@pytest.mark.parametrize("lane", LANES)
def test_dynamic_scaling_skips_halves_and_doubles(lane):
    given = gradients(3, small=-6, large=4)
    setup = Setup("fp16", master="fp32", scaling=LossScale.dynamic(65536.0, growth_interval=37))
    found = trained(setup, given, lane=lane)
    assert_equal(found, loops.dynamic(1.125, given, 0.01, np.float16, 65536.0, 37))
    assert len(found.skipped) > (5 if lane is None else 1)
    assert {b / a for (_, a), (_, b) in zip(found.scales, found.scales[1:], strict=False)} == {0.5, 2.0}


@pytest.mark.parametrize("kind", [np.float32, np.float16], ids=["fp32", "fp16"])
@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_adam(kind, decay):
    name, eps = ("fp32", 1e-8) if kind is np.float32 else ("fp16", 1e-4)
    optimizer = Adam(0.01, weight_decay=decay, eps=eps)
    expected = list(loops.adam(1.125, gradients(), 0.01, kind, decay, eps=eps))
    assert trained(Setup(name), optimizer=optimizer).values[1:].tolist() == expected
    some = gradients()[:60]
    assert trained(Setup(name), some, optimizer, lane="numpy").values[1:].tolist() == expected[:60]


def test_adam_in_binary64():
    found = trained(Setup("fp64"), gradients(steps=FEW), Adam(0.01))
    assert_equal(found, loops.adam(1.125, gradients(steps=FEW), 0.01, np.float64))


def test_weights_in_blocks():
    rng = np.random.default_rng(4)
    start = np.float64(np.float32(rng.standard_normal(64)))
    given = np.float64(np.float32(rng.standard_normal((STEPS, 64))))
    found = trained(Setup("mxfp8_e4m3", grads="fp32", master="fp32"), given, start=start, lr=0.01)
    assert np.array_equal(found.values[1:], list(loops.blocks(start, given, 0.01)))


def test_rows_of_weights_draw_numbers_of_their_own():
    start, given = np.array([1.0, 1.0, 1.0]), np.full(3, 2.0**-13)
    trainer = Trainer(start, given, Updates(), Setup("fp16", stochastic=True, context=fl.Context(seed=5)))
    trainer.advance(50)
    w = [1.0, 1.0, 1.0]
    for k in range(50):
        w = [
            loops.stochastic(Fraction(x) + Fraction(2) ** -13, 11, -24, loops.draw(5, 3 * k + i))
            for i, x in enumerate(w)
        ]
    assert trainer.run.final.tolist() == w
    assert len(set(w)) > 1


def test_steps_in_parts_and_records_now_and_then():
    given = gradients()
    whole = trained(Setup("bf16", stochastic=True), given)
    trainer = Trainer(1.125, given, SGD(0.01), Setup("bf16", stochastic=True), every=7)
    for steps in (1, 5, 300, 694):
        trainer.advance(steps)
    assert trainer.run.at.tolist() == [*range(0, 1001, 7), 1000]  # the last step is recorded, too
    assert np.array_equal(trainer.run.values, whole.values[trainer.run.at])
    assert np.array_equal(trainer.run.moves, whole.moves)


def test_a_remedy_may_come_later():
    trainer = Trainer("1.125", "0.00041999", setup=Setup("fp16"))
    trainer.advance(50)
    trainer.change(Setup("fp16", master="fp32"))
    trainer.advance(51)
    run = trainer.run
    single = np.float32(1.125)
    for _ in range(51):
        single += np.float32(np.float16(0.00041999))
    assert run.values[:51].tolist() == [1.125] * 51
    assert (run.kept[-1], np.isnan(run.kept[:51]).all()) == (single, True)


def test_functions_of_the_weights_and_their_reference():
    def toward(w, k):
        return w - 0.25

    found = fl.train(1.0, toward, lr=0.1, steps=200, remedies="fp32 plain bf16 bf16+stochastic")
    w = np.float32(1)
    for _ in range(200):
        w = w - np.float32(0.1) * np.float32(float(w) - 0.25)
    assert found["fp32"].final == w
    lines = {line.label: line for line in found.lines}
    assert found.reference.kind == "binary64"
    assert lines["bf16"].stalled < 60
    assert lines["bf16"].why.value == "below half"
    assert abs(lines["plain"].error) < abs(lines["bf16"].error) / 7
    assert lines["bf16+stochastic"].stalled is None


def test_exact_curves_are_exact():
    words = ["0.1", "1/3", "-2^-20"]
    found = fl.train("0.3", update=words, steps=3, remedies="fp32")
    assert found.reference.at([0, 1, 2, 3])[3] == Fraction(3, 10) + Fraction(1, 10) + Fraction(1, 3) - Fraction(
        1, 2**20
    )
    assert found.reference.curve(found["fp32"].at).tolist() == [float(x) for x in found.reference.at([0, 1, 2, 3])]
    rows = gradients(6, 40).reshape(20, 2)
    table = fl.train([1.0, -2.0], rows, lr="0.1", steps=20, remedies="fp32")
    exact = Fraction(-2) - sum(Fraction(x) for x in rows[:, 1].tolist()) / 10
    assert table.reference.final(20)[1] == exact
    assert table.reference.curve(table["fp32"].at)[-1, 1] == float(exact)


def test_the_reference_leaves_out_what_is_no_number():
    given = np.array([0.5, np.inf, 0.25])
    found = fl.train(1.0, given, lr=1, steps=3, remedies="master+dynamic")
    assert found["master+dynamic"].skipped == (1,)
    assert (found.reference.final(3), found.lines[0].error) == ([Fraction(1, 4)], 0.0)
    gone = fl.train(1.0, lambda w, k: -(2.0**1000), lr=2.0**100, steps=3, remedies="fp64 fp16+static:1")
    assert [line.error for line in gone.lines] == [None, None]
    assert all("gradient" in line.diverged or "w became" in line.diverged for line in gone.lines)


def test_no_steps_at_all():
    (line,) = fl.train("0.1", update=1, steps=0, remedies="plain").lines
    assert (line.final, line.stalled, line.moves) == (float(np.float16(0.1)), None, 0)
    assert line.error == pytest.approx(float(np.float16(0.1)) - 0.1)


def test_the_usual_remedies_differ():
    found = fl.train("1.125", update="0.00041999", steps=101)
    assert [line.label for line in found.lines] == [
        "plain", "master", "stochastic", "kahan", "dynamic", "wide", "bf16", "fp32",
    ]  # fmt: skip
    assert "bf16" not in [each.label for each in fl.train("1", update="2^-9", steps=1, weights="bf16").trainers]


@pytest.mark.slow
def test_a_million_steps_take_moments():
    import time

    if not compiled.is_built():
        pytest.skip("without the extension they take minutes")
    for remedy in ("plain", "master", "stochastic", "kahan", "master+dynamic"):
        start = time.perf_counter()
        found = fl.train("1.125", update="0.00041999", steps=10**6, remedies=remedy)
        assert found[remedy].is_compiled
        assert time.perf_counter() - start < 2


def test_the_end_is_kept_where_not_every_step_is():
    for steps in (100, 101):
        whole = fl.train("1.125", update="0.00041999", steps=steps, remedies="plain master kahan")
        parts = fl.train("1.125", update="0.00041999", steps=steps, remedies="plain master kahan", every=10)
        assert [line.final for line in parts.lines] == [line.final for line in whole.lines]
        assert [line.carried_error for line in parts.lines] == [line.carried_error for line in whole.lines]
        assert [run.at[-1] for run in parts.runs] == [steps] * 3
    made = fl.train("1", gradient="0.3", lr="0.1", optimizer="adam", steps=7, remedies="fp64", every=5)
    assert made.lines[0].error == 0
    assert made.reference.curve(made.runs[0].at).tolist() == made.runs[0].values.tolist()


@pytest.mark.parametrize("formats", [{"weights": "e3m2"}, {"weights": "fp16", "grads": "e2m1"}])
@pytest.mark.parametrize("given", [[0.5, np.nan, 0.5], lambda w, k: np.nan if k else 0.5])
def test_no_nan_becomes_a_number_where_a_format_has_none(formats, given):
    found = fl.train(1.0, given, lr="0.5", steps=3, remedies="plain static master", **formats)
    for run in found.runs:
        assert (run.steps, run.diverged.step, np.isnan(run.diverged.value)) == (1, 2, True)
        assert "gradient is nan" in run.diverged.why
        assert np.isfinite(run.values).all()


def test_what_is_skipped_has_not_stalled():
    found = fl.train(0.0, update="0.0625", steps=1, weights="e4m3", remedies="dynamic")
    assert (found.lines[0].stalled, found.lines[0].skipped) == (None, 1)
    found.advance(10)
    assert found.lines[0].moves > 0


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: fl.train(10**400, update=1, remedies="fp32"), "start given is beyond binary32"),
        (lambda: fl.train(1, update=1, remedies=5), "remedies must be a text of names or a list"),
        (lambda: fl.training.step(1, 1, setup=5), "setup must be a Setup"),
        (lambda: fl.training.step(1, grad=1, optimizer="adam"), "optimizer must be an SGD"),
        (
            lambda: fl.training.step(1, grad=1, optimizer=SGD(1, 0.9), state={"b": "nan"}),
            "state b must be a finite number",
        ),
        (lambda: fl.training.learn("linear", 5), "configurations must be a text of names or a list"),
        (lambda: fl.training.learn("linear", "fp32", seeds=1.5), "seeds must be a whole number"),
        (lambda: LossScale(1, True), "growth_interval"),
        (lambda: fl.train(1, update=1, optimizer=SGD(1)), "optimizer 'sgd' needs gradients"),
        (lambda: fl.train(1, update=1, optimizer="adam"), "optimizer 'adam' needs gradients"),
        (lambda: fl.train(1, 1, optimizer=Updates()), "optimizer must be one of sgd"),
        (lambda: fl.training.learn("linear", "fp32", optimizer=Updates()), "optimizer must be one of sgd"),
        (lambda: fl.training.step(1, grad=1, optimizer=Updates()), "optimizer must be an SGD"),
    ],
)
def test_arguments_of_another_kind_are_named(call, match):
    with pytest.raises(fl.UnsupportedError, match=match):
        call()
