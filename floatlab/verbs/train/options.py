"""The verb `train`, its options, and which subcommand accepts which option."""

from __future__ import annotations

from floatlab.errors import guess, quoted
from floatlab.fpmode import in_default_mode
from floatlab.verbs.option import FORMATS, OUTPUT, ROUNDING, Option, OptionRule, UsageError, grouped, listed, whole
from floatlab.verbs.question import Question, Verb, plot_chart

# The words for subcommands. W means that there is no such word: the first value is the weight, and many steps are done.
_MANY, _STEP, _NETWORK, _UNDERFLOW, _CHECK = FORMS = ("W", "step", "network", "underflow", "check")
_UPDATES = (_MANY, _STEP)
# For each subcommand: the minimum and maximum number of values, and what they are.
_TAKES = {
    _STEP: (2, 3, "a weight and an update: train step 1.125 0.00041999"),
    _NETWORK: (1, 1, "no values: train network --configs fp32,fp16"),
    _UNDERFLOW: (2, 2, "one array: train underflow grads.npy --fp16"),
    _CHECK: (3, 3, "a function and a number: train check x^3 1.5"),
    _MANY: (1, 1, "one weight or one list of weights: train 1.125 --update 0.00041999"),
}
_MOST_STEPS, _MOST_NETWORK_STEPS = 10**9, 10**7
_MOST_SIZE = 1 << 12
_STEPS = whole(0, _MOST_STEPS)
_TABLES = (_MANY, _NETWORK, _UNDERFLOW, _CHECK)
_DIRECTION, _SEED, *_RULES = ROUNDING
_REMEDIES = "plain,master,stochastic,kahan,static:1024,dynamic,bf16+kahan,…"
_WEIGHTS = "format of the stored weights (default fp16); also a block format such as mxfp4"


def _form(values: tuple[str, ...]) -> str:
    first = _without_run(values)[:1]
    return first[0] if first and first[0] in FORMS else _MANY


def form_of(question: Question) -> str:
    """Return the subcommand of a question: step, network, underflow, check, or run (many steps).

    >>> form_of(Question("train", ("1.125",)))
    'run'
    """
    form = _form(question.values)
    return "run" if form == _MANY else form


def _without_run(values: tuple[str, ...]) -> tuple[str, ...]:
    """Return the values without the word `run`, which names the default subcommand."""
    return values[1:] if values[:1] == ("run",) else values


@in_default_mode
def _validate(question: Question) -> Question:
    """Remove the word `run`, and raise UsageError if values or options do not fit the subcommand."""
    values, form = _without_run(question.values), _form(question.values)
    if not values:
        forms = " ".join(FORMS[1:])
        raise UsageError(f"train needs a weight, or one of {forms}, as in floatlab {VERB.examples[1]}")
    if form == _MANY and values[0].isalpha() and (near := guess(values[0], [*FORMS[1:], "run"])):
        raise UsageError(f"train has no subcommand {quoted(values[0])}{near}")
    if "-" in values:
        raise UsageError("train does not read standard input: name a file instead of -")
    least, most, takes = _TAKES[form]
    if not least <= len(values) <= most:
        raise UsageError(f"train {form} takes {takes}")
    if form == _NETWORK and question.formats:
        raise UsageError("train network takes its formats from --configs fp32,bf16,…, not from -f")
    if form == _UNDERFLOW and question.formats and question.option("grads"):
        raise UsageError("-f and --grads both name a format: give one of them")
    if form == _NETWORK and question.option("steps") is not None:
        whole(1, _MOST_NETWORK_STEPS)(str(question.option("steps")), "--steps")
    if form in _UPDATES:
        _check_update(form, question.replace(values=values))
    return question.replace(values=values)


def _check_update(form: str, question: Question) -> None:
    """Raise UsageError unless the question has either an update or a gradient, with options that fit."""
    updates = [question.option("update")] * (question.option("update") is not None) + [*question.values[2:]]
    grad, lr, optimizer = (question.option(name) for name in ("grad", "lr", "optimizer"))
    if len(updates) > 1:
        raise UsageError("train step takes one update: after the weight, or as --update U")
    if bool(updates) == (grad is not None):
        wanted = "both were given" if updates else "neither was given"
        name, said = ("train step", "train step W U, or --update U") if form == _STEP else ("train", "--update U")
        raise UsageError(f"{name} takes an update ({said}) or a gradient (--grad G --lr L), but {wanted}")
    if updates and (lr is not None or optimizer is not None):
        name = "--lr" if lr is not None else "--optimizer"
        raise UsageError(f"{name} needs a gradient, --grad G; an update is added without it")
    if grad is not None and lr is None and optimizer in (None, "sgd", "momentum"):
        raise UsageError("a gradient needs a learning rate: --lr L")


