"""`sum`, `dot` and `matmul`: known results bit for bit, errors exactly, bounds that hold, and clear refusals."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab import Context, PlanError, UnsupportedError, dot, matmul, parse_format
from floatlab import sum as total
from floatlab.arrays.sources import Source
from floatlab.reduce import PRESETS, Adder, Compensated, Term, parse_schedule
from floatlab.reduce.results.reduction import MAX_TRACED, worst_nodes
from floatlab.reduce.simulate.compensated import RULES
from floatlab.reduce.simulate.exact_sum import exact_totals, matrix_totals
from tests.reduce.plan.test_schedules import schedules
from tests.reduce.values import sides, source, terms

# The four-term dot product of Whitehead and Fit-Florea: exact rationals, MPFR and C with hardware FMA agree on these.
KNOWN = {
    "forum": {
        ("serial", False): 0x3D6533F0, ("serial", True): 0x3D6533F6, ("((0 1) (2 3))", False): 0x3D6533E0,
        ("((0 1) (2 3))", True): 0x3D653400, ("reversed", False): 0x3D6533E0, ("reversed", True): 0x3D65340C,
    },
    "paper": {
        ("serial", False): 0x3D653510, ("serial", True): 0x3D653501, ("((0 1) (2 3))", False): 0x3D653500,
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("preset", "order"), [(name, order) for name, known in KNOWN.items() for order in known], ids=str
)
def test_the_white_papers_dot_product(preset, order):
    a, b = PRESETS[preset].data
    schedule, fma = order
    found = dot(a, b, schedule, fma=fma)
    assert found.result.code == KNOWN[preset][order] == found.nodes[-1].value.code
    assert found.exact == sum(x.exact.as_fraction() * y.exact.as_fraction() for x, y in zip(a, b, strict=True))


def test_the_forums_vectors_as_they_are_printed():
    a, b = ["1.907607", "-.7862027", "1.147311", ".9604002"], ["-.9355000", "-.6915108", "1.724470", "-.7097529"]
    preset = PRESETS["forum"]
    for vectors in ((a, b), ([float(x) for x in a], [float(x) for x in b]), (np.float64(a), np.float64(b))):
        found = dot(*vectors, format="fp32")
        assert tuple(found.x.codes.tolist()) == preset.a
        assert tuple(found.y.codes.tolist()) == preset.b
        assert found.result.code == 0x3D6533F0
    wide = dot(*preset.data, accumulator="fp64")
    assert wide.result.code == 0x3D653409
    assert wide.accumulated.format.name == "binary64"
    assert float(wide.condition) == pytest.approx(89.1, abs=0.05)
    assert str(Decimal(wide.exact.numerator) / wide.exact.denominator).startswith("0.05595782950295102864")


def test_the_papers_exact_result():
    exact = dot(*PRESETS["paper"].data).exact
    assert str(Decimal(exact.numerator) / exact.denominator).startswith("0.0559587528435")


def test_one_fused_multiply_add_is_seen():
    """FACTS of the probe: 2^-46 only if the second product is fused onto the first one's value."""
    a, b = np.float32([1, 1 + 2**-23]), np.float32([-(1 + 2**-22), 1 + 2**-23])
    assert float(dot(a, b, fma=True)) == 2**-46
    assert dot(a, b, fma=True).result.code == 0x28800000
    assert float(dot(a, b)) == 0
    assert float(dot(a[::-1], b[::-1], fma=True)) != 2**-46
    assert float(dot(a[::-1], b[::-1], "reversed", fma=True)) == 2**-46


