"""Pages of training: their statements on a step, many steps and gradients agree with the model."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab import Context, train
from floatlab.page.model import Role, Row
from floatlab.page.text_layout import to_text
from floatlab.training.gradient_check import check_gradient, sweep_steps
from floatlab.training.learner import LearningComparison, learn
from floatlab.training.optimizers import SGD, Adam
from floatlab.training.setup import Setup
from floatlab.training.trace import Why, step
from floatlab.training.underflow import measure_underflow
from floatlab.verbs.train.gradients_page import GradientCheck, check_page, outcome_of, underflow_page
from floatlab.verbs.train.network_page import Learnings, network_page, verdict_words
from floatlab.verbs.train.run_page import training_page, values_chart
from floatlab.verbs.train.step_page import stage_table, step_page, why_words
from floatlab.verbs.train.words import (
    CAUSES,
    figures,
    long_figures,
    optimizer_words,
    remedy_words,
    setup_words,
)


def text(page, width=80):
    return " ".join(to_text(page, width).split())


def test_every_cause_has_its_words():
    assert set(CAUSES) == set(Why)


STEPS = {
    Why.MOVED: step("1.125", "0.001"),
    Why.NO_UPDATE: step("1", "0"),
    Why.GRADIENT_VANISHED: step("1", "1e-9"),
    Why.UPDATE_VANISHED: step("1", grad="2^-20", lr="2^-10"),
    Why.BELOW_HALF: step("1.125", "0.00041999"),
    Why.TIE: step("1", "2^-11"),
    Why.BY_DIRECTION: step("1", "0.0009", setup=Setup("fp16", context=Context("RTZ"))),
    Why.CONVERTED: step("1", "2^-12", accumulator="fp32"),
    Why.COMPENSATED: step("1", "2^-12", compensated=True),
    Why.IN_MASTER: step("1", "2^-12", master="fp32"),
    Why.NOT_FINITE: step("60000", "60000"),
}  # fmt: skip


@pytest.mark.parametrize("why", STEPS, ids=lambda why: why.name)
def test_a_step_says_why(why):
    found = STEPS[why]
    assert found.why is why
    assert why_words(found) in text(step_page(found), 1000)
    assert len(stage_table(found).rows) == len(found.stages)


def test_a_draw_tells_its_chance():
    found = step("1", "2^-12", setup=Setup("fp16", context=Context("SR", seed=3)))
    said = text(step_page(found))
    assert "probability 0.25 that such a step moves w" in said
    assert "certainly above 2^-10" in said


def test_thresholds_are_told_in_ulps_of_what_the_update_meets():
    said = text(step_page(step("1", grad="1", lr="0.1", master="fp32")))
    assert "moves up just above 2^-24, 0.5 ulp of the master copy" in said
    assert "moves down just above 2^-25, 0.25 ulp of the master copy" in said


def test_stages_of_adam_fit_and_its_corrections_are_numbers():
    found = step("0.5", grad="0.003", optimizer=Adam("0.001"), weights="bf16", master="fp32")
    page = to_text(step_page(found, brief=True))
    assert "u ← lr/c1 × q        binary32  0x3a831252" in page  # one line each, since errors are short
    assert "−0.488006591796875" not in page
    assert f"in this step lr/c1 0.01, c2 {np.float32((1 - 0.999) ** 0.5)!s}" in text(step_page(found))
    assert "in this step" not in text(step_page(step("0.5", grad="0.003", lr="0.1")))


def test_what_is_no_number_any_more_is_no_good_end():
    found = step("0.5", grad="0.003", optimizer=Adam("0.001"), weights="fp16")
    moved = next(each for each in step_page(found).blocks if isinstance(each, Row) and each.label == "moved")
    assert found.moved
    assert moved.content[0].role is Role.BAD


def test_values_of_a_run_are_numpys():
    page = to_text(training_page(train("1.125", update="0.00041999", steps=101, remedies="fp32 master")))
    w, master = np.float32(1.125), np.float32(1.125)
    singles, halves = [], []
    for k in range(1, 102):
        w, master = w + np.float32(0.00041999), master + np.float32(np.float16(0.00041999))
        if k in (1, 2, 51, 101):
            singles.append(str(w))
            halves.append(str(np.float16(master)))
    table = page.partition("remedy")[2].partition("Outcome of")[0]
    rows = {line.split()[1]: line.split()[2:6] for line in table.splitlines() if line[2:4] in ("a ", "b ")}
    assert rows["fp32"] == singles
    assert rows["master"] == halves


def test_several_weights_are_drawn_by_how_far_off_they_are():
    found = train(["1", "2"], update=["1e-4", "1e-2"], steps=20, remedies="plain fp32")
    chart = values_chart(found)
    assert chart.log_up
    assert [each.label for each in chart.curves] == ["plain", "fp32"]
    exact = Fraction("20") * Fraction("0.0001") / 2  # the first weight never moves in binary16
    plain = abs(found.runs[0].values[-1][1] - 2.2) / 2
    assert chart.curves[0].points[-1][1] == pytest.approx(float(exact) + plain, rel=1e-6)
    assert "1 of 2 weights stalled" in text(training_page(found))


def test_runs_that_diverge_say_where():
    page = text(training_page(train("60000", update="1000", steps=20, remedies="plain fp32")))
    assert "diverged: w became inf in binary16" in page
    assert "ended" in page


def test_remedies_and_setups_in_words():
    assert remedy_words("bf16+kahan") == "bfloat16 everywhere; each weight carries its rounding error"
    assert remedy_words("master:bf16") == "a master copy in bfloat16 receives the updates"
    assert remedy_words("e5m10+dynamic:128") == "e5m10 everywhere; the loss scale adapts, from 128"
    assert setup_words(Setup("mxfp4", master="fp32")).startswith("weights in mxfp4, gradients in binary32, a master")
    assert optimizer_words(SGD("0.1", 0.9, 0.01)) == "SGD, learning rate 0.1, momentum 0.9, weight decay 0.01"
    assert (figures(Fraction(-1, 3)), long_figures(Fraction(-1, 4))) == ("−0.3333", "−0.25")


def test_networks_are_told_beside_the_reference():
    found = learn("linear", "fp32 bf16", seeds=2, steps=100, samples=8)
    page = text(network_page(Learnings.of(found)))
    assert "bf16 is worse than fp32, beyond the noise of 2 seeds" in page
    assert "loss, geometric mean over seeds" in page
    said = verdict_words(
        [LearningComparison("fp32", (1.0,), 1.0, 1.0, False, 0), LearningComparison("x", (1.0,), 1.0, 1.0, True, 1)],
        "fp32",
        1,
    )
    assert [words for words, _ in said] == ["x diverged"]


def test_bins_of_gradients_end_where_fates_change():
    x = 2.0 ** np.arange(-40.0, 20.0)
    found = measure_underflow(x, "fp16")
    page = to_text(underflow_page(found))
    lines = [line for line in page.splitlines() if line.startswith("  2^")]
    fates = {line.split("%")[1].strip() for line in lines}
    assert fates == {"zero", "zero or smallest", "subnormal", "", "overflow"}
    for exponent in range(-40, 20):
        half = np.float64(1.5 * 2.0**exponent)
        with np.errstate(all="ignore"):
            rounded = np.float16(half)
        fate = outcome_of(exponent, found)
        assert (fate == "overflow") == bool(np.isinf(rounded))
        assert (fate == "zero") == (rounded == 0)
        assert (fate == "") == (np.isfinite(rounded) and rounded >= 2.0**-14)


def test_a_scale_that_loses_nothing_is_said_and_one_that_must():
    said = text(underflow_page(measure_underflow([1e-9, 0.25], "fp16")))
    assert "any loss scale from 32 to 131,072 loses no gradient" in said
    said = text(underflow_page(measure_underflow([1e-9, 60000.0], "fp16")))
    assert "every scale loses gradients: 1 still loses 1, 50 %" in said


def test_the_best_step_is_told_and_what_spoils_the_others():
    curves = [sweep_steps(lambda x: x * x * x, 1.5, way=way) for way in ("forward", "central")]
    page = text(check_page(GradientCheck("x^3", tuple(curves), check_gradient(lambda x: x * x * x, 1.5, 6.8))))
    assert page.startswith("x^3 at 1.5 in binary32: its derivative is 6.75; 6.8 is wrong")
    assert f"central, best {curves[1].best.h:.2e}" in page
    assert "rounding" in page
    assert "a bug: the mismatch is more than ten times" in page
