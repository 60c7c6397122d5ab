"""Networks in formats: steps equal those of NumPy and ml_dtypes, and losses differ as in the literature."""

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.training.learner import Learner, compare_learnings, learn
from floatlab.training.networks import Configuration, Network, exact_loss, make_problem

SMALL = {"samples": 16, "features": 4, "hidden": 8}


def product(a, b, kind=np.float32):
    """Sum products serially, each rounded."""
    total = np.zeros((a.shape[0], b.shape[1]), kind)
    for k in range(a.shape[1]):
        total = total + a[:, k : k + 1].astype(kind) * b[k : k + 1].astype(kind)
    return total


def two_layers(problem, w, forward, backward, outputs, grads, scale, accumulator=np.float32):
    """One pass of a network with one hidden layer; gradients times the scale, as a row."""
    (w1, b1), (w2, b2) = ((m.astype(forward), b.astype(np.float32)) for m, b in problem.split(w))
    x, n = problem.x.astype(forward), len(problem.x)
    z1 = (product(x, w1, accumulator).astype(np.float32) + b1).astype(outputs)
    a1 = np.maximum(z1.astype(np.float32), 0).astype(forward)
    z2 = (product(a1, w2, accumulator).astype(np.float32) + b2).astype(outputs)
    e = (z2.astype(np.float64) - problem.y.astype(np.float64)).astype(accumulator)
    d2 = (e.astype(np.float32) * np.float32(accumulator(np.float32(2 * scale / n)))).astype(backward)
    ones = np.ones((1, n), np.float32)
    back = product(d2, w2.T, accumulator).astype(np.float32)
    d1 = np.where(a1.astype(np.float32) > 0, back, np.float32(0)).astype(backward)
    parts = [product(x.T, d1, accumulator), product(ones, d1, accumulator)]
    parts += [product(a1.T, d2, accumulator), product(ones, d2, accumulator)]
    return z2, np.concatenate([each.astype(grads).astype(np.float64).reshape(-1) for each in parts])


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("fp32", (np.float32, np.float32, np.float32, np.float32)),
        ("fp16", (np.float16, np.float16, np.float16, np.float16)),
        ("bf16", (ml_dtypes.bfloat16,) * 4),
        ("fp8", (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, ml_dtypes.bfloat16, ml_dtypes.bfloat16)),
    ],
)
def test_a_pass_is_numpys(name, kinds):
    problem = make_problem(seed=3, **SMALL)
    network = Network(problem, Configuration.named(name))
    for scale in (1.0, 64.0):
        found = network.step(problem.start, scale)
        outputs, gradients = two_layers(problem, problem.start, *kinds, scale)
        assert np.array_equal(found.outputs, outputs.astype(np.float32))
        assert np.array_equal(found.gradients, gradients)


def test_products_in_a_narrow_accumulator():
    problem = make_problem(seed=3, **SMALL)
    configuration = Configuration("narrow", fl.training.Setup("fp16"), "fp16", accumulator="fp16")
    found = Network(problem, configuration).step(problem.start)
    halves = (np.float16,) * 4
    outputs, gradients = two_layers(problem, problem.start, *halves, 1.0, np.float16)
    assert np.array_equal(found.outputs, outputs.astype(np.float32))
    assert np.array_equal(found.gradients, gradients)


def test_products_of_a_machine():
    problem = make_problem(seed=3, **SMALL)
    configuration = Configuration("cores", fl.training.Setup("fp16"), "fp16", machine="hopper.f16.f32")
    layer = problem.split(problem.start)[0]
    z = np.float32(fl.matmul(np.float16(problem.x), np.float16(layer[0]), machine="hopper.f16.f32"))
    assert np.array_equal(Network(problem, configuration)._forward([layer])[1], np.float16(z + layer[1]))


@pytest.mark.parametrize("kind", ["linear", "logistic", "network"])
def test_gradients_are_those_of_the_loss(kind):
    problem = make_problem(kind, seed=5, **SMALL)
    network = Network(problem, Configuration.named("fp64"))
    found = network.step(problem.start.astype(np.float64)).gradients
    for i in range(0, problem.parameters, 7):
        h = np.zeros(problem.parameters)
        h[i] = 1e-6
        slope = (exact_loss(problem, problem.start + h) - exact_loss(problem, problem.start - h)) / 2e-6
        assert found[i] == pytest.approx(slope, abs=1e-7, rel=1e-5)


