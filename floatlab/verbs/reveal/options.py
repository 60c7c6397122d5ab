"""The verb `reveal`, and its options."""

from __future__ import annotations

import re

from floatlab.errors import quoted
from floatlab.verbs.option import OUTPUT, Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb

_MOST_TERMS = 1 << 16
LAYOUTS = {
    "A@B": "row by row", "A.T@B": "A column by column", "A@B.T": "B column by column",
    "A.T@B.T": "both column by column", "A@A.T": "a matrix times its transpose",
    "A.T@A": "the transpose of a matrix times the matrix",
}  # fmt: skip


def _validate(question: Question) -> Question:
    if len(question.values) != 1:
        example = VERB.examples[0]
        raise UsageError(f"reveal takes one target, not {len(question.values)}, as in floatlab {example}")
    return question


def read_shape(text: str, flag: str) -> object:
    """Return the text of a shape; raises UsageError unless it has the form MxK, MxKxN or BxMxKxN."""
    if not re.fullmatch(r"[1-9][0-9]{0,7}(x[1-9][0-9]{0,7}){1,3}", text):
        raise UsageError(
            f"{flag} takes MxKxN: rows, terms and columns, as in 64x64x64 (BxMxKxN of a batch, MxK of a matvec), "
            f"not {quoted(text)}"
        )
    return text


VERB = Verb(
    name="reveal",
    summary="find the order in which a library accumulates, and verify it by replaying sums",
    examples=("reveal numpy.sum --terms 100", "reveal numpy.matmul --shape 24x40x30"),
    explanation=(
        "TARGET is numpy.NAME, torch.NAME, jax.NAME or cupy.NAME, if the library is installed, or MODULE:FUNCTION, "
        "which is imported and called with NumPy's arrays. Two terms of a probe are huge numbers of opposite signs, "
        "and the others are 1. A 1 that is added before the huge numbers cancel is lost, so the sum shows the order. "
        "A claim about accumulators and fused multiply-adds is made only if a simulation in this order gives the bits "
        "of 32 random sums; otherwise the page gives the share of equal bits, and the status is 1. With --shape, the "
        "order of every element of a matrix product is found, since a library may use several orders in one product."
    ),
    takes=("TARGET", "numpy.sum, torch.matmul, jax.numpy.dot, cupy.dot, module:function"),
    options=(
        *grouped(
            "target",
            Option("terms", "N", "number of terms (default 64)", read=whole(1, _MOST_TERMS)),
            Option("dtype", "NAME", "float32 (default), float64, float16, bfloat16"),
            Option("kind", "KIND", "arguments of a function: sum (x), dot (x, y), matvec (A, x), matmul (A, B)"),
            Option("device", "NAME", "device for torch or jax: cpu (default), cuda:1, …; cupy: cuda"),
            Option(
                "shape",
                "MxKxN",
                "find the orders of all elements of a product of M rows, K terms and N columns",
                read=read_shape,
            ),
            Option(
                "layout",
                "LAYOUT",
                "memory layout of the operands",
                choices=tuple(LAYOUTS.items()),
            ),
            Option("invariance", help="find what changes the bits of a row: batch, place, alignment, threads, run"),
            Option("seed", "N", "seed of the random data for replays (default 1)", read=whole(0, (1 << 64) - 1)),
        ),
        *OUTPUT,
    ),
    rules=(
        OptionRule(("shape",), "the shape includes the number of terms", ("terms",)),
        OptionRule(("layout",), "it is the memory layout of the operands of a shape", needs=("shape",)),
        OptionRule(("invariance",), "it needs a shape and the default layout", ("terms", "layout")),
    ),
    formats_by="--dtype fp16 names the format of the terms",
    validate=_validate,
    needs_values=False,
)
