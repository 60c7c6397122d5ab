"""The page of a network trained in several configurations: loss curves, and a comparison of the final losses."""

from __future__ import annotations

import math

import numpy as np

from floatlab.page.chart import curve, named
from floatlab.page.model import Block, Chart, Gap, Line, Page, Role, Row, Span, Table, heading, hint, line, text_of
from floatlab.page.words import counted, listed, plural
from floatlab.record import Record
from floatlab.training.learner import Learning, LearningComparison, compare_learnings
from floatlab.verbs.train.words import optimizer_words

_SENTENCES = {
    "linear": "linear regression",
    "logistic": "logistic regression",
    "network": "a network with a hidden layer of rectified units",
}


class Learnings(Record):
    """Trained networks, and their comparison. `rows` has a row for each configuration, with an entry for each seed."""

    rows: list[list[Learning]]
    compared: list[LearningComparison]
    reference: str

    @classmethod
    def of(cls, rows: list[list[Learning]]) -> Learnings:
        """Compare all rows with the row of fp32, or with the first row if there is no row of fp32."""
        labels = [row[0].configuration.label for row in rows]
        reference = "fp32" if "fp32" in labels else labels[0]
        return cls(rows, compare_learnings(rows, reference), reference)


def network_page(learnings: Learnings) -> Page:
    r"""Return the page of the losses of all configurations.

    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.training import learn
    >>> page = network_page(Learnings.of(learn("linear", "fp32 bf16", seeds=2, steps=100, samples=8)))
    >>> print(to_text(page).rpartition("verdict\n")[2].partition("  Loss")[0], end="")
      a fp32         0.00256  1                    0  reference
      b bf16         0.00469  1.83 ×/÷ 1.41        0  worse
    <BLANKLINE>
      verdict      bf16 is worse than fp32, beyond the noise of 2 seeds
    """
    rows, compared, reference = learnings.rows, learnings.compared, learnings.reference
    first = rows[0][0]
    problem, seeds = first.problem, len(rows[0])
    sizes = ((first.steps, "step"), (len(rows), "configuration"), (seeds, "seed"))
    title = f"{problem.name}: {', '.join(counted(size, noun) for size, noun in sizes)}"
    shape = " → ".join(f"{each}" for each in problem.layers)
    blocks: list[Block] = [heading(title), Row("problem", _SENTENCES.get(problem.name, problem.name))]
    blocks.append(Row("", f"{len(problem.x)} samples, {shape}, {counted(problem.parameters, 'parameter')}"))
    blocks.append(Row("optimizer", optimizer_words(first.optimizer)))
    blocks += [Gap(), losses_chart(rows), Gap(), _table(learnings), Gap()]
    verdicts = verdict_words(compared, reference, seeds)
    blocks += [Row("" if i else "verdict", Span(*said)) for i, said in enumerate(verdicts)]
    blocks.append(hint(_explained(seeds, reference)))
    for i, (row, each) in enumerate(zip(rows, compared, strict=True)):
        ended = next((one.diverged for one in row if one.diverged is not None), None)
        if ended is not None:
            why = line(Span(f"step {ended.step:,}: {ended.why}", Role.BAD))
            blocks.append(Row(text_of(named(i, each.label)), why))
    return Page(tuple(blocks), title)


def losses_chart(rows: list[list[Learning]]) -> Chart:
    """Return the chart of the losses by step (geometric means over the seeds)."""
    curves = []
    for i, row in enumerate(rows):
        least = min(len(each.losses) for each in row)  # a network that diverged has fewer steps
        with np.errstate(all="ignore"):
            losses = np.exp(np.mean([np.log(each.losses[:least]) for each in row], axis=0))
        curves.append(curve(i, row[0].configuration.label, row[0].at[:least].tolist(), losses.tolist()))
    up = "loss" if len(rows[0]) == 1 else "loss, geometric mean over seeds"
    return Chart(tuple(curves), "step", up, height=18, log_up=True)


