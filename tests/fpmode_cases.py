"""Sample calls of all public functions, on subnormal numbers and ties, whose results other modes would change."""

from contextlib import redirect_stdout
from fractions import Fraction
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import floatlab as fl
from floatlab.arith.witness import find_witness
from floatlab.arrays.blocks import decode_blocks, encode_blocks
from floatlab.arrays.round_trips.tally import tally
from floatlab.cli.main import main
from floatlab.files.text import parse_list
from floatlab.reduce.results.judgements import judge_difference
from floatlab.reduce.results.products import matrix_product
from floatlab.reduce.timing.backends import multiply_on

arrays, training = fl.arrays, fl.training

# Subnormal numbers, ties, and neighbours of ties.
SINGLES = np.float32([2**-149, 2**-148, 1, 2**-24, 2**-24, 3, 0.1, -7, 1e-39, 2**-126, 65520, -0.0, np.inf])
TINY = np.float32([2**-149, 2**-148, 3 * 2**-149, 1e-39])
TIES = np.float32([1, 2**-24, 2**-24])
WIDE = np.float64([5e-324, 2**-1022, 1, 2**-53, 2**-53, 0.1, 1e-300, -3])
HALVES = np.float16([6e-8, 1, 2**-11, 2**-11, 0.1, -3])
LEFT, RIGHT = (np.random.default_rng(seed).standard_normal((6, 6)).astype(np.float32) for seed in (1, 2))
FACES = np.float32([[1e-39, 1, 3], [2**-149, 0.1, 7], [2**-75, 2**-24, 1]])
ONES = [0.1, 5e-324, np.float32(1e-39), np.float16(6e-8), np.longdouble("1e-320"), np.float32(2**-149), Fraction(1, 3)]
NEAR = SINGLES + np.float32(2**-149), 2 * TINY, WIDE / 3, SINGLES.astype(np.float64) * (1 + 2**-30)
WHOLE, WRONG = np.ceil(np.abs(LEFT)), LEFT @ RIGHT + np.float32(1e-3)
SHORT_LEFT, SHORT_RIGHT = LEFT.astype(np.float16), RIGHT.astype(np.float16)
COMPRESSED = fl.FloatArray(SINGLES[:12], "bf16")
LISTED, SHORT, STARTS = TINY.tolist(), np.float32(3.1), np.float32([1, 0.1])
STATED = fl.FloatArray(TINY, "fp32")
QUANTIZED = {"l.weight": np.int8([range(-16, 16)] * 3), "l.weight_scale": np.float32([0.1, 2**-149, 3e38])}
UNQUANTIZED = {"l.weight": QUANTIZED["l.weight"] * 0.1}
EIGHT = fl.FloatArray([0.1, 3.3, -448, 2**-9], "e4m3")


def _reduction(found):
    """Return all attributes of a reduction."""
    told = [found.result, found.error, found.error_ulps, found.condition, found.bound, found.magnitude, repr(found)]
    return [*told, found.flags.names, [(node.value, node.error) for node in found.nodes], found.worst(2), float(found)]


def _saved(x):
    with TemporaryDirectory() as folder:
        arrays.save(f"{folder}/x.npz", x)
        return arrays.load(f"{folder}/x.npz")


def _recipe_found(x, recipe):
    made = encode_blocks(x, recipe)
    found = fl.find_recipe(made.codes, x, made.scales)
    return found.recipes, repr(found)


def _dequantized(tensors):
    with TemporaryDirectory() as folder:
        done = fl.dequantize(tensors, f"{folder}/x.safetensors", to="bf16")
        return done.weights, Path(f"{folder}/x.safetensors").read_bytes()


def _written(*words):
    with redirect_stdout(StringIO()) as out:
        assert main([*words]) in (0, 1)
    return out.getvalue()


PROBLEM = training.make_problem("network", 1, samples=8)
LEARNED = training.learn(PROBLEM, "fp32 bf16", steps=5)

