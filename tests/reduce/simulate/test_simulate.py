"""The three evaluations agree: one number at a time, codes in batches, and the processor's floats."""

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, add, parse_format
from floatlab.arrays.lanes import compiled
from floatlab.arrays.sources import Source
from floatlab.errors import PlanError, UnsupportedError
from floatlab.reduce import Adder, Compensated, Plan, TensorCore, parse_schedule
from floatlab.reduce.plan.matching import subtree
from floatlab.reduce.simulate.adders import Joined, PartlyFused
from floatlab.reduce.simulate.code_engine import CodeEngine
from floatlab.reduce.simulate.compensated import RULES
from floatlab.reduce.simulate.float_engine import FloatEngine, update
from floatlab.reduce.simulate.simulation import evaluate, simulate
from tests.reduce.plan.test_schedules import ANY_SIZE, schedules
from tests.reduce.values import sides, source, terms

FORMATS = ["binary16", "bfloat16", "binary32", "binary64", "e4m3fn", "e5m2", "e4m3fnuz", "tf32", "e2m1fn", "e6m9"]
CONTEXTS = [
    Context(), Context("RTZ"), Context("RTN"), Context("RNA"), Context("RTO"), Context(overflow="saturate"),
    Context(flush_inputs=True, flush_results=True), Context(nan="x86"), Context("SR", seed=7),
]  # fmt: skip


def check(x, y, schedule, adder):
    """Compare arrays with single numbers, sum by sum."""
    plan = schedule.plan(len(x.codes))
    found = simulate(sides(x, y), schedule, adder)
    for place in np.ndindex(found.shape):
        element = int(np.ravel_multi_index(place, found.shape)) if place else 0
        _, wanted = adder.traced(plan, terms(x, y, place), element)
        assert found[place] == wanted.code, (schedule, place, hex(found[place]), wanted)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("text", ANY_SIZE)
@pytest.mark.parametrize("name", ["binary32", "binary64", "binary16", "e4m3fn"])
def test_every_schedule_gives_what_its_plan_gives(text, name, generator):
    rng, format = np.random.default_rng(generator.getrandbits(64)), parse_format(name)
    n = generator.randint(1, 40)
    x, y = source(rng, format, (n, 5)), source(rng, format, (n, 5))
    schedule = parse_schedule(text)
    check(x, None, schedule, Adder(format))
    for fma in (False, True):
        check(x, y, schedule, Adder(format, fma=fma))


