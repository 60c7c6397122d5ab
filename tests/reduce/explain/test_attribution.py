"""Attribution of the numbers in the forum question and in the white paper, and of matrix products; invalid results."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import floatlab as fl
from floatlab.arrays.sources import source_of
from floatlab.errors import FloatlabError
from floatlab.reduce.explain.attribution import attribute
from floatlab.reduce.replay.candidates import EXACT_SUM, list_candidates
from floatlab.reduce.replay.causes import Cause, Verdict
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.observations import parse_printed
from floatlab.reduce.results.presets import PRESETS
from floatlab.reduce.reveal.revelation import examine
from floatlab.reduce.simulate.adders import Joined

FORUM = PRESETS["forum"].data
PRINTED = ("0.0559577", "0.0559577569366")
DIFFERENCE = "8.19563865662e-08"


def fitting(explanations):
    return {each.text for each in explanations if each.fits}


def test_the_forum_question_is_explained_by_order_and_fma_together():
    found = attribute(*FORUM, PRINTED, difference=DIFFERENCE)
    assert found.verdict is Verdict.BOTH
    pairs = {(pair.first.text, pair.second.text): pair for pair in found.pairs}
    assert {first for first, _ in pairs} == {"reversed", "pairwise", "reversed(pairwise)"}
    for pair in found.pairs:
        assert pair.first.codes.tolist() == [0x3D6533E0]
        assert pair.second.codes.tolist() == [0x3D6533F6]
    # Neither the serial order without FMA nor FMA in one order explains both results.
    assert not any(pair.first.text == "serial" for pair in found.pairs)
    assert not any(pair.causes in ((Cause.FMA,), (Cause.ORDER,)) for pair in found.pairs)
    assert ("pairwise", "serial with FMA") in pairs
    by_order, by_fma = pairs["pairwise", "serial with FMA"].paths
    assert [int(codes[0]) for codes in by_order.codes] == [0x3D6533E0, 0x3D6533F0, 0x3D6533F6]
    assert by_order.steps == [(Cause.ORDER, 16), (Cause.FMA, 6)]
    assert [int(codes[0]) for codes in by_fma.codes] == [0x3D6533E0, 0x3D653400, 0x3D6533F6]
    assert by_fma.steps == [(Cause.FMA, 32), (Cause.ORDER, -10)]
    same = {each.text for each in pairs["pairwise", "serial with FMA"].first.same}
    assert {"adjacent", "lanes(4)", "lanes(8)", "splitk(2)"} <= same


def test_each_printed_result_lists_all_that_print_so():
    without = attribute(*FORUM, PRINTED)
    first, second = without.explanations
    assert {"serial", "pairwise", "reversed"} <= fitting(first)
    assert "serial with FMA" not in fitting(first)
    assert fitting(second) == {"serial with FMA"}
    # Without the printed difference, the result with seven digits does not exclude the serial order.
    assert without.verdict is Verdict.FMA


def test_an_order_is_told_from_an_fma():
    codes = {(s, fma): fl.dot(*FORUM, s, fma=fma).result for s in ("serial", "pairwise") for fma in (False, True)}
    order = attribute(*FORUM, (codes["serial", False], codes["pairwise", False]), schedules=["serial", "pairwise"])
    assert order.verdict is Verdict.ORDER
    assert order.pairs[0].paths[0].steps == [(Cause.ORDER, -16)]
    fused = attribute(*FORUM, (codes["serial", False], codes["serial", True]))
    assert fused.verdict is Verdict.FMA
    assert attribute(*FORUM, (codes["serial", True], codes["serial", True])).verdict is Verdict.SAME


@pytest.mark.parametrize(
    ("code", "way"),
    [(0x3D653510, "serial"), (0x3D653501, "serial with FMA"), (0x3D653500, "pairwise"), (0x3D653501, EXACT_SUM)],
)
def test_the_white_paper(code, way):
    found = attribute(*PRESETS["paper"].data, fl.decode(code, "fp32"))
    texts = fitting(found.explanations[0])
    assert ("exact, rounded once" if way is EXACT_SUM else way) in texts
    assert found.explanations[0][0].fits


def test_a_large_product_is_attributed_to_the_order_and_fma_that_made_it():
    rng = np.random.default_rng(6)
    a, b = (rng.random((400, 400), np.float32) for _ in range(2))
    plain, fused = fl.matmul(a, b), fl.matmul(a, b, fma=True)
    found = attribute(a, b, (plain, fused))
    first, second = (ranked[0] for ranked in found.explanations)
    assert (first.text, first.matching, first.fits) == ("serial", 160_000, True)
    assert (second.text, second.matching, second.fits) == ("serial with FMA", 160_000, True)
    assert found.verdict is Verdict.FMA
    (shown,) = [each for each in found.explanations[1] if each.text == "serial"]
    assert shown.total == 160_000
    assert shown.matching == int((plain == fused).sum())
    assert all(not each.fits for each in found.explanations[1][1:])


def test_numpys_own_product_is_told_by_its_share():
    rng = np.random.default_rng(7)
    a, b = (rng.random((64, 64), np.float32) for _ in range(2))
    (ranked,) = attribute(a, b, np.matmul(a, b)).explanations
    for each in ranked[:3]:
        assert each.schedule is not None
        simulated = fl.matmul(a, b, each.schedule, fma=each.fma, accumulator=each.accumulator, products=each.products)
        assert each.matching <= 64 * 64
        assert ranked[0].matching >= each.matching
        if each.accumulator.name == "binary32" and each.total == 64 * 64:
            assert each.matching == int((simulated == np.matmul(a, b)).sum())


def test_models_of_matrix_units_and_exact_sums():
    rng = np.random.default_rng(8)
    a, b = (rng.standard_normal((20, 64)).astype(np.float16) for _ in range(2))
    observed = fl.matmul(a, b.T, machine="hopper.f16.f32")
    ranked = attribute(a, b.T, observed).explanations[0]
    assert [row.name for row in ranked[0].machines] == ["hopper.f16.f32", "blackwell.f16.f32", "rtxblackwell.f16.f32"]
    exact = attribute(a, b.T, (a.astype(np.float64) @ b.T.astype(np.float64)).astype(np.float32))  # exact sums
    assert "exact, rounded once" in fitting(exact.explanations[0])


def test_exact_products_of_matrices_equal_exact_sums_one_by_one():
    rng = np.random.default_rng(9)
    a, b = (rng.standard_normal((40, 30)).astype(np.float32) for _ in range(2))
    a[3], b[4, 5], a[5, 2], b[:, 7] = 0, np.inf, np.nan, 2.0**-140
    left, right = a, b.T.copy()

    evaluator = Evaluator((source_of(left), source_of(right)), fl.parse_format("fp32"))
    assert evaluator.is_sampled
    whole = evaluator.whole(EXACT_SUM)
    assert (whole[evaluator.places] == evaluator.sampled(EXACT_SUM)).all()
    i, j = 11, 13
    total = sum(Fraction(float(x)) * Fraction(float(y)) for x, y in zip(left[i], right[:, j], strict=True))
    assert whole.reshape(40, 40)[i, j] == fl.encode(total, "fp32").code


def test_products_rounded_on_their_own_are_the_same_as_the_terms_of_a_sum():
    rng = np.random.default_rng(10)
    a, b = (rng.standard_normal((40, 30)).astype(np.float32) for _ in range(2))
    evaluator = Evaluator((source_of(a), source_of(b.T.copy())), fl.parse_format("fp32"))
    kinds = [
        each
        for each in list_candidates(30, (evaluator.into, evaluator.into), evaluator.into)
        if each.adder and not each.machines
    ]
    mixed = [each for each in kinds if each.adder.products != each.adder.accumulator]
    assert mixed
    for each in mixed[:3]:
        wanted = fl.matmul(a, b.T, each.schedule, products="fp32", accumulator="fp64", format="fp32")
        assert (evaluator.whole(each)[evaluator.places] == evaluator.sampled(each)).all()
        assert (evaluator.whole(each).view(np.float32).reshape(40, 40) == wanted).all()


def test_evidence_that_is_weak_is_told_so():
    found = attribute([1.0, 2.0, 4.0], [1.0, 1.0, 1.0], (7.0, 7.0))
    assert found.verdict is Verdict.SAME
    assert found.pair_count >= len(found.pairs)
    assert len(found.fitting[0]) > 5


@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(1, 12))
def test_what_is_printed_stands_for_what_was_printed(x, digits):
    datum = fl.encode(x, "fp32")
    assert parse_printed(f"{x:.{digits}e}").fits(datum)
    assert parse_printed(f"{x:.{digits}f}").fits(datum)
    assert parse_printed(np.format_float_scientific(np.float32(x))).fits(datum)


def test_nan_is_nan_and_nothing_is_nothing():
    x = np.float32([1, np.nan, 2])
    assert attribute(x, x, float("nan")).explanations[0][0].fits
    assert attribute(x, x, "nan").explanations[0][0].fits
    none = attribute([1.0, 2.0], [3.0, 4.0], 12.0)
    assert none.fitting == ((),)
    assert none.text.startswith("not explained by any tried")
    assert attribute([1.0, 2.0], [3.0, 4.0], (11.0, 12.0)).verdict is Verdict.NONE


@pytest.mark.parametrize(
    ("a", "b", "observed", "more", "said"),
    [
        ([1.0], [2.0], "pear", {}, "'pear' is not a number"),
        ([1.0], [2.0], "1e99999999", {}, "out of the range of every format"),
        ([1.0], [2.0], "1e999999", {}, "out of the range of every format"),
        ([1.0], [2.0], "1" * 5000, {}, "too many digits"),
        (["1"], ["2"], 0.1, {}, "not a number of binary32"),
        ([1.0], [2.0, 3.0], 2.0, {}, "do not make a matrix product"),
        ([1.0], [2.0], [2.0, 3.0], {}, "observed has shape"),
        ([1.0], [2.0], (1.0, 2.0, 3.0), {}, "tuple of two, not of 3"),
        ([1.0], [2.0], (np.float32(1), np.float64(1)), {}, "must have one format"),
        ([], [], 0.0, {}, "empty|nothing to add"),
        ([[1.0]], [[2.0]], "2", {}, "text, which is for a single dot product"),
        ([1.0], [2.0], 2.0, {"difference": 1.0}, "difference needs two"),
        ([1.0], [2.0], (2.0, 3.0), {"difference": "nan"}, "difference must be a number"),
        ([1.0], [2.0], 2.0, {"schedules": "serial"}, "schedules must be a list"),
        ([1.0], [2.0], 2.0, {"schedules": [7]}, "7|int"),
        ([1.0], [2.0], 2.0, {"schedules": [], "formats": [], "machines": []}, "no candidates"),
        ([1.0], [2.0], 2.0, {"machines": ["abacus"]}, "abacus"),
        ([1.0], [2.0], None, {}, "observed"),
        ([1.0], [2.0], 2.0, {"targets": ["numpy.nothing"]}, "nothing"),
        ([1.0], [2.0], 2.0, {"targets": ["scipy.dot"]}, "the libraries are"),
        (["1@e4m3"], None, 1.0, {}, "1@e4m3|number"),
        (1.0, None, 1.0, {}, "a must be a row"),
        ([1.0, 2.0], None, [3.0], {}, "observed has shape"),
        ([1.0, 2.0], None, 3.0, {"machines": ["hopper.f16.f32"]}, "need two factors"),
        (fl.FloatArray([1.0], "e4m3"), None, "1", {"targets": ["numpy.sum"]}, "e4m3fn"),
        ([1.0], [2.0], np.array(["x"]), {}, "observed"),
    ],
)
def test_what_is_no_question_is_refused(a, b, observed, more, said):
    with pytest.raises(FloatlabError, match=said) as caught:
        attribute(a, b, observed, **more)
    assert "\n" not in str(caught.value)


def test_what_alone_does_not_explain_the_forum_question_is_said():
    fma, order = attribute(*FORUM, PRINTED, difference=DIFFERENCE).refutations
    assert (fma.cause, fma.first.text, fma.second.text) == (Cause.FMA, "serial", "serial with FMA")
    assert [int(codes[0]) for codes in fma.path.codes] == [0x3D6533F0, 0x3D6533F6]
    assert fma.path.steps == [(Cause.FMA, 6)]
    assert order.cause is Cause.ORDER
    assert fma.tried > 10
    assert order.tried > 100
    assert attribute(*FORUM, PRINTED).refutations == ()  # the printed results alone do not exclude FMA
    assert attribute(*FORUM, PRINTED[0]).refutations == ()


def test_sums_are_attributed_too():
    rng = np.random.default_rng(11)
    x = rng.standard_normal(200).astype(np.float32)
    for schedule in ("serial", "reversed", "lanes(16)"):
        result = fl.sum(x, schedule).result
        assert schedule in fitting(attribute(x, None, result).explanations[0])
        assert schedule in fitting(attribute(x, None, str(float(result))).explanations[0])
    assert "serial, accumulator binary64" in fitting(
        attribute(x, None, np.cumsum(x.astype(np.float64))[-1].astype(np.float32)).explanations[0]
    )
    rows = rng.standard_normal((30, 500)).astype(np.float32)
    found = attribute(rows, None, (rows.sum(axis=1), np.cumsum(rows, axis=1)[:, -1]))
    assert [ranked[0].text for ranked in found.explanations] == ["numpy", "serial"]
    assert found.verdict is Verdict.ORDER


LIBRARIES = {
    "numpy.sum": ("sum", lambda x: np.sum(x)),
    "numpy.dot": ("dot", np.dot),
    "numpy.einsum": ("dot", lambda x, y: np.einsum("i,i", x, y)),
    "numpy.matmul": ("matmul", np.matmul),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", LIBRARIES)
def test_what_reveal_claims_of_a_library_is_what_its_results_are_attributed_to(name, dtype):
    kind, call = LIBRARIES[name]
    rng = np.random.default_rng(12)
    for n in (33, 200, 700):
        shapes = {"sum": [(n,)], "dot": [(n,), (n,)], "matmul": [(64, n), (n, 64)]}[kind]
        given = [rng.standard_normal(shape).astype(dtype) for shape in shapes]
        found = attribute(*(*given, None)[:2], call(*given))
        seen = examine(name, n, dtype)
        best = found.explanations[0][0]
        assert seen.claim is not None
        if seen.agreeing == seen.elements:
            assert best.fits, (n, found.text)
        else:  # the library adds some elements in another order, so one order reproduces a share of all
            assert best.share > seen.agreeing / seen.elements - 0.06, (n, found.text)
            assert not best.fits
            assert "no candidate gives all" in found.text or "but" in found.text


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_results_of_torch_are_attributed_where_its_order_is_claimed(dtype):
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(13)
    for n in (40, 300, 1000):
        a, b = (torch.from_numpy(rng.standard_normal(shape).astype(dtype)) for shape in ((64, n), (n, 64)))
        for name, x, y, made in (
            ("torch.matmul", a, b, a @ b),
            ("torch.dot", a[0].clone(), b[:, 0].clone(), torch.dot(a[0].clone(), b[:, 0].clone())),
        ):
            found = attribute(x, y, made)
            explained = found.explanations[0][0].fits or found.tile_edges[0] is not None
            assert examine(name, n, dtype).claim is None or explained, (name, n, found.text)


def test_targets_are_tried_where_nothing_else_gives_all_or_where_they_are_named():
    def odd(x, y):  # adds the last five terms in binary64
        whole, rest = np.float32(0), 0.0
        for i in range(len(x) - 5):
            whole += x[i] * y[i]
        for i in range(len(x) - 5, len(x)):
            rest += float(x[i]) * float(y[i])
        return np.float32(rest + float(whole))

    rng = np.random.default_rng(14)
    x, y = (rng.standard_normal(40).astype(np.float32) for _ in "xy")
    found = attribute(x, y, odd(x, y), targets=[odd], schedules=["serial"], machines=[])
    (best, *_) = [each for each in found.explanations[0] if isinstance(each.adder, Joined)]
    assert best.fits
    assert best.text == "blocked(35) (odd here), one operand of the last addition in binary32, the other in binary64"
    assert {each.accumulator.name for each in best.candidate.adders} == {"binary32", "binary64"}
    assert attribute(x, y, odd(x, y), schedules=["serial"], machines=[]).fitting in (((),), found.fitting)
    named = attribute(x, None, fl.sum(x, "numpy").result, schedules=["serial"], targets=["numpy.sum"])
    assert "numpy (numpy.sum here)" in fitting(named.explanations[0])


def test_of_huge_products_a_sample_is_compared(monkeypatch):
    monkeypatch.setattr("floatlab.reduce.replay.evaluator._WHOLE", 1000)
    rng = np.random.default_rng(15)
    a, b = (rng.random((50, 50), np.float32) for _ in "ab")
    plain, fused = fl.matmul(a, b), fl.matmul(a, b, fma=True)
    found = attribute(a, b, (plain, fused))
    assert found.verdict is Verdict.FMA
    best = found.explanations[0][0]
    assert (best.fits, best.total, best.elements) == (True, 1024, 2500)
    assert best.summary == "all 1,024 elements that were compared, of 2,500, equal serial"


def test_ways_are_counted_while_they_are_tried():
    told = []

    def started(total, noun):
        told.append((total, noun))
        return told.append

    found = attribute(*FORUM, PRINTED, started=started)
    assert told == [(found.candidate_count, "candidates"), *[1] * found.candidate_count]


@pytest.mark.parametrize("axis", [0, 1])
def test_edges_that_were_made_in_another_way_are_found(axis):
    rng = np.random.default_rng(16)
    a, b = (rng.random((40, 40), np.float32) for _ in "ab")
    made, edge = fl.matmul(a, b, fma=True), (slice(37, 40), slice(None))[:: 1 if axis == 0 else -1]
    made[edge] = fl.matmul(a, b)[edge]
    (edge,) = attribute(a, b, made, targets=[]).tile_edges
    assert (edge.axis, edge.places, edge.rest.text, edge.explanation.text) == (
        axis, (37, 38, 39), "serial with FMA", "serial",
    )  # fmt: skip
    assert repr(edge) == f"TileEdge({edge.text})"
    made[20, 20] += 1  # now the other elements do not form a few rows or columns
    assert attribute(a, b, made, targets=[]).tile_edges == (None,)
    assert attribute(a, b, fl.matmul(a, b)).tile_edges == (None,)


def test_a_library_that_begins_with_zero_is_recognised_by_sums_of_nothing_but_minus_zero():
    a, b = np.random.default_rng(0).random((20, 16), np.float32), -np.random.default_rng(1).random((16, 24), np.float32)
    a[5] = 0
    made = fl.matmul(a, b, fma=True)
    assert np.signbit(made[5]).all()
    found = attribute(a, b, made + np.float32(0), targets=[])
    assert found.text == "all 480 elements equal serial with FMA"
    away = attribute(a, b, np.where(made == 0, np.float32(1), made), targets=[])
    assert "all 480" not in away.text.split(",")[0]
    swapped = attribute(a, -b, -made, targets=[])  # the result is +0 where the candidate gives +0
    assert "row 5" not in swapped.text
    assert not attribute(a, -b, np.where(made == 0, np.float32(-0.0), -made), targets=[]).explanations[0][0].fits


@pytest.mark.one_in(3)
@pytest.mark.parametrize("rounding", ["RNE", "RNA", "RTZ"])
def test_inputs_that_were_rounded_are_tried_where_no_order_gives_a_result(rounding):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((8, 64)).astype(np.float32), rng.standard_normal((64, 6)).astype(np.float32)
    a, b = (fl.arrays.quantize(side, "tf32", rounding=rounding) for side in (x, y))
    found = fl.attribute(x, y, fl.matmul(a, b))
    inputs = found.fitting[0][0].candidate.inputs
    assert inputs.format.name == "tf32"
    assert rounding in (inputs.rounding, *inputs.alike)
    assert "of inputs rounded to tf32" in found.text
    pair = fl.attribute(x, y, (fl.matmul(x, y), fl.matmul(a, b)))
    assert pair.verdict.value == "explained by inputs that were rounded"
    assert fl.attribute(x[0], None, str(float(fl.sum(a[0])))).fitting[0]


def test_rounded_inputs_are_named_beside_a_model_that_gives_the_same_number():
    named = 0
    for seed in range(3):
        x, y = np.random.default_rng(seed).standard_normal((2, 4)).astype(np.float32)
        total = np.float32(0)
        for one, other in zip(*((side.view(np.uint32) & 0xFFFFE000).view(np.float32) for side in (x, y)), strict=True):
            total += one * other
        fits = [each.candidate for each in attribute(x, y, total).fitting[0]]
        assert any(each.inputs and {each.inputs.rounding, *each.inputs.alike} >= {"RTZ"} for each in fits)
        named += any(each.machines for each in fits)
    assert named  # such a model rounds its inputs in the same way


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_exact_sums_of_zeros_have_the_sign_of_their_terms(zero):
    x = np.float32([[1, 2, -0.0], [-1, -2, -3], [0, 0, 0], [-0.0, -1, -0.0]])
    y = np.full((3, 2), zero, np.float32)
    y[1, 1] = -y[1, 1]
    evaluator = Evaluator((source_of(x), source_of(y)), fl.parse_format("fp32"))
    signs = evaluator.sampled(EXACT_SUM).view(np.float32).reshape(4, 2)
    terms = x[:, :, None] * y
    assert np.array_equal(np.signbit(signs), np.signbit(terms).all(axis=1))  # a sum of +0 and −0 is +0
