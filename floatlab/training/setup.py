"""`Setup`: the formats of a training step, and its loss scale. `Remedy`: a change that keeps updates from vanishing.

Remedies can be combined: `master+dynamic` applies `master`, then `dynamic`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from floatlab.arith.operands import holds
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.blocks import BlockFormat, is_block_format, parse_block_format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Context, as_context
from floatlab.numbers.rounding import AnyContext
from floatlab.record import Record
from floatlab.training.loss_scale import GROWTH_INTERVAL, LossScale
from floatlab.training.validation import check_needs, checked_number, set_fields

AnyFormat = Format | BlockFormat

SINGLE = parse_format("binary32")
# A function that applies a remedy to a setup. Its second argument is the remedy's argument: a format, a number or None.
Change = Callable[["Setup", Any], "Setup"]
PARTS = ("weights", "grads", "update", "accumulator", "state", "master")


@methods_in_default_mode
class Setup(Record):
    """The format and the rounding of each stage of a training step.

    Each format argument belongs to one stage:

    * `weights`: the weights that the model computes with; a format or a block format.
    * `grads`: the gradients (or updates) as they are received.
    * `update`: lr·g and the optimizer's other arithmetic.
    * `accumulator`: w − update, or w + update if updates are given instead of gradients.
    * `state`: momentum and Adam's moments.
    * `master`: a second copy of the weights, to which the updates are added.

    If `compensated` is true, the rounding error of w − update is carried to the next step (Kahan). `scaling` is the
    loss scale. Every stage rounds by the rules of `context`, with one exception: if `stochastic` is true, the stage
    that writes the weights rounds stochastically.

    By default, gradients have the format of the weights. The accumulator and the update have the format of the master
    copy, or the format of the weights if there is no master copy. With a loss scale but no master copy, the update is
    in binary32 if binary32 contains the format of the weights. The state has the format of the update. If the weights
    are in a block format, these defaults use binary32 in place of the format of the weights.

    Raises UnsupportedError for formats that lack a sign or a zero, and if any argument other than `weights` is a block
    format. Also raises UnsupportedError if weights in a block format are compensated without a master copy, and if the
    loss scale is dynamic but `grads` has neither NaN nor infinity. Raises FormatError for an unknown format.

    >>> setup = Setup("fp16", master="fp32")
    >>> setup.grads.name, setup.update.name, setup.accumulator.name
    ('binary16', 'binary32', 'binary32')
    """

    weights: AnyFormat
    grads: Format
    update: Format
    accumulator: Format
    state: Format
    master: Format | None
    compensated: bool
    scaling: LossScale | None
    stochastic: bool
    context: Context
    given: tuple[tuple[str, Any], ...]  # the given arguments, from which the other fields are derived

    _fields = (*PARTS, "compensated", "scaling", "stochastic", "context")

    def __init__(
        self,
        weights: AnyFormat | str = "binary16",
        grads: Format | str | None = None,
        update: Format | str | None = None,
        accumulator: Format | str | None = None,
        state: Format | str | None = None,
        master: Format | str | None = None,
        compensated: bool = False,
        scaling: LossScale | None = None,
        stochastic: bool = False,
        context: AnyContext = None,
    ) -> None:
        """Use the default of each format that is not given."""
        typed = {"grads": grads, "update": update, "accumulator": accumulator, "state": state, "master": master}
        given = {name: _parsed(value, name) for name, value in typed.items() if value is not None}
        own = _as_blocks(weights) or _parsed(weights, "weights")
        plain: Format = SINGLE if isinstance(own, BlockFormat) else own
        copy = given.get("master")
        arithmetic = given.get("update", copy or (SINGLE if scaling is not None and holds(SINGLE, plain) else plain))
        set_fields(
            self, weights=own, grads=given.get("grads", plain), update=arithmetic,
            accumulator=given.get("accumulator", copy or plain), state=given.get("state", arithmetic), master=copy,
            compensated=bool(compensated), scaling=scaling, stochastic=bool(stochastic), context=as_context(context),
            given=tuple({"weights": own, **given}.items()),
        )  # fmt: skip
        if scaling is not None and not isinstance(scaling, LossScale):
            raise UnsupportedError(f"scaling must be a LossScale or None, not {quoted(str(scaling))}")
        if scaling is not None and scaling.is_dynamic and not (self.grads.infinities or self.grads.has_nan):
            raise UnsupportedError(
                f"dynamic loss scaling needs gradients that can be NaN or infinite, but grads is {self.grads.name}, "
                f"which has neither an infinity nor a NaN: give a static scale"
            )
        if isinstance(own, BlockFormat) and compensated and copy is None:
            raise UnsupportedError("weights in a block format cannot be compensated: give them a master copy")

    def replace(self, **changes: object) -> Setup:
        """Return a copy with some arguments changed; derived fields are recomputed.

        >>> Setup("fp16").replace(weights="bf16").grads.name
        'bfloat16'
        """
        return Setup(**(dict(self.given) | self.rules | changes))

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what pickle needs: the arguments with which the setup was made."""
        return partial(Setup, **dict(self.given), **self.rules), ()

    @property
    def rules(self) -> dict[str, Any]:
        """The arguments that are not formats, by name."""
        return {name: getattr(self, name) for name in ("compensated", "scaling", "stochastic", "context")}

    @property
    def gradient_context(self) -> Context:
        """The context that rounds gradients; if it rounds stochastically, it draws with seed + 1."""
        return stream(self.context, 1)

    @property
    def kept(self) -> AnyFormat:
        """The format in which weights are stored between steps: that of the master copy if there is one."""
        return self.master or self.weights

    @property
    def formats(self) -> dict[str, str]:
        """The name of each stage's format, by stage; the stage `master` is included only if there is a master copy."""
        formats = ((name, getattr(self, name)) for name in PARTS)
        return {name: format.name for name, format in formats if format is not None}


