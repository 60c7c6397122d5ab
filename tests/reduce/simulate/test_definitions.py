"""Sums, dot products and matrix units by their definitions, in rationals, integers and NumPy's scalars."""

import math
from fractions import Fraction

import numpy as np
import pytest

from floatlab import Context, dot, parse_format
from floatlab import sum as add_up
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import Source
from floatlab.reduce import Adder, parse_machine, parse_schedule
from floatlab.reduce.simulate.simulation import simulate
from tests import oracle
from tests.reduce.values import codes

# --- the trees, as the table in docs/reductions.md puts them into words ------------------------------------


def serial(terms):
    found = terms[0]
    for each in terms[1:]:
        found = (found, each)
    return found


def pairwise(terms):
    half = len(terms) // 2
    return (pairwise(terms[:half]), pairwise(terms[half:])) if half else terms[0]


def backwards(inner=serial):
    return lambda terms: inner(terms[::-1])


def blocked(m, inner=serial, outer=serial):
    return lambda terms: outer([inner(terms[i : i + m]) for i in range(0, len(terms), m)])


def splitk(k, inner=serial, outer=serial):
    return lambda terms: blocked(math.ceil(len(terms) / k), inner, outer)(terms)


def lanes(k, inner=serial, outer=pairwise):
    return lambda terms: outer([inner(terms[j::k]) for j in range(min(k, len(terms)))])


def unrolled(m, inner):
    def tree(terms):
        main = len(terms) // m * m
        return serial([inner(terms[:main]), *terms[main:]] if main else terms)

    return tree


def halving(m, inner=serial, q=1):
    def tree(terms):
        if len(terms) <= m:
            return inner(terms)
        left = len(terms) // 2 // q * q
        return (tree(terms[:left]), tree(terms[left:]))

    return tree


def adjacent(terms):
    while len(terms) > 1:
        terms = [tuple(terms[i : i + 2]) if i + 1 < len(terms) else terms[i] for i in range(0, len(terms), 2)]
    return terms[0]


def folded(terms):
    while len(terms) > 1:
        h = math.ceil(len(terms) / 2)
        terms = [(terms[i], terms[i + h]) if i + h < len(terms) else terms[i] for i in range(h)]
    return terms[0]


def fused(size):
    def tree(terms):
        found = tuple(terms[:size]) if len(terms) > 1 < size else terms[0]
        for i in range(size, len(terms), size):
            found = (found, *terms[i : i + size])
        return found

    return tree


TREES = {
    "serial": serial, "reversed": backwards(), "pairwise": pairwise, "adjacent": adjacent, "folded": folded,
    "numpy": halving(128, unrolled(8, lanes(8)), 8), "blocked(64, lanes(8), pairwise)": blocked(64, lanes(8), pairwise),
    "blocked(3, pairwise, reversed)": blocked(3, pairwise, backwards()), "splitk(4)": splitk(4),
    "splitk(3, pairwise, adjacent)": splitk(3, pairwise, adjacent), "lanes(4)": lanes(4),
    "lanes(5, folded, serial)": lanes(5, folded, serial),
    "lanes(3, fused(2), reversed)": lanes(3, fused(2), backwards()),
    "unrolled(8, lanes(8))": unrolled(8, lanes(8)), "halving(8)": halving(8),
    "halving(9, lanes(2), 4)": halving(9, lanes(2), 4),
    "fused(1)": fused(1), "fused(4)": fused(4), "reversed(fused(3))": backwards(fused(3)),
    "blocked(16, fused(4), adjacent)": blocked(16, fused(4), adjacent),
}  # fmt: skip


def in_order(tree):
    """Return how a tree is written, without recursion: numbers, and how many operands a bracket has."""
    found, waiting = [], [tree]
    while waiting:
        each = waiting.pop()
        found.append(each if isinstance(each, int) else f"({len(each)}")
        waiting += () if isinstance(each, int) else reversed(each)
    return found


@pytest.mark.parametrize("text", TREES)
def test_the_trees_of_schedules_are_those_of_the_table(text):
    for n in (*range(1, 20), 31, 33, 127, 128, 129, 136, 137, 1000, 1025):
        plan = parse_schedule(text).plan(n)
        assert in_order(plan.to_tree()) == in_order(TREES[text](list(range(n)))), n


# --- what a node does, in rationals ------------------------------------------------------------------------


