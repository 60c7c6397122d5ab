"""The part of the page that `compare --inputs` adds: the causes of the difference, and its size.

The size is q, the difference in units of u·(|X|·|Y|). It is compared with the q that each cause would give.
"""

from __future__ import annotations

from floatlab.page.model import Block, Gap, Role, Row, Span, Table, heading
from floatlab.page.words import counted, listed
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis
from floatlab.reduce.results.judgements import DifferenceCause, Judgement

_MOST = 3  # number of positions that are listed
_CAUSES = {
    DifferenceCause.ORDER: "another order of addition, or fused multiply-adds",
    DifferenceCause.SINGLE: "inputs and sums in fp32",
    DifferenceCause.FP32: "inputs rounded to fp32",
    DifferenceCause.TF32: "inputs rounded to tf32",
    DifferenceCause.FP16: "inputs rounded to fp16",
    DifferenceCause.BF16: "inputs rounded to bf16",
    DifferenceCause.TERM: "one term left out",
}


def judgement_blocks(found: Judgement) -> list[Block]:
    """Return the rows of `quotient_blocks`, and the verdict."""
    verdict = Span(judgement_words(found), Role.FLAG if _is_bad(found) else Role.VALUE)
    return [*quotient_blocks(found), Row("verdict", verdict)]


def quotient_blocks(found: Judgement) -> list[Block]:
    """Return rows with q, and a table with the q that each cause would give on these inputs; there is no verdict."""
    rows = tuple((_CAUSES[each.cause], _number(each.rms), _number(each.largest)) for each in found.effects)
    part = f"of {found.looked_at:,} of {counted(found.elements, 'element')}, spread evenly over the product"
    return [
        Gap(),
        heading(f"Size: q is the difference in units of u·(|X|·|Y|), n = {found.terms:,}"),
        Row("q", _size(found), f"2n = {found.limit:,.0f} is the largest q between two orders"),
        *([] if found.looked_at == found.elements else [Row("", part)]),
        Table(("q of each cause on these inputs", "rms q", "largest"), rows, (1, 2)),
    ]


def judgement_words(found: Judgement) -> str:
    """Return the verdict in words.

    >>> import numpy as np
    >>> from floatlab.reduce.results.judgements import judge_difference
    >>> x, y = np.ones((2, 3), np.float32), np.ones((3, 2), np.float32)
    >>> judgement_words(judge_difference(x, y, x @ y))
    'within rounding: another order of the additions can give this difference'
    """
    if found.beyond and DifferenceCause.ORDER in found.causes:
        few = f"{counted(found.beyond, 'element')} of {found.looked_at:,}"
        return f"{few} beyond rounding, all others within rounding: look for a bug there"
    if found.rms == 0 or found.is_rounding:
        return "within rounding: another order of the additions can give this difference"
    if not found.causes:
        return "beyond rounding, and not explained by these causes: look for a bug"
    if found.causes == (DifferenceCause.TERM,):
        return "beyond rounding, and as large as one missing term: look for a bug"
    others = listed([_CAUSES[each] for each in found.causes if each is not DifferenceCause.ORDER], "or")
    if DifferenceCause.ORDER in found.causes:
        return f"with {counted(found.terms, 'term')}, either rounding or {others} can be the cause"
    return f"explained by {others}, not by rounding"


def diagnosis_blocks(found: Diagnosis, operation: str) -> list[Block]:
    """Return a table of the causes of a diagnosis with their positions, and a row for what was found about each."""
    rows = tuple((each.name, each.side, f"{100 * each.share:.3g} %", _where(each)) for each in found.causes)
    known = [
        Row(each.name, ", ".join(f"{key} {value}".strip() for key, value in each.evidence))
        for each in found.causes
        if each.evidence
    ]
    nearer = [] if found.nearer is None else [Row("nearer", f"{found.nearer} is nearer to the exact result")]
    table = [Table(("cause", "whose", "share", "where"), rows, (2,))] if rows else []
    blocks: list[Block] = [*table, *known, *nearer]
    what = "What is wrong with both" if found.status == "identical" else "Causes of the difference"
    return [Gap(), heading(f"{what}, as results of {operation}"), *blocks] if blocks else []


def _where(cause: DiagnosedCause) -> str:
    shown = ", ".join(str(place) for place in cause.where[:_MOST])
    return shown + (f" and {len(cause.where) - _MOST:,} more" if len(cause.where) > _MOST else "")


def _is_bad(found: Judgement) -> bool:
    return bool(found.beyond) or not (found.rms == 0 or DifferenceCause.ORDER in found.causes)


def _size(found: Judgement) -> str:
    where = f" at {found.at}" if found.at is not None and found.elements > 1 and found.largest else ""
    return f"rms {_number(found.rms)}, largest {_number(found.largest)}{where}"


def _number(x: float) -> str:
    return f"{x:,.0f}" if 100 <= x < 1e7 else f"{x:.3g}"
