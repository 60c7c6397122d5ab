"""One update: the traced step equals the step of arrays, and its thresholds agree with those found by a search."""

from fractions import Fraction

import numpy as np
import pytest

import floatlab as fl
from floatlab.numbers import Datum
from floatlab.training.loss_scale import LossScale
from floatlab.training.optimizers import SGD, Adam, Updates
from floatlab.training.setup import Setup
from floatlab.training.trace import Why, step
from floatlab.training.trainer import Trainer

DIRECTIONS = ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ", "SR")
SETUPS = [
    {"weights": "fp16"},
    {"weights": "bf16", "grads": "fp16", "accumulator": "fp32"},
    {"weights": "e4m3", "grads": "e5m2", "update": "bf16", "master": "fp32"},
    {"weights": "fp16", "compensated": True},
    {"weights": "fp16", "master": "bf16", "compensated": True, "stochastic": True},
    {"weights": "e5m2", "grads": "bf16", "scaling": LossScale(48), "stochastic": True, "accumulator": "fp16"},
    {"weights": "e3m2fn", "grads": "fp16"},
]
OPTIMIZERS = [Updates(), SGD("0.1"), SGD(0.1, 0.9, 0.01), Adam(0.05, eps=2**-10), Adam(0.05, weight_decay=0.1)]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("lane", [None, "numpy"])
@pytest.mark.parametrize("rounding", DIRECTIONS)
def test_traced_steps_are_those_of_the_lanes(rounding, lane):
    rng = np.random.default_rng(DIRECTIONS.index(rounding))
    for i, setup in enumerate(SETUPS):
        optimizer = OPTIMIZERS[(i + DIRECTIONS.index(rounding)) % len(OPTIMIZERS)]
        made = Setup(**setup, context=fl.Context(rounding, seed=9))
        trainer = Trainer(rng.random(3) + 1, np.float32(rng.standard_normal((4, 3))), optimizer, made, lane=lane)
        for _ in range(4):
            if trainer.diverged is not None:
                break
            traced = [trainer.next_step(element) for element in range(3)]
            trainer.advance(1)
            assert trainer.run.values[-1].tolist() == [float(each.after) for each in traced]
            carried = [each.carried for each in traced]
            if trainer.diverged is None and made.compensated:
                low = trainer.run.values if made.master is None else trainer.run.kept
                found = zip(low[-1].tolist(), trainer.run.compensation[-1].tolist(), strict=True)
                assert [Fraction(a) - Fraction(b) for a, b in found] == carried


def moves(weight, update, rounding, accumulator=None):
    """Return whether w + u differs from w after rounding, which is done twice if there is an accumulator."""
    context = fl.Context(rounding)
    if accumulator is None:
        return fl.add(weight, update, format=weight.format, context=context).result.exact != weight.exact
    wide = fl.add(weight, update, format=accumulator, context=context).result
    return fl.convert(wide, weight.format, context).result.exact != weight.exact


@pytest.mark.parametrize("accumulator", [None, "e4m5"])
@pytest.mark.parametrize("rounding", DIRECTIONS[:-1])
def test_thresholds_are_where_updates_begin_to_count(rounding, accumulator):
    """Every weight of e3m2, and every update of a finer format, up and down."""
    fmt, fine = fl.parse_format("e3m2"), fl.parse_format("e5m9")
    updates = [Datum(fine, code) for code in range(0, fine.largest_magnitude + 1, 3)]
    setup = {"weights": "e3m2", "grads": "e5m9", "accumulator": accumulator, "context": fl.Context(rounding)}
    for code in (*range(0, 32, 2), 27, *range(33, 64, 6)):
        weight = Datum(fmt, code)
        if not weight.is_finite:
            continue
        found = step(weight, updates[1], **{name: each for name, each in setup.items() if each is not None})
        for up, threshold in ((True, found.up), (False, found.down)):
            for update in (*updates[:: len(updates) // 5], *_around(threshold, fine)):
                signed = update if up else Datum(fine, fine.compose(True, update.magnitude))
                size = update.exact.as_fraction()
                bound = threshold.bound
                beyond = bound is not None and (size > bound or (size == bound and threshold.included))
                if update.exact:
                    assert moves(weight, signed, rounding, accumulator) == beyond, (weight, signed, threshold)


def _around(threshold, fine):
    if threshold.least is None:
        return []
    at = threshold.least.magnitude
    return [Datum(fine, code) for code in range(max(at - 2, 1), min(at + 3, fine.largest_magnitude))]


def test_the_worked_example():
    found = step("1.125", "0.00041999", weights="fp16")
    assert (hex(found.update.code), found.moved, found.why) == ("0xee2", False, Why.BELOW_HALF)
    assert float(found.update_ulps) == 0.43017578125
    assert float(found.ratio) == pytest.approx(3.734e-4, abs=1e-7)
    assert (found.threshold.bound, found.threshold.included) == (Fraction(1, 2**11), False)
    assert float(found.threshold.least) == 2**-11 + 2**-21
    moved = step("1.125", "0.12457275390625", weights="fp16")
    assert (hex(moved.update.code), float(moved.after), moved.why) == ("0x2ff9", 1.25, Why.MOVED)
    kept = step("1.125", "0.00041999", weights="fp16", master="fp32")
    assert (kept.why, float(kept.carried)) == (Why.IN_MASTER, 1.125420093536377)
    assert step("1", "2^-13", weights="fp16").down.bound == Fraction(1, 2**12)


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        ({"update": 0}, Why.NO_UPDATE),
        ({"update": "2^-26"}, Why.GRADIENT_VANISHED),
        ({"grad": "2^-20", "lr": "2^-10"}, Why.UPDATE_VANISHED),
        ({"update": "2^-11"}, Why.TIE),
        ({"update": "2^-11", "context": fl.Context("RTZ")}, Why.BY_DIRECTION),
        ({"update": "2^-11", "accumulator": "fp32"}, Why.CONVERTED),
        ({"update": "2^-24", "stochastic": True}, Why.DRAWN),
        ({"update": "2^-12", "compensated": True}, Why.COMPENSATED),
        ({"update": 65504}, Why.MOVED),
    ],
)
def test_why_it_stays(asked, why):
    found = step(1, weights="fp16", **asked)
    assert found.why is why
    assert found.moved == (why is Why.MOVED)


