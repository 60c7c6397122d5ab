"""The options of the verb `audit`, and its help."""

from __future__ import annotations

from floatlab.verbs.option import OUTPUT, Option, OptionRule, UsageError, grouped
from floatlab.verbs.question import Question, Verb


def _settle(question: Question) -> Question:
    if len(question.values) != 1:
        raise UsageError(f"audit takes one checkpoint, not {len(question.values)}, as in floatlab {VERB.examples[0]}")
    return question


VERB = Verb(
    name="audit",
    summary="check a quantised checkpoint, against its original or by its bytes",
    examples=(
        "audit model.safetensors --against original.safetensors",
        "audit model.safetensors --only '*.mlp.*'",
        "audit model.safetensors::model.layers.0.mlp.down_proj.weight --from original.safetensors",
    ),
    explanation=(
        "FILE is a checkpoint as for dequantize. With --against, each quantised weight is compared with its "
        "original: relative error, SQNR, cosine, largest error. It is broken if its error is larger than a quantiser "
        "with the right scales leaves. Possible causes are tried (a reciprocal scale, exchanged or swizzled scales, "
        "nibbles in the other order, another bias). A cause is named only if the weight fits once it is corrected. "
        "Without --against, a weight is broken if its bytes prove it: NaNs, or parts that are missing or do not fit. "
        "The status is 1 if a weight is broken. With --from, FILE::NAME are codes, and the answer is the recipe that "
        "gives all of them from the original, bit for bit; the status is 1 if no recipe does."
    ),
    takes=("FILE", "the quantised checkpoint"),
    options=(
        *grouped(
            "audit",
            Option("against", "ORIGINAL", "the checkpoint before it was quantised", also=("reference", "original")),
            Option("from", "ORIGINAL::NAME", "find the recipe that made the codes FILE::NAME from this tensor"),
            Option("scales", "PLACE[,PLACE]", "the scales for --from (and the tensor's), if not beside the codes"),
            Option("only", "GLOB", "check the weights whose names match, such as 'model.layers.*.mlp.*'"),
        ),
        *OUTPUT,
    ),
    rules=(
        OptionRule(("from",), "--from asks for the recipe of one tensor", excludes=("against", "only")),
        OptionRule(("scales",), "they are the scales of the codes", needs=("from",)),
    ),
    formats_by="the checkpoint says its formats",
    settle=_settle,
    needs_values=False,
)
