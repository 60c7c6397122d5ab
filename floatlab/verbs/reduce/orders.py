"""The same terms added in several orders: the bits and the error of each result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction

from floatlab.errors import FloatlabError
from floatlab.formats.catalog import short_name
from floatlab.numbers import Datum, Direction
from floatlab.numbers.datum import shortest
from floatlab.page.datum import bits_strip, coded
from floatlab.page.model import Block, Line, Page, Role, Row, Span, Table, line
from floatlab.page.sums import order_words, signed
from floatlab.page.words import counted
from floatlab.record import Record
from floatlab.reduce import Adder, Compensated, Reduction, Schedule, parse_schedule
from floatlab.reduce.results.totals import reorder
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.adders import PartlyFused
from floatlab.reduce.simulate.compensated import RULES
from floatlab.reduce.simulate.simulation import AnyAdder
from floatlab.verbs.arithmetic.relations import with_changes_marked
from floatlab.verbs.question import Question
from floatlab.verbs.reduce.page import limit_rows, truth_rows

SCHEDULES = {
    "serial": "one after the other, as in a loop",
    "reversed": "as serial, from the last term to the first",
    "pairwise": "recursively in halves",
    "numpy": "as numpy.sum: recursively in halves, but up to 128 terms in eight lanes",
    "lanes(4)": "four sums of every fourth term, as with SIMD",
    "lanes(8)": "the same with eight sums",
    "splitk(4)": "four sums of consecutive terms, as on GPUs",
    "blocked(128)": "blocks of 128 terms, then the sums of the blocks",
    "adjacent": "pairs of neighbours, then pairs of these sums",
    "folded": "the upper half is added to the lower half, repeatedly",
    "fused(16)": "sixteen terms in one step, as in matrix units",
    "sorted(up)": "the smallest magnitudes first",
    "sorted(down)": "the largest magnitudes first",
}
_COMPENSATED = 1 << 13  # with more terms than this, compensated sums, which add term by term, take seconds
_COMPARED = 1 << 13  # with more terms than this, orders are not checked for equality


class OrderChoice(Record):
    """An order, with its names, the options that select it, its result, and the error of the result in ulps."""

    names: tuple[str, ...]
    options: tuple[tuple[str, object], ...]
    result: Datum
    error: Fraction | None

    @property
    def same(self) -> str:
        """The other names of the order: names of orders that make the same additions for this number of terms."""
        return ", ".join(self.names[1:])


def compare_orders(found: Reduction) -> Iterator[list[OrderChoice]]:
    """Add the terms of a reduction in its own order, then in the orders of `SCHEDULES`.

    After each order, yield the list of all results so far.

    If there are at most `_COMPENSATED` terms, compensated sums follow. If there are at most `_COMPARED` terms, orders
    that make the same additions are merged. With millions of terms, each order takes a long time.

    >>> from floatlab import sum
    >>> *_, rows = compare_orders(sum([2048, 1, 3, -2048], format="fp16"))
    >>> [(row.names[0], float(row.result)) for row in rows][:4]
    [('serial', 4.0), ('reversed', 4.0), ('pairwise', 3.0), ('folded', 5.0)]
    """
    rows: dict[object, OrderChoice] = {}
    for name, options, schedule, adder in _choices(found):
        key = _key_of(found, schedule, adder) or name
        if key in rows:
            names = dict.fromkeys((*rows[key].names, name))
            rows[key] = rows[key].replace(names=tuple(names))
        else:
            try:
                made = reorder(found, schedule, adder)
            except FloatlabError:  # no such order for this number of terms
                continue
            rows[key] = OrderChoice((name,), tuple(sorted(options.items())), made.result, made.error_ulps)
        yield list(rows.values())


def _choices(found: Reduction) -> Iterator[tuple[str, dict[str, object], Schedule, AnyAdder]]:
    """Yield, for each order, its name, the options that select it, its schedule and its adder."""
    adder, order = found.adder, found.schedule
    rule = adder.rule if isinstance(adder, Compensated) else None
    machine = None if found.machine is None else found.machine.name
    fused = isinstance(adder, Adder) and adder.fma
    options: dict[str, object] = {"schedule": order.text, "adder": rule}
    options |= {"fma": fused or None} if machine is None else {"machine": machine}
    yield " ".join(filter(None, (machine, rule, order.text))), options, order, adder
    rounded, fusing = (Adder(adder.accumulator, adder.products, fma, adder.context) for fma in (False, True))
    plain: dict[str, object] = {"adder": None, "machine": None, "fma": None}
    for text in SCHEDULES:
        schedule = parse_schedule(text)
        options = plain | {"schedule": None if text == "serial" else text}
        if not fused or text == "serial":
            yield f"{text}, no fma" if fused else text, options, schedule, rounded
        if found.y is not None and (fused or text == "serial"):
            yield text if fused else f"{text}, fma", options | {"fma": True}, schedule, fusing
    if len(found) <= _COMPENSATED:
        for rule in RULES:
            compensated = Compensated(rule, adder.accumulator, adder.products, adder.context)
            yield rule, plain | {"schedule": None, "adder": rule}, parse_schedule("serial"), compensated


def _key_of(found: Reduction, schedule: Schedule, adder: AnyAdder) -> object:
    """Return a key of a schedule and an adder. Equal keys mean that the same additions are made in the same order.

    The key is None if there are too many terms to compute it, or if the schedule does not allow this number of terms.
    """
    if len(found) > _COMPARED:
        return None
    try:
        return found.replace(schedule=schedule).plan.left_to_right().nodes, adder
    except FloatlabError:
        return None


def taken_over(found: Findings, data: Question | None, terms: int = 0) -> tuple[Question, str]:
    """Return a pair: a question that adds data in the order that `reveal` found, and a remark.

    The remark names differences between the question and what `reveal` found; it is empty if there are none.

    `data` is a question about a sum or product of `terms` terms. If `data` is None or does not fit the order, random
    numbers are added instead.

    >>> from floatlab.reduce.reveal.revelation import examine
    >>> from floatlab.verbs.registry import command_of
    >>> command_of(taken_over(examine("numpy.sum", 32), None)[0])
    'floatlab sum random:normal:32:seed=1 --fp32 --schedule numpy'
    """
    n, format, is_sum = found.plan.terms, found.format, found.target.kind == "sum"
    words = "" if found.claim is not None else "no claim was made: this is the order that probing found"
    if found.schedule is None and data is not None and terms != n:
        data = None
        words = f"the order has no name and is for {n:,} terms only: random numbers are added"
    if data is not None and (data.verb == "sum") == is_sum:
        question = data
    else:
        if data is not None and not words:
            takes = "one array" if is_sum else "two arrays"
            words = f"{found.target.name} takes {takes}, unlike the data: random numbers are added"
        values = (f"random:normal:{n}:seed=1", f"random:normal:{n}:seed=2")
        question = Question("sum", values[:1], (format,)) if is_sum else Question("dot", values, (format,))
        terms = n
    if terms != n and not words:
        words = f"revealed for {n:,} terms; with another number of terms, the order may differ"
    order = found.schedule.text if found.schedule is not None else found.plan.text
    options: dict[str, object] = {"schedule": None if order == "serial" else order, "adder": None, "machine": None}
    adders = found.replays[0].candidate.adders if found.replays else ()
    if adders:
        adder, into = adders[0], next(iter(question.formats), format)
        options["adder"] = adder.rule if isinstance(adder, Compensated) else None
        options["fma"] = (adder.fma and question.verb != "sum") or None
        options["accumulator"] = adder.accumulator if adder.accumulator != into else None
        if question.verb != "sum":
            options["products"] = adder.products if adder.products != adder.accumulator else None
        if isinstance(adder, PartlyFused) and not words:
            words = "some products are fused and others rounded first, which a simulation cannot do"
        if len(adders) > 1 and not words:
            words = "remaining terms are added by other rules, which a simulation cannot do"
    return question.having(**options), words


def targets(verb: str = "sum") -> list[str]:
    """Return functions of installed libraries for `reveal`, such as numpy.sum. Functions named like `verb` come first.

    >>> targets("einsum")[0], "numpy.matmul" in targets()
    ('numpy.einsum', True)
    """
    from importlib.util import find_spec

    functions = {
        "numpy": "sum dot matmul einsum inner vdot", "torch": "sum dot matmul mv mm einsum",
        "jax": "sum dot matmul einsum", "cupy": "sum dot matmul",
    }  # fmt: skip
    installed = {library: names.split() for library, names in functions.items() if find_spec(library) is not None}
    rows = [f"{library}.{name}" for library, names in installed.items() for name in names]
    return sorted(rows, key=lambda name: name.rpartition(".")[2] != verb)


_MOST_TEXT = 48  # a schedule expression longer than this is replaced by "a custom order"
HEADER = ("order", "result", "ulps", "bits changed", "bits", "the same here")


def orders_table(rows: Sequence[tuple[str, str, Datum, Fraction | None]], shown: Datum) -> Table:
    """Return a table of orders with their results, their errors in ulps, and their differences in bits from `shown`.

    >>> from floatlab import encode
    >>> one, two = encode(1, "fp16"), encode(1.5, "fp16")
    >>> table = orders_table([("pairwise", "adjacent", two, None)], one)
    >>> ["".join(run.text for run in cell) for cell in table.rows[0]]
    ['pairwise', '1.5', '·', '1', '0 01111 1000000000', 'adjacent']
    """
    return Table(HEADER, tuple(_cells(*row, shown) for row in rows), (1, 2, 3))


def _cells(name: str, same: str, result: Datum, error: Fraction | None, shown: Datum) -> tuple[Line, ...]:
    ulps = line("·") if error is None else line(Span(signed(error), Role.LOST) if error else Span("exact", Role.HINT))
    bits = differing(result, shown)
    apart = line(Span(str(bits), Role.CHANGED)) if bits else line(Span("none", Role.HINT))
    fields = bits_strip(result, "", ruler=False).lines[-1]
    return (line(name), line(Span(shortest(result), Role.VALUE)), ulps, apart, fields, line(Span(same, Role.HINT)))


def differing(a: Datum, b: Datum) -> int:
    """Return the number of differing bits of two codes."""
    return (a.code ^ b.code).bit_count()


def result_page(result: Datum, before: Datum | None, words: str = "", name: str = "before") -> Page:
    """Return a page that shows the bits of a result above the bits of `before`, and marks the differences.

    `words` describe how `before` was computed, for instance in which order. `name` is the label of `before`.

    >>> from floatlab import encode
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(result_page(encode(1.5, "fp16"), encode(1, "fp16"), "serial")), end="")
      result       0 01111 1000000000         0x3e00 1.5
                           ^
      before       0 01111 0000000000         0x3c00 1
                   serial: 1 bit differs, 512 steps apart
    """
    blocks: list[Block] = [bits_strip(result, "result", coded(result, shortest(result)), ruler=False)]
    if before is None:
        return Page(tuple(blocks))
    if before == result:
        return Page((*blocks, Row(name, line(Span("the same bits", Role.GOOD), f" as {words}" if words else ""))))
    blocks.append(bits_strip(before, name, coded(before, shortest(before)), ruler=False))
    if before.format == result.format:
        blocks = with_changes_marked(blocks)
        bits = differing(result, before)
        apart = f"{counted(bits, 'bit')} {'differs' if bits == 1 else 'differ'}"
        if result.is_finite and before.is_finite:
            apart += f", {counted(abs(result.ordinal - before.ordinal), 'step')} apart"
        words = f"{words}: {apart}" if words else apart
    return Page((*blocks, Row("", Span(words, Role.HINT))))


def figures_page(found: Reduction) -> Page:
    """Return the page of a result's error, its bounds and its condition number."""
    return Page((*truth_rows(found), *limit_rows(found)))


def computation_words(found: Reduction) -> str:
    """Describe the order and the arithmetic of a reduction, without defaults.

    >>> from floatlab import sum
    >>> computation_words(sum([1, 2], "pairwise", format="fp16", accumulator="fp32"))
    'pairwise, sums in fp32'
    """
    words = [order_words(found.schedule, found.adder) if len(found.schedule.text) <= _MOST_TEXT else "a custom order"]
    if found.machine is not None:
        words.append(found.machine.name)
    elif found.accumulated.format != found.result.format:
        words.append(f"sums in {short_name(found.accumulated.format)}")
    if found.y is not None and found.machine is None and found.adder.products != found.adder.accumulator:
        words.append(f"products in {short_name(found.adder.products)}")
    rounding = found.adder.context.rounding
    if rounding is not Direction.RNE:
        words.append(rounding.value)
    return ", ".join(words)
