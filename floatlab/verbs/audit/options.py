"""The options and the help text of the verb `audit`."""

from __future__ import annotations

from math import isfinite

from floatlab.errors import quoted
from floatlab.fpmode import in_default_mode
from floatlab.verbs.option import OUTPUT, Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Question, Verb, plot_chart

_MOST_WORST = 1_000_000
_MOST_JOBS = 256


def _recipes(text: str, flag: str) -> object:
    from floatlab.formats.recipes import parse_recipes

    return tuple(recipe.name for recipe in parse_recipes(text))


def _named_recipes() -> tuple[str, ...]:
    from floatlab.formats.recipes import NAMED_RECIPES

    return NAMED_RECIPES


def _worst(text: str, flag: str) -> object:
    if text.isdecimal():
        return whole(0, _MOST_WORST)(text, flag)
    if text.lower() != "all":
        raise UsageError(f"{flag} takes a number of tensors, or all, not {quoted(text)}")
    return _MOST_WORST


@in_default_mode
def _decibels(text: str, flag: str) -> float:
    try:
        ratio = float(text.lower().removesuffix("db"))
    except ValueError:
        ratio = float("nan")
    if not isfinite(ratio):
        raise UsageError(f"{flag} takes a number of decibels, such as 20, not {quoted(text)}")
    return ratio


def _validate(question: Question) -> Question:
    if question.option("to") is None and len(question.values) != 1:
        raise UsageError(f"audit takes one checkpoint, not {len(question.values)}, as in floatlab {VERB.examples[0]}")
    if not question.values:
        raise UsageError(f"audit needs a checkpoint, as in floatlab {VERB.examples[1]}")
    return question


VERB = Verb(
    name="audit",
    summary="check a quantised checkpoint, or show what recipes would do to a checkpoint (--to)",
    examples=(
        "audit model.safetensors --against original.safetensors",
        "audit original.safetensors --to mxfp4,nvfp4,e4m3/tensor",
        "audit model.safetensors::model.layers.0.mlp.down_proj.weight --from original.safetensors",
    ),
    explanation=(
        "FILE is a checkpoint (floatlab dequantize --help lists the kinds). With --against, each quantised weight is "
        "compared with its original: relative error, SQNR, cosine, largest error. It is broken if its error is larger "
        "than that of a quantiser with the right scales. Possible causes are tried (a reciprocal scale, exchanged or "
        "swizzled scales, nibbles in the other order, another bias). A cause is named only if correcting it makes the "
        "weight fit. Without --against, a weight is broken if it contains NaNs, or if parts of it are missing or do "
        "not fit. The status is 1 if a weight is broken. With --to, each tensor is rounded by each recipe (floatlab "
        "formats lists recipes). The page shows how many numbers become 0, subnormal, clipped or NaN, and the relative "
        "errors, SQNR, cosine, scales and bits. The cheapest recipe that a tensor survives is recommended. With "
        "--from, FILE::NAME names codes, and the answer is the recipe that makes all of them from the original, bit "
        "for bit; the status is 1 if no recipe does."
    ),
    takes=("FILE", "a checkpoint; several with --to"),
    options=(
        *grouped(
            "audit",
            Option("against", "ORIGINAL", "the checkpoint before it was quantised", also=("reference", "original")),
            Option("only", "GLOB", "only the tensors whose names match, such as 'model.layers.*.mlp.*'"),
        ),
        *grouped(
            "recipe of codes",
            Option("from", "ORIGINAL::NAME", "find the recipe that made the codes FILE::NAME from this tensor"),
            Option("scales", "PLACE[,PLACE]", "the scales (and the tensor scale), unless they are beside the codes"),
        ),
        *grouped(
            "recipes",
            Option(
                "to", "RECIPES", "what these recipes would do: mxfp4,nvfp4,e4m3/128x128,int8/channel, …",
                read=_recipes, also=("recipe", "recipes", "formats"), suggests=_named_recipes,
            ),
            Option("min_sqnr", "DB", "status 1 if a tensor falls below this SQNR in a recipe", read=_decibels),
            Option("activations", "FILE", "samples of the layers' inputs: compare outputs, too", also=("inputs",)),
            Option("saturate", "", "clip numbers beyond the largest, in recipes without scales"),
            Option("worst", "N", "list the N worst tensors, or all (default 40)", read=_worst),
        ),
        *grouped(
            "scale",
            Option("jobs", "N", "measure in N processes", read=whole(1, _MOST_JOBS), default=1, also=("processes",)),
            Option("scheduler", "ADDRESS", "measure on the Dask cluster of this scheduler", also=("cluster", "dask")),
            Option("resume", "FILE", "keep finished pieces in FILE, and continue from it after an interruption"),
        ),
        *grouped(
            "what to show",
            Option("plan", "FILE", "write the recommended recipe of each tensor as JSON (- for standard output)"),
            Option("csv", "FILE", "write the figures as CSV (- for standard output, instead of text)"),
            Option("html", "FILE", "write a report as one HTML file, with histograms and a heat map (- as for --csv)"),
            Option("plot", "FILE", "draw the SQNR of the tensors with matplotlib: .png, .pdf, .svg"),
            part="output",
        ),
        *OUTPUT,
    ),
    rules=(
        OptionRule(("to",), "--to rounds an unquantised checkpoint, --against checks a quantised one", ("against",)),
        OptionRule(
            ("min_sqnr", "activations", "saturate", "plan", "html", "plot"), "it is about recipes", needs=("to",)
        ),
        OptionRule(("worst", "csv"), "--from is about one tensor", ("from",)),
        OptionRule(("jobs", "scheduler", "resume"), "it divides the work of --to", needs=("to",)),
        OptionRule(("jobs",), "the cluster has its own processes", ("scheduler",)),
        OptionRule(("from",), "--from asks for the recipe of one tensor", ("against", "to", "only")),
        OptionRule(("scales",), "it names the scales of the codes", needs=("from",)),
    ),
    formats_by="--to RECIPES says what to round to, and the checkpoint has its own formats",
    validate=_validate,
    needs_values=False,
    reads_files=True,
    takes_long=True,
    plot=plot_chart,
)  # fmt: skip