def stream(context: Context, number: int) -> Context:
    """Return the context with seed + `number`, or the context itself if it does not round stochastically.

    >>> stream(Context("SR", seed=7), 1).seed, stream(Context(seed=7), 1).seed
    (8, 7)
    """
    if not context.rounding.is_stochastic:
        return context
    return context.replace(seed=(context.seed + number) % (1 << 64))


def _as_blocks(value: AnyFormat | str) -> BlockFormat | None:
    """Return the block format that `value` is or names; None if `value` is or names a format of single numbers."""
    if isinstance(value, str):
        return parse_block_format(value) if is_block_format(value) else None
    return value if isinstance(value, BlockFormat) else None


def _parsed(value: AnyFormat | str, name: str) -> Format:
    if isinstance(value, BlockFormat) or _as_blocks(value):
        raise UnsupportedError(f"{name} must be a format of single numbers; only weights can have a block format")
    fmt = parse_format(value)
    check_needs(fmt, name)
    return fmt


class Remedy(Record):
    """A technique that keeps updates from vanishing: its name, its description, and the function that applies it.

    `takes` says what the optional argument is: a scale, as in `static:1024`, or a format, as in `master:bf16`. `takes`
    is None if there is no argument.
    """

    name: str
    what: str
    change: Change
    takes: str | None = None


def _scaled(usual: float, interval: int | None = None) -> Change:
    """Return a function that adds a loss scale to a setup; the scale is dynamic if a growth interval is given."""
    return lambda setup, scale: setup.replace(scaling=LossScale(usual if scale is None else scale, interval))


def _all_in(name: Format | str) -> Change:
    """Return a function that sets the format of the weights in a setup.

    The function keeps the format of the master copy, and resets all other formats to their defaults.
    """
    return lambda setup, _: Setup(name, master=setup.master, **setup.rules)


