"""Find out whether the bits of a row of a product depend only on this row of the left operand and on the right operand.

The bits may also depend on the number of rows, the position of the row, the alignment of the operands in memory, or the
number of threads. The bits may even change from run to run. If none of this changes the bits, the product has what
inference servers call batch invariance. Many libraries lack batch invariance: they choose a routine by the number of
rows, and each routine has its own order of additions. The answer to a request then depends on the rest of the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.arrays.ulps import NOT_COMPARABLE, ulp_distance
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import DefaultMode
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.reduce.reveal.sized_target import SizedTarget, check_mode, checked_shape, values_of
from floatlab.reduce.reveal.targets import Target, target_of

_RUNS = 8  # the same product is computed this many times
_LINE, _PAGE = 64, 4096  # the bytes of a cache line and of a page of memory
_SMALL = 64  # every number of rows up to this one is tried
_REPEATED = 4  # this many results that differ from the first one are computed again
_AGAIN = "the same product again"
_UNSTEADY = "the same product has other bits in another run"

# One tuple for each value of a circumstance: the value, the result (a product or a row), and a function that computes
# this result again.
Results = Iterator[tuple[int, Source, Callable[[], Source]]]


class Circumstance(Record):
    """The effect of one circumstance, such as the number of rows, on the bits of a result.

    `tried` holds the values of the circumstance in ascending order. Values that give the same bits form one of the
    `groups`; the first group contains the first value. All results are compared with the result of the first value.
    `share` is the largest fraction of elements in which a result differs, and `ulps` is the largest difference in ulps.
    `formats` names the formats of the results; the format with the fewest digits is the first. If there are several
    formats, numbers are compared instead of bits, and `ulps` counts ulps of the first format. `nans` is true if an
    element is NaN in only one of two results; such elements do not count for `ulps`. If no value could be tried,
    `reason` says why. Place, alignment and threads are tried in a batch of `rows` rows. `rows` is the number of all
    rows, or less if only a smaller batch shows an effect.
    """

    name: str
    meaning: str
    tried: tuple[int, ...]
    groups: tuple[tuple[int, ...], ...]
    share: float
    ulps: int
    reason: str = ""
    formats: tuple[str, ...] = ()
    nans: bool = False
    rows: int = 0

    @property
    def changes(self) -> bool:
        """True if the bits change."""
        return len(self.groups) > 1

    @property
    def first(self) -> int | None:
        """The smallest value that changes bits, or None if no value does."""
        others = [each for each in self.tried if each not in self.groups[0]] if self.groups else []
        return others[0] if others else None


class Invariance(Answering, Record):
    """The result of `invariance`: how each circumstance affects the bits of a product or of one of its rows."""

    target: str
    shape: tuple[int, int, int]
    dtype: str
    circumstances: tuple[Circumstance, ...]
    _ASKS = ".is_invariant"

    def __repr__(self) -> str:
        """Show the shape and the circumstances that change bits."""
        changing = ", ".join(each.name for each in self.circumstances if each.changes) or "nothing"
        return f"Invariance({self.target}, {' × '.join(map(str, self.shape))}: {changing} changes bits)"

    @property
    def is_invariant(self) -> bool:
        """True if no circumstance that was tried changes bits."""
        return not any(each.changes for each in self.circumstances)

    @property
    def verdict(self) -> str:
        """The answer in one line: whether the product is batch invariant, and what else changes its bits.

        >>> alone = Circumstance("rows", "", (1, 2, 3), ((1,), (2, 3)), 0.25, 7)
        >>> Invariance("numpy.matmul", (3, 4, 5), "float32", (alone,)).verdict
        'not batch invariant: a row has other bits alone than in a batch of 2 rows'
        """
        changing = {each.name: each for each in self.circumstances if each.changes}
        if "runs" in changing:
            return "not deterministic: the same product has other bits when it is computed again"
        said = "; ".join(_effect(each, self.shape[0]) for each in changing.values())
        if "rows" in changing or "place" in changing:
            return f"not batch invariant: {said}"
        missing = [each for each in self.circumstances if each.name in ("rows", "place") and each.reason]
        words = "the batch could not be tried" if missing else "batch invariant in all batches that were tried"
        return f"{words}; but {said}" if said else words

    @property
    def text(self) -> str:
        """The effect of each circumstance in one line."""
        return "\n".join(f"{each.name}: {circumstance_text(each)}" for each in self.circumstances)


def _effect(changing: Circumstance, rows: int) -> str:
    """Describe how a circumstance changes the bits of a product of `rows` rows."""
    one, other = (_WORDS[changing.name].format(each) for each in (changing.tried[0], changing.first))
    words = {
        "rows": f"a row has other bits {'alone' if changing.tried[0] == 1 else f'in {one}'} than in a batch of {other}",
        "place": f"a row has other bits at {other} of the batch than at {one}",
        "alignment": "bits depend on where the operands lie in memory",
        "threads": "bits depend on the number of threads",
    }[changing.name]
    few = changing.rows
    return f"{words}, if the batch has {few} row{'s' * (few > 1)}" if 0 < few < rows else words


# The values of each circumstance in words.
_WORDS = {"runs": "run {}", "rows": "{} rows", "place": "place {}", "alignment": "{} bytes", "threads": "{} threads"}


def circumstance_text(circumstance: Circumstance) -> str:
    """Return the effect of one circumstance in words.

    >>> found = Circumstance("rows", "number of rows", (1, 2, 3), ((1,), (2, 3)), 0.25, 7, formats=("binary32",))
    >>> circumstance_text(found)
    'changes bits from 2 rows on: 2 different results, at most 25 % of elements differ, by up to 7 ulp of binary32'
    """
    if circumstance.reason:
        return f"not tried: {circumstance.reason}"
    if not circumstance.changes:
        return f"the same bits in all {len(circumstance.tried)} cases"
    formats, share, rows = circumstance.formats, circumstance.share, circumstance.rows
    where = f", in a batch of {rows} row{'s' * (rows > 1)}" * (rows > 0)
    several = f" ({' and '.join(formats)})" if len(formats) > 1 else ""
    first = _WORDS[circumstance.name].format(circumstance.first)
    found = f"changes bits from {first} on{where}: {len(circumstance.groups)} different results{several}"
    if not share:
        return f"{found} with the same numbers"
    found += f", at most {100 * share:.3g} % of elements differ"
    if circumstance.ulps:
        found += f", by up to {circumstance.ulps:,} ulp" + (f" of {formats[0]}" if formats else "")
    elif several and not circumstance.nans:
        found += f", by less than 1 ulp of {formats[0]}"
    elif not circumstance.nans:
        found += ", only in the signs of zeros or the bits of NaNs"
    return found + ", and some are NaN in only one of two results" * circumstance.nans


class _Trials:
    """Random operands of one shape, and the products that a target computes from them in each circumstance."""

    def __init__(self, target: Target, shape: tuple[int, ...], dtype: str, seed: int, mode: DefaultMode | None) -> None:
        self.target, self.dtype, self.mode = target, dtype, mode
        self.rows, self.terms, self.columns = shape[0], shape[1], shape[2:]
        powers = (1 << k for k in range(self.rows.bit_length()))
        self.sizes = sorted({*range(1, min(self.rows, _SMALL) + 1), *powers, self.rows})  # the numbers of rows to try
        rng = np.random.default_rng(seed)
        self.sized = self.of(self.rows)
        self.x = rng.standard_normal((self.rows, self.terms)).astype(self.sized.carrier)
        self.y = rng.standard_normal((self.terms, *self.columns)).astype(self.sized.carrier)

    def of(self, rows: int) -> SizedTarget:
        """Return the target for a left operand with `rows` rows."""
        return SizedTarget(self.target, self.terms, self.dtype, (rows, *self.columns), mode=self.mode)

    def product(self, x: Array, offset: int = 0) -> Source:
        """Return the product of x and the right operand.

        Both operands begin `offset` bytes after the start of a memory page; only NumPy's arrays can be placed in this
        way. In trials of other circumstances, the offset is always 0, so that the alignment stays the same.
        """
        sized = self.of(len(x))
        if self.target.device.library != "numpy":
            return sized.multiply(x, self.y)
        with np.errstate(all="ignore"):
            return sized.apply(_aligned(x, offset), _aligned(self.y, offset))

    def runs(self) -> Results:
        """Yield the same product several times."""
        for run in range(1, _RUNS + 1):
            yield run, self.product(self.x), lambda: self.product(self.x)

    def batches(self) -> Results:
        """Yield the first row of several products; the number of rows increases from product to product."""
        for size in self.sizes:
            again = partial(self._row, self.x[:size], 0)
            yield size, again(), again

    def places(self, rows: int) -> Results:
        """Yield every row of a product whose left operand has `rows` equal rows."""
        x = np.broadcast_to(self.x[:1], (rows, self.terms))
        made = self.product(x)
        for place in range(rows):
            yield place, _row(made, place), partial(self._row, x, place)

    def offsets(self, rows: int) -> Results:
        """Yield the product of some rows for every alignment in a cache line, and for some alignments in a page."""
        if self.target.device.library != "numpy":
            raise UnsupportedError("only the alignment of NumPy arrays can be chosen")
        lines = (1 << k for k in range(_LINE.bit_length() - 1, _PAGE.bit_length() - 1))
        for offset in (*range(0, _LINE, self.sized.carrier.itemsize), *lines):
            again = partial(self.product, self.x[:rows], offset)
            yield offset, again(), again

    def threads(self, rows: int) -> Results:
        """Yield the product of some rows, computed by one thread, then by more threads."""
        device = self.target.device
        before = device.set_threads(1)
        if before is None:
            raise UnsupportedError("the number of threads of this library cannot be set from here")
        try:
            for count in (1, 2, 3, 4, 8):
                device.set_threads(count)
                again = partial(self.product, self.x[:rows])
                yield count, again(), again
        finally:
            device.set_threads(before)

    def _row(self, x: Array, row: int) -> Source:
        return _row(self.product(x), row)


def invariance(
    target: object,
    shape: tuple[int, ...] = (64, 64, 64),
    dtype: str = "float32",
    *,
    kind: str | None = None,
    device: str = "cpu",
    seed: int = 1,
) -> Invariance:
    """Find out which circumstances change the bits of a product's rows, although the operands stay the same.

    Parameters
    ----------
    target : callable or str
        A function of two matrices, or of a matrix and a vector; or its name.
    shape : tuple of int
        Rows, terms and columns (M, K, N), or (M, K) of a matrix and a vector. Products of up to M rows are tried.
    dtype, kind, device
        As for `reveal`.
    seed : int
        The seed of the operands, which are normally distributed.

    Returns
    -------
    Invariance
        The effect of five circumstances: repeating the product, the number of rows, the position of the row, the
        alignment of the operands in memory, and the number of threads.

    Raises
    ------
    UnsupportedError
        If the function cannot be called with these operands.
    MissingPartError
        If the function's library is not installed.

    Examples
    --------
    >>> def by_size(a, b):
    ...     return (a @ b if len(a) < 8 else (a.astype("float64") @ b).astype("float32"))
    >>> found = invariance(by_size, (16, 40, 3), kind="matmul")
    >>> found.circumstances[1].name, found.circumstances[1].changes
    ('rows', True)
    """
    batch, *numbers = checked_shape(shape, kind)
    if batch > 1:
        raise UnsupportedError("only the rows of one product can be examined, not a batch of products")
    asked = target_of(target, kind or ("matmul" if len(numbers) == 3 else "matvec"), device)
    with DefaultMode() as mode:
        trials = _Trials(asked, tuple(numbers), dtype, seed, check_mode(asked, mode))
        runs = _tried("runs", _AGAIN, trials.runs())
        address = f"where the operands begin in memory, in bytes after a multiple of {_PAGE}"
        sizes, ends = trials.sizes[::-1], sorted({1, trials.rows}, reverse=True)
        others: tuple[tuple[str, str, Callable[[int], Results], list[int]], ...] = (
            ("rows", "the number of rows in the batch", lambda _: trials.batches(), [0]),
            ("place", "the row's place in the batch", trials.places, sizes),
            ("alignment", address, trials.offsets, ends),
            ("threads", "the number of threads", trials.threads, ends),
        )
        found: list[Circumstance] = []
        for name, meaning, results, batches in others:
            if not runs.changes:
                try:
                    found.append(_tried_in(batches, name, meaning, results))
                except _Unsteady as trouble:
                    made = enumerate(trouble.args, 1)
                    runs = _tried(
                        "runs", _AGAIN, ((i, each, partial(Source, each.codes, each.format)) for i, each in made)
                    )
    if runs.changes:  # then other differences may be due to repetition, not to the circumstance
        found = [Circumstance(name, meaning, (), (), 0.0, 0, _UNSTEADY) for name, meaning, *_ in others]
    rows, terms, *columns = numbers
    return Invariance(asked.name, (rows, terms, columns[0] if columns else 1), dtype, (runs, *found))


class _Unsteady(Exception):
    """Raised if the same product is computed twice and the two results differ; its arguments are these results."""


def _tried_in(batches: list[int], name: str, meaning: str, results: Callable[[int], Results]) -> Circumstance:
    """Return the effect of a circumstance in the first batch whose bits change; if none change, in the first batch.

    `batches` has the number of rows of each batch. After a batch that the target refuses, no other batch is tried.
    """
    whole, *_ = tried = [_tried(name, meaning, results(batches[0])).replace(rows=batches[0])]
    for rows in batches[1:]:
        if tried[-1].changes or tried[-1].reason:
            break
        tried.append(_tried(name, meaning, results(rows)).replace(rows=rows))
    return tried[-1] if tried[-1].changes else whole


def _tried(name: str, meaning: str, results: Results) -> Circumstance:
    """Return the effect of a circumstance.

    Some results that differ from the first result are computed again (not for the circumstance `runs`). Raises
    _Unsteady if the second computation gives other bits.
    """
    groups: dict[tuple[str, bytes], list[int]] = {}
    formats: dict[str, Format] = {}
    share, ulps, nans, first = 0.0, 0, False, None
    reason, left = "", 0 if name == "runs" else _REPEATED
    try:
        for number, made, again in results:
            groups.setdefault(_bits(made), []).append(number)
            formats[made.format.name] = made.format
            first = first or made
            if _bits(made) == _bits(first):
                continue
            if left and _bits(made) != _bits(repeated := again()):
                raise _Unsteady(made, repeated)
            left = max(left - 1, 0)
            differing, steps, has_nans = _distance(made, first)
            share, ulps, nans = max(share, differing), max(ulps, steps), nans or has_nans
    except UnsupportedError as trouble:
        if first is not None or name == "runs":
            raise
        reason = str(trouble)
    return Circumstance(
        name=name,
        meaning=meaning,
        tried=tuple(sorted(n for group in groups.values() for n in group)),
        groups=tuple(map(tuple, groups.values())),
        share=share,
        ulps=ulps,
        reason=reason,
        formats=tuple(sorted(formats, key=lambda each: formats[each].precision)),
        nans=nans,
    )


def _bits(made: Source) -> tuple[str, bytes]:
    return made.format.name, made.codes.tobytes()


def _distance(made: Source, first: Source) -> tuple[float, int, bool]:
    """Return the share of differing elements, their largest distance in ulps, and whether NaNs differ.

    NaNs differ if an element is NaN in only one result. If the results have two formats, numbers are compared, and
    distances are counted in ulps of the format with fewer digits.
    """
    narrow = min(made.format, first.format, key=lambda each: each.precision)
    if made.format == first.format:
        differs = made.codes != first.codes
    else:
        one, other = values_of(made), values_of(first)
        differs = (one != other) & ~(np.isnan(one) & np.isnan(other))
        made, first = (Source(np.asarray(encode(each, narrow)), narrow) for each in (made, first))
    steps = ulp_distance(made, first)
    lone = steps == NOT_COMPARABLE
    return float(differs.mean()), int(np.where(lone, 0, steps).max()), bool(lone.any())


def _row(made: Source, row: int) -> Source:
    return Source(np.atleast_1d(made.codes[row]), made.format)


def _aligned(x: Array, offset: int) -> Array:
    """Return a copy of `x` that begins `offset` bytes after the beginning of a memory page."""
    buffer = np.empty(x.nbytes + 2 * _PAGE, np.uint8)
    start = -buffer.ctypes.data % _PAGE + offset
    copy = buffer[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    copy[...] = x
    return copy
