"""Loss scales by torch.amp.GradScaler's rules, and what gradients lose without one."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.training.loss_scale import LossScale, Scaler
from floatlab.training.underflow import measure_underflow

# What torch 2.13's _amp_update_scale_ made of these, with growth 2, backoff 0.5 and an interval of 3.
OVERFLOWED = (0, 0, 0, 1, 0, 0, 0, 0, 1, 1)
SCALES = (65536, 65536, 131072, 65536, 65536, 65536, 131072, 131072, 65536, 32768)
GOOD = (1, 2, 0, 0, 1, 2, 0, 1, 0, 0)


def test_the_scale_goes_as_torch_has_it():
    scaler = Scaler(LossScale(65536.0, growth_interval=3))
    for overflowed, scale, good in zip(OVERFLOWED, SCALES, GOOD, strict=True):
        scaler.update(bool(overflowed))
        assert (scaler.scale, scaler.good) == (scale, good)


def test_the_scale_stays_in_binary32():
    scaler = Scaler(LossScale(2.0**127, growth_interval=1))
    scaler.update(False)
    assert (scaler.scale, scaler.good) == (2.0**127, 0)
    least = Scaler(LossScale(2.0**-149, growth_interval=1))
    least.update(True)
    assert least.scale == 0


@pytest.mark.parametrize("scale", [0, -1, float("nan"), float("inf"), 1e39, "x", 1e-60, None])
def test_scales_that_there_are_not(scale):
    with pytest.raises(fl.FloatlabError, match="loss scale must be a"):
        LossScale(scale)


def test_a_scale_that_no_gradient_survives_ends_the_run():
    found = fl.train([1.0], np.array([[np.inf]] * 200), lr=1, steps=200, remedies="master+dynamic")
    run = found["master+dynamic"]
    assert "the loss scale fell to zero" in run.diverged.why
    assert run.final.tolist() == [1.0]


@pytest.mark.parametrize(
    ("format", "kind", "smallest", "normal", "largest"),
    [("fp16", np.float16, 2.0**-24, 2.0**-14, 65504.0), ("e5m2", None, 2.0**-16, 2.0**-14, 57344.0)],
)
def test_underflow_is_what_a_cast_loses(format, kind, smallest, normal, largest):
    import ml_dtypes

    rng = np.random.default_rng(0)
    given = np.float32(rng.standard_normal(5000) * 2.0 ** rng.integers(-40, 5, 5000))
    given[:7] = 0
    found = measure_underflow(given, format)
    with np.errstate(all="ignore"):
        cast = np.abs(np.float64(given.astype(kind or ml_dtypes.float8_e5m2)))
    assert (found.total, found.nonzero) == (5000, 4993)
    assert found.flushed == ((cast == 0) & (given != 0)).sum()
    assert found.subnormal == ((cast > 0) & (cast < normal)).sum()
    assert sum(found.counts) == 4993
    assert found.histogram[0] == (found.exponents[0], found.counts[0])
    most, least = np.abs(given[7:]).max(), np.abs(given[7:]).min()
    with np.errstate(all="ignore"):
        for scale, survives in ((found.safe_scale, True), (2 * found.safe_scale, False)):
            assert np.isfinite(np.float64((most * np.float32(scale)).astype(kind or ml_dtypes.float8_e5m2))) == survives
    assert float(least) * found.least_scale > smallest / 2 >= float(least) * found.least_scale / 2
    assert measure_underflow(given, format, found.safe_scale).flushed == found.flushed_by_safe_scale < found.flushed
    assert measure_underflow(given, format, found.safe_scale).overflowed == 0
    assert measure_underflow(given, format, found.safe_scale * 2).overflowed > 0


def test_formats_without_infinities_overflow_too():
    found = measure_underflow([500.0, 1.0], "e4m3", scale=2)
    assert (found.overflowed, found.safe_scale) == (1, 0.5)


def test_nothing_to_measure():
    found = measure_underflow([0.0, float("nan")], "fp16")
    assert (found.nonzero, found.not_finite, found.safe_scale, found.lost_share) == (0, 1, None, 0.0)
    with pytest.raises(fl.FloatlabError, match="gradients has no numbers"):
        measure_underflow([], "fp16")
    with pytest.raises(fl.FloatlabError, match="e8m0fnu, which has no zero and no sign"):
        measure_underflow([1.0], "e8m0")
    with pytest.raises(fl.FloatlabError, match="loss scale must be a finite number above 0"):
        measure_underflow([1.0], "fp16", scale=0)


@pytest.mark.parametrize(
    ("asked", "match"),
    [
        ({"start": float("nan")}, "start must be a finite number, not nan"),
        ({"start": [1.0, float("inf")]}, r"start\[1\] is inf"),
        ({"start": "nan"}, "start must be a finite number, not 'nan'"),
        ({"start": 1e5}, "start 100000 is beyond binary16"),
        ({"start": [[1.0]]}, "start must be a number or a row of numbers"),
        ({"start": []}, "start"),
        ({"update": float("inf")}, "update must be a finite number"),
        ({"update": [1.0, 2.0], "start": [1.0, 2.0, 3.0]}, "2 numbers for 3 weights"),
        ({"update": [1.0, 2.0], "steps": 3}, "numbers for 2 steps, not for 3"),
        ({"update": lambda w, k: "x"}, "and returns 1 number: could not convert"),
        ({"update": lambda w: w}, "takes the weights and the step number"),
        ({"update": lambda w, k: [1.0, 2.0]}, "and returns 1 number"),
        ({"remedies": "magic"}, "there is no remedy 'magic'"),
        ({"remedies": "static:0"}, "the scale of static must be a finite number above 0"),
        ({"remedies": "static:nan"}, "the scale of static must be a finite number above 0"),
        ({"remedies": "kahan:3"}, "takes no argument"),
        ({"remedies": "master:e8m0"}, "master is e8m0fnu, which has no zero"),
        ({"remedies": "master:x"}, "'x'"),
        ({"remedies": "e8m0"}, "weights is e8m0fnu"),
        ({"remedies": ""}, "remedies is empty"),
        ({"grads": "e8m0"}, "grads is e8m0fnu, which has no zero and no sign"),
        ({"weights": "e8m0"}, "weights is e8m0fnu"),
        ({"weights": "fp128"}, "binary128 has numbers that binary64 does not hold"),
        ({"grads": "e2m1", "remedies": "dynamic"}, "neither an infinity nor a NaN"),
        ({"weights": "mxfp4", "remedies": "kahan"}, "give them a master copy"),
        ({"steps": -1}, "steps must be a whole number"),
        ({"steps": 1.5}, "steps must be a whole number"),
        ({"lr": 1}, "updates are added without a learning rate"),
        ({"optimizer": "adam"}, "optimizer 'adam' needs gradients"),
    ],
)
def test_refusals(asked, match):
    with pytest.raises(fl.FloatlabError, match=match):
        fl.train(**({"start": 1.0, "update": 0.1, "steps": 2} | asked))


def test_weights_that_become_no_numbers_say_so():
    run = fl.train(60000.0, update=3000.0, steps=50, remedies="plain")["plain"]
    assert (run.diverged.step, run.steps, run.diverged.why) == (2, 2, "w became inf in binary16")
    kept = fl.train(60000.0, update=3000.0, steps=50, remedies="master")["master"]
    assert (kept.steps, kept.diverged.why, kept.kept[-1]) == (2, "w became inf in binary16", 66000.0)
    gone = fl.train([1.0, 1.0], np.array([[1.0, 1.0], [1.0, 1e6]]), lr=1, steps=2, remedies="plain")
    assert gone["plain"].diverged.why == "the gradient became inf in binary16"
    assert (gone["plain"].diverged.step, gone["plain"].diverged.element) == (2, 1)
    assert gone.lines[0].diverged == gone["plain"].diverged.why
    adam = fl.train(1.0, 2.0**-20, optimizer="adam", lr=2**-10, steps=5, remedies="plain")["plain"]
    assert "division by zero: √v and eps are zero in binary16" in adam.diverged.why


@pytest.mark.one_in(2)
@pytest.mark.parametrize("rounding", ["RTN", "RTP", "RTZ", "RNE"])
def test_scales_hold_for_both_signs(rounding):
    gradients = [3e-9, -5e-12, 40.0, -0.7]
    found = measure_underflow(gradients, "e6m4", rounding=rounding)
    for exponent in range(-60, 60):
        there = measure_underflow(gradients, "e6m4", 2.0**exponent, rounding)
        assert (not there.flushed) == (2.0**exponent >= found.least_scale)
        assert (not there.overflowed) == (2.0**exponent <= found.safe_scale)


def test_gradients_that_no_scale_of_binary64_keeps():
    found = measure_underflow([5e-324, 1.0], "fp16")
    assert (found.least_scale, found.safe_scale, found.flushed_by_safe_scale) == (None, 2.0**15, 1)
    assert measure_underflow([1e-310], "fp32").least_scale == 2.0**880
