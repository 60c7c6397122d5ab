"""What `reveal` is, and its options."""

from __future__ import annotations

from floatlab.verbs.option import OUTPUT, Option, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb

_MOST_TERMS = 1 << 16


def _settle(question: Question) -> Question:
    if len(question.values) != 1:
        example = VERB.examples[0]
        raise UsageError(f"reveal takes one target, not {len(question.values)}, as in floatlab {example}")
    return question


VERB = Verb(
    name="reveal",
    summary="find the order in which a real library accumulates, and replay it",
    examples=("reveal numpy.sum --terms 100", "reveal numpy.matmul --terms 40 --dtype float64"),
    explanation=(
        "TARGET is numpy.NAME, torch.NAME, jax.NAME or cupy.NAME, where they are installed, or MODULE:FUNCTION, "
        "which is imported and called with NumPy's arrays. Huge numbers of opposite signs swamp the ones that are "
        "added before they meet; what survives tells the tree. A claim about accumulators and fused multiply-adds "
        "is made only when a simulation along the tree gives the bits of 32 random sums; else the share that it "
        "gives is told, and the status is 1."
    ),
    takes=("TARGET", "numpy.sum, torch.matmul, jax.numpy.dot, cupy.dot, module:function"),
    options=(
        *grouped(
            "what is asked",
            Option("terms", "N", "how many terms are added (default 64)", read=whole(1, _MOST_TERMS)),
            Option("dtype", "NAME", "float32 (default), float64, float16, bfloat16"),
            Option("kind", "KIND", "what a function takes: sum (x), dot (x, y), matvec (A, x), matmul (A, B)"),
            Option("device", "NAME", "where torch or jax adds: cpu (default), cuda:1, …; cupy: cuda"),
            Option("seed", "N", "of the random data that are replayed (default 1)", read=whole(0, (1 << 64) - 1)),
        ),
        *OUTPUT,
    ),
    formats_by="--dtype fp16 names that of the terms",
    settle=_settle,
    needs_values=False,
)
