"""The verb `compare`, and its options."""

from __future__ import annotations

from math import isfinite

from floatlab.errors import FloatlabError, quoted
from floatlab.fpmode import in_default_mode
from floatlab.verbs.option import FORMATS, OUTPUT, Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Answer, Verb

_MOST_WORST = 1000
_OF_ARRAYS = ("inputs", "op", "bias", "dtype", "shape", "plot")  # options for two arrays, not for checkpoints


@in_default_mode
def _tolerance(text: str, flag: str) -> float:
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not (isfinite(tolerance) and tolerance >= 0):
        raise UsageError(f"{flag} takes a finite number from 0 on, not {quoted(text)}")
    return tolerance


def _operation(text: str, flag: str) -> str:
    from floatlab.reduce.explain.operations import check_operation

    try:
        check_operation(text)
    except FloatlabError as trouble:
        raise UsageError(f"{flag}: {trouble}") from None
    return text


def _plot(answer: Answer, path: str) -> None:
    from floatlab.arrays.compare.differences import Differences

    if not isinstance(answer.found, Differences):
        raise UsageError("--plot draws the differences of two arrays: name them as FILE::NAME")
    from floatlab.verbs.compare.histogram_plot import difference_figure

    difference_figure(answer.found, path)


VERB = Verb(
    name="compare",
    summary="compare two arrays or checkpoints: errors, ulps, tolerances, and the positions of differences",
    examples=(
        "compare 0.1,0.2,0.3 0.1,0.2,0.30000001 --fp32",
        "compare random:normal:64x9@fp32 random:normal:64x9@bf16 --rtol 0.01",
    ),
    explanation=(
        "An array is a file (.npy, .npz::NAME, .safetensors::NAME, text, or raw numbers with --dtype and --shape), a "
        "list (1.5,-2,0x1p-3; rows separated by ;), an array as Python prints it ([[1, 2], [3, 4]], tensor([[…]], …)), "
        "or random:uniform:400x400:seed=1 (uniform, normal, lognormal). @FORMAT after an array that is not a file "
        "names its format. Ulps are counted in the format of the narrower array, or in -f NAME, which is also the "
        "format of text. The tolerance is that of numpy.allclose, |actual − expected| <= atol + rtol × |expected|; if "
        "an element exceeds it, the status is 1. The criterion of torch.testing.assert_close is evaluated too, with "
        "its own tolerances unless both --rtol and --atol are given. Files can have any size: they are read piece by "
        "piece. Two checkpoints (folders, indices, files with several tensors) are compared tensor by tensor, the "
        "worst first; quantised weights are read as numbers."
    ),
    takes=("ARRAY", "actual, then expected: a file, a list, random:…, or two checkpoints"),
    options=(
        *grouped(
            "tolerance",
            Option("rtol", "X", "relative tolerance (default 1e-5)", read=_tolerance),
            Option(
                "atol", "X", "absolute tolerance (default 1e-8); with --rtol, assert_close uses both", read=_tolerance,
            ),
            Option("equal_nan", "", "count two NaNs as equal"),
        ),
        *grouped(
            "checkpoints",
            Option("only", "GLOB", "compare the tensors whose names match, such as 'model.layers.*.mlp.*'"),
            Option("stored", "", "compare codes and scales as they are stored, instead of the numbers"),
        ),
        *grouped(
            "arrays",
            Option("dtype", "NAME", "type of files of raw numbers: f32, bf16, e4m3, int8, >f4, …"),
            Option("shape", "MxN", "shape of files of raw numbers (default: one axis)"),
        ),
        *grouped(
            "cause",
            Option("inputs", "X Y", "explain the differences: the arrays are products of X and Y"),
            Option(
                "op",
                "OP",
                "matmul (default), linear, dot, sum[:AXES] (then Y is 1), einsum:SPEC, conv2d[:stride=2,…]",
                read=_operation,
            ),
            Option("bias", "ARRAY", "a bias added to the product: one number per output, or an array to broadcast"),
        ),
        Option(
            "worst", "N", "list the N worst elements (default 5), or tensors of checkpoints (default 50)",
            read=whole(0, _MOST_WORST), group="what to show",
        ),
        *grouped(
            "what to show",
            Option("plot", "FILE", "draw the histogram with matplotlib: .png, .pdf, .svg"),
            Option("html", "FILE", "write the page as one HTML file (- for standard output)"),
            part="output",
        ),
        FORMATS,
        *OUTPUT,
    ),
    rules=(
        OptionRule(("op",), "it is the operation on the inputs", needs=("inputs",)),
        OptionRule(("only", "stored"), "checkpoints are compared as wholes", excludes=_OF_ARRAYS),
        OptionRule(("bias",), "it is added to the product of the inputs", needs=("inputs",)),
    ),
    one_format="compare counts the ulps of one format, but -f names {}",
    needs_values=False,
    reads_files=True,
    plot=_plot,
    also=("diff allclose → compare A B",),
)  # fmt: skip