def test_chances():
    found = step("1.125", "0.00041999", weights="fp16", stochastic=True)
    assert (found.chance, found.up.bound, found.up.certain) == (
        Fraction(1762, 4096), Fraction(1, 2**42), Fraction(1, 1024),
    )  # fmt: skip
    many = [step("1.125", "0.00041999", weights="fp16", stochastic=True, index=i).moved for i in range(120)]
    assert abs(sum(many) / 120 - float(found.chance)) < 0.15
    assert step("1", "-0.00041999", weights="fp16", stochastic=True).chance == Fraction(1762, 2048)


@pytest.mark.parametrize(
    ("rounding", "accumulator", "chance"), [("RNE", None, 1), ("RTZ", "e5m12", 1), ("RTP", "e5m12", Fraction(3, 4))]
)
def test_only_updates_above_certain_always_move_the_weight(rounding, accumulator, chance):
    given = {"weights": "fp16", "grads": "fp32", "stochastic": True, "context": fl.Context(rounding)}
    given |= {"accumulator": accumulator} if accumulator else {}
    found = step(1, "2^-12", **given)
    certain = Datum(fl.parse_format("fp32"), fl.encode(found.up.certain, "fp32").code)
    assert step(1, certain, **given).chance == chance
    assert step(1, certain.next_up, **given).chance == 1


def test_beyond_the_largest():
    assert step(65504, 100, weights="fp16").why is Why.NOT_FINITE
    assert step(65504, 100, weights="fp16", context=fl.Context(overflow="saturate")).why is Why.AT_THE_END
    assert step(65504, 15, weights="fp16").up.bound == 16


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: step("nan", 1), "the weight must be a finite number, not 'nan'"),
        (lambda: step("inf", 1), "the weight must be a finite number"),
        (lambda: step(1, "inf"), "update must be a finite number"),
        (lambda: step(1, float("nan")), "update must be a finite number, not nan"),
        (lambda: step(1e6, 1, weights="fp16"), "the weight 1000000.0 is beyond binary16, whose largest is 65504"),
        (lambda: step(1, 1, weights="fp16", grads="e8m0"), "grads is e8m0fnu, which has no zero and no sign"),
        (lambda: step(1, 1, weights="mxfp4"), "its rounding depends on its block"),
        (lambda: step(1, 1, weights="fp16", grads="mxfp4"), "grads must be a format of single numbers"),
        (lambda: step(1, 1, lr=1), "an update is added without them"),
        (lambda: step(1, grad=1), "needs a learning rate"),
        (lambda: step(1), "give an update, or a gradient"),
        (lambda: step(1, grad=1, lr=0), "the learning rate must be a finite number above 0, not '0'"),
        (lambda: step(1, grad=1, lr="1e6", weights="fp16"), "lr, 1e\\+06, is beyond binary16"),
        (lambda: step(1, grad=1, lr=1, state={"b": 1}), "this program has no state b"),
        (lambda: step(1, 1, weights="fp17"), "fp17"),
        (lambda: step("bits:0x3c00", 1), "finite number"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(fl.FloatlabError, match=match):
        call()


@pytest.mark.parametrize(("weight", "accumulator"), [("-736.5", "e5m3"), ("-65504", "e4m3"), ("1.0009765625", "bf16")])
def test_an_accumulator_that_does_not_hold_the_weight_moves_it_anyway(weight, accumulator):
    found = step(weight, 0, weights="fp16", grads="e5m2", accumulator=accumulator)
    assert found.after != found.before
    for each in (found.up, found.down):
        assert (each.bound, each.included, float(each.least)) == (0, True, 2.0**-16)


def test_no_number_of_a_format_that_saturates_is_past_its_end():
    found = step("20480", 28, weights="e5m2", grads="e3m2")
    assert (found.moved, found.up.bound, found.up.least) == (False, 2048, None)
