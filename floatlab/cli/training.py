"""`floatlab train`: one update, many, networks, gradients; each form takes the options that mean something to it."""

from __future__ import annotations

from floatlab.cli.parser import (
    USUAL_RULES,
    Parser,
    UsageError,
    add_formats,
    add_output,
    add_rounding,
    context_of,
    one_format,
    whole_number,
)
from floatlab.errors import guess, quoted
from floatlab.fpmode import in_default_mode
from floatlab.verbs.question import Question
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from floatlab.verbs.answer import Answer

_MOST = {
    "steps": 10**9,
    "every": 10**9,
    "seeds": 1000,
    "samples": 1 << 16,
    "features": 1 << 12,
    "hidden": 1 << 12,
}
_MOST_NETWORK_STEPS = 10**7
_FORMATS = {"weights", "grads", "update_format", "accumulator", "state"}
_RUN = {"update", "grad", "lr", "optimizer", "steps", "every", "remedies", "plot", "csv"} | _FORMATS
_FORMS = {
    "run": _RUN,
    "step": {"update", "grad", "lr", "optimizer", "remedies", "brief", "master"} | _FORMATS,
    "network": {
        "problem", "configs", "steps", "seeds", "lr", "optimizer", "samples", "features", "hidden", "noise", "weight",
        "plot", "csv",
    },
    "underflow": {"grads", "scale", "csv"},
    "check": {"reported", "h", "derivative", "plot", "csv"},
}  # fmt: skip
_WANTED = {
    "step": (2, 3, "a weight and an update: train step 1.125 0.00041999"),
    "network": (1, 1, "no values: train network --configs fp32,fp16"),
    "underflow": (2, 2, "one array: train underflow grads.npy --fp16"),
    "check": (3, 3, "a function and a number: train check x^3 1.5"),
    "run": (1, 1, "one weight or one list of them: train 1.125 --update 0.00041999"),
}
# What a form has of the rounding and format options: what else is given would be ignored.
_WITHOUT_RULES = {"network", "underflow", "check"}


def train_parser() -> Parser:
    """Return the parser of `train`."""
    parser = Parser(ACTIONS["train"])
    parser.add_argument(
        "values", nargs="*", metavar="VALUE", help="a weight; or: step W U, network, underflow ARRAY, check FUNCTION X"
    )
    _add_steps(parser)
    _add_stages(parser)
    _add_network(parser)
    group = parser.add_argument_group("underflow and check")
    group.add_argument("--scale", metavar="S", help="the loss scale that gradients are multiplied by")
    group.add_argument("--reported", metavar="D", help="a derivative to be checked")
    group.add_argument("--h", metavar="H", help="the step that --reported is checked with (default: by theory)")
    group.add_argument("--derivative", metavar="D", help="the true one (default: estimated in binary64)")
    group = parser.add_argument_group("what to show")
    group.add_argument("--brief", action="store_true", help="a step without its digits")
    group.add_argument("--plot", metavar="FILE", help="draw the chart with matplotlib: .png, .pdf, .svg")
    group.add_argument(
        "--csv", metavar="FILE", help="write the numbers as CSV (- for standard output, instead of text)"
    )
    add_formats(parser)
    add_rounding(parser)
    add_output(parser)
    return parser


def _add_steps(parser: Parser) -> None:
    group = parser.add_argument_group("steps")
    group.add_argument("--update", metavar="U", help="what is added to the weight in each step")
    group.add_argument("--grad", metavar="G", help="or a gradient: w ← w − lr·g")
    group.add_argument("--lr", metavar="L", help="the learning rate")
    group.add_argument("--optimizer", metavar="NAME", help="sgd (default), momentum, adam, adamw")
    group.add_argument("--steps", metavar="N", help="so many (default 100; of network 500)")
    group.add_argument(
        "--remedies", metavar="LIST", help="plain,master,stochastic,kahan,static:1024,dynamic,bf16+kahan,…"
    )
    group.add_argument("--every", metavar="N", help="record every so many steps")


def _add_stages(parser: Parser) -> None:
    group = parser.add_argument_group("formats of the stages (default: as the weights)")
    group.add_argument(
        "--weights", metavar="F", help="what weights are stored in (default fp16); blocks such as mxfp4, too"
    )
    group.add_argument("--grads", metavar="F", help="what gradients, or updates, arrive in")
    group.add_argument("--update-format", metavar="F", help="what lr·g, and an optimizer's arithmetic, is rounded to")
    group.add_argument("--accumulator", metavar="F", help="what w − update is computed in")
    group.add_argument("--state", metavar="F", help="of momentum and of Adam's moments")
    group.add_argument("--master", metavar="F", help="of a master copy (of a step; of many, see --remedies)")


def _add_network(parser: Parser) -> None:
    group = parser.add_argument_group("network")
    group.add_argument("--problem", metavar="NAME", help="network (default), linear, logistic")
    group.add_argument("--configs", metavar="LIST", help="fp32,fp16,fp16+master+dynamic,bf16+stochastic,fp8+master,…")
    group.add_argument("--seeds", metavar="K", help="so many seeds, from --seed on (default 1)")
    for name, what in (
        ("samples", "of the data (default 64)"),
        ("features", "(default 16)"),
        ("hidden", "units (default 56)"),
    ):
        group.add_argument(f"--{name}", metavar="N", help=what)
    group.add_argument("--noise", metavar="X", help="of the answers (default 0.05)")
    group.add_argument("--weight", metavar="X", help="of the loss: a small one makes gradients small (default 1)")