def product_of(a, b):
    """Return the exact product of two meanings."""
    negative = a.negative != b.negative
    kinds = {a.kind, b.kind}
    if "nan" in kinds or (kinds != {"finite"} and 0 in (a.value, b.value)):
        return oracle.Meaning("nan", False)
    if kinds != {"finite"}:
        return oracle.Meaning("infinite", negative)
    return oracle.Meaning("finite", negative, a.value * b.value)


def sum_of(given, direction):
    """Return the exact sum of meanings, with the sign of zero that IEEE 754-2019 6.3 gives it."""
    kinds = {each.kind for each in given}
    infinities = {each.negative for each in given if each.kind == "infinite"}
    if "nan" in kinds or len(infinities) == 2:
        return oracle.Meaning("nan", False)
    if infinities:
        return oracle.Meaning("infinite", infinities.pop())
    total = sum(each.value for each in given)
    signs = {each.negative for each in given}
    alike = len(signs) == 1 and not any(each.value for each in given)
    return oracle.Meaning("finite", (alike and True in signs) or (not alike and direction == "RTN"), total)


def put(format, meaning, direction):
    """Return the rounded value of a meaning."""
    rules = oracle.Rules(direction)
    if meaning.kind == "nan":
        return meaning
    if meaning.kind == "infinite":
        code, _ = oracle.project_infinity(format, meaning.negative, rules)
    else:
        code, _ = oracle.project(format, meaning.value, rules, meaning.negative)
    return oracle.decode(format, code)


def evaluate(tree, terms, format, products, fma, direction):
    """Return the value of a tree over meanings, or pairs of them, which are products."""

    def leaf(i):
        if isinstance(terms[i], oracle.Meaning):
            return put(format, terms[i], direction)
        return put(format, put(products, product_of(*terms[i]), direction), direction)

    def fuses(node, place):
        each = node[place]
        if not fma or not isinstance(each, int):
            return False
        return len(node) > 2 or place == 1 or not isinstance(node[1], int)

    if isinstance(tree, int):
        return leaf(tree)
    done, waiting = [], [(tree, None, False)]
    while waiting:
        each, whole, is_open = waiting.pop()
        if is_open:
            inside = done[-len(each) :]
            del done[-len(each) :]
            done.append(put(format, sum_of(inside, direction), direction))
        elif isinstance(each, int):
            done.append(product_of(*terms[each]) if whole else leaf(each))
        else:
            waiting.append((each, None, True))
            waiting += [(each[place], fuses(each, place), False) for place in reversed(range(len(each)))]
    return done[0]


FORMATS = ["binary16", "bfloat16", "binary32", "binary64", "e4m3fn", "e5m2", "tf32", "e4m3fnuz", "e6m9"]