@settings(max_examples=60)
@given(schedules(), st.integers(1, 24), st.sampled_from(FORMATS), st.sampled_from(CONTEXTS), st.booleans(), st.data())
def test_any_schedule_in_any_format_and_context(schedule, n, name, context, fma, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    accumulator = parse_format(data.draw(st.sampled_from(FORMATS)))
    products = data.draw(st.sampled_from([None, "binary16", "binary64", "e5m2"]))
    other = data.draw(st.sampled_from(FORMATS))
    x, y = (source(rng, parse_format(each), (n, 3), 0.1) for each in (name, other))
    check(x, None, schedule, Adder(accumulator, context=context))
    check(x, y, schedule, Adder(accumulator, products, fma, context, data.draw(st.booleans())))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("context", CONTEXTS, ids=str)
@pytest.mark.parametrize("rule", RULES)
def test_compensated_sums_of_arrays_are_those_of_numbers(rule, context, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    format = parse_format(generator.choice(["binary16", "binary32", "binary64"]))
    n = generator.randint(1, 20)
    x, y = source(rng, format, (n, 4), 0.01), source(rng, format, (n, 4), 0.01)
    adder = Compensated(rule, format, format, context)
    for text in ("serial", "reversed"):
        check(x, None, parse_schedule(text), adder)
        check(x, y, parse_schedule(text), adder)


@pytest.mark.parametrize("rule", RULES)
def test_compensated_sums_are_serial(rule):
    single = parse_format("fp32")
    adder = Compensated(rule, single, single, Context())
    x = Source(np.zeros(8, np.uint32), single)
    with pytest.raises(PlanError, match="serial"):
        simulate((x,), parse_schedule("pairwise"), adder)
    with pytest.raises(PlanError, match="serial"):
        adder.traced(parse_schedule("pairwise").plan(8), terms(x))


@given(schedules(), st.integers(1, 40), st.sampled_from(["binary16", "bfloat16", "e4m3fn", "e5m2", "tf32"]), st.data())
def test_tensor_cores_of_arrays_are_those_of_numbers(schedule, n, name, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    x, y = (source(rng, parse_format(name), (n, 4), data.draw(st.sampled_from([0, 0.05]))) for _ in "ab")
    core = data.draw(
        st.sampled_from(
            [
                TensorCore(parse_format("fp32"), 24),
                TensorCore(parse_format("fp32"), 13, result_bits=13),
                TensorCore(parse_format("fp16"), 25, "RNE"),
                TensorCore(parse_format("fp32"), 24, "RNE", sum_bits=31),
            ]
        )
    )
    check(x, y, schedule, core)


@pytest.mark.parametrize("fma", [False, True])
@pytest.mark.parametrize("text", ["serial", "numpy", "blocked(7, lanes(4), pairwise)"])
def test_matrices_in_tiles_are_their_elements(text, fma, generator, monkeypatch):
    if generator.random() < 0.5:
        monkeypatch.setattr(compiled, "is_built", lambda: False)
    monkeypatch.setattr("floatlab.reduce.simulate.simulation._TILE", 64)
    rng, single = np.random.default_rng(generator.getrandbits(64)), parse_format("fp32")
    a, b = source(rng, single, (30, 19, 1), 0.001), source(rng, single, (30, 1, 23), 0.001)
    found = simulate(sides(a, b), parse_schedule(text), Adder(fma=fma))
    batches = parse_schedule(text).batches(30)
    assert (found == evaluate(batches, CodeEngine((a, b), Adder(fma=fma)))).all()


def test_stochastic_draws_do_not_depend_on_tiles(generator, monkeypatch):
    rng, half = np.random.default_rng(generator.getrandbits(64)), parse_format("fp16")
    a, b = source(rng, half, (9, 8, 1)), source(rng, half, (9, 1, 7))
    adder = Adder("fp16", context=Context("SR", seed=3))
    whole = simulate(sides(a, b), parse_schedule("lanes(2)"), adder)
    monkeypatch.setattr("floatlab.reduce.simulate.simulation._TILE", 10)
    assert (simulate(sides(a, b), parse_schedule("lanes(2)"), adder) == whole).all()
    check(Source(np.tile(a.codes[:, :, 0], 1), half), Source(np.tile(b.codes[:, 0, :1], (1, 8)), half),
          parse_schedule("lanes(2)"), adder)  # fmt: skip


def hard_pairs(rng, count):
    """Return x, y, c of binary32 whose fma, rounded to binary64 first, is often a tie of binary32."""
    x = np.float32(1 + rng.integers(0, 1 << 23, count) / 2.0**23)
    y = np.float32(1 + rng.integers(0, 1 << 23, count) / 2.0**23)
    p = x.astype(np.float64) * y
    scale = np.exp2(rng.integers(-2, 34, count).astype(float))
    c = (p * scale).astype(np.float32)
    place = np.spacing(np.abs(c)).astype(np.float64)
    half = np.float64(0.5) * place
    # A product of two factors that ends just beside half a place of c.
    beside = rng.random(count) < 0.5
    x = np.where(beside, np.float32(half * (1 + 2.0**-15)), x)
    y = np.where(beside, np.float32(1 - 2.0**-15), y)
    sign = np.float32(rng.choice([-1, 1], count))
    return np.float32(x), np.float32(y) * sign, c


@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("few", [False, True])
def test_fused_updates_are_rounded_once(few, is_built, generator, monkeypatch):
    if not is_built:
        monkeypatch.setattr(compiled, "is_built", lambda: False)
    rng = np.random.default_rng(generator.getrandbits(64))
    count = 3 if few else 4000
    for scale in (0, -140, 100):
        x, y, c = hard_pairs(rng, count)
        with np.errstate(all="ignore"):
            x, c = (np.ldexp(each, scale // 2 if i == 0 else scale).astype(np.float32) for i, each in enumerate((x, c)))
            y = np.ldexp(y, scale - scale // 2).astype(np.float32)
            twice = (x.astype(np.float64) * y + c).astype(np.float32)
        sums = c.copy()
        update(sums, x[None], y[None], True)
        single = parse_format("fp32")
        factors = [Source(each.view(np.uint32)[None], single) for each in (x, y)]
        wanted = CodeEngine(factors, Adder(fma=True)).fuse(c.view(np.uint32)[None], np.zeros(1, int), np.zeros(1, int))[
            0
        ]
        assert (sums.view(np.uint32) == wanted).all()
        assert few or scale or (twice.view(np.uint32) != wanted).mean() > 0.01  # check that the cases are hard


def test_doubles_are_fused_once_where_they_are_fused(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    double = parse_format("fp64")
    for low, high in ((-30, 30), (-1074, -900), (900, 1023), (-560, -480)):
        x, y, c = (np.ldexp(rng.uniform(-2, 2, 3000), rng.integers(low, high + 1, 3000)) for _ in "xyc")
        with np.errstate(all="ignore"):
            c = np.where(rng.random(3000) < 0.5, -(x * y) * (1 + 2.0**-52), c)
            c[~np.isfinite(c)] = 0
        factors = [Source(each.view(np.uint64)[None], double) for each in (x, y)]
        one = np.zeros(1, int)
        wanted = CodeEngine(factors, Adder("fp64", fma=True)).fuse(c.view(np.uint64)[None], one, one)
        engine = FloatEngine(factors, Adder("fp64", fma=True))
        found = engine.codes(engine.fuse(c[None], one, one))
        assert ((found == wanted) | np.isnan(wanted.view(np.float64))).all()


def test_few_long_sums_are_many_short_ones(generator):
    rng, single = np.random.default_rng(generator.getrandbits(64)), parse_format("fp32")
    x, y = source(rng, single, (40_000, 2), 0), source(rng, single, (40_000, 2), 0)
    for other, adder in ((None, Adder()), (y, Adder()), (y, Adder(fma=True))):
        found = simulate(sides(x, other), parse_schedule("serial"), adder)
        wide = tuple(Source(np.repeat(side.codes, 40, axis=1), single) for side in sides(x, other))
        assert (simulate(wide, parse_schedule("serial"), adder) == np.repeat(found, 40)).all()


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("scale", [0, 8])
def test_numpys_sums_on_this_machine(kind, scale, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    format = parse_format(np.dtype(kind).name)
    for n in range(1, 2001, 3 if scale else 7):
        x = (rng.standard_normal(n) * np.exp2(rng.integers(-scale, scale + 1, n))).astype(kind)
        found = simulate((Source(x.view(f"u{x.itemsize}"), format),), parse_schedule("numpy"), Adder(format))
        assert found.view(kind) == np.sum(x), n


def test_numpys_other_sums_on_this_machine(generator):
    rng, single = np.random.default_rng(generator.getrandbits(64)), parse_format("fp32")
    x = rng.standard_normal((300, 50)).astype(np.float32)
    found = simulate((Source(x.view(np.uint32), single),), parse_schedule("serial"), Adder())
    assert (found.view(np.float32) == np.add.reduce(x, axis=0)).all()
    assert (found.view(np.float32) == np.cumsum(x, axis=0)[-1]).all()
    half = rng.standard_normal(1000).astype(np.float16)
    found = simulate((Source(half.view(np.uint16), parse_format("fp16")),), parse_schedule("numpy"), Adder())
    assert found.view(np.float32).astype(np.float16) == np.sum(half)


def test_a_plan_for_other_terms_is_refused():
    single = parse_format("fp32")
    x = Source(np.zeros((3, 2), np.uint32), single)
    with pytest.raises(PlanError, match="is for 2 terms"):
        simulate((x,), parse_schedule(Plan.from_tree((0, 1))), Adder())
    with pytest.raises(UnsupportedError, match="is for 2 terms"):
        evaluate(parse_schedule("serial").batches(2), CodeEngine((x,), Adder()))
    with pytest.raises(PlanError, match="is for 2 terms"):
        Adder().traced(Plan.from_tree((0, 1)), terms(x, place=(0,)))


def test_observed_numbers_are_those_of_the_nodes(generator):
    rng, single = np.random.default_rng(generator.getrandbits(64)), parse_format("fp32")
    x, y = source(rng, single, 23, 0), source(rng, single, 23, 0)
    for text, fma in ((text, fma) for text in ANY_SIZE for fma in (False, True)):
        batches, adder = parse_schedule(text).batches(23), Adder(fma=fma)
        nodes, _ = adder.traced(batches.plan(), terms(x, y))
        for kind in (CodeEngine, FloatEngine):
            engine, seen = kind((x, y), adder), np.zeros(23 + batches.nodes, np.uint32)

            def see(ids, values, engine=engine, seen=seen):
                seen[ids] = engine.codes(values)

            evaluate(batches, engine, see)
            assert seen[23:].tolist() == [node.value.code for node in nodes]


@given(st.integers(2, 40), st.sampled_from(["pairwise", "numpy", "lanes(4)", "reversed"]), st.data())
def test_a_last_node_joins_what_two_adders_made(n, text, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 1 << 32)))
    x, y = (source(rng, parse_format("binary32"), (n, 3), 0.02) for _ in "xy")
    one, other = Adder(fma=True, pairs=False), Adder("fp64")
    plan = parse_schedule(text).plan(n)
    found = simulate(sides(x, y), parse_schedule(text), Joined(one, other))
    for place in range(3):
        operands = []
        for child, adder in zip(plan.nodes[-1], (one, other), strict=True):
            own, part = subtree(plan, child)
            operands.append(adder.traced(part, [terms(x, y, (place,))[i] for i in own])[1])
        assert found[place] == add(*operands, "fp64").result.code


def test_only_a_node_of_two_joins():
    x = Source(np.zeros(4, np.uint32), parse_format("fp32"))
    for text in ("fused(4)", "sorted"):
        with pytest.raises(PlanError):
            simulate((x,), parse_schedule(text), Joined(Adder(), Adder("fp64")))


@pytest.mark.parametrize("name", ["binary16", "binary32", "tf32", "binary64"])
def test_wide_nodes_are_exact_also_where_binary64_is_not(name, generator, monkeypatch):
    rng, format = np.random.default_rng(generator.getrandbits(64)), parse_format(name)
    x, y = source(rng, format, (12, 20), 0.02), source(rng, format, (12, 20), 0.02)
    for adder in (Adder(format), Adder(format, fma=True), Adder("fp32", fma=True, context=Context("RTN"))):
        for side in (None, y):
            fast = simulate(sides(x, side), parse_schedule("fused(5)"), adder)
            with monkeypatch.context() as patched:
                patched.setattr(CodeEngine, "_in_doubles", lambda self, arguments, shape: None)
                assert (simulate(sides(x, side), parse_schedule("fused(5)"), adder) == fast).all()


@pytest.mark.one_in(4)
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ["bfloat16", "binary32", "binary64"])
def test_long_compensated_sums_are_the_fold(rule, name, generator):
    rng, format = np.random.default_rng(generator.getrandbits(64)), parse_format(name)
    for special, context in ((0, Context()), (0, Context("RTP")), (0.01, Context())):
        x, y = source(rng, format, (80, 2), special), source(rng, format, (80, 2), special)
        adder = Compensated(rule, format, format, context)
        check(x, None, parse_schedule("serial"), adder)
        check(x, y, parse_schedule("reversed"), adder)


SIGNALING = """
import os
import subprocess
import sys

import numpy as np
from floatlab.arrays.sources import Source
from floatlab.formats import parse_format
from floatlab.reduce.simulate.tensor_core_engine import TensorCore, TensorEngine
double = parse_format("fp64")
nan = Source(np.full((1, 3), 0x7FF0000000000001, np.uint64), double)
TensorEngine((nan, nan), TensorCore(parse_format("fp32"), 24))
"""


def test_signaling_nans_raise_no_warning_on_any_processor():
    # On processors without AVX-512, NumPy's frexp raises invalid for these numbers.
    env = os.environ | {"NPY_DISABLE_CPU_FEATURES": "X86_V4"}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", SIGNALING], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_products_are_fused_one_by_one_as_the_adder_fuses_all(generator):
    rng, single = np.random.default_rng(generator.getrandbits(64)), parse_format("fp32")
    x, y = source(rng, single, (19, 5, 1), 0.01), source(rng, single, (19, 1, 3), 0.01)
    for text in ("serial", "lanes(4)", "blocked(7, pairwise)"):
        schedule = parse_schedule(text)
        plan = schedule.plan(19)
        fused = tuple(sorted(max(each for each in node if each < 19) for node in plan.nodes if min(node) < 19))
        for places, adder in ((fused, Adder(fma=True)), ((), Adder())):
            found = simulate(sides(x, y), schedule, PartlyFused(single, places))
            assert (found == simulate(sides(x, y), schedule, adder)).all()
    for y, text, fused in ((None, "serial", ()), (x, "fused(4)", ()), (x, "serial", (19,))):
        with pytest.raises(PlanError, match="nodes of two operands"):
            simulate(sides(x, y), parse_schedule(text), PartlyFused(single, fused))
