"""Everything that a user can ask, one row each: the command line and the explorer read the same table."""

from __future__ import annotations

from floatlab.record import Record

__all__ = ["ACTIONS", "ARITIES", "Action"]


class Action(Record):
    """A verb: what it does in one line, and examples that really run (without `floatlab`).

    An operation has an `arity`: so many operands make one question. `home` is the module of this package whose
    `answers` answers the verb's questions; a verb without one asks none.
    """

    verb: str
    home: str
    summary: str
    examples: tuple[str, ...]
    explanation: str = ""
    arity: int = 0


OPERANDS = (
    "Operands are numbers, or VALUE@FORMAT and codes (bits:…@FORMAT) of formats of their own. Without -f the result's "
    "format is the first of fp16, bf16, fp32, fp64, fp128 that holds all of these, or binary32; with it, the result is "
    "rounded once, directly. Numbers without a format are read to nearest into the result's; cmp, which has no result, "
    "reads them into binary32."
)

ARRAYS = (
    "An array is a list (1.5,-2,0x1p-3), a file (.npy, .npz::NAME, .safetensors::NAME, text), or "
    "random:normal:1000:seed=1 (uniform, normal, lognormal), or - for standard input; text is read to nearest into "
    "the format, or into binary32, or into FORMAT of ARRAY@FORMAT. Schedules: serial, reversed, pairwise, numpy, "
    "blocked(128), splitk(4), lanes(8), unrolled(4), halving(128), adjacent, folded, fused(16), sorted(up), "
    "permuted((2 0 1)), trees such as ((0 1) (2 3)), and each inside others: blocked(448, serial, pairwise). "
    "Of up to 16 terms every rounding is shown."
)