VERB = Verb(
    name="train",
    summary="show why small updates vanish, and which remedies help: one update, many updates, whole networks",
    examples=(
        "train step 1.125 0.00041999 --fp16",
        "train 1.125 --update 0.00041999 --steps 101",
        "train 1 --grad 0.5 --lr 1e-4 --optimizer momentum --steps 50",
        "train network --configs fp32,bf16,bf16+stochastic --steps 60",
        "train underflow random:lognormal:1000:seed=1:mean=-14:sigma=3 --fp16",
        "train check x^3 1.5 --reported 6.75",
    ),
    explanation=(
        "train step W UPDATE (or --grad G --lr L) shows one update with every rounding, and the smallest update that "
        "would move the weight. train W does many updates with several remedies side by side. W, U and G are numbers, "
        "lists, files or random:…. U and G have a number for each weight or, if there is one weight, for each step. "
        "Remedies: plain, master (a copy in fp32), master:F, stochastic, kahan, static:SCALE, dynamic, wide, any "
        "format, block formats (mxfp4, …), and several joined as in bf16+kahan. Optimizers: sgd momentum adam adamw. "
        "train network trains a linear, a logistic or a two-layer network in configurations such as "
        "fp16+master+dynamic, bf16+stochastic, fp8+master. train underflow ARRAY shows which gradients underflow in a "
        "format. train check FUNCTION X shows why finite differences fail: x^2 x^3 x^4 1/x sqrt rosenbrock sin cos "
        "tan exp log tanh sigmoid softplus, or MODULE:FUNCTION, which is imported and called; with --reported D, the "
        "status is 1 if D is wrong."
    ),
    takes=("VALUE", "a weight; or: step W U, network, underflow ARRAY, check FUNCTION X"),
    options=(
        *grouped(
            "steps",
            Option("update", "U", "the update, which is added to the weight in each step", forms=_UPDATES),
            Option("grad", "G", "the gradient, instead of an update: w ← w − lr·g", forms=_UPDATES),
            Option("lr", "L", "the learning rate", forms=(*_UPDATES, _NETWORK)),
            Option("optimizer", "NAME", "sgd (default), momentum, adam, adamw", forms=(*_UPDATES, _NETWORK)),
            Option("steps", "N", "number of steps (default 100; network: 500)", read=_STEPS, forms=(_MANY, _NETWORK)),
            Option("remedies", "LIST", _REMEDIES, read=listed, forms=_UPDATES),
            Option("every", "N", "record every N steps", read=whole(1, _MOST_STEPS), forms=(_MANY,)),
        ),
        *grouped(
            "formats of the stages (default: that of the weights)",
            Option("weights", "F", _WEIGHTS, forms=_UPDATES),
            Option("grads", "F", "format of the gradients or updates", forms=(*_UPDATES, _UNDERFLOW)),
            Option("update_format", "F", "format of lr·g and of the optimizer's arithmetic", forms=_UPDATES),
            Option(
                "accumulator",
                "F",
                ("format in which w − update is computed"),
                forms=_UPDATES,
                also=("acc", "accumulate"),
            ),
            Option("state", "F", "format of momentum and of Adam's moments", forms=_UPDATES),
            Option("master", "F", "format of a master copy (one step; for many steps, see --remedies)", forms=(_STEP,)),
        ),
        *grouped(
            "network",
            Option("problem", "NAME", "network (default), linear, logistic"),
            Option("configs", "LIST", "fp32,fp16,fp16+master+dynamic,bf16+stochastic,fp8+master,…", read=listed),
            Option("seeds", "K", "number of seeds, from --seed on (default 1)", read=whole(1, 1000)),
            Option("samples", "N", "number of samples (default 64)", read=whole(1, 1 << 16)),
            Option("features", "N", "number of features of a sample (default 16)", read=whole(1, _MOST_SIZE)),
            Option("hidden", "N", "number of hidden units (default 56)", read=whole(1, _MOST_SIZE)),
            Option("noise", "X", "standard deviation of the noise on the targets (default 0.05)"),
            Option("weight", "X", "factor of the loss; a small factor makes gradients small (default 1)"),
            forms=(_NETWORK,),
        ),
        *grouped(
            "underflow and check",
            Option("scale", "S", "the loss scale, by which gradients are multiplied", forms=(_UNDERFLOW,)),
            Option("reported", "D", "a derivative to be checked", forms=(_CHECK,)),
            Option("h", "H", "the step for checking --reported (default: the advised step)", forms=(_CHECK,)),
            Option("derivative", "D", "the true derivative (default: estimated in binary64)", forms=(_CHECK,)),
        ),
        Option("brief", "", "show a step without its digits", forms=(_STEP,), group="what to show"),
        *grouped(
            "what to show",
            Option("plot", "FILE", "draw the chart with matplotlib: .png, .pdf, .svg", forms=(_MANY, _NETWORK, _CHECK)),
            Option("csv", "FILE", "write the numbers as CSV (- for standard output, instead of text)", forms=_TABLES),
            part="output",
        ),
        FORMATS,
        # The other subcommands round to nearest. For networks, the remedy `stochastic` changes this.
        _DIRECTION.replace(forms=(*_UPDATES, _UNDERFLOW)),
        _SEED.replace(forms=(*_UPDATES, _UNDERFLOW, _NETWORK)),
        *(rule.replace(forms=_UPDATES) for rule in _RULES),
        *OUTPUT,
    ),
    rules=(
        OptionRule(("weights",), "both name the format of the weights", excludes=("formats",)),
        OptionRule(("h",), "it is the step for checking D", needs=("reported",)),
    ),
    one_format="train takes one format, but -f names {}; remedies such as bf16 set other formats",
    form=_form,
    validate=_validate,
    needs_values=False,
    reads_files=True,
    plot=plot_chart,
    seeds_more=True,
)
