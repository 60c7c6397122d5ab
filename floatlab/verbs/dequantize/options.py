"""The options of the verb `dequantize`, and its help."""

from __future__ import annotations

from floatlab.formats import parse_format
from floatlab.verbs.option import OUTPUT, Option, UsageError, grouped
from floatlab.verbs.question import Question, Verb


def _validate(question: Question) -> Question:
    if len(question.values) != 2:
        raise UsageError(
            f"dequantize takes a checkpoint and the file to write, not {len(question.values)} values, as in floatlab "
            f"{VERB.examples[0]}"
        )
    return question


VERB = Verb(
    name="dequantize",
    summary="write a quantised checkpoint as plain numbers",
    examples=(
        "dequantize model.safetensors numbers.safetensors",
        "dequantize model.safetensors a.safetensors --to bf16 --only '*.mlp*'",
    ),
    explanation=(
        "FILE is a .safetensors, .gguf or .npz file, an index of several files (model.safetensors.index.json), or a "
        "folder. Weights are paired with their scales by the conventions of ModelOpt, compressed-tensors, DeepSeek, "
        "torchao, gpt-oss, bitsandbytes, GPTQ, AWQ, MLX, quanto, ComfyUI, TensorRT-LLM and GGUF, which are recognised "
        "by names, shapes and config.json. Each number is rounded once, from its exact value. Other tensors are "
        "copied; scales are not written. OUT is a .safetensors file; it is written to a temporary file, which replaces "
        "OUT at the end."
    ),
    takes=("FILE", "the checkpoint, then OUT, the file to write"),
    options=(
        *grouped(
            "numbers",
            Option("to", "NAME", "format of the weights: fp32 (default), bf16, fp16, fp64", names=parse_format),
            Option("only", "GLOB", "write the tensors whose names match, such as 'model.layers.*.mlp.*'"),
        ),
        *OUTPUT,
    ),
    formats_by="--to bf16 names the format of the numbers",
    validate=_validate,
    needs_values=False,
)