# Public functions by name; several cases of a name are distinguished by a suffix.
CASES = {
    "read": lambda: [fl.read(x, "fp16") for x in ("0.1", *ONES)],
    "read wide": lambda: [fl.read(x, "fp128") for x in ONES],
    "encode": lambda: [fl.encode(x, "fp64") for x in ("5e-324", *ONES)],
    "decode float": lambda: [float(fl.decode(code, fmt)) for code, fmt in ((1, "fp64"), (1, "fp32"), (3, "fp16"))],
    "decode repr": lambda: [repr(fl.decode(code, fmt)) for code, fmt in ((1, "fp64"), (1, "fp32"), (0x2E66, "fp16"))],
    "convert": lambda: fl.convert(fl.decode(1, "fp64"), "fp32"),
    "convert float": lambda: float(fl.convert(fl.encode("0.1", "fp128"), "fp64").result),
    "from_json": lambda: fl.from_json(fl.read(1e-39, "fp32").to_json()),
    **{
        name: lambda name=name: [
            getattr(fl, name)(*operands, format=fmt).result
            for operands in ((0.1, 0.2), (1.0, 2.0**-53), (2.0**-1074, 2.0**-1074))
            for fmt in ("fp16", "fp64")
        ]
        for name in ("add", "subtract", "multiply", "divide", "remainder")
    },
    **{
        name: lambda name=name: [getattr(fl, name)(*operands) for operands in ((5e-324, -5e-324), (2.0**-1074, 1.0))]
        for name in (
            "minimum", "maximum", "minimum_number", "maximum_number", "minimum_magnitude", "maximum_magnitude",
            "minimum_magnitude_number", "maximum_magnitude_number", "copy_sign",
        )
    },
    **{
        name: lambda name=name: [getattr(fl, name)(x) for x in (5e-324, 1.0, 2.0**-1022)]
        for name in ("negate", "abs", "log_b", "next_up", "next_down")
    },
    "scale_b": lambda: [fl.scale_b(x, n) for x in (5e-324, 1.1) for n in (-1060, 3)],
    "sqrt": lambda: [fl.sqrt(x, format="fp64").result for x in (2.0, 5e-324)],
    "fma": lambda: [fl.fma(0.1, 0.2, 2.0**-1074, format=fmt) for fmt in ("fp32", "fp64")],
    "multiply_then_add": lambda: fl.multiply_then_add(0.1, 10.0, -1.0, format="fp64"),
    "contrast": lambda: fl.contrast(*(make(0.1, 10.0, -1.0, format="fp16") for make in (fl.fma, fl.multiply_then_add))),
    "equal": lambda: fl.equal(5e-324, 0.0),
    "less": lambda: fl.less(0.0, 5e-324),
    "less_equal": lambda: fl.less_equal(5e-324, 0.0),
    "to_integer": lambda: fl.to_integer(fl.encode(2.5, "fp64"), 32),
    "from_integer": lambda: fl.from_integer(2**53 + 1, "fp64"),
    "round_to_integral": lambda: fl.round_to_integral(fl.encode(2.5, "fp64")),
    "parse_format": lambda: [fl.parse_format("e5m10").largest, fl.parse_format("fp64").smallest],
    "finfo": lambda: [(found.eps, found.max, found.smallest_subnormal) for found in map(fl.finfo, ("fp16", "fp64"))],
    "find_witness": lambda: find_witness("fp16"),
    # Arrays.
    **{
        f"arrays.encode {fmt} {lane}": lambda fmt=fmt, lane=lane: [
            arrays.encode(x, fmt, lane=lane) for x in (SINGLES, WIDE, HALVES, [0.1, 5e-324], ONES[2])
        ]
        for fmt in ("fp16", "e4m3", "bf16", "fp32", "fp64")
        for lane in (None, "numpy", "scalar")
    },
    "arrays.quantize": lambda: [
        arrays.quantize(x, fmt, rounding)
        for x in (SINGLES, WIDE)
        for fmt in ("fp16", "fp32", "e2m1")
        for rounding in ("RNE", "RTP", "SR")
    ],
    "arrays.quantize blocks": lambda: [
        arrays.quantize(np.tile(SINGLES[6:10], 8), each) for each in ("mxfp4", "nvfp4", "mxint8")
    ],
    "tally": lambda: [
        tally(x[: len(y)], y, 2, 1e-38, 3.0, lane=lane)
        for x, y in ((SINGLES, NEAR[0]), (WIDE, NEAR[2]))
        for lane in ("numpy", None)
    ],
    "arrays.encode blocks": lambda: encode_blocks(np.tile(TINY, 8), "mxfp8_e4m3"),
    "arrays.decode blocks": lambda: decode_blocks((np.uint8([3, 9]), np.arange(64) % 16), "mxfp4", dtype=np.float32),
    "arrays.decode": lambda: [
        arrays.decode(np.arange(5), fmt, dtype) for fmt in ("fp16", "fp32", "fp64") for dtype in (None, np.float64)
    ],
    **{
        f"arrays.{name}": lambda name=name, count=count: [
            getattr(arrays, name)(*(SINGLES, SINGLES[::-1], ONES[2])[:count], fmt) for fmt in ("fp32", "bf16")
        ]
        for name, count in (("add", 2), ("subtract", 2), ("multiply", 2), ("divide", 2), ("sqrt", 1), ("fma", 3))
    },
    "arrays.operate": lambda: arrays.operate("divide", [WIDE, 3], "fp64"),
    "arrays.next_after": lambda: [arrays.next_after(TINY, "down"), arrays.next_after(WIDE, 1.0)],
    "arrays.ordinal": lambda: arrays.ordinal(SINGLES),
    "arrays.spacing": lambda: [arrays.spacing(SINGLES), arrays.spacing(WIDE)],
    "arrays.ulp_distance": lambda: arrays.ulp_distance(TINY, np.zeros(4, np.float32)),
    "arrays.pack": lambda: arrays.pack(np.arange(5), 6),
    "arrays.unpack": lambda: arrays.unpack(np.arange(6, dtype=np.uint8), 6),
    "arrays.save, load": lambda: _saved(STATED),
    "FloatArray": lambda: [fl.FloatArray(x, "fp32") for x in (TINY, LISTED, *ONES[:4], *ONES[5:])],
    "FloatArray.values": lambda: STATED.values,
    "FloatArray.tolist": lambda: [STATED.tolist(), COMPRESSED.tolist()],
    "FloatArray as text": lambda: [repr(STATED), str(STATED), f"{STATED[3]:.5g}"],
    "FloatArray.item": lambda: [STATED.item(0), float(STATED[1]), bool(STATED[0]), int(EIGHT[1])],
    "FloatArray sums": lambda: [
        x.sum() if x is not EIGHT else x.sum(accumulator="e5m10") for x in (STATED, COMPRESSED, EIGHT)
    ],
    "FloatArray reductions": lambda: [STATED.mean(), STATED.prod(), STATED.max(), STATED.min(), EIGHT.mean()],
    "FloatArray products": lambda: [fl.FloatArray(FACES, fmt) @ fl.FloatArray(FACES, fmt) for fmt in ("fp32", "bf16")],
    "FloatArray questions": lambda: [
        STATED.argmax(), STATED.argmin(), STATED.any(), STATED.all(), 2.0**-149 in STATED, STATED > 0
    ],
    "FloatArray operators": lambda: [STATED + STATED, STATED / 3, STATED * STATED, -STATED, STATED.fma(2, STATED)],
    "FloatArray functions": lambda: [
        STATED.clip(2**-148), np.sort(STATED), np.exp(EIGHT), np.where([1, 0, 1, 0], STATED, 0.1), np.spacing(STATED)
    ],
    "FloatArray.astype": lambda: [STATED.astype("fp64").tolist(), COMPRESSED.astype("fp16")],
    "FloatArray as array": lambda: [np.asarray(STATED, np.float64), np.float64(STATED[0])],
    # Reductions.
    "sum tiny": lambda: _reduction(fl.sum(TINY[:2])),
    "sum ties": lambda: _reduction(fl.sum(TIES)),
    **{
        f"sum {schedule} {adder}": lambda schedule=schedule, adder=adder: [
            _reduction(fl.sum(x, schedule, adder=adder)) for x in (SINGLES[:12], TINY, WIDE, HALVES)
        ]
        for schedule, adder in (
            ("serial", "rounded"), ("pairwise", "rounded"), ("lanes(4)", "rounded"), ("sorted(up)", "rounded"),
            ("fused(4)", "rounded"), ("serial", "kahan"), ("serial", "neumaier"), ("serial", "double"),
        )
    },
    "sum of text": lambda: fl.sum(["0.1", "1e-45", "1"], format="fp32").result,
    "sum bf16": lambda: _reduction(fl.sum([0.1] * 10, format="bf16", accumulator="fp32")),
    "sum of many": lambda: [fl.sum(np.tile(TINY, 5000), each).result for each in ("serial", "numpy")],
    "dot": lambda: [
        _reduction(fl.dot(x, x[::-1], fma=fma)) for x in (SINGLES[:12], TINY, WIDE) for fma in (False, True)
    ],
    "dot machine": lambda: _reduction(fl.dot(HALVES, HALVES, machine="hopper.f16.f32")),
    "matmul": lambda: [
        fl.matmul(x, y, schedule, fma=fma)
        for x, y in ((FACES, FACES), (LEFT, RIGHT), (SHORT_LEFT, SHORT_RIGHT))
        for schedule, fma in (("serial", True), ("serial", False), ("pairwise", False))
    ],
    "matmul machine": lambda: fl.matmul(SHORT_LEFT, SHORT_RIGHT, machine="hopper.f16.f32"),
    "attribute": lambda: fl.attribute([1e-39, 0.1, 3], [1.0, 1.0, 1.0], SHORT, targets=[]).text,
    "attribute printed": lambda: fl.attribute([0.1, 0.2, 0.3, 1e-9], None, "0.6", targets=[]).text,
    "compare": lambda: [
        fl.compare(SINGLES, NEAR[0]), fl.compare(TINY, NEAR[1]), fl.compare(WIDE, NEAR[2], atol=1e-310)
    ],
    "compare formats": lambda: fl.compare(SINGLES, NEAR[3]),
    "compare as text": lambda: repr(fl.compare(TINY, NEAR[1])),
    "compare_checkpoints": lambda: fl.compare_checkpoints({"a": SINGLES, "b": TINY}, {"a": NEAR[0], "b": NEAR[1]}),
    "load_quantized": lambda: [
        fl.load_quantized(QUANTIZED)["l.weight"], *fl.load_quantized(QUANTIZED).open("l.weight").blocks(7)
    ],
    "dequantize": lambda: _dequantized(QUANTIZED),
    "audit": lambda: (fl.audit(QUANTIZED, UNQUANTIZED), fl.audit(UNQUANTIZED, to="e4m3,nvfp4,q4_1").totals),
    "find_recipe": lambda: _recipe_found(np.tile(TINY, 8), "mxfp8_e4m3"),
    "judge": lambda: judge_difference(LEFT, RIGHT, WRONG),
    "product": lambda: [matrix_product(LEFT, RIGHT).errors(), matrix_product(FACES, FACES).element(4)],
    "multiply_on": lambda: [
        (run.codes, run.errors) for run in multiply_on(WHOLE, WHOLE, "numpy", 1).runs
    ],
    "examine": lambda: fl.examine(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4).plan.text,
    "reveal": lambda: fl.reveal(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4).text,
    # Training.
    "train": lambda: fl.train("1.125", update="0.00041999", steps=101).lines,
    "train gradients": lambda: [
        (line, run.values)
        for made in [fl.train(STARTS, lambda w, _: w * 1e-3, lr=0.1, optimizer="adam", steps=20)]
        for line, run in zip(made.lines, made.runs, strict=True)
    ],
    "training.learn": lambda: [
        (each.final, each.losses, repr(each)) for row in training.learn(PROBLEM, "fp32 bf16", steps=5) for each in row
    ],
    "training.compare_learnings": lambda: training.compare_learnings(LEARNED),
    "training.make_problem": lambda: training.make_problem("network", 3, samples=8).x,
    "training.exact_loss": lambda: training.exact_loss(PROBLEM, np.full(PROBLEM.parameters, 1e-310)),
    "training.step": lambda: training.step("1.125", update="0.00041999"),
    "training.check_gradient": lambda: training.check_gradient(lambda x: x * x * x, 1.5, 6.75),
    "training.sweep_steps": lambda: training.sweep_steps(lambda x: x * x, 1.5),
    "training.advised_step": lambda: training.advised_step("fp32"),
    "training.measure_underflow": lambda: training.measure_underflow(SINGLES[:12], "fp16", 1024),
    "training.parse_optimizer": lambda: training.parse_optimizer("adam", 1e-3, False),
    "training.parse_remedy": lambda: training.parse_remedy("mxfp4+master")(training.Setup("fp16")).formats,
    # Functions behind the commands.
    "lists": lambda: parse_list("0.1,1e-45,1.00000005960464477539,5e-324", fl.parse_format("fp32")).whole(),
    **{
        f"floatlab {words}": lambda words=words: _written(*words.split())
        for words in (
            "show 1e-45 --fp32 --interval",
            "show 5e-324 --fp64 --json",
            "add 1.125 0.1 --fp16",
            "sum 0.1,0.2,1e-45,3",
            "sum 0.1,0.2,1e-45,3 --json",
            "dot --preset forum",
            "matmul random:normal:4x4:seed=1 random:uniform:4x4:seed=2",
            "compare 0.1,0.2,1e-45 0.1,0.3,0",
            "compare 0.1,0.2,1e-45 0.1,0.3,0 --rtol 1e-5 --json",
            "compare random:normal:50:seed=1 random:lognormal:50:seed=1",
            "formats e4m3 e5m2",
            "block 957 0.1 1e-39 --to nvfp4",
            "train check x^3 1.5",
            "train 1.125 --update 0.00041999 --fp16 --steps 50",
            "train 1.125 --update 0.00041999 --fp16 --steps 50 --json",
        )
    },
}  # fmt: skip
