"""Every kind of answer through its JSON and back; and hostile JSON, which is refused in one line."""

import json
from fractions import Fraction
from time import process_time

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import floatlab as fl
from floatlab.arith.blocks import quantize_blocks
from floatlab.arrays.compare.measure import compare
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.formats.recipes import NAMED_RECIPES, parse_recipe
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.results.judgements import judge_difference
from floatlab.reduce.results.products import matrix_product
from floatlab.reduce.reveal.order_map import order_map
from floatlab.training.gradient_check import sweep_steps
from floatlab.training.loss_scale import LossScale
from floatlab.training.optimizers import SGD, Adam
from floatlab.training.setup import Setup
from floatlab.training.trace import step
from floatlab.training.underflow import measure_underflow
from floatlab.verbs.compare.checkpoints import compare_checkpoints
from floatlab.verbs.from_json import document_of, from_json
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question

PAIRWISE = parse_schedule("pairwise")
NUMBERS = st.sampled_from(["0.1", "-1/3", "1e30", "inf", "-nan", "-0", "3", 0.25, Fraction(7, 3), -4])
FINITE = st.sampled_from(["0.1", "-1/3", "7.5", "-0", "1e-30", "3@fp16", 0.25, Fraction(7, 3), -4])
FORMATS = st.sampled_from(["fp16", "bf16", "fp32", "e4m3", "e5m2fnuz", "x87", "e2m1"])
DIRECTIONS = st.sampled_from(["RNE", "RTZ", "RTP", "RTO", "SR"])


def back(answer):
    return from_json(answer.to_json())


@given(NUMBERS, NUMBERS, FORMATS, DIRECTIONS, st.booleans())
@settings(max_examples=60, deadline=None)
def test_comparisons_come_back(a, b, fmt, direction, signaling):
    for ask in (fl.less, fl.equal, fl.less_equal):
        answer = ask(a, b, format=fmt, context=fl.Context(rounding=direction, absent="largest"), signaling=signaling)
        assert back(answer) == answer


@given(NUMBERS, FORMATS, DIRECTIONS, st.sampled_from([(8, True), (64, False), (5, True), (128, True)]))
@settings(max_examples=60, deadline=None)
def test_integers_come_back(a, fmt, direction, kind):
    answer = fl.to_integer(a, *kind, format=fmt, context=direction)
    assert back(answer) == answer


@given(NUMBERS, NUMBERS, NUMBERS, FORMATS, DIRECTIONS)
@settings(max_examples=60, deadline=None)
def test_fused_beside_separate_comes_back(a, b, c, fmt, direction):
    answer = fl.contrast(fl.fma(a, b, c, fmt, direction), fl.multiply_then_add(a, b, c, fmt, direction))
    assert back(answer) == answer