def _in_blocks(name: str) -> Change:
    return lambda setup, _: setup.replace(weights=name, grads=setup.grads, master=setup.master or SINGLE)


_BLOCKS = ("mxfp8_e4m3", "mxfp8_e5m2", "mxfp6_e2m3", "mxfp6_e3m2", "mxfp4", "mxint8", "nvfp4")
REMEDIES = {
    remedy.name: remedy
    for remedy in (
        Remedy("plain", "no remedy", lambda setup, _: setup),
        Remedy("master", "updates are added to a master copy, in binary32 or the given format",
               lambda setup, named: setup.replace(master=named or SINGLE), "format"),
        Remedy("stochastic", "weights round stochastically", lambda setup, _: setup.replace(stochastic=True)),
        Remedy("kahan", "each weight carries its rounding error", lambda setup, _: setup.replace(compensated=True)),
        Remedy("static", "the loss is multiplied by 1024, or by the given number", _scaled(1024.0), "scale"),
        Remedy("dynamic", "the loss scale adapts, from 65536 or the given number", _scaled(65536.0, GROWTH_INTERVAL),
               "scale"),
        Remedy("wide", "w − update is computed in binary32, and then rounded to the format of the weights",
               lambda setup, _: setup.replace(accumulator="binary32", update="binary32")),
        *(Remedy(name, f"{parse_format(name).name} everywhere", _all_in(name)) for name in ("bf16", "fp16", "fp32")),
        *(Remedy(name, f"weights in blocks of {name}, with a master copy", _in_blocks(name)) for name in _BLOCKS),
    )
}  # fmt: skip

# The default remedies.
USUAL = ("plain", "master", "stochastic", "kahan", "dynamic", "wide", "bf16", "fp32")


@in_default_mode
def parse_remedy(text: str) -> Callable[[Setup], Setup]:
    """Return a function that applies the named remedies, such as `master` or `bf16+stochastic`, to a setup.

    Parameters
    ----------
    text
        Names of `REMEDIES`, joined by `+`. The name of a format, such as `bf16` (but not of a block format), is also a
        remedy: this remedy sets the format of the weights, keeps the format of the master copy, and resets all other
        formats to their defaults.

    Returns
    -------
    callable
        Takes a `Setup` and returns another one.

    Raises
    ------
    UnsupportedError
        For an unknown name, and for an argument that the remedy does not take or cannot use.
    FormatError
        For an unknown format as the argument of `master`.

    Examples
    --------
    >>> parse_remedy("bf16+kahan")(Setup("fp16")).formats["weights"]
    'bfloat16'
    >>> parse_remedy("master:bf16+static:128")(Setup("e4m3")).scaling.scale
    128.0
    """
    if not isinstance(text, str):
        raise UnsupportedError(f"a remedy must be a word such as master or bf16+kahan, not {quoted(str(text))}")
    changes = [_change(word.strip()) for word in text.lower().split("+")]

    def change(setup: Setup) -> Setup:
        return reduce(lambda changed, remedy: remedy(changed), changes, setup)

    return change


def _change(word: str) -> Callable[[Setup], Setup]:
    """Return a function that applies one remedy, given by name, to a setup."""
    name, colon, said = word.partition(":")
    known = name.replace("-", "_")
    remedy = REMEDIES.get(known)
    if remedy is None:
        try:
            remedy = Remedy(known, "", _all_in(parse_format(name)))
        except FormatError:
            raise UnsupportedError(
                f"there is no remedy {quoted(name)}{guess(known, [*REMEDIES])} (known: {' '.join(REMEDIES)})"
            ) from None
    if remedy.takes is None and colon:
        raise UnsupportedError(f"the remedy {known} takes no argument, but {quoted(word)} has one")
    given: Format | float | None = None
    if colon:
        is_format = remedy.takes == "format"
        given = _parsed(said, known) if is_format else checked_number(said, f"the {remedy.takes} of {known}", above=0)
    return lambda setup: remedy.change(setup, given)