def _table(learnings: Learnings) -> Table:
    seeds = len(learnings.rows[0])
    skips = any(one.skipped for row in learnings.rows for one in row)
    rows = []
    for i, (row, each) in enumerate(zip(learnings.rows, learnings.compared, strict=True)):
        loss, spread = mean_loss(each), f" ×/÷ {each.spread:.3g}" if seeds > 1 and each.spread > 1.0005 else ""
        skipped = [line(f"{sum(len(one.skipped) for one in row) / seeds:.3g}")] if skips else []
        rows.append((
            named(i, each.label),
            line("none" if loss is None else f"{loss:.3g}"),
            line("" if math.isnan(each.ratio) else f"{each.ratio:.3g}", Span(spread, Role.HINT)),
            line(f"{sum(one.unmoved for one in row) / seeds:.0f}"),
            *skipped,
            verdict(each, each.label == learnings.reference, seeds),
        ))  # fmt: skip
    header = ("configuration", "loss", "ratio", "unmoved", *(("skipped",) if skips else ()), "verdict")
    return Table(header, rows, right=(1, 3, 4) if skips else (1, 3))


def mean_loss(each: LearningComparison) -> float | None:
    """Return the geometric mean of the final losses, or None if a network diverged."""
    return None if each.diverged else math.exp(sum(math.log(loss) for loss in each.finals) / len(each.finals))


def verdict_words(compared: list[LearningComparison], reference: str, seeds: int) -> list[tuple[str, Role]]:
    """Say which configurations diverged, are worse than the reference, or are as good as the reference."""
    others = [each for each in compared if each.label != reference]
    lost = any(each.diverged for each in compared if each.label == reference)
    beyond, within = (f", {where} the noise of {seeds} seeds" if seeds > 1 else "" for where in ("beyond", "within"))
    worse = [each.label for each in others if each.worse and not each.diverged]
    good = [each.label for each in others if not each.worse and math.isfinite(each.ratio)]
    parts = (
        ([each.label for each in others if each.diverged], "diverged", Role.BAD),
        (worse, f"{plural(len(worse), 'is', 'are')} worse than {reference}{beyond}", Role.BAD),
        (good, f"{plural(len(good), 'is', 'are')} as good as {reference}{within}", Role.GOOD),
    )
    alone = (f"{reference} diverged, so the other configurations have no reference", Role.BAD)
    return [alone] * lost + [(f"{listed(names)} {what}", role) for names, what, role in parts if names]


def verdict(each: LearningComparison, is_reference: bool, seeds: int) -> Line:
    """Return the verdict on a configuration: diverged, the reference itself, worse, as good, or not compared.

    >>> from floatlab.training import LearningComparison
    >>> verdict(LearningComparison("fp16", (0.1,), 2.0, 1.0, True, 0), False, 1)[0].text
    'worse'
    """
    if each.diverged:
        return line(Span("diverged" if seeds == 1 else f"diverged in {each.diverged} of {seeds}", Role.BAD))
    if is_reference:
        return line(Span("reference", Role.HINT))
    if each.worse:
        return line(Span("worse", Role.BAD))
    if not math.isfinite(each.ratio):
        return line(Span("not compared", Role.HINT))  # the reference diverged
    return line(Span("as good" if seeds == 1 else "within noise", Role.GOOD))


def _explained(seeds: int, reference: str) -> str:
    said = (
        f"Loss: the loss of the final weights, computed in binary64. Ratio: loss / loss of {reference} on the same "
        "data. Unmoved: weights that no step moved. Skipped: steps whose gradients overflowed."
    )
    if seeds == 1:
        return f"{said} The noise is unknown with one seed: use --seeds 10."
    return (
        f"{said} Loss and ratio are geometric means over {seeds} seeds. Worse: the ratio exceeds 1.02, and it either "
        "differs from 1 by more than two standard deviations of the mean (×/÷) or exceeds 1.02 for every seed."
    )