@given(
    st.lists(st.one_of(NUMBERS, st.floats(-1e6, 1e6)), min_size=1, max_size=9),
    st.sampled_from(["mxfp8_e4m3", "mxfp4", "mxint8", "nvfp4", "q4_0:ggml", "q4_1", "q4_k"]),
    DIRECTIONS,
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_blocks_come_back(values, fmt, direction, is_scaled):
    scale = "0.01" if is_scaled and fmt == "nvfp4" else None
    for block in quantize_blocks(values, fmt, None, direction, scale):
        assert back(block) == block


@given(st.integers(0, 2**32 - 1), st.sampled_from(["float16", "float32", "float64"]), st.booleans())
@settings(max_examples=40, deadline=None)
def test_differences_come_back(seed, dtype, is_strict):
    rng = np.random.default_rng(seed)
    a = rng.choice(np.array([0, -0.0, 1, 1 / 3, 2**-24, 6e4, np.inf, np.nan]), (4, 5)).astype(dtype)
    b = np.where(rng.random((4, 5)) < 0.7, a, rng.random((4, 5))).astype("float32" if is_strict else dtype)
    answer = compare(a, b, equal_nan=is_strict, rtol=0 if is_strict else 1e-3)
    again = back(answer)
    assert again.to_json() == answer.to_json()
    assert str(again) == str(answer)
    if not np.isnan([p for each in answer.worst for p in (each.actual, each.expected, each.absolute)]).any():
        assert again == answer


def test_differences_of_shapes_that_do_not_go_together_come_back():
    answer = compare(np.ones(3), np.ones(2))
    assert back(answer) == answer


def test_judgements_come_back():
    rng = np.random.default_rng(1)
    a, b = rng.random((8, 30), np.float32), rng.random((30, 8), np.float32)
    answer = judge_difference(a, b, a @ b)
    assert back(answer) == answer


@given(
    st.lists(st.sampled_from(["0.1", "-1/3", "7.5", "-0", "1e-4"]), min_size=1, max_size=12),
    st.sampled_from(["serial", "pairwise", "sorted(up)", "blocked(4, lanes(2))"]),
    st.sampled_from([{}, {"fma": True}, {"adder": "kahan"}, {"accumulator": "fp32"}, {"products": "fp32"}]),
    DIRECTIONS,
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_sums_and_dot_products_come_back(values, schedule, asked, direction):
    if "adder" in asked:
        schedule = None
    asked = asked | {"schedule": schedule, "format": "fp16", "context": fl.Context(rounding=direction, seed=5)}
    answers = [fl.dot(values, values[::-1], **asked)]
    if not {"fma", "products"} & set(asked):
        answers.append(fl.sum(values, **asked))
    for answer in answers:
        again = back(answer)
        assert again.to_json() == answer.to_json()
        assert str(again) == str(answer)


def test_reductions_on_machines_and_matrix_products_come_back():
    rng = np.random.default_rng(2)
    x, y = rng.random((3, 16)).astype("f2"), rng.random((16, 2)).astype("f2")
    answers = [
        fl.dot(x[0], y[:, 0], machine="hopper.f16.f32"),
        matrix_product(x, y, format="fp16"),
        matrix_product(x, y, fma=True),
    ]
    for answer in [*answers, matrix_product(x, y, machine="hopper.f16.f32")]:
        assert back(answer).to_json() == answer.to_json()
        assert str(back(answer)) == str(answer)


def test_what_was_left_out_is_not_read_back():
    with pytest.raises(fl.FileFormatError, match="are missing"):
        back(fl.sum(np.ones(2000, np.float32)))


def edge(a, b):
    """Return a product whose last two rows are added in the reverse order, and whose last column in binary64."""
    products = a[:, :, None] * b
    made = np.cumsum(products, axis=1)[:, -1]
    made[4:] = np.cumsum(products[4:, ::-1], axis=1)[:, -1]
    made[:, -1] = np.cumsum(np.float64(a) * np.float64(b[:, -1]), axis=1)[:, -1]
    return made


@pytest.mark.parametrize(
    ("target", "shape", "options"),
    [
        (edge, (6, 5, 4), {"kind": "matmul"}),
        ("numpy.matmul", (24, 40, 30), {}),
        ("numpy.matmul", (3, 10, 25, 6), {"dtype": "float64"}),
        ("numpy.matmul", (20, 30), {}),
        ("numpy.matmul", (9, 40, 9), {"layout": "A@A.T"}),
        ("numpy.matmul", (1, 1, 1), {}),
        (lambda a, b: np.vstack([a[:4] @ b, (a[4:, :, None] * b).max(axis=1)]), (5, 7, 3), {"kind": "matmul"}),
    ],
)
def test_order_maps_come_back_and_replay_the_same_products(target, shape, options):
    answer = order_map(target, shape, **options)
    again = back(answer)
    assert again.to_json() == answer.to_json()
    assert str(again) == str(answer)
    assert again.classes == answer.classes
    assert np.array_equal(again.labels, answer.labels)
    rows, terms, columns = answer.shape
    a = np.random.default_rng(3).standard_normal((answer.batch, rows // answer.batch, terms))
    b = np.random.default_rng(4).standard_normal((answer.batch, terms, columns))
    operands = (a, b) if answer.batch > 1 else (a[0], a[0].T if "B" not in answer.layout else b[0])
    assert np.array_equal(again.replay(*operands), answer.replay(*operands), equal_nan=True)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("shape",), [6, 5], "not a shape of 1 products"),
        (("shape",), [6, 5, 5], "cover each of the 30 elements exactly once"),
        (("shape",), [1 << 26, 5, 1 << 26], "too large"),
        (("shape",), [6, 1 << 40, 4], "a map must have at most"),
        (("batch",), 4, "not a shape of 4 products"),
        (("layout",), "A@A.T", "does not fit 1 product of 6 × 5 × 4"),
        (("classes", 0, "regions"), [], "do not cover"),
        (("classes", 0, "regions", 0, "rows", 0, "count"), 1 << 60, "not ascending"),
        (("classes", 0, "regions", 0, "rows", 0, "width"), 1 << 60, "but the product has only 6"),
        (("classes", 0, "regions", 0, "rows", 0, "start"), 2, "is in more than one region"),
        (("classes", 0, "nodes"), [[0, 1]], "never added"),
        (("classes", 0, "nodes"), None, "without a tree"),
        (("classes", 0, "ways", 0, "fused_terms"), [3, 1], "ascending"),
        (("classes", 0, "ways", 0, "accumulator"), "none", "accumulator: "),
        (("terms_format",), "e19m236", "arrays hold at most 64"),
    ],
)
def test_order_maps_that_contradict_themselves_are_refused(path, value, words):
    wire = json.loads(order_map(edge, (6, 5, 4), kind="matmul").to_json())
    with pytest.raises(fl.FileFormatError) as caught:
        from_json(json.dumps(spoiled(wire, path, value)))
    assert words in str(caught.value), str(caught.value)


def test_plans_come_back():
    assert back(PAIRWISE.plan(13)) == PAIRWISE.plan(13)


SETUPS = [
    Setup("fp16"),
    Setup("fp16", master="fp32", scaling=LossScale.dynamic()),
    Setup("bf16", compensated=True),
    Setup("bf16", stochastic=True, context=fl.Context(seed=3)),
]


@pytest.mark.parametrize("setup", SETUPS, ids=repr)
@pytest.mark.parametrize("optimizer", [None, SGD("0.1", momentum=0.9), Adam("1/300", weight_decay=0.1)], ids=repr)
def test_updates_come_back(setup, optimizer):
    asked = {"update": "0.00041999"} if optimizer is None else {"grad": "0.5", "optimizer": optimizer}
    answer = step("1.125", setup=setup, **asked)
    again = back(answer)
    assert again.to_json() == answer.to_json()
    assert again.replace(program=answer.program) == answer  # functions are equal only to themselves


def test_underflow_and_curves_come_back():
    gradients = np.geomspace(1e-12, 1e3, 50)
    for answer in (measure_underflow(gradients, "fp16", 8), measure_underflow(np.zeros(3), "fp16")):
        assert back(answer) == answer
    curve = sweep_steps(lambda x: x * x, 1.0, "fp32")
    assert back(curve) == curve


def test_single_tensors_of_checkpoints_come_back():
    weights = {"w": np.float32([[1, 2, 3, 1000]] * 4)}
    for answer in (*audit_recipes(weights, "e4m3,mxfp4").tensors, *compare_checkpoints(weights, weights).tensors):
        assert from_json(json.dumps(document_of(answer))) == answer


def test_formats_that_no_name_gives_come_back_inside_other_answers():
    mine = fl.Format("mine", 5, 4, bias=3, nans=0, infinities=False, subnormals=False)
    answer = fl.less("1", "2", format=mine)
    assert json.loads(answer.to_json())["formats"]["mine"]["precision"] == 5
    assert back(answer) == answer
    total = fl.sum(["1", "0.25", "2"], format=mine)
    assert back(total).to_json() == total.to_json()


def answers():
    """Return an answer of each kind that can be read back."""
    yield fl.add("0.1", "1/3", "fp16")
    yield fl.less("1", "2", format="fp16")
    yield fl.to_integer("2.5", 8, True, format="fp16")
    yield fl.contrast(fl.fma("1", "2", "3", "fp16"), fl.multiply_then_add("1", "2", "3", "fp16"))
    yield quantize_blocks(["957", "nan"], "mxfp4")[0]
    yield quantize_blocks(["957", "1"], "nvfp4")[0]
    yield quantize_blocks(["957", "1"], "q4_1")[0]
    yield quantize_blocks(["957", "-1"], "q4_k")[0]
    yield compare(np.float32([1, 2, 3]), np.float32([1, 2.5, 3]))
    yield judge_difference(np.ones((2, 3), "f4"), np.ones((3, 2), "f4"), np.full((2, 2), 3, "f4"))
    yield fl.sum(["1", "0.1", "3"], format="fp16")
    yield matrix_product([[1, 2]], [[3], [4]], format="fp16")
    yield PAIRWISE.plan(5)
    yield order_map(edge, (6, 5, 4), kind="matmul")
    yield step("1.125", "0.00041999", weights="fp16")
    yield measure_underflow(np.geomspace(1e-12, 1, 9), "fp16")
    yield sweep_steps(lambda x: x * x, 1.0, "fp32")


ANSWERS = {type(answer).__name__ + str(i): json.loads(answer.to_json()) for i, answer in enumerate(answers())}
JUNK = [
    None, True, 0, -1, 3, 1.5, "", "x", "nan", "1/0", "0x", "-", "é", [], {}, [[]], [None], {"x": 1}, "1" * 10_000,
    10**30, -(2**70), "0x" + "f" * 5000, ["inexact", 3], 1e308, "serial(((", {"exact": None}, "e99m9999", "9" * 40,
]  # fmt: skip


def places(wire, path=()):
    """Yield the path to every value inside."""
    yield path
    children = wire.items() if isinstance(wire, dict) else enumerate(wire) if isinstance(wire, list) else ()
    for key, child in children:
        yield from places(child, (*path, key))


def spoiled(wire, path, junk):
    """Return a copy in which one value is replaced by the junk, or removed if the junk is this function."""
    if not path:
        return junk
    first, *rest = path
    copy = dict(wire) if isinstance(wire, dict) else list(wire)
    if junk is spoiled and not rest:
        del copy[first]
    else:
        copy[first] = spoiled(wire[first], rest, junk)
    return copy


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", ANSWERS)
@given(st.data())
@settings(max_examples=150, deadline=None)
def test_spoiled_documents_are_read_or_refused_in_one_line(kind, data):
    wire = ANSWERS[kind]
    path = data.draw(st.sampled_from([place for place in places(wire) if place]))
    text = json.dumps(spoiled(wire, path, data.draw(st.sampled_from([*JUNK, spoiled]))))
    start, words = process_time(), ""
    try:
        from_json(text)
    except fl.FileFormatError as error:
        words = str(error)
    assert process_time() - start < 10  # a guard against documents that take forever
    assert "\n" not in words
    assert len(words) < 500


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[",
        "{}",
        "null",
        "1" * 10_000,
        "[" * 100_000,
        '{"a":' * 100_000,
        '{"schema": 1, "operation": ["x"]}',
        '{"schema": 1, "operation": "formats", "format": "binary16"}',
        '{"schema": 1, "operation": "train network", "configurations": []}',
        '{"schema": 2, "operation": "plan", "terms": 2, "nodes": [[0, 1]]}',
        '{"schema": 1, "operation": "plan", "terms": 1e400, "nodes": [[0, 1]]}',
        '{"schema": 1, "operation": "plan", "terms": 99999999999999, "nodes": []}',
        '{"schema": 1, "formats": {"a": 3}, "operation": "add", "steps": []}',
    ],
    ids=lambda text: text[:40],
)
def test_what_is_no_document_is_refused_in_one_line(text):
    with pytest.raises(fl.FileFormatError, match=r"^[^\n]{1,500}$"):
        from_json(text)


