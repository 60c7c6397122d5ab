"""What `compare --inputs` adds to the page: the causes of the difference, and q.

q is the difference in units of u·(|X|·|Y|). The page compares this q with the q that each possible cause would give.
"""

from __future__ import annotations

from floatlab.page.model import Block, Gap, Role, Row, Span, Table, heading
from floatlab.page.words import counted, listed
from floatlab.reduce.explain.first_line import cause_text
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis
from floatlab.reduce.results.judgements import DifferenceCause, Judgement

_LISTED = 24  # at most this many places of a cause are listed
_DETAILS = (
    "an error is seen if it exceeds",
    "seen by",
    "all others",
    "others",
)  # evidence that `cause_text` leaves out
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
    """Return the rows of `quotient_blocks`, followed by the verdict."""
    verdict = Span(judgement_words(found), Role.FLAG if _is_bad(found) else Role.VALUE)
    return [*quotient_blocks(found), Row("verdict", verdict)]


def quotient_blocks(found: Judgement) -> list[Block]:
    """Return rows with q (a measure of the difference), and a table of the q that each cause would give here."""
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
    """Return rows for the causes of a diagnosis with their evidence, and a row that says which result is nearer.

    >>> from floatlab.page.model import Page
    >>> from floatlab.page.text_layout import to_text
    >>> cause = DiagnosedCause("region", "result", "expected", 0.25, (((0, 1), (2, 4)),), (("holds", "zeros"),))
    >>> print(to_text(Page(tuple(diagnosis_blocks(Diagnosis("bug", "", (cause,), "actual"), "matmul")), "")).strip())
    Causes of the difference, as results of matmul (A is actual, B expected)
      region       row 0, columns 2–3 of B are zero
                   25 % of the elements
      nearer       actual is nearer to the exact result
    """
    rows = [row for each in found.causes for row in _cause_rows(each)]
    nearer = [] if found.nearer is None else [Row("nearer", f"{found.nearer} is nearer to the exact result")]
    if not rows:
        return [Gap(), *nearer] if nearer else []
    what = "What is wrong with both" if found.status == "identical" else "Causes of the difference"
    title = f"{what}, as results of {operation} (A is actual, B expected)"
    return [Gap(), heading(title), *rows, *nearer]


def _cause_rows(cause: DiagnosedCause) -> list[Row]:
    """Return rows on one cause: what and where it is, its share of the elements, and the evidence in `_DETAILS`."""
    known = dict(cause.evidence)
    said = [known.get("computed as") or cause_text(cause, _LISTED)]
    said.append("all elements" if cause.share == 1 else f"{100 * cause.share:.3g} % of the elements")
    said += [f"{key} {known[key]}" for key in _DETAILS if key in known]
    return [Row("" if i else cause.name, words) for i, words in enumerate(said)]


def _is_bad(found: Judgement) -> bool:
    return bool(found.beyond) or not (found.rms == 0 or DifferenceCause.ORDER in found.causes)


def _size(found: Judgement) -> str:
    where = f" at {found.at}" if found.at is not None and found.elements > 1 and found.largest else ""
    return f"rms {_number(found.rms)}, largest {_number(found.largest)}{where}"


def _number(x: float) -> str:
    return f"{x:,.0f}" if 100 <= x < 1e7 else f"{x:.3g}"
