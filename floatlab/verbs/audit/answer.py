"""The answers of `audit`, and the page with the verdict on each quantised weight, its errors and the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import isinf

from floatlab.auditing.audit import Audit, audit
from floatlab.auditing.judging import BROKEN, SOUND, AuditedTensor
from floatlab.errors import shown_name
from floatlab.fpmode import in_default_mode
from floatlab.page.csv_text import as_csv, csv_cell
from floatlab.page.measures import number
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, Table, Text, heading, hint
from floatlab.page.words import counted, listed, plural
from floatlab.verbs.audit.codes_answer import codes_answers
from floatlab.verbs.audit.tensor_columns import LISTED
from floatlab.verbs.question import Answer, Question, Started, plain_answer

_NAMED = 3  # at most this many missing tensors are named
_MEASURES = (
    "relative_error", "sqnr", "cosine", "mse", "largest_error", "nans", "blocks", "bad_blocks", "nearest", "most",
)  # fmt: skip
_ROLES = {BROKEN: Role.BAD, SOUND: Role.GOOD}


def answer_of(found: Audit, most: int = LISTED) -> Answer:
    """Return the answer that shows an audit. Its JSON has a line for each weight."""
    broken = sum(each.verdict == BROKEN for each in found.tensors)
    answer = plain_answer(found, lambda: audit_page(found, most), str(broken))
    return answer.replace(
        records=lambda: _records(found), status=1 if found.is_broken else 0, table=lambda: verdicts_csv(found)
    )


def _records(found: Audit) -> list[dict[str, object]]:
    from floatlab.verbs.from_json import document_of

    return [document_of(each) for each in found.tensors]


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Return the answer to a question of the verb `audit`; raises FloatlabError.

    With `--to`, the answer says what recipes would do to checkpoints. With `--from`, it says which recipe produced the
    codes of a tensor. Otherwise, the answer is the audit of a quantised checkpoint.
    """
    if question.option("from") is not None:
        return codes_answers(question, started)
    if question.option("to"):
        from floatlab.verbs.audit.recipes_answer import recipes_answer

        return [recipes_answer(question, started)]
    [place] = question.values
    found = audit(
        place, question.option("against"), question.option("only"),
        progress=None if started is None else lambda total: started(total, "elements"),
    )  # fmt: skip
    return [answer_of(found, question.option("worst", LISTED))]


def verdicts_csv(found: Audit) -> str:
    """Return an audit as CSV: a row for each weight.

    >>> import numpy as np
    >>> codes, x = np.int8([[1, 2] * 16]), np.float32([[1, 2] * 16])
    >>> found = audit({"w.weight": codes, "w.weight_scale": np.float32([1])}, {"w.weight": x})
    >>> verdicts_csv(found).splitlines()[1].split(",")[:6]
    ['w.weight', 'sound', '1x32', 'scaled INT8', '', '2.0']
    """
    header = ("weight", "verdict", "shape", "convention", "original", "largest", *_MEASURES, "reasons")
    return as_csv(header, (_csv_row(each) for each in found.tensors))


def _csv_row(each: AuditedTensor) -> list[object]:
    first = (each.name, each.verdict, each.shape, each.convention, each.original, each.largest)
    measures = (getattr(each.fidelity, name, None) for name in _MEASURES)
    return [csv_cell(value) for value in (*first, *measures, "; ".join(each.reasons))]


def audit_page(found: Audit, most: int = LISTED) -> Page:
    """Return the page of an audit: the counts of the verdicts, the reasons, and a table of weights.

    The table lists at most `most` weights, the worst first.
    """
    beside = f" against {found.original}" if found.original else ""
    title = f"{found.source}{beside}: of {counted(len(found.tensors), 'weight')}, {_counts(found.tensors)}"
    blocks: list[Block] = [heading(title)]
    conventions = Counter(each.convention for each in found.tensors if each.convention)
    if conventions:
        blocks.append(Row("read as", listed([f"{name} ({count:,})" for name, count in conventions.items()])))
    blocks += _left_out(found)
    header: tuple[str, ...] = ("weight", "verdict", "largest")
    if found.original:
        header = (*header, "rel. error", "SQNR", "cosine", "max. error")
    shown = found.tensors[:most]
    for each in shown:
        if each.reasons:
            role = _ROLES.get(each.verdict, Role.FLAG)
            blocks += [Gap(), Note(Span(f"{each.name}: {each.verdict}", role))]
            blocks += [Row("", reason) for reason in each.reasons]
    if shown:
        rows = [_cells(each, bool(found.original)) for each in shown]
        blocks += [Gap(), Table(header, rows, right=tuple(range(2, len(header))))]
    blocks += _compared_with(shown)
    if more := found.tensors[most:]:
        blocks += [Gap(), hint(f"{counted(len(more), 'more weight')}: {_counts(more)}; --worst all lists them")]
    if not found.original:
        words = "Without --against ORIGINAL, a wrong scale of plausible size cannot be distinguished from a right one."
        blocks += [Gap(), hint(words)]
    return Page(tuple(blocks), title)


def _counts(tensors: Sequence[AuditedTensor]) -> str:
    """Return the counts of the verdicts on these weights, as text."""
    verdicts = Counter(each.verdict for each in tensors)
    return listed([f"{count:,} {_words(verdict, count)}" for verdict, count in verdicts.items()])


def _left_out(found: Audit) -> list[Block]:
    """Return rows about the tensors that were not checked, and about the tensors that only the original has."""
    blocks: list[Block] = []
    for title, kinds, lack, role in (
        ("not checked", found.unchecked, "not quantised", Role.PLAIN),
        ("no scales", found.unscaled, "codes without scales", Role.FLAG),
    ):
        if total := sum(count for _, count in kinds):
            named = listed([f"{count:,} of {dtype}" for dtype, count in kinds])
            said = f"{counted(total, 'tensor')} {plural(total, 'is', 'are')} {lack}: {named}"
            blocks.append(Row(title, Span(said, role)))
    if found.missing:
        names = [shown_name(name) for name in found.missing[:_NAMED]]
        names += [f"{len(found.missing) - _NAMED:,} more"] * (len(found.missing) > _NAMED)
        blocks.append(Row("missing", Span(f"the original also has {listed(names)}", Role.FLAG)))
    return blocks


def _compared_with(shown: Sequence[AuditedTensor]) -> list[Block]:
    """Return a table of the weights whose originals have another name or layout, with the originals beside them."""
    rows = [(each.name, each.original) for each in shown if each.original]
    return [Gap(), Table(("weight", "compared with"), rows)] if rows else []


def _words(verdict: str, count: int) -> str:
    if verdict not in (BROKEN, SOUND):
        return "cannot be judged"
    return f"{'is' if count == 1 else 'are'} {verdict}"


def _cells(each: AuditedTensor, measured: bool) -> tuple[Text, ...]:
    verdict = Span(each.verdict, _ROLES.get(each.verdict, Role.FLAG))
    cells: tuple[Text, ...] = (each.name, verdict, "·" if each.largest is None else number(each.largest))
    if not measured:
        return cells
    measures = each.fidelity
    if measures is None:
        return (*cells, "·", "·", "·", "·")
    sqnr = "∞" if isinf(measures.sqnr) else f"{measures.sqnr:.1f} dB"
    return (*cells, number(measures.relative_error), sqnr, f"{measures.cosine:.4f}", number(measures.largest_error))
