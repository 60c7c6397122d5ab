"""`audit --to`: measures what recipes would do to checkpoints.

A recipe is a block format with a rule for its scales, such as `mxfp4`, or a format without scales, such as `e4m3`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from warnings import catch_warnings, simplefilter

from floatlab.auditing.survival.figures import RecipeAudit
from floatlab.auditing.survival.plans import plan_text
from floatlab.auditing.survival.running.runner import ReplacedWorkerWarning
from floatlab.auditing.survival.running.workers import workers
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.errors import quoted, shown_name
from floatlab.page.words import counted
from floatlab.verbs.audit.recipes_page import recipes_page
from floatlab.verbs.audit.recipes_report import recipes_csv, recipes_report, sqnr_chart
from floatlab.verbs.audit.tensor_columns import LISTED
from floatlab.verbs.question import Answer, Question, Started, plain_answer

_ONE = Lock()  # one audit at a time, because open files and warning filters are shared by the whole process


def recipes_answer(question: Question, started: Started | None = None) -> Answer:
    """Answer `audit FILE… --to RECIPE[,RECIPE…]`. Raises FloatlabError."""
    where = workers(question.option("jobs", 1), question.option("scheduler"))
    resume, remarks = question.option("resume"), list[str]()
    with _ONE, catch_warnings(record=True) as told, where as executor, _saying_what_is_kept(resume):
        simplefilter("always", ReplacedWorkerWarning)
        found = audit_recipes(
            question.values,
            question.option("to"),
            only=question.option("only"),
            min_sqnr=question.option("min_sqnr"),
            activations=question.option("activations"),
            overflow=(question.option("saturate") and "saturate") or "native",
            progress=None if started is None else _counting(started),
            executor=executor,
            resume=resume,
            notice=remarks.append,
        )
    remarks += [str(each.message) for each in told if each.category is ReplacedWorkerWarning]
    remarks += _unreadable(found)
    return recipes_answer_of(found, question.option("worst", LISTED)).replace(hints=tuple(remarks))


def _unreadable(found: RecipeAudit) -> list[str]:
    """Return a line about tensors that cannot be read, for standard error. With --quiet, nothing else mentions them."""
    lost = [each for each in found.tensors if not each.is_readable]
    if not lost:
        return []
    said = f"{counted(len(lost), 'tensor')} cannot be read"
    return [f"{said}{', first' * (len(lost) > 1)}: {shown_name(lost[0].tensor)}: {lost[0].left_out}"]


@contextmanager
def _saying_what_is_kept(resume: str | None) -> Iterator[None]:
    """Context manager that gives the KeyboardInterrupt of Ctrl-C a message: what is kept, and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        kept = "nothing is kept; --resume FILE keeps what is finished"
        if resume is not None:
            kept = f"{quoted(resume, 200)} keeps what is finished, and the same command continues"
        raise KeyboardInterrupt(f"interrupted: {kept}") from None


def _counting(started: Started) -> Callable[[int, int], Callable[[int], None]]:
    return lambda total, tensors: started(total, f"bytes of {counted(tensors, 'tensor')}")


def recipes_answer_of(found: RecipeAudit, most: int = LISTED) -> Answer:
    """Return the answer that shows an audit. Its JSON has a line for each tensor, and a last line for all tensors."""
    answer = plain_answer(found, lambda: recipes_page(found, most), found.recommendation.words)
    return answer.replace(
        records=lambda: _records(found),
        status=1 if found.failing else 0,
        table=lambda: recipes_csv(found),
        chart=lambda: sqnr_chart(found),
        plan=lambda: plan_text(found),
        document=lambda remark: recipes_report(found, remark),
    )


def _records(found: RecipeAudit) -> list[dict[str, object]]:
    from floatlab.verbs.from_json import document_of

    return [document_of(each) for each in (*found.tensors, found)]
