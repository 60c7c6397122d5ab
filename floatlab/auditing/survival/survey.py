"""Measures what recipes would do to the tensors of checkpoints: divides the work into jobs, and combines results."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from fractions import Fraction
from math import inf, prod
from typing import Unpack

from floatlab.arrays.round_trips.round_trip import check_supported, is_unscaled, spans
from floatlab.auditing.survival.arguments import RecipeOptions, check_options
from floatlab.auditing.survival.figures import (
    DAMAGED,
    OVERFLOWS,
    RecipeAudit,
    RecipeFigures,
    TensorFigures,
    exponents_of,
    figures_of,
)
from floatlab.auditing.survival.gathering import Gathering, Pile
from floatlab.auditing.survival.jobs import AuditJob, Measured, checkpoint_at, forget, joint_peak, work
from floatlab.auditing.survival.regions import TensorRegion, as_matrix, needs_peaks
from floatlab.auditing.survival.running.resumption import Resumption, files_of
from floatlab.auditing.survival.running.runner import run
from floatlab.auditing.survival.subjects import Place, Subject, subjects_of
from floatlab.auditing.survival.verdicts import choice_of, judged, recommendation, usual
from floatlab.errors import FileFormatError
from floatlab.files.safe_open import shown
from floatlab.formats.recipes import Recipe, parse_recipes
from floatlab.fpmode import in_default_mode

Progress = Callable[[int], None]


@in_default_mode
def audit_recipes(
    places: Place | Sequence[Place],
    to: str | Recipe | Sequence[str | Recipe],
    *,
    only: str | None = None,
    progress: Callable[[int, int], Progress] | None = None,
    **options: Unpack[RecipeOptions],
) -> RecipeAudit:
    """Measure what recipes would do to the tensors of checkpoints, and recommend a recipe for each.

    Parameters
    ----------
    places
        One or several checkpoints, given as for `load_quantized`. Quantised weights are read as numbers.
    to
        Recipes, such as "mxfp4,nvfp4,e4m3/128x128". A format without the shape of its blocks, such as "e4m3", is a
        recipe without scales.
    only
        A glob that chooses tensors by name.
    progress
        A function that is called once, with the number of bytes to read and the number of tensors. It must return a
        second function, which is then called with the number of bytes read since the previous call.
    **options
        The keywords that follow.
    min_sqnr
        The smallest ratio of signal to quantisation noise that is good enough, in dB. By default, a tensor is compared
        with normally distributed numbers that the same recipe rounds. The tensor's ratio may be at most 3 dB lower, and
        its share of numbers that become 0 may be at most 0.25 higher.
    activations
        A file or a mapping with samples of the inputs of layers, as arrays that are named after the layers. The first
        256 rows of each array are used. Weights with samples are judged by the error of the layer's output.
    overflow
        The rule for numbers beyond the largest number of a format, in recipes without scales. With `native`, they
        become ∞ or NaN if the format has these; with `saturate`, they become the largest number. In recipes with
        scales, they always saturate.
    executor
        The executor that measures the pieces of tensors: any executor of `concurrent.futures` or of Dask
        (`Client.get_executor()`). By default, this process measures them. The result does not depend on the
        executor.
    resume
        A file in which finished pieces are kept. An audit that was interrupted continues from it. The file is refused
        if it belongs to other checkpoints, recipes or settings.
    notice
        A function that is called with messages, for instance how many tensors have results in the file of `resume`.

    Returns
    -------
    RecipeAudit
        Its `tensors` have the errors of each tensor with each recipe. Its `totals` have the errors of all tensors
        together. Its `recommendation` has, for each tensor, the recipe with the fewest bits among those that the tensor
        survives.

    Raises
    ------
    RecipeError
        For an unknown recipe, with a caret under the wrong part.
    FileFormatError
        If a file is not valid, or if no tensor can be read.
    FormatError
        If `to` is neither a text nor a recipe, nor a list of these.
    TypeError
        For unknown keywords.
    UnsupportedError
        For a recipe that arrays do not support, for a keyword with an invalid value, and if the glob matches no tensor.

    Examples
    --------
    >>> import numpy as np
    >>> x = {"w": np.float32([[0.5, 1, 448, 500]])}
    >>> found = audit_recipes(x, "e4m3,e4m3/tensor")
    >>> [(each.recipe, each.lost, each.verdict) for each in found.tensors[0].recipes]
    [('e4m3', 1, 'overflows'), ('e4m3/tensor', 0, 'survives')]
    >>> print(found.recommendation)
    e4m3/tensor for the tensor. On average 16 bits a number, SQNR 32.3 dB
    """
    recipes = parse_recipes(to)
    for recipe in recipes:
        check_supported(recipe)
    many = list(places) if isinstance(places, Sequence) and not isinstance(places, str | bytes) else [places]
    check_options(many, only, options)
    overflow, activations = options.get("overflow", "native"), options.get("activations")
    forget()
    try:
        subjects = subjects_of(many, recipes, only, activations)
        found = _Survey(subjects, recipes, activations, overflow, options.get("min_sqnr"))
        with ExitStack() as held:
            resume, notice = options.get("resume"), options.get("notice")
            kept = None if resume is None else held.enter_context(found.resumption(os.fspath(resume)))
            found.measure(progress, options.get("executor"), kept)
            if kept is not None and kept.taken and notice is not None:
                notice(f"tensors already in {shown(kept.path)}: {len(kept.taken):,} of {len(subjects):,}")
        return found.result()
    finally:
        forget()


class _Survey:
    """The audit in progress: results are combined as they arrive."""

    def __init__(
        self, subjects: list[Subject], recipes: tuple[Recipe, ...], inputs: Place | None, overflow: str,
        min_sqnr: float | None,
    ) -> None:  # fmt: skip
        self.subjects, self.recipes, self.inputs, self.overflow = subjects, recipes, inputs, overflow
        self.min_sqnr = min_sqnr
        self.troubles: dict[int, str] = {}
        self.peaks: dict[tuple[int, int, int], float | None] = {}  # by subject, recipe, and row (−1: the tensor)
        self.tensors: list[TensorFigures] = []
        self.piles = [Pile() for _ in recipes]

    def resumption(self, path: str) -> Resumption:
        """Open the file that keeps the results of finished jobs for these tensors, regions, recipes and settings."""
        places = {each.source: each.place for each in self.subjects}
        tensors = [(each.name, each.kind, each.shape, each.groups) for each in self.subjects]
        return Resumption(
            path,
            {
                "files": [files_of(place) for place in places.values()],
                "tensors": hashlib.blake2s(repr(tensors).encode("utf-8", "backslashreplace")).hexdigest(),
                "recipes": [each.name for each in self.recipes],
                "activations": None if self.inputs is None else files_of(self.inputs),
                "overflow": self.overflow,
            },
        )

    def measure(
        self, progress: Callable[[int, int], Progress] | None, executor: Executor | None, resume: Resumption | None
    ) -> None:
        """Do all jobs: first those that find peaks (the largest numbers of tensors or rows), then those that round."""
        first = list(self._peak_jobs())
        done = None
        if progress is not None:
            whole = sum(prod(each.shape) * each.bits * len(each.groups) for each in self.subjects)
            add = progress(round((whole + sum(map(self._bits, first))) / 8), len(self.subjects))
            bits, told = 0.0, 0

            def done(job: AuditJob) -> None:
                nonlocal bits, told
                bits += self._bits(job)
                add(round(bits / 8) - told)
                told = round(bits / 8)

        self._find_peaks(first, executor, done, resume)
        gatherings = self._gatherings()
        number = 0
        for job, result in run(self._jobs(), work, executor, progress=done, resume=resume):
            if result.trouble:
                self.troubles.setdefault(job.subject, result.trouble)
            gatherings[job.subject, job.group].add(job.order, result)
            while number < len(self.subjects) and self._is_done(number, gatherings):
                self._finish(number, gatherings)
                number += 1
        for rest in range(number, len(self.subjects)):
            self._finish(rest, gatherings)

    def _bits(self, job: AuditJob) -> float:
        """Return the number of bits that a job reads."""
        return job.region.size * self.subjects[job.subject].bits

    def _peak_jobs(self) -> Iterator[AuditJob]:
        for number, subject in enumerate(self.subjects):
            for group, (which, regions) in enumerate(subject.groups):
                names = tuple(self.recipes[i].name for i in which if needs_peaks(self.recipes[i], regions))
                for order, region in enumerate(regions if names else ()):
                    yield AuditJob(
                        subject.place, subject.name, number, group, order, region, names, only_peaks=True,
                        version=subject.version,
                    )  # fmt: skip

    def _find_peaks(
        self,
        jobs: list[AuditJob],
        executor: Executor | None,
        done: Callable[[AuditJob], None] | None,
        resume: Resumption | None,
    ) -> None:
        found: dict[tuple[int, int, int], dict[int, float | None]] = {}
        numbers = {recipe.name: i for i, recipe in enumerate(self.recipes)}
        for job, result in run(jobs, work, executor, progress=done, resume=resume):
            if result.trouble:
                self.troubles.setdefault(job.subject, result.trouble)
            for name, peak in zip(job.recipes, result.peaks, strict=False):
                i = numbers[name]
                found.setdefault((job.subject, i, self._unit(i, job.region)), {})[job.order] = peak
        self.peaks = {key: joint_peak([peaks[order] for order in sorted(peaks)]) for key, peaks in found.items()}

    def _unit(self, recipe: int, region: TensorRegion) -> int:
        return region.row if spans(self.recipes[recipe]) == "row" else -1

    def _jobs(self) -> Iterator[AuditJob]:
        for number, subject in enumerate(self.subjects):
            if number in self.troubles:
                continue
            for group, (which, regions) in enumerate(subject.groups):
                names = tuple(self.recipes[i].name for i in which)
                for order, region in enumerate(regions):
                    peaks = tuple(self.peaks.get((number, i, self._unit(i, region))) for i in which)
                    with_inputs = subject.layer and region.has_whole_rows
                    yield AuditJob(
                        subject.place, subject.name, number, group, order, region, names, peaks,
                        overflow=self.overflow,
                        inputs=self.inputs if with_inputs else None, layer=subject.layer if with_inputs else "",
                        version=subject.version,
                    )  # fmt: skip

    def _gatherings(self) -> dict[tuple[int, int], Gathering]:
        return {
            (number, group): Gathering(len(regions), len(which))
            for number, subject in enumerate(self.subjects)
            if number not in self.troubles
            for group, (which, regions) in enumerate(subject.groups)
        }

    def _is_done(self, number: int, gatherings: dict[tuple[int, int], Gathering]) -> bool:
        return not any(
            gatherings[number, group].left
            for group in range(len(self.subjects[number].groups))
            if (number, group) in gatherings
        )

    def _finish(self, number: int, gatherings: dict[tuple[int, int], Gathering]) -> None:
        """Record the errors of a tensor whose jobs are done, and add them to the totals."""
        subject = self.subjects[number]
        found: list[Measured | None] = [None] * len(self.recipes)
        for group, (which, _) in enumerate(subject.groups):
            gathering = gatherings.pop((number, group), None)
            for i, pile in zip(which, gathering.piles if gathering is not None else (), strict=False):
                found[i] = pile.total()
        trouble = self.troubles.get(number, "")
        measured = [each for each in found if each is not None]
        if trouble or len(measured) < len(self.recipes):
            measured = []
        self.tensors.append(_figures(subject, self.recipes, measured, trouble, self.min_sqnr))
        for pile, each in zip(self.piles, measured, strict=False):
            pile.add(each.replace(output=None))

    def result(self) -> RecipeAudit:
        """Return the audit, with the most damaged tensors first; raises FileFormatError if no tensor can be read."""
        if not any(each.is_readable for each in self.tensors):
            first = self.tensors[0]
            where = "" if shown(first.source) in first.left_out else f"{shown(first.source)}: "
            raise FileFormatError(f"{where}{first.left_out}")
        totals = self._totals()
        several = len({each.source for each in self.subjects}) > 1
        names = [f"{each.source}::{each.name}" if several else each.name for each in self.subjects]
        advice = recommendation(self.tensors, [each.bits for each in self.subjects], self.min_sqnr, names)
        ranked = sorted(self.tensors, key=_rank)
        return RecipeAudit(
            sources=tuple(dict.fromkeys(each.source for each in self.subjects)),
            recipes=tuple(each.name for each in self.recipes),
            tensors=tuple(ranked),
            totals=totals,
            recommendation=advice,
            min_sqnr=self.min_sqnr,
            inputs="" if self.inputs is None else checkpoint_at(self.inputs).name,
        )

    def _totals(self) -> tuple[RecipeFigures, ...]:
        measured = [each for each in self.tensors if each.recipes]
        count = sum(each.elements for each in measured)
        nonfinite = sum(each.nonfinite for each in measured)
        zeros = sum(each.zeros for each in measured)
        found = []
        for i, (recipe, pile) in enumerate(zip(self.recipes, self.piles, strict=True)):
            whole = pile.total()
            bits = sum(Fraction(each.recipes[i].bits) * each.elements for each in measured)
            figures = figures_of(
                recipe.name, float(bits / count) if count else 0.0, whole.tally, whole.scales, None,
                usual(recipe).sqnr,
            )  # fmt: skip
            figures = figures.replace(largest_relative_at=None)  # an index would not say in which tensor
            found.append(judged(figures, usual(recipe).flushed, count - zeros - nonfinite, nonfinite, self.min_sqnr))
        return tuple(found)


def _rank(found: TensorFigures) -> tuple[float, ...]:
    """Return a sort key of a tensor, made of the worst figures of all its recipes.

    The classes of tensors come in this order: unreadable, overflows, damaged, survives, left out. In each class,
    tensors with a larger share of numbers that become NaN or infinite come first. Of tensors with equal shares, those
    whose SQNR is farther below the expected SQNR of the recipe come first.
    """
    if not found.is_readable:
        return (0,)
    if not found.recipes:
        return (4,)
    verdicts = {each.verdict for each in found.recipes}
    lost = max(each.lost / max(each.elements, 1) for each in found.recipes)
    levels = [each.decisive_sqnr - each.expected for each in found.recipes if each.decisive_sqnr is not None]
    return 1 if OVERFLOWS in verdicts else 2 if DAMAGED in verdicts else 3, -lost, min(levels, default=inf)


def _figures(
    subject: Subject, recipes: tuple[Recipe, ...], measured: list[Measured], trouble: str, min_sqnr: float | None
) -> TensorFigures:
    tally = measured[0].tally if measured else None
    figures = []
    for recipe, each in zip(recipes, measured, strict=False):
        bits = bits_of_recipe(recipe, subject.shape)
        made = figures_of(recipe.name, bits, each.tally, each.scales, each.output, usual(recipe).sqnr)
        nonzero = each.tally.elements - each.tally.zeros - each.tally.nonfinite
        figures.append(judged(made, usual(recipe).flushed, nonzero, each.tally.nonfinite, min_sqnr))
    found = TensorFigures(
        source=subject.source,
        tensor=subject.name,
        kind=subject.kind,
        shape=subject.shape,
        convention=subject.convention,
        elements=prod(subject.shape),
        zeros=tally.zeros if tally else 0,
        nonfinite=tally.nonfinite if tally else 0,
        largest=tally.largest if tally and tally.smallest < inf else None,
        smallest=tally.smallest if tally and tally.smallest < inf else None,
        exponents=exponents_of(tally) if tally else (),
        recipes=tuple(figures),
        choice="",
        is_readable=subject.is_readable and not trouble,
        left_out=subject.left_out or trouble,
    )
    return found.replace(choice=choice_of(found, subject.bits))


def bits_of_recipe(recipe: Recipe, shape: tuple[int, ...]) -> float:
    """Return how many bits per element a recipe needs for a tensor of this shape, scales included.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> bits_of_recipe(parse_recipe("nvfp4"), (64, 64)), bits_of_recipe(parse_recipe("e4m3/channel"), (64, 64))
    (4.5078125, 8.5)
    """
    fmt, (outer, high, wide) = recipe.format, as_matrix(shape)
    count = outer * high * wide
    if is_unscaled(recipe) or not count:
        return float(fmt.element.width)
    if fmt.flat:
        outer, high, wide = 1, 1, count
    elif fmt.rows is None:
        outer, high = 1, outer * high
    rows, columns = fmt.rows or high, fmt.block or wide
    blocks = outer * -(-high // rows) * -(-wide // columns)
    bits = count * fmt.element.width + blocks * fmt.scale_bits * (1 + fmt.minimum)
    for size in fmt.groups:
        bits += blocks * rows * columns // size
    if fmt.tensor is not None:
        tensors = -(-count // fmt.superblock) if fmt.superblock else outer * -(-high // rows) if fmt.by_row else 1
        bits += tensors * fmt.tensor.width * (1 + fmt.minimum)
    return bits / count