@given(schedules(), st.integers(1, 30), st.booleans(), st.data())
@settings(max_examples=60)
def test_local_errors_add_up_and_bounds_hold(schedule, n, fma, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    rounding = data.draw(st.sampled_from(["RNE", "RTZ", "RTP", "RNA", "RTO", "SR"]))
    flush = data.draw(st.booleans())
    given = parse_format(data.draw(st.sampled_from(["binary16", "binary32", "e4m3fn", "bfloat16", "binary64"])))
    accumulator = data.draw(
        st.sampled_from(["binary16", "binary32", "e6m9", "binary64", "e8m0fnu", "p3109_k8p1se", "e5m2"])
    )
    context = Context(rounding, flush_results=flush)
    a, b = (source(rng, given, n, 0.02) for _ in "ab")
    for found in (
        total(a, schedule, accumulator=accumulator, context=context),
        dot(a, b, schedule, accumulator=accumulator, fma=fma, context=context),
        dot(a, b, schedule, format="binary32", accumulator=accumulator, fma=fma, context=context),
    ):
        nodes = found.nodes
        assert nodes[-1].value == found.accumulated
        if found.exact is None or any(not node.value.is_finite for node in nodes):
            assert found.bound is None or found.result.is_finite
            continue
        missed = sum((node.error or Fraction(0) for node in nodes), Fraction(0))
        if all(node.error is not None for node in nodes):
            assert found.accumulated.exact.as_fraction() - found.exact == missed
        if found.error is None:
            continue
        for bound in (found.bound, found.running_bound):
            assert bound is None or abs(found.error) <= bound
        assert found.error_ulps * found.result.ulp.as_fraction() == found.error


def test_bounds_are_there_and_not_absurd(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    x, y = rng.random(1000, np.float32), rng.random(1000, np.float32)
    for found in (total(x), dot(x, y), dot(x, y, fma=True), dot(x, y, "pairwise")):
        assert 0 < abs(found.error) <= found.running_bound <= found.bound
        assert found.bound <= 1.001 * 1000 * Fraction(1, 1 << 24) * found.magnitude
    assert dot(x, y, "pairwise").bound < dot(x, y).bound / 50


def test_no_bound_is_claimed_where_none_holds():
    big = [60000.0, 60000.0, -60000.0]
    assert total(big, format="fp16").bound is None
    assert total(big, format="fp16").error is None
    assert total([1.0, 2.0], context=Context(flush_inputs=True)).bound is None
    assert total([1.0, np.nan]).exact is None
    assert total([1.0, 2.0], adder="kahan").bound is None


@pytest.mark.parametrize("name", ["binary32", "binary64", "binary16", "e4m3fn", "e2m60"])
def test_exact_totals_are_exact(name, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    fmt = parse_format(name)
    x, y = source(rng, fmt, 300, 0), source(rng, fmt, 300, 0)
    for other in (None, y):
        data = [term.exact.as_fraction() for term in terms(x, other)]
        found = [each.as_fraction() for each in exact_totals(x, other)]
        assert found == [sum(data), sum(map(abs, data))]


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_matrix_totals_are_those_of_each_element(kind, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    a, b = (rng.standard_normal(shape).astype(kind) for shape in ((6, 70), (70, 5)))
    high, low, size = matrix_totals(a, b)
    for i, j in np.ndindex(6, 5):
        found = dot(a[i], b[:, j])
        assert high[i, j] == found.exact.numerator / found.exact.denominator
        assert abs(Fraction(high[i, j]) + Fraction(low[i, j]) - found.exact) < found.magnitude / (1 << 90)
        assert size[i, j] == pytest.approx(float(found.magnitude))


def test_exact_totals_of_long_arrays_are_quick_and_exact(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    x = np.ldexp(rng.random(400_000), rng.integers(-1000, 1000, 400_000))
    double = parse_format("fp64")
    both = np.concatenate([x, -x, [2.0**-1074]])
    rng.shuffle(both)
    found, whole = exact_totals(Source(both.view(np.uint64), double))
    assert found.as_fraction() == Fraction(1, 1 << 1074)
    assert whole.as_fraction() > 0
    ones = Source(np.ones(300_001).view(np.uint64), double)
    assert exact_totals(ones, ones)[0] == 300_001


@pytest.mark.parametrize("rule", RULES)
def test_compensation_compensates(rule):
    update = [1.125] + [0.00041999] * 101
    plain = total(update, format="fp16", terms="fp16")
    assert float(plain) == 1.125
    found = total(update, format="fp16", adder=rule)
    assert abs(found.error_ulps) <= 1
    assert found.nodes[-1].value.format.name == "binary16"
    wild = [1.0, 1e30, 1.0, -1e30]
    assert float(total(wild, format="fp64", adder=rule)) == (0.0 if rule == "kahan" else 2.0)


def test_kahan_in_binary16_as_the_training_loop_has_it():
    """Each step of the loop: y = x − c, t = s + y, c = (t − s) − y; 1.125 + 101 updates."""
    found = total([1.125] + [0.00041999] * 101, format="fp16", adder="kahan")
    assert float(found) == 1.1669921875


def test_formats_of_terms_products_and_accumulator(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    a, b = (rng.standard_normal(50).astype(np.float16) for _ in "ab")
    single = dot(a, b, accumulator="fp32")
    assert (single.result.format.name, single.accumulated.format.name) == ("binary16", "binary32")
    loop = np.float32(0)
    narrow = np.float32(0)
    for x, y in zip(a, b, strict=True):
        loop += np.float32(x) * np.float32(y)
        narrow += np.float32(x * y)
    assert float(single.accumulated) == loop
    assert float(single) == np.float16(loop)
    assert float(dot(a, b, format="fp32", products="fp16")) == narrow
    assert float(dot(a, b, format="fp32")) == loop
    ones = total([1.0] * 1000, format="bf16")
    assert float(ones) == 256
    assert float(total([1.0] * 1000, format="bf16", accumulator="fp32")) == 1000


@pytest.mark.parametrize("x", [np.float32([np.inf, 7, 2]), [np.inf, 7.0, 2.0], [Fraction(7), np.inf, 2]], ids=repr)
def test_an_infinity_that_became_a_number_counts_as_changed(x):
    """The format e2m1 has no infinity, so the largest number, 6, replaces it."""
    origin = dot(x, [1, 1, 1], format="e2m1").x.origin
    assert origin is not None
    assert origin.inexact == 2


def test_terms_are_read_once_and_arrays_are_not_widened():
    assert total([0.1] * 3, terms="bf16", format="fp32").x.format.name == "bfloat16"
    assert total(np.float16([1, 2]), format="fp32").x.format.name == "binary16"
    assert total(np.float64([0.1]), format="fp32").x.format.name == "binary32"
    assert total(np.float64([0.1])).result.format.name == "binary64"
    assert total([0.1]).result.format.name == "binary64"
    assert total(["0.1"]).result.format.name == "binary32"
    assert total(np.arange(5)).result.format.name == "binary32"
    assert total(["1/3", "0x1p-30", "1e-3"], format="fp16").x.codes.tolist() == [0x3555, 0, 0x1419]
    assert total(fl.FloatArray([1.0, 2.0], "e4m3")).result.format.name == "e4m3fn"
    assert float(total([Fraction(1, 3), 1], format="fp64")) == 1 / 3 + 1


def test_sorted_sums_know_their_plan(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    x = rng.standard_normal(40).astype(np.float32)
    for way in ("up", "down"):
        found = total(x, f"sorted({way}, pairwise)")
        order = np.argsort(abs(x) * (1 if way == "up" else -1), kind="stable")
        assert found.result == total(x[order], "pairwise").result
        assert found.plan.order == order.tolist()
        assert found.nodes[-1].value == found.result


def test_matrix_products_are_dot_products(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    a, b = rng.standard_normal((7, 13)).astype(np.float32), rng.standard_normal((13, 5)).astype(np.float32)
    for options in (
        {}, {"fma": True}, {"schedule": "blocked(4, pairwise)"}, {"schedule": "sorted(down)"}, {"adder": "neumaier"},
        {"accumulator": "fp64"}, {"format": "bf16"}, {"machine": "ampere.bf16.f32"},
        {"format": "fp16", "accumulator": "fp32", "context": Context("RTZ")},
    ):  # fmt: skip
        found = matmul(a, b, **options)
        assert found.shape == (7, 5)
        for i, j in ((0, 0), (6, 4), (3, 2)):
            assert found[i, j] == float(dot(a[i], b[:, j], **options)), options
        assert matmul(a[2], b, **options).tolist() == found[2].tolist()
        assert matmul(a, b[:, 1], **options).tolist() == found[:, 1].tolist()
        assert float(matmul(a[2], b[:, 1], **options)) == found[2, 1]
    assert matmul(a, b).dtype == np.float32
    assert matmul(a, b, format="fp16").dtype == np.float16
    assert matmul(a, b, format="bf16").dtype == np.float32


def test_the_product_of_the_question(generator):
    """Serial products of 400 × 400 in binary32 equal NumPy's loop; fused ones equal exact arithmetic."""
    rng = np.random.default_rng(generator.getrandbits(64))
    a, b = rng.random((400, 400), np.float32), rng.random((400, 400), np.float32)
    loop = np.zeros((400, 400), np.float32)
    for k in range(400):
        loop += a[:, k, None] * b[k]
    plain, fused = matmul(a, b), matmul(a, b, fma=True)
    assert (plain == loop).all()
    assert 0.6 < (plain == fused).mean() < 0.82
    for i, j in ((0, 0), (399, 399), (17, 250)):
        assert fused[i, j] == float(dot(a[i], b[:, j], fma=True).nodes[-1].value)


def test_stochastic_sums_repeat():
    x = [0.1] * 20
    ones = [total(x, format="fp16", context=Context("SR", seed=seed)).result for seed in (1, 1, 2)]
    assert ones[0] == ones[1]
    many = {total(x, format="fp16", context=Context("SR", seed=seed)).result.code for seed in range(8)}
    assert len(many) > 1
    a = np.tile(np.float16([0.1, 0.7, 0.3]), (3, 1))
    b = np.tile(np.float16([[0.9], [0.2], [0.6]]), (1, 3))
    found = matmul(a, b, context=Context("SR", seed=5))
    assert len(set(found.reshape(-1).tolist())) > 1
    assert found[0, 0] == float(dot(a[0], b[:, 0], context=Context("SR", seed=5)))


def test_long_sums_keep_no_nodes():
    found = total(np.ones(MAX_TRACED + 1, np.float32), "pairwise")
    with pytest.raises(UnsupportedError, match="too many"):
        found.nodes  # noqa: B018
    assert found.error == 0
    assert "16,385 terms" in repr(found)


def test_the_worst_nodes_are_the_worst():
    found = total([2048.0, 1.0, 1.0, 0.25], format="fp16")
    assert [(node.id, node.error) for node in found.worst(2)] == [(4, -1), (5, -1)]


@pytest.mark.parametrize(
    ("call", "error", "why"),
    [
        (lambda: total([]), UnsupportedError, "x is empty"),
        (lambda: total([[1.0], [2.0]]), UnsupportedError, "x must be one row"),
        (lambda: total(np.array(3.0)), UnsupportedError, "x must be one row"),
        (lambda: total(3.0), UnsupportedError, "x must be one row"),
        (lambda: dot([1.0], [1.0, 2.0]), UnsupportedError, "1 and 2"),
        (lambda: dot([1.0], [[1.0]]), UnsupportedError, "b must be one row"),
        (lambda: matmul(np.ones((2, 3)), np.ones((2, 3))), UnsupportedError, "do not make"),
        (lambda: matmul(np.ones((2, 0)), np.ones((0, 3))), UnsupportedError, "nothing to add"),
        (lambda: matmul(np.ones((2, 2, 2)), np.ones((2, 2))), UnsupportedError, "do not make"),
        (lambda: total([1.0, 2.0], "sreial"), PlanError, "did you mean 'serial'"),
        (lambda: total([1.0, 2.0], "((0 1) 2)"), PlanError, "is for 3 terms"),
        (lambda: total([1.0], context="RTX"), fl.ContextError, "unknown rounding direction 'RTX'"),
        (lambda: total([1.0], context=5), fl.ContextError, "context must be a floatlab.Context"),
        (lambda: total([1.0, 2.0], adder="kahn"), UnsupportedError, "did you mean 'kahan'"),
        (lambda: dot([1.0], [1.0], adder="kahan", fma=True), UnsupportedError, "fma needs"),
        (lambda: total([1.0, 2.0, 3.0], "pairwise", adder="kahan"), PlanError, "serial"),
        (lambda: total(["1", "x"]), fl.LiteralError, "x"),
        (lambda: total(["1", ["2"]]), fl.FloatlabError, "x"),
        (lambda: total([1.0], format="fp33"), fl.FormatError, "fp33"),
        (lambda: total([1.0], accumulator="binary128"), fl.FormatError, "128 bits"),
        (lambda: total(np.array(["a"])), UnsupportedError, "x must be an array of"),
        (lambda: total([1.0, None]), fl.FloatlabError, "x"),
        (lambda: total([1j]), fl.FloatlabError, "x"),
    ],
)
def test_refusals_name_the_culprit(call, error, why):
    with pytest.raises(error, match=why):
        call()


def test_scalar_evaluation_of_products_and_sums():
    one = fl.encode(1, "fp16")
    node = Adder("fp16").traced(total([1.0, 1.0]).plan, [Term(one), Term(one)])[0][0]
    assert (float(node.value), node.error) == (2.0, 0)
    half = one.format
    nodes, result = Compensated("kahan", half, half, Context()).traced(total([1.0]).plan, [Term(one)])
    assert (len(nodes), float(result)) == (1, 1.0)


@pytest.mark.parametrize(
    "text", ["serial", "pairwise", "numpy", "blocked(7, lanes(4))", "reversed(unrolled(4, lanes(4)))"]
)
def test_the_worst_nodes_of_long_sums_are_those_of_all_nodes(text, generator, monkeypatch):
    rng = np.random.default_rng(generator.getrandbits(64))
    for name in ("binary32", "binary64", "bfloat16"):
        fmt = parse_format(name)
        a, b = source(rng, fmt, 90, 0), source(rng, fmt, 90, 0)
        for found in (total(a, text), dot(a, b, text), dot(a, b, text, fma=True), dot(a, b, text, products="binary16")):
            wanted = sorted((abs(node.error) for node in found.nodes if node.error), reverse=True)[:5]
            with monkeypatch.context() as patch:
                patch.setattr("floatlab.reduce.results.reduction.MAX_TRACED", 10)
                ranked = found.worst(5)
            known = {node.id: node for node in found.nodes}
            assert [abs(node.error) for node in ranked] == wanted
            assert all(known[node.id] == node for node in ranked)


@pytest.mark.parametrize("pairs", [False, True])
def test_the_worst_nodes_know_which_products_are_fused(pairs, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    x, y = (source(rng, parse_format("fp32"), (50,)) for _ in "xy")
    adder, schedule = Adder(fma=True, pairs=pairs), parse_schedule("pairwise")
    nodes, _ = adder.traced(schedule.plan(50), terms(x, y))
    wanted = sorted((abs(node.error or 0) for node in nodes), reverse=True)[:5]
    assert [abs(node.error) for node in worst_nodes(sides(x, y), schedule.batches(50), adder, 5)] == wanted