ACTIONS: dict[str, Action] = {
    action.verb: action
    for action in (
        Action(
            "show",
            "show",
            "read a value into one or more formats: fields, exact value, error, neighbours",
            ("show 1.12156456132 --fp16", "show bits:0x38 --dialects", "show 0.1 --fp32 --bf16 --interval"),
            "Values: 1.5  -3e-5  1_000  1/3  0x1.8p3  2^-24  inf  nan  nan(0x1)  snan; codes: bits:0x3c7c  "
            "bits:0_01111_0001111100; VALUE@FORMAT is read into that format first, and what other formats show is "
            "that number, converted; - reads values from standard input, one a line. Without a format: fp16 and fp32.",
        ),
        Action(
            "convert",
            "convert",
            "round a value along a path of formats, and say where double rounding changed the answer",
            ("convert 1.00048828126 --through fp32,fp16", "convert 0.1 fp16"),
            "1.00048828126 lies just above the middle of two binary16 numbers. Directly it rounds up, to 0x3c01; "
            "through binary32 it first lands on the middle itself, and the tie then goes to even, 0x3c00.",
        ),
        Action(
            "formats",
            "formats",
            "the table of formats; one format in full, with its code table if it is small",
            ("formats", "formats e4m3"),
            "Names are case-insensitive, and - is _. Besides the table: p3109_k8p4se, any e<W>m<T> with fn, f or "
            "fnuz after it, and _ieee after any name.",
        ),
        *(
            Action(verb, "arithmetic", summary, examples, OPERANDS, arity)
            for verb, arity, summary, examples in (
                (
                    "add",
                    2,
                    "add two numbers, step by step: align, add, round",
                    ("add 1.125 0.12457275390625 --fp16", "add 1.125@fp32 0.1246@fp16"),
                ),
                (
                    "sub",
                    2,
                    "subtract, step by step: align, cancel, round",
                    ("sub 1.001 1 --fp16", "sub 1e8 1 --fp32 -r RTZ"),
                ),
                ("mul", 2, "multiply, step by step", ("mul 0.1 3 --fp16", "mul 6e-5 0.3 --fp16 --ftz")),
                ("div", 2, "divide, step by step", ("div 1 3 --fp32", "div 1 0 --e4m3")),
                (
                    "rem",
                    2,
                    "the IEEE remainder, a − n·b with n nearest to a/b",
                    ("rem 5 3 --fp16", "rem 1e30 7 --fp64"),
                ),
                ("sqrt", 1, "the square root, step by step", ("sqrt 2 --fp16", "sqrt -1 --bf16")),
                (
                    "fma",
                    3,
                    "a × b + c rounded once, beside multiply-then-add, and where they part",
                    ("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", "fma 0.1 10 -1 --fp32 --brief"),
                ),
                (
                    "cmp",
                    2,
                    "compare two numbers, of any formats: less, equal, greater or unordered",
                    ("cmp 0.1@fp16 0.1@fp32", "cmp nan 1 --fp16 --signaling"),
                ),
                ("toint", 1, "convert to an integer", ("toint 2.5 --fp16", "toint 3e9 --fp32 --to u32")),
                (
                    "rint",
                    1,
                    "round to an integral number of the same format",
                    ("rint 2.5 --fp16", "rint -0.5 --fp32 -r RTN"),
                ),
            )
        ),
        Action(
            "block",
            "block",
            "scale and round a block of values into MX or NVFP4, step by step",
            ("block 957 --to mxfp8_e4m3", "block 0.1 -2.5 3 7.3 --to mxfp4 --scale up", "block 0.3 -1.1 9 --to nvfp4"),
            "Block formats: mxfp8_e4m3 mxfp8_e5m2 mxfp6_e2m3 mxfp6_e3m2 mxfp4 mxint8 nvfp4. Values are taken exactly, "
            "VALUE@FORMAT as that format has it; more than fill a block go on in the next one. --scale is how the "
            "scale comes from the largest magnitude, amax: floor (OCP's rule: 2^(exponent of amax − emax)), even (amax "
            "rounded to the element's digits first), ceil, up (the smallest scale with which nothing saturates) and "
            "nearest (amax / largest, rounded; nvfp4 has this one and up). - reads a row of values a line.",
        ),
        Action(
            "vectors",
            "",
            "check or write conformance vectors in TestFloat's text format, for any format",
            ("vectors generate e4m3_mulAdd --lines 3", "vectors generate f16_to_e5m2 -r minMag --level 1 --lines 2"),
            "vectors check FUNCTION FILE… compares each line with floatlab's bits and flags (- is standard input); "
            "vectors generate FUNCTION writes lines, weighted to where rounding goes wrong. FUNCTION is a format, _, "
            "and add sub mul div rem sqrt mulAdd roundToInt eq le lt eq_signaling le_quiet lt_quiet; or f32_to_f16, "
            "f32_to_i32, ui64_to_bf16. A line holds operands, result and flags in hexadecimal. Here --nan is x86 "
            "unless given, as in TestFloat's own vectors; --nan any takes any NaN for any other.",
        ),
        *(
            Action(verb, "reduce", summary, examples, explanation)
            for verb, summary, examples, explanation in (
                (
                    "sum",
                    "add the numbers of an array in a stated order, every rounding in the open",
                    ("sum 2048,1,3 --fp16", "sum random:normal:1000:seed=1 --fp32 --schedule numpy"),
                    ARRAYS,
                ),
                (
                    "dot",
                    "the dot product of two arrays in a stated order, with fused multiply-adds or without",
                    ("dot --preset forum --fma", "dot 1,2,3 4,5,6 --fp16 --schedule pairwise --accumulator fp32"),
                    f"{ARRAYS} A machine fixes formats and roundings, and is a published model, not the machine.",
                ),
                (
                    "matmul",
                    "the product of two matrices, each element added in a stated order, beside the exact product",
                    ("matmul '1,2;3,4' '5,6;7,8' --fp16", "matmul random:normal:64x64 random:normal:64x64@fp32 --fma"),
                    f"{ARRAYS} Rows of a list stand apart by ;. q is the error in units of u × the sum of |a·b|: a few "
                    "for rounding, and at most about the number of terms.",
                ),
            )
        ),
        Action(
            "reveal",
            "reveal",
            "find the order in which a real library accumulates, and replay it",
            ("reveal numpy.sum --terms 100", "reveal numpy.matmul --terms 40 --dtype float64"),
            "TARGET is numpy.NAME, torch.NAME, jax.NAME or cupy.NAME, where they are installed, or MODULE:FUNCTION, "
            "which is imported and called with NumPy's arrays. Huge numbers of opposite signs swamp the ones that are "
            "added before they meet; what survives tells the tree. A claim about accumulators and fused multiply-adds "
            "is made only when a simulation along the tree gives the bits of 32 random sums; else the share that it "
            "gives is told, and the status is 1.",
        ),
        Action(
            "compare",
            "compare",
            "two arrays: how far apart, in errors and ulps, within which tolerance, and where",
            (
                "compare 0.1,0.2,0.3 0.1,0.2,0.30000001 --fp32",
                "compare random:normal:64x9@fp32 random:normal:64x9@bf16 --rtol 0.01",
            ),
            "An array is a file (.npy, .npz::NAME, .safetensors::NAME, text, or raw numbers with --dtype and --shape), "
            "a list (1.5,-2,0x1p-3; rows apart by ;), or random:uniform:400x400:seed=1 (uniform, normal, lognormal), "
            "the last two with @FORMAT where they have one of their own. Ulps are those of the narrower array, or of "
            "-f NAME, which text is read into. Within tolerance is numpy.allclose's |actual − expected| <= atol + "
            "rtol × |expected|; beyond it the status is 1. torch.testing.assert_close is asked too, with its own "
            "tolerances unless both are given. Files are read piece by piece, and of any size.",
        ),
        Action(
            "train",
            "train",
            "why small updates vanish, and what saves them: one update, many, whole networks",
            (
                "train step 1.125 0.00041999 --fp16",
                "train 1.125 --update 0.00041999 --steps 101",
                "train 1 --grad 0.5 --lr 1e-4 --optimizer momentum --steps 50",
                "train network --configs fp32,bf16,bf16+stochastic --steps 60",
                "train underflow random:lognormal:1000:seed=1:mean=-14:sigma=3 --fp16",
                "train check x^3 1.5 --reported 6.75",
            ),
            "train step W UPDATE (or --grad G --lr L) draws one update, each rounding of it, and how large it had to "
            "be. train W does many under remedies side by side; W, U and G are numbers, lists, files or random:…, one "
            "for each weight, or of a single weight one for each step. Remedies: plain, master (a copy in fp32), "
            "master:F, stochastic, kahan, static:SCALE, dynamic, wide, any format, blocks (mxfp4, …), joined as in "
            "bf16+kahan. "
            "Optimizers: sgd momentum adam adamw. train network teaches linear, logistic or a two-layer network in "
            "configurations such as fp16+master+dynamic, bf16+stochastic, fp8+master. train underflow ARRAY is what a "
            "format's range does to gradients. train check FUNCTION X is why finite differences fail: x^2 x^3 x^4 1/x "
            "sqrt rosenbrock sin cos tan exp log tanh sigmoid softplus, or MODULE:FUNCTION, which is imported and "
            "called; with --reported D the status is 1 where D is a bug.",
        ),
        Action(
            "tui",
            "",
            "explore all of it with keys and mouse: bits to flip, steps to walk, formats to compare",
            ("tui", "tui show 0.1 --fp16", "tui fma 1.0009765625 1.0009765625 -1.001953125 --fp16"),
            "Opens where it was left, or at the question that any other verb would answer. ? lists the keys; Ctrl+P "
            "finds everything by name. Settings: floatlab/explorer.toml in the XDG configuration directory (theme, "
            "slide, animations, [keys]).",
        ),
    )
}
# How many operands each operation takes.
ARITIES = {action.verb: action.arity for action in ACTIONS.values() if action.arity}