@in_default_mode
def train_question(options: argparse.Namespace) -> Question:
    """Return the question that the options of `train` ask."""
    values = list(options.values)
    if values[:1] == ["run"]:
        del values[0]
    if not values:
        raise UsageError(f"train needs a weight, or one of {_forms()}, as in floatlab {ACTIONS['train'].examples[1]}")
    form = values[0] if values[0] in _FORMS else "run"
    if form == "run" and values[0].isalpha() and (near := guess(values[0], [*_FORMS])):
        raise UsageError(f"train has no form {quoted(values[0])}{near}")
    if "-" in values:
        raise UsageError("train reads no standard input: name a file instead of -")
    _check_options(form, options)
    least, most, wants = _WANTED[form]
    if not least <= len(values) <= most:
        raise UsageError(f"train {_called(form)} takes {wants}")
    _check_given(form, values, options)
    formats = one_format(options, f"train {_called(form)} takes one format", "; remedies such as bf16 name others")
    question = Question("train", tuple(values), formats, context_of(options))
    found: dict[str, object] = {name: getattr(options, name) for name in sorted(_FORMS[form] - {"plot", "csv"})}
    for name, limit in _MOST.items():
        if found.get(name) is not None:
            most = _MOST_NETWORK_STEPS if form == "network" and name == "steps" else limit
            found[name] = whole_number(
                str(found[name]), f"--{name}", 0 if (form, name) == ("run", "steps") else 1, most
            )
    for name in ("remedies", "configs"):
        if found.get(name) is not None:
            found[name] = _listed(str(found[name]), f"--{name}")
    found["brief"] = found.get("brief") or None
    return question.having(**found)


def _forms() -> str:
    return " ".join(each for each in _FORMS if each != "run")


def _called(form: str) -> str:
    """Return a form as the command line has it: many steps begin with the weight."""
    return form if form != "run" else "W"


def _listed(text: str, option: str) -> tuple[str, ...]:
    names = tuple(each.strip() for each in text.split(","))
    if not all(names):
        raise UsageError(f"{option} {quoted(text)}: a name is missing between commas")
    return names


def _check_options(form: str, options: argparse.Namespace) -> None:
    """Refuse what a form would ignore."""
    for name in sorted(set().union(*_FORMS.values())):
        if getattr(options, name) not in (None, False) and name not in _FORMS[form]:
            where = " ".join(_called(each) for each, has in _FORMS.items() if name in has)
            option = name.replace("_", "-")
            raise UsageError(f"--{option} means nothing to train {_called(form)} (it goes with: {where})")
    _check_rules(form, options)
    if form == "network" and options.formats:
        raise UsageError("train network takes its formats by --configs fp32,bf16,…, and -f names another")
    if options.formats and (
        options.weights if form in ("run", "step") else getattr(options, "grads", None) if form == "underflow" else None
    ):
        named = "--weights" if form in ("run", "step") else "--grads"
        raise UsageError(f"-f and {named} both name a format: give one of them")
    for option in ("plot", "csv"):
        if getattr(options, option) == "":
            raise UsageError(f"--{option} '' names no file")
    if options.plot is not None:
        from floatlab.page.figures import require_matplotlib

        require_matplotlib()  # before the work, not after it


def _check_rules(form: str, options: argparse.Namespace) -> None:
    """Refuse rules of rounding where a form has its own."""
    if form not in _WITHOUT_RULES:
        return
    usual: dict[str, object] = dict(USUAL_RULES)
    if form != "underflow":
        usual["rounding"] = "RNE"
    if form == "check":
        usual["seed"] = None
    for name, value in usual.items():
        if getattr(options, name) != value:
            raise UsageError(f"--{name} means nothing to train {form}: it rounds to nearest in its own ways")


def _check_given(form: str, values: list[str], options: argparse.Namespace) -> None:
    """Refuse updates and gradients that are missing, or are given twice."""
    if form == "check" and options.h is not None and options.reported is None:
        raise UsageError("--h is the step that --reported D is checked with, and there is none")
    if form not in ("run", "step"):
        return
    updates = [options.update] * (options.update is not None) + values[2:]
    if len(updates) > 1:
        raise UsageError("train step has one update: after the weight, or as --update U")
    if bool(updates) == (options.grad is not None):
        wanted = "both were given" if updates else "neither was"
        name, said = ("train step", "train step W U, or --update U") if form == "step" else ("train", "--update U")
        raise UsageError(f"{name} takes an update ({said}) or a gradient (--grad G --lr L), and {wanted}")
    if updates and (options.lr is not None or options.optimizer is not None):
        name = "--lr" if options.lr is not None else "--optimizer"
        raise UsageError(f"an update is added as it is: {name} goes with --grad G")
    if options.grad is not None and options.lr is None and options.optimizer in (None, "sgd", "momentum"):
        raise UsageError("a gradient needs a learning rate: --lr L")


@in_default_mode
def draw_trained(options: argparse.Namespace, question: Question, answer: Answer) -> None:
    """Draw the figure that the options ask for besides."""
    if options.plot is not None and answer.chart is not None:
        from floatlab.page.figures import chart_figure

        chart_figure(answer.chart(), answer.page().title, options.plot)