def test_an_error_says_where_in_the_document_it_is():
    wire = json.loads(fl.add("1", "2", "fp16").to_json())
    wire["operands"][1]["code"] = 7
    with pytest.raises(fl.FileFormatError, match=r"operands: \[1\]: code: expected a hexadecimal code, not '7'"):
        from_json(json.dumps(wire))


def test_numbers_of_numpy_are_written_as_numbers():
    assert json.loads(sweep_steps(lambda x: x * x, np.float32(1), "fp32").to_json())["x"] == 1


@pytest.mark.parametrize("name", [*NAMED_RECIPES, "nvfp4/16x16:te", "mxfp4:torchao_rceil", "block(e2m1, ue5m3, 16):up"])
def test_recipes_come_back(name):
    recipe = parse_recipe(name)
    assert back(recipe) == recipe
    [line] = answer_question(Question("formats", (name,)))[0].records()
    assert from_json(json.dumps(line)) == recipe
    assert str(back(recipe).page()) == str(recipe.page())


def test_json_of_no_recipe_is_refused():
    for wire in ({"recipe": "bogus/3"}, {"recipe": 3}, {"recipe": ["mxfp4"]}):
        with pytest.raises(fl.FloatlabError, match="not a valid Recipe"):
            from_json(json.dumps({"schema": 1, "operation": "formats", **wire}))
