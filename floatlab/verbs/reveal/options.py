"""The verb `reveal`, and its options."""

from __future__ import annotations

import re

from floatlab.errors import quoted
from floatlab.verbs.option import OUTPUT, Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb

_MOST_TERMS = 1 << 16
LAYOUTS = {
    "A@B": "row by row", "A.T@B": "A column by column", "A@B.T": "B column by column",
    "A.T@B.T": "both column by column", "A@A.T": "one matrix, times its transpose",
    "A.T@A": "the transpose of a matrix, times it",
}  # fmt: skip


def _settle(question: Question) -> Question:
    if len(question.values) != 1:
        example = VERB.examples[0]
        raise UsageError(f"reveal takes one target, not {len(question.values)}, as in floatlab {example}")
    return question


def read_shape(text: str, flag: str) -> object:
    """Return the shape as typed; raises UsageError unless it has the form MxKxN or MxK."""
    if not re.fullmatch(r"[1-9][0-9]{0,7}(x[1-9][0-9]{0,7}){1,3}", text):
        raise UsageError(
            f"{flag} takes MxKxN: rows, terms and columns, as in 64x64x64 (BxMxKxN of a batch, MxK of a matvec), "
            f"not {quoted(text)}"
        )
    return text


VERB = Verb(
    name="reveal",
    summary="find the order in which a real library accumulates, and replay it",
    examples=("reveal numpy.sum --terms 100", "reveal numpy.matmul --shape 24x40x30"),
    explanation=(
        "TARGET is numpy.NAME, torch.NAME, jax.NAME or cupy.NAME, where they are installed, or MODULE:FUNCTION, "
        "which is imported and called with NumPy's arrays. Huge numbers of opposite signs swamp the ones that are "
        "added before they meet; what survives tells the tree. A claim about accumulators and fused multiply-adds "
        "is made only when a simulation along the tree gives the bits of 32 random sums; else the share that it "
        "gives is told, and the status is 1. With --shape, each element of a matrix product gets its order, since "
        "libraries add the elements of one product in several."
    ),
    takes=("TARGET", "numpy.sum, torch.matmul, jax.numpy.dot, cupy.dot, module:function"),
    options=(
        *grouped(
            "what is asked",
            Option("terms", "N", "how many terms are added (default 64)", read=whole(1, _MOST_TERMS)),
            Option("dtype", "NAME", "float32 (default), float64, float16, bfloat16"),
            Option("kind", "KIND", "what a function takes: sum (x), dot (x, y), matvec (A, x), matmul (A, B)"),
            Option("device", "NAME", "where torch or jax adds: cpu (default), cuda:1, …; cupy: cuda"),
            Option(
                "shape",
                "MxKxN",
                "the orders of all elements of a product of so many rows, terms and columns",
                read=read_shape,
            ),
            Option(
                "layout",
                "LAYOUT",
                "how the operands of the shape lie in memory",
                choices=tuple(LAYOUTS.items()),
            ),
            Option("invariance", help="what changes the bits of a row: batch, place, alignment, threads, run"),
            Option("seed", "N", "of the random data that are replayed (default 1)", read=whole(0, (1 << 64) - 1)),
        ),
        *OUTPUT,
    ),
    rules=(
        OptionRule(("shape",), "the shape has the number of terms", ("terms",)),
        OptionRule(("layout",), "it is how operands of a shape lie in memory", needs=("shape",)),
        OptionRule(("invariance",), "it takes a shape and plain operands", ("terms", "layout")),
    ),
    formats_by="--dtype fp16 names that of the terms",
    settle=_settle,
    needs_values=False,
)
