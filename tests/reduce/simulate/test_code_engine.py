"""Computation in place: operands keep their bits for all strides, and so do results passed to observers."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.lanes import compiled
from floatlab.arrays.sources import Source
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.simulate import code_engine
from floatlab.reduce.simulate.adders import Adder, Term, derive_exact_sum
from floatlab.reduce.simulate.code_engine import CodeEngine


@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("fma", [False, True])
@pytest.mark.parametrize("schedule", ["serial", "lanes(4)", "blocked(7)", "((0 (1 2)) (3 4))"])
def test_operands_are_left_alone_and_may_have_any_strides(schedule, fma, is_built, monkeypatch):
    if not is_built:
        monkeypatch.setattr(compiled, "is_built", lambda: False)
    n = 5 if "(0" in schedule else 40
    rng = np.random.default_rng(3)
    wide = rng.standard_normal((2, 2 * n, 70)).astype(np.float32)
    a, b = wide[0, ::2, :33].T, wide[1, ::-2, ::2]
    before = wide.tobytes()
    found = fl.matmul(a, b, schedule, fma=fma)
    assert np.array_equal(found, fl.matmul(a.copy(), np.asfortranarray(b), schedule, fma=fma))
    assert found[4, 9] == np.float32(fl.dot(a[4], b[:, 9], schedule, fma=fma))
    assert wide.tobytes() == before
    x = wide[0, :n, 0]
    nodes = fl.sum(x, schedule).nodes
    assert float(nodes[-1].value) == float(fl.sum(x.copy(), schedule))
    assert wide.tobytes() == before


def test_links_of_terms_and_of_sums_by_turns():
    # (((0 1) (2 3)) 4) (5 6) …: every other step is a node.
    n = 3 * 300
    tree = 0
    for k in range(1, n - 2, 3):
        tree = ((tree, k), (k + 1, k + 2))
    tree = (tree, n - 2), n - 1
    x = np.random.default_rng(0).standard_normal(n).astype(np.float32)
    found = fl.sum(x, Plan.from_tree(tree))
    total = x[0]
    for k in range(1, n - 2, 3):
        total = (total + x[k]) + (x[k + 1] + x[k + 2])
    assert float(found) == float((total + x[n - 2]) + x[n - 1])


@pytest.mark.one_in(5)
@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("format", ["fp16", "bf16", "e5m2fnuz", "e8m15"])
@pytest.mark.parametrize("rules", [{}, {"rounding": "RTO"}, {"flush_results": True}, {"overflow": "saturate"}], ids=str)
def test_many_terms_are_added_as_the_codec_adds(format, rules, is_built, monkeypatch):
    if not is_built:
        monkeypatch.setattr(compiled, "is_built", lambda: False)
    rng, context = np.random.default_rng(5), fl.Context(**rules)
    fmt = fl.parse_format(format)
    for case in range(4):
        # Numbers of similar size, numbers from the whole range (ties, gaps, subnormal numbers, cancelling sums), and
        # beyond it.
        spread = [3, fmt.emax - fmt.qmin, 3, 1][case]
        start = [0, (fmt.emax + fmt.qmin) // 2, fmt.qmin + 3, fmt.emax - 1][case]
        x, y = (np.ldexp(rng.standard_normal(90), start * (i == 0) + rng.integers(0, spread + 1, 90) - spread // 2)
                for i in (0, 1))  # fmt: skip
        x[40:43] = -x[39], 0.0, -0.0
        a, b = ([fl.encode(each, fmt, context).code for each in side.tolist()] for side in (x, y))
        a, b = ([fl.decode(code, fmt) for code in side] for side in (a, b))
        total, fused = a[0], fl.multiply(a[0], b[0], fmt, context).result
        for one, other in zip(a[1:], b[1:], strict=True):
            total = fl.add(total, one, fmt, context).result
            fused = fl.fma(one, other, fused, fmt, context).result
        assert fl.sum(a, format=fmt, context=context).result == total
        assert fl.dot(a, b, format=fmt, context=context, fma=True).result == fused
        assert fl.sum(a, format=fmt, context=context).nodes[-1].value == total


@pytest.mark.parametrize("is_built", [False, True])
@pytest.mark.parametrize("how", [{"format": "fp64", "fma": True}, {"format": "fp32", "products": "bf16"}], ids=str)
def test_floats_that_are_not_added_plainly_have_nodes_too(how, is_built, monkeypatch):
    if not is_built:
        monkeypatch.setattr(compiled, "is_built", lambda: False)
    a, b = np.random.default_rng(6).standard_normal((2, 90)).astype(np.float32)
    found = fl.dot(a, b, **how)
    assert found.nodes[-1].value == found.result
    short = fl.dot(a[:40], b[:40], **how)
    assert found.nodes[38].value == short.result
    assert found.worst(3)


@pytest.mark.parametrize("rounding", ["RNE", "RTN"])
@pytest.mark.parametrize("fma", [False, True])
def test_exact_sums_that_are_zero_are_not_computed_one_by_one(rounding, fma, monkeypatch):
    rng, format = np.random.default_rng(6), fl.parse_format("fp16")
    numbers = [rng.choice([0.0, -0.0, 1.0, -1.0], (3, 60)), rng.choice([1.0, -1.0], (3, 60))][: 1 + fma]
    codes = [each.astype(np.float16).view(np.uint16) for each in numbers]
    context = fl.Context(rounding=rounding)
    sums = [[Term(*(fl.Datum(format, int(each[k, j])) for each in codes)) for k in range(3)] for j in range(60)]
    wanted = [derive_exact_sum(terms, format, context).result.code for terms in sums]
    monkeypatch.setattr(code_engine, "derive_exact_sum", None)
    engine = CodeEngine(tuple(Source(each, format) for each in codes), Adder(format, fma=fma, context=context))
    found = engine.add_exactly([(True, np.array([k])) for k in range(3)], np.zeros(1, int))
    assert found[0].tolist() == wanted