def test_learning_is_steps_of_the_optimizer():
    problem = make_problem("linear", seed=2, **SMALL)
    learner = Learner(problem, "fp16+master", lr=0.05, every=5)
    learner.advance(20)
    m, lr = problem.start.copy(), np.float32(0.05)
    network = Network(problem, Configuration.named("fp16"))
    for _ in range(20):
        m = m - lr * np.float32(network.step(np.float16(m)).gradients)
    assert np.array_equal(learner.learning.weights, np.float16(m))
    assert learner.learning.at.tolist() == [0, 5, 10, 15, 20]
    assert learner.learning.final == exact_loss(problem, np.float16(m))


def test_problems_come_from_their_seeds():
    one, same, other = (make_problem("logistic", seed) for seed in (1, 1, 2))
    assert np.array_equal(one.x, same.x)
    assert np.array_equal(one.start, same.start)
    assert not np.array_equal(one.x, other.x)
    assert set(one.y.reshape(-1).tolist()) == {0.0, 1.0}
    assert make_problem().parameters == 1009


def test_curves_part_over_two_seeds():
    found = compare_learnings(learn("linear", "fp32 bf16 bf16+master", seeds=2, steps=200, lr=0.01, **SMALL))
    assert [each.worse for each in found] == [False, True, False]
    assert found[1].ratio > 1.5


def test_divergence_has_a_name():
    found = learn("linear", "fp16", steps=50, lr=30, **SMALL)[0][0]
    assert "in binary16" in found.diverged.why
    assert np.isnan(found.final)
    assert compare_learnings([[found]], "fp16")[0].worse


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: make_problem("cubic"), "problem must be one of"),
        (lambda: make_problem(samples=0), "samples must be a whole number"),
        (lambda: make_problem(seed=-1), "a seed must be a whole number"),
        (lambda: learn("linear", "fp16+magic"), "there is no remedy 'magic'"),
        (lambda: learn("linear", "master"), "begins with a remedy"),
        (lambda: learn("linear", "e8m0"), "weights is e8m0fnu, which has no zero and no sign"),
        (lambda: learn("linear", "fp99"), "fp99"),
        (lambda: learn("linear", ""), "configurations is empty"),
        (lambda: learn("linear", "fp32", seeds=0), "seeds must be a whole number"),
        (lambda: learn(make_problem(), "fp32", samples=3), "samples is for a problem given by name"),
        (lambda: learn("linear", "fp32", lr=0), "learning rate must be a finite number above 0"),
        (lambda: learn("linear", "fp32", steps=-1), "steps must be a whole number"),
        (
            lambda: compare_learnings(learn("linear", "bf16", steps=1, **SMALL)),
            "the reference, fp32, is not among bf16",
        ),
        (lambda: make_problem(weight=0), "weight must be a finite number above 0"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(fl.FloatlabError, match=match):
        call()


SIZES = {"seeds": 10, "steps": 1500, "samples": 32, "features": 8, "hidden": 16}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp16", "bf16", "fp8"])
def test_curves_part_where_the_literature_says(name):
    """Over ten seeds narrow weights alone end worse than fp32 (Micikevicius et al. 2018)."""
    found = {each.label: each for each in compare_learnings(learn("network", f"fp32 {name}", **SIZES))}[name]
    assert found.worse, found
    assert found.ratio > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fp16+master", "fp16+master+dynamic", "bf16+stochastic", "bf16+kahan", "bf16+master"])
def test_remedies_help_where_the_literature_says(name):
    found = {each.label: each for each in compare_learnings(learn("network", f"fp32 {name}", **SIZES))}[name]
    assert not found.worse, found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_worse"),
    [("fp16", True), ("fp16+dynamic", True), ("fp16+master", True), ("fp16+master+dynamic", False)],
)
def test_small_gradients_need_a_loss_scale_too(name, is_worse):
    made = learn("network", f"fp32 {name}", weight=2.0**-18, lr=5000, **SIZES)
    assert {each.label: each.worse for each in compare_learnings(made)} == {"fp32": False, name: is_worse}


@pytest.mark.slow
def test_a_thousand_parameters_for_a_thousand_steps():
    learner = Learner(make_problem(), "fp16+master+dynamic")
    learner.advance(1000)
    assert learner.seconds < 30


@pytest.mark.parametrize("noise", ["nan", -1, 1e300])
def test_noise_that_answers_cannot_have_is_refused(noise):
    with pytest.raises(fl.UnsupportedError, match="noise"):
        make_problem("linear", noise=noise)
