"""Find out how each operation uses the axes of its inputs.

Labels say which axes of the two inputs belong together, which are summed, and which remain in the result.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import MOST_AT_ONCE, Source, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.fpmode import in_default_mode
from floatlab.record import Record
from floatlab.reduce.explain.operations.products import Labels, Products

_SPEC = re.compile(r"([A-Za-z.]*),([A-Za-z.]*)(?:->([A-Za-z.]*))?")
_TERM = re.compile(r"[A-Za-z]*(?:\.\.\.)?[A-Za-z]*")
_SETTING = re.compile(r"(stride|padding|dilation|groups)=([0-9]{1,6}(?:x[0-9]{1,6})?|same|valid)")
_AXES = re.compile(r"all|-?[0-9]{1,2}(,-?[0-9]{1,2})*")
FORMS = "matmul, linear, dot, sum[:AXES], einsum:SPEC or conv2d[:stride=2,padding=1,dilation=1,groups=1]"

Factors = tuple[tuple[Source, Labels], tuple[Source, Labels]]
LabelledAxes = tuple[Factors, list[Labels]]


class _Windows(Record):
    """The settings of a convolution; pairs hold the values for height and width."""

    stride: tuple[int, int]
    padding: tuple[int, int] | None  # None: the padding that keeps the size ("same")
    dilation: tuple[int, int]
    groups: int | None  # None: the number of groups is derived from the channels of x and y


@in_default_mode
def products_of(operation: str, x: object, y: object = None, bias: object = None) -> Products:
    """Return the matrix products of which an operation consists.

    Parameters
    ----------
    operation : str
        `matmul` and `dot` are the functions of NumPy. `linear` is torch.nn.functional.linear, where y has the shape
        (outputs, inputs). `sum` adds along the last axis of x, `sum:0,2` along the given axes, and `sum:all` along all
        axes. `einsum:ij,jk->ik` is an einsum of two operands. `conv2d` is torch.nn.functional.conv2d, and its settings
        are written like `conv2d:stride=2,padding=1x0,dilation=1,groups=2`.
    x, y : array_like
        The inputs; y is None for a sum.
    bias : array_like, optional
        An array that is added to the result. For `linear` and `conv2d`, the bias has one number per output, or only one
        number. For other operations, the bias is broadcast to the shape of the result.

    Returns
    -------
    Products
        The factors of each matrix product, and the positions of its elements in the result of the operation.

    Raises
    ------
    UnsupportedError
        If the operation is unknown, or the shapes do not fit together.

    Examples
    --------
    >>> products = products_of("einsum:bij,bkj->bki", np.ones((2, 3, 4)), np.ones((2, 5, 4)))
    >>> len(products), products.shape, [factor.shape for factor in next(iter(products))]
    (2, (2, 5, 3), [(3, 4), (4, 5)])
    >>> products_of("conv2d:padding=1", np.ones((1, 3, 8, 8)), np.ones((16, 3, 3, 3))).shape
    (1, 16, 8, 8)
    """
    check_operation(operation)
    name, _, settings = operation.partition(":")
    left = source_of(x, "x")
    if name == "sum":
        right = _no_second(y, left)
    elif y is None:
        raise UnsupportedError(f"{name} takes two inputs, x and y")
    else:
        right = source_of(y, "y")
    factors, axes = _LABEL_AXES[name](left, right, settings)
    shift = None if bias is None else source_of(bias, "bias")
    if shift is not None and name in ("linear", "conv2d"):
        shift = _one_an_output(name, shift, right)
    return Products(name, factors, axes, shift)


def check_operation(operation: str) -> None:
    """Check the name and the settings of an operation; raises UnsupportedError if they are not valid."""
    if not isinstance(operation, str):
        raise UnsupportedError(f"op must be text, not {quoted(repr(operation))}: {FORMS}")
    name, colon, settings = operation.partition(":")
    if name not in _LABEL_AXES:
        raise UnsupportedError(f"{quoted(operation)} is not an operation: {FORMS}{guess(name, list(_LABEL_AXES))}")
    if name == "einsum":
        _terms(settings)
    elif name == "sum" and colon and not _AXES.fullmatch(settings):
        raise UnsupportedError(f"{quoted(operation)}: the axes of a sum are written like sum:0,2 or sum:all")
    elif name == "conv2d":
        _settings(settings)
    elif colon and name != "sum":
        raise UnsupportedError(f"{name} has no settings, but {quoted(settings)} follows its colon")


def _no_second(y: object, x: Source) -> Source:
    """Return the number 1 as the second factor of a sum; raises UnsupportedError if y is given and is not 1."""
    if y is not None:
        given = np.asarray(source_of(y, "y").codes)
        one = np.asarray(encode(1.0, source_of(y, "y").format))
        if given.size != 1 or given.reshape(())[()] != one:
            raise UnsupportedError("sum takes one input: give 1 in place of y")
    return Source(np.asarray(encode(1.0, x.format)), x.format)


def _one_an_output(name: str, bias: Source, y: Source) -> Source:
    """Return the bias of a layer in a shape that can be broadcast to the result.

    Raises UnsupportedError unless the bias has one number per output, or only one number.
    """
    outputs = y.codes.shape[0] if y.codes.ndim > 1 else 1
    if bias.codes.size == 1:
        return Source(bias.codes.reshape(()), bias.format)
    if bias.codes.shape != (outputs,):
        raise UnsupportedError(
            f"{name}: the bias has shape {bias.codes.shape}, but y of shape {y.codes.shape} has {outputs:,} outputs, "
            f"so a bias of shape ({outputs},) would fit"
        )
    return Source(bias.codes.reshape(-1, 1, 1), bias.format) if name == "conv2d" else bias


def _named(prefix: str, count: int) -> Labels:
    return tuple(f"{prefix}{i}" for i in range(count))


def _misfit(name: str, x: Source, y: Source, rule: str) -> UnsupportedError:
    return UnsupportedError(f"{name}: x has shape {x.codes.shape} and y {y.codes.shape}: {rule}")


def _matmul(x: Source, y: Source, _: str) -> LabelledAxes:
    if not x.codes.ndim or not y.codes.ndim:
        raise _misfit("matmul", x, y, "both need at least one axis")
    terms, other = x.codes.shape[-1], y.codes.shape[-2 if y.codes.ndim > 1 else 0]
    if terms != other:
        fits = f"({terms}, N)" if y.codes.ndim > 1 else f"({terms},)"
        hint = "; they fit the operation linear" if y.codes.ndim == 2 and y.codes.shape[-1] == terms else ""
        raise _misfit("matmul", x, y, f"the last axis of x is summed, so y of shape {fits} would fit{hint}")
    x_batch, y_batch = max(x.codes.ndim - 2, 0), max(y.codes.ndim - 2, 0)
    batch = _named("b", max(x_batch, y_batch))
    for a, b in zip(x.codes.shape[:x_batch][::-1], y.codes.shape[:y_batch][::-1], strict=False):
        if a != b and 1 not in (a, b):
            rule = f"batches of {a:,} and {b:,} cannot be broadcast; equal sizes, or the size 1, would fit"
            raise _misfit("matmul", x, y, rule)
    rows, columns = ("m",) * (x.codes.ndim > 1), ("n",) * (y.codes.ndim > 1)
    x_labels = (*batch[len(batch) - x_batch :], *rows, "k")
    y_labels = (*batch[len(batch) - y_batch :], "k", *columns)
    return ((x, x_labels), (y, y_labels)), [(each,) for each in (*batch, *rows, *columns)]


def _dot(x: Source, y: Source, _: str) -> LabelledAxes:
    if not x.codes.ndim or not y.codes.ndim:
        raise _misfit("dot", x, y, "both need at least one axis")
    terms, at = x.codes.shape[-1], -2 if y.codes.ndim > 1 else 0
    if terms != y.codes.shape[at]:
        fits = f"({terms}, N)" if y.codes.ndim > 1 else f"({terms},)"
        raise _misfit("dot", x, y, f"the last axis of x is summed, so y of shape {fits} would fit")
    rows, others = _named("m", x.codes.ndim - 1), _named("n", y.codes.ndim - 1)
    y_labels = (*others[:-1], "k", *others[-1:]) if others else ("k",)
    return ((x, (*rows, "k")), (y, y_labels)), [(each,) for each in (*rows, *others)]


def _linear(x: Source, y: Source, _: str) -> LabelledAxes:
    if not x.codes.ndim or not 1 <= y.codes.ndim <= 2 or x.codes.shape[-1] != y.codes.shape[-1]:
        terms = x.codes.shape[-1] if x.codes.ndim else "IN"
        hint = "; they fit the operation matmul" if x.codes.ndim and y.codes.shape[:1] == (terms,) else ""
        raise _misfit("linear", x, y, f"y is (outputs, inputs), so y of shape (OUT, {terms}) would fit{hint}")
    rows, outputs = _named("m", x.codes.ndim - 1), ("o",) * (y.codes.ndim > 1)
    return ((x, (*rows, "k")), (y, (*outputs, "k"))), [(each,) for each in (*rows, *outputs)]


def _sum(x: Source, y: Source, settings: str) -> LabelledAxes:
    labels, count = _named("m", x.codes.ndim), x.codes.ndim
    if settings == "all":
        added = set(range(count))
    else:
        axes = [int(each) for each in (settings or "-1").split(",")]
        if not all(-count <= axis < count for axis in axes):
            raise UnsupportedError(f"sum: x has shape {x.codes.shape}, so it has no axis {settings or '-1'}")
        added = {axis % count for axis in axes}
    kept: list[Labels] = [(label,) for i, label in enumerate(labels) if i not in added]
    return ((x, labels), (y, ())), kept


def _terms(spec: str) -> tuple[str, str, str]:
    """Return the labels of both operands and of the result; raises UnsupportedError if the text is not valid."""
    found = _SPEC.fullmatch(spec.replace(" ", ""))
    if found is None or not all(_TERM.fullmatch(each or "") for each in found.groups()):
        raise UnsupportedError(f"einsum:{quoted(spec)} is not a contraction of two operands: {_misspelt(spec)}")
    x, y, out = found[1], found[2], found[3]
    letters = (x + y).replace(".", "")
    if out is None:
        once = sorted(each for each in set(letters) if letters.count(each) == 1)
        out = "..." * ("..." in x + y) + "".join(once)
    own = out.replace(".", "")
    for place, label in enumerate(own):
        why = "is in no operand" if label not in letters else "occurs twice" if label in own[:place] else ""
        if why:
            rule = f"each label of the result must occur there once, and in an operand; {quoted(label)} {why}"
            raise UnsupportedError(f"einsum:{quoted(spec)}: {rule}")
    if "..." in out and "..." not in x + y:
        raise UnsupportedError(f"einsum:{quoted(spec)}: the result has an ellipsis, but no operand has one")
    return x, y, out


def _misspelt(spec: str) -> str:
    """Return a description of the mistake in the labels of a contraction, with its position."""
    operands, arrow, _ = spec.partition("->")
    bare = spec.replace("->", "  ").replace("...", "   ")
    for place, character in enumerate(bare):
        if not (character.isascii() and character.isalpha()) and character not in ", ":
            return f"{quoted(character)} at character {place + 1} is not a label; labels are letters, as in ij,jk->ik"
    count = operands.count(",") + 1
    if count != 2:
        return f"it labels {count} operand{'s' * (count > 1)}, but there are two, X and Y, as in ij,jk->ik"
    if "," in spec[len(operands) + len(arrow) :]:
        return "the result has a comma, but it is one array, as in ij,jk->ik"
    return "each array has at most one ellipsis, as in ...ij,...jk->...ik"


def _einsum(x: Source, y: Source, spec: str) -> LabelledAxes:
    x_term, y_term, out = _terms(spec)
    factors: list[tuple[Source, Labels]] = []
    widest = 0
    for source, term, name in ((x, x_term, "x"), (y, y_term, "y")):
        letters, more = term.replace(".", ""), "..." in term
        own = source.codes.ndim - len(letters)
        if own < 0 or (own and not more):
            wanted = f"{len(letters)} axes" + " or more" * more
            raise _misfit("einsum", x, y, f"{quoted(term)} labels {wanted}, but {name} has {source.codes.ndim}")
        widest = max(widest, own * more)
        before, _, after = term.partition("...") if more else (term, "", "")
        labels = (*before, *(f"...{i}" for i in range(own, 0, -1)), *after)
        factors.append(_diagonal(source, labels, (x, y)))
    before, dots, after = out.partition("...")
    ellipsis = [f"...{i}" for i in range(widest, 0, -1)] if dots else []
    return (factors[0], factors[1]), [(each,) for each in (*before, *ellipsis, *after)]


def _diagonal(source: Source, labels: Labels, both: tuple[Source, Source]) -> tuple[Source, Labels]:
    """Return the diagonal of axes that have the same label, as a view, and the remaining labels."""
    unique = tuple(dict.fromkeys(labels))
    if unique == labels:
        return source, labels
    sizes = {
        label: {n for each, n in zip(labels, source.codes.shape, strict=True) if each == label} for label in unique
    }
    if any(len(each) > 1 for each in sizes.values()):
        raise _misfit("einsum", *both, "axes with the same label need the same length")
    numbers = {label: i for i, label in enumerate(unique)}
    codes = np.einsum(source.codes, [numbers[each] for each in labels], list(range(len(unique))))
    return Source(codes, source.format), unique


def _settings(text: str) -> _Windows:
    """Return the settings of a convolution; raises UnsupportedError if the text is not valid."""
    found: dict[str, tuple[int, int] | None] = {}
    for part in map(str.strip, text.split(",") if text else ()):
        setting = _SETTING.fullmatch(part)
        name, value = ("", "") if setting is None else setting.groups()
        is_word = value in ("same", "valid")
        if not name or (is_word and name != "padding") or ("x" in value and name == "groups"):
            raise UnsupportedError(
                f"conv2d:{quoted(part)} is not a setting; examples are stride=2, padding=1x0, padding=same, groups=4"
            )
        pair = [int(each) for each in ("0" if is_word else value).split("x")]
        if name != "padding" and not all(pair):
            raise UnsupportedError(f"conv2d: {part}: the {name} must be at least 1")
        found[name] = None if value == "same" else (pair[0], pair[-1])
    stride = found.get("stride") or (1, 1)
    if found.get("padding", (0, 0)) is None and stride != (1, 1):
        raise UnsupportedError("conv2d: padding=same requires a stride of 1")
    groups = found.get("groups")
    return _Windows(
        stride, found.get("padding", (0, 0)), found.get("dilation") or (1, 1), groups[0] if groups else None
    )


def _conv2d(x: Source, y: Source, text: str) -> LabelledAxes:
    settings = _settings(text)
    if x.codes.ndim not in (3, 4) or y.codes.ndim != 4:
        rule = "x is (N, C, H, W) or (C, H, W), and y (outputs, C / groups, kernel height, kernel width)"
        raise _misfit("conv2d", x, y, rule)
    channels, (outputs, inner, *kernel) = x.codes.shape[-3], y.codes.shape
    groups = settings.groups or channels // max(inner, 1)
    if not groups or groups * inner != channels or outputs % groups:
        for count, what in ((channels, "channels of x"), (outputs, "outputs of y")):
            if groups and count % groups:
                raise _misfit("conv2d", x, y, f"{groups:,} groups do not divide {count:,} {what}")
        fits = f"y of shape ({outputs}, {channels // groups if groups else channels}, …) would fit"
        raise _misfit("conv2d", x, y, f"{channels:,} channels in groups of {inner:,}: {fits}")
    windows = _windows(x, y, settings)
    batch = ("b",) * (x.codes.ndim - 3)
    shape = windows.shape
    parted = windows.reshape(*shape[: len(batch)], groups, inner, *shape[len(batch) + 1 :])
    weights = y.codes.reshape(groups, outputs // groups, inner, *kernel)
    factors = (
        (Source(parted, x.format), (*batch, "g", "c", "h", "w", "i", "j")),
        (Source(weights, y.format), ("g", "o", "c", "i", "j")),
    )
    return factors, [*((each,) for each in batch), ("g", "o"), ("h",), ("w",)]


def _windows(x: Source, y: Source, settings: _Windows) -> Array:
    """Return the window of x at each position of the kernel, as a view of x or of a padded copy.

    The axes of the returned array are (…, channels, height, width, kernel height, kernel width).
    """
    dilation, padding, kernel = settings.dilation, settings.padding, y.codes.shape[-2:]
    spans = [d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True)]
    around = [((s - 1) // 2, s // 2) if padding is None else (padding[i], padding[i]) for i, s in enumerate(spans)]
    sides = [n + sum(each) for n, each in zip(x.codes.shape[-2:], around, strict=True)]
    if min(kernel) < 1 or any(n < s for n, s in zip(sides, spans, strict=True)):
        rule = f"a kernel that spans {spans[0]}×{spans[1]} does not fit into {sides[0]}×{sides[1]}"
        raise _misfit("conv2d", x, y, rule)
    codes = x.codes
    if any(map(sum, around)):
        if codes.size // max(codes.shape[-2] * codes.shape[-1], 1) * sides[0] * sides[1] > 2 * MOST_AT_ONCE:
            raise _misfit("conv2d", x, y, f"with this padding, x has more than {2 * MOST_AT_ONCE:,} elements")
        zero = np.asarray(encode(0.0, x.format))[()]
        codes = np.pad(codes, [(0, 0)] * (codes.ndim - 2) + around, constant_values=zero)
    windows = sliding_window_view(codes, spans, axis=(-2, -1))
    (down, across), (below, beside) = settings.stride, dilation
    return windows[..., ::down, ::across, ::below, ::beside]


_LABEL_AXES: dict[str, Callable[[Source, Source, str], LabelledAxes]] = {
    "matmul": _matmul, "linear": _linear, "dot": _dot, "sum": _sum, "einsum": _einsum, "conv2d": _conv2d,
}  # fmt: skip