def test_sums_and_dot_products_are_those_of_the_definitions(generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    for _ in range(250):
        inputs, format, products = (parse_format(generator.choice(FORMATS)) for _ in range(3))
        text, n = generator.choice([*TREES]), generator.choice([1, 2, 3, 7, 8, 9, 20])
        direction, kind = generator.choice(oracle.DIRECTIONS), generator.choice(["sum", "dot", "fma"])
        if generator.random() < 0.5:
            format = products = inputs
        shape = (n, 2)
        if generator.random() < 0.3:
            sides = [rng.integers(0, 1 << min(inputs.width, 63), shape).astype(container(inputs)) for _ in "xy"]
        else:
            sides = [codes(rng, inputs, shape) for _ in "xy"]
        if generator.random() < 0.3:  # terms that cancel: each number, and its opposite
            for side in sides:
                side[1::2] = side[: n - 1 : 2]
            sides[0][1::2] ^= sides[0].dtype.type(1 << (inputs.width - 1))
        x, y = (Source(side, inputs) for side in sides)
        adder = Adder(format, products, kind == "fma", Context(direction))
        found = simulate((x,) if kind == "sum" else (x, y), parse_schedule(text), adder)
        for j in range(2):
            rows = [[oracle.decode(inputs, int(code)) for code in side[:, j]] for side in sides]
            terms = rows[0] if kind == "sum" else [*zip(*rows, strict=True)]
            wanted = evaluate(TREES[text](list(range(n))), terms, format, products, kind == "fma", direction)
            got = oracle.decode(format, int(found[j]))
            same = got.kind == wanted.kind == "nan" or got == wanted
            assert same, (text, n, inputs.name, format.name, products.name, direction, kind, sides)


# --- compensation, as the textbooks write it, in NumPy's scalars -------------------------------------------


def kahan(terms, zero):
    s, c = terms[0], zero
    for x in terms[1:]:
        y = x - c
        t = s + y
        c = (t - s) - y
        s = t
    return s


def missed(s, x, t):
    return (s - t) + x if abs(s) >= abs(x) else (x - t) + s


def neumaier(terms, zero):
    s, c = terms[0], zero
    for x in terms[1:]:
        t = s + x
        c = c + missed(s, x, t)
        s = t
    return s + c


def klein(terms, zero):
    s, c, cc = terms[0], zero, zero
    for x in terms[1:]:
        t = s + x
        e = missed(s, x, t)
        s, t = t, c + e
        cc = cc + missed(c, e, t)
        c = t
    return s + (c + cc)


def double(terms, zero):
    high, low = terms[0], zero
    for x in terms[1:]:
        s = high + x
        part = s - high
        e = (high - (s - part)) + (x - part) + low
        high = s + e
        low = e - (high - s)
    return high


@pytest.mark.parametrize("rule", [kahan, neumaier, klein, double])
def test_compensated_sums_are_those_of_the_textbooks(rule, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    for kind in (np.float16, np.float32, np.float64):
        for spread in (0, 3, 8):
            for last in (-0.0, 1.0, np.inf):
                x = (rng.standard_normal(30) * np.exp2(rng.integers(-spread, spread + 1, 30))).astype(kind)
                x[-1] = last
                with np.errstate(all="ignore"):
                    wanted = rule(list(x), kind(0))
                found = kind(float(add_up(x, adder=rule.__name__)))
                assert found == wanted or (np.isnan(found) and np.isnan(wanted))


# --- matrix units, in integers -----------------------------------------------------------------------------

# The published tables once more: the fraction digits that are kept, and the products in a block (4 in V100, …).
UNITS = {
    "volta.f16.f32": (23, 4), "ampere.f16.f32": (24, 8), "ampere.tf32.f32": (24, 4), "ada.bf16.f32": (24, 8),
    "ada.e4m3.f32": (13, 16), "hopper.f16.f32": (25, 16), "hopper.tf32.f32": (25, 8), "hopper.e5m2.f32": (13, 32),
    "blackwell.bf16.f32": (25, 16), "blackwell.e4m3.f32": (25, 32),
}  # fmt: skip


def taken_apart(x, digits, least):
    """Return an integer and the exponent of its digit number `digits`: x is their product, not below emin's places."""
    exponent = max(math.frexp(x)[1] - 1, least)
    return int(math.ldexp(x, digits - exponent)), exponent


def tensor_core(a, b, format, kept, block, cut):
    """Return Σ a·b: each block aligned to its largest exponent, cut there, added, and cut into binary32."""
    t, least, single = format.precision - 1, 1 - format.bias, parse_format("binary32")
    total = 0.0
    for start in range(0, len(a), block):
        parts = [(*taken_apart(total, 23, -126), 23)] if total else []
        for x, y in zip(a[start : start + block], b[start : start + block], strict=True):
            if x and y:
                (m, e), (n, f) = taken_apart(x, t, least), taken_apart(y, t, least)
                parts.append((m * n, e + f, 2 * t))
        top = max([-126, *(e for _, e, _ in parts)])
        whole = sum(math.trunc(Fraction(m) * Fraction(2) ** (e - digits - top + kept)) for m, e, digits in parts)
        code, _ = oracle.project(single, whole * Fraction(2) ** (top - kept), oracle.Rules("RTZ"))
        total = float(np.uint32(code & -(1 << 10) if cut else code).view(np.float32))
    return total


@pytest.mark.parametrize("name", UNITS)
def test_matrix_units_are_those_of_the_published_tables(name, generator):
    rng, format, (kept, block) = (
        np.random.default_rng(generator.getrandbits(64)),
        parse_machine(name).terms,
        UNITS[name],
    )
    for spread in (1, 4, 9):
        n = generator.randint(1, 3 * block)
        a, b = (np.ldexp(rng.uniform(-2, 2, n), rng.integers(-spread, spread + 1, n)) for _ in "ab")
        a[rng.random(n) < 0.1] = 0
        a, b = (quantize(side.astype(np.float32), format, overflow="saturate") for side in (a, b))
        wanted = tensor_core(a.tolist(), b.tolist(), format, kept, block, kept == 13)
        assert float(dot(a, b, machine=name)) == wanted
