"""The page of an operation: its steps in order, with their digits."""

from __future__ import annotations

from floatlab.arith import readings
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, Exact, Rounded
from floatlab.numbers import derivation as steps
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.derivation import Combination, Preference, Rule, Step
from floatlab.numbers.exact import Ratio
from floatlab.numbers.printing import exact_decimal, ratio_text
from floatlab.numbers.rounding import DEFAULT
from floatlab.page import words
from floatlab.page.datum import coded, datum_strip
from floatlab.page.model import Block, Line, Note, Page, Role, Row, Span, Strip, heading, line, text_of
from floatlab.page.words import GLANCE, PAGE_DIGITS
from floatlab.record import Record

SYMBOLS = {"add": "+", "subtract": "−", "multiply": "×", "divide": "/", "remainder": "rem"}
# The names of the standard (or of C: rint) for functions that have another name in this library.
_FUNCTIONS = {
    "round_to_integral": "rint", "minimum_number": "minimumNumber", "maximum_number": "maximumNumber",
    "minimum_magnitude": "minimumMagnitude", "maximum_magnitude": "maximumMagnitude",
    "minimum_magnitude_number": "minimumMagnitudeNumber", "maximum_magnitude_number": "maximumMagnitudeNumber",
    "copy_sign": "copySign", "scale_b": "scaleB", "log_b": "logB", "next_up": "nextUp", "next_down": "nextDown",
}  # fmt: skip
# Why min or max returned this operand: a text for min, and one for max.
_CHOSEN = {
    Preference.VALUE: ("the smaller", "the larger"),
    Preference.MAGNITUDE: ("the smaller magnitude", "the larger magnitude"),
    Preference.ZERO: ("−0 is less than +0",) * 2,
    Preference.NUMBER: ("the other is a NaN",) * 2,
    Preference.SAME: ("both are the same number",) * 2,
}
TAIL = 12  # digits shown beyond the rounding position
_NAMES = {steps.Decode: "operands", steps.Integral: "to integer", steps.Divide: "quotient", steps.Encode: "result"}
_TOGETHER = ("operands", "promote", "flush")  # consecutive steps with these names are shown together
# The rules for special values, in words, each with its source: a clause of IEEE 754-2019 unless stated otherwise.
SENTENCES: dict[Rule, tuple[str, str]] = {
    Rule.INFINITY: ("an infinity converts to an infinity", "5.4.2"),
    Rule.NAN: ("a NaN converts to a quiet NaN", "6.2.3"),
    Rule.FLUSHED_INPUT: ("a subnormal operand is read as zero (--daz)", "not in the standard"),
    Rule.NAN_OPERAND: ("a quiet NaN operand makes the result a quiet NaN", "6.2.3"),
    Rule.SIGNALING_OPERAND: ("a signaling NaN operand is invalid, and becomes quiet", "7.2 a"),
    Rule.UNSUPPORTED_OPERAND: ("the operand's code does not represent a number: invalid", "Intel SDM 1, 8.2.2"),
    Rule.INFINITY_MINUS_INFINITY: ("∞ − ∞ has no useful value: invalid", "7.2 d"),
    Rule.ZERO_TIMES_INFINITY: ("0 × ∞ has no useful value: invalid", "7.2 b, c"),
    Rule.ZERO_OVER_ZERO: ("0 / 0 has no useful value: invalid", "7.2 e"),
    Rule.INFINITY_OVER_INFINITY: ("∞ / ∞ has no useful value: invalid", "7.2 e"),
    Rule.REMAINDER_INVALID: ("the remainder of ∞, or by 0, is invalid", "7.2 f"),
    Rule.NEGATIVE_ROOT: ("a negative number has no real square root: invalid", "7.2 g"),
    Rule.DIVISION_BY_ZERO: ("a finite number over zero is exactly ∞: divide by zero", "7.3"),
    Rule.INFINITE_RESULT: ("an operation on ∞ is exact", "6.1"),
    Rule.OVER_INFINITY: ("a finite number over ∞ is zero, exactly", "6.1"),
    Rule.REMAINDER_BY_INFINITY: ("the remainder by ∞ is the dividend", "5.3.1"),
    Rule.ZERO_SUM: ("a zero sum of opposite signs is +0; toward −∞ it is −0", "6.3"),
    Rule.ZERO_ROOT: ("the root of ±0 is ±0", "5.4.1, 6.3"),
    Rule.LOGARITHM_OF_ZERO: ("the exponent of zero is exactly −∞: divide by zero", "5.3.3, 7.3"),
    Rule.SIGN_BIT: ("only the sign bit changes, and no flag is raised", "5.5.1"),
    Rule.NEIGHBOUR: ("one step along the numbers of the format", "5.3.1"),
}


class StepGroup(Record):
    """Steps that are shown together: a name, the rows, and the index of the last of these steps in the derivation."""

    name: str
    blocks: tuple[Block, ...]
    index: int


def sentence(rule: Rule) -> str:
    """Return a rule for special values in words, with its source.

    >>> sentence(Rule.ZERO_TIMES_INFINITY)
    '0 × ∞ has no useful value: invalid (7.2 b, c)'
    """
    text, clause = SENTENCES[rule]
    return f"{text} ({clause})"


def expression(derivation: Derivation) -> str:
    """Return the operation as text. Each operand is written as it was typed, or as its shortest decimal.

    >>> from floatlab.arith import add
    >>> expression(add("1.125", "0.1", "fp16"))
    '1.125 + 0.1'
    """
    typed = derivation.literals or (None,) * len(derivation.operands)
    names = []
    for text, datum in zip(typed, derivation.operands, strict=True):
        if isinstance(datum, Datum):
            word = text.strip() if text is not None and len(text) <= GLANCE else shortest(datum)
            names.append(word if datum.format == derivation.result.format else f"{word}@{datum.format.name}")
        elif isinstance(datum, Ratio):
            names.append(ratio_text(datum))
    if derivation.operation in SYMBOLS:
        left, right = names
        return f"{left} {SYMBOLS[derivation.operation]} {words.bracketed(right)}"
    if derivation.operation in ("fma", "multiply_then_add"):
        a, b, c = names
        return f"{a} × {b} + {words.bracketed(c)}"
    return f"{_FUNCTIONS.get(derivation.operation, derivation.operation)}({', '.join(names)})"


def framed(x: Exact, top: int, fraction: int, least_tail: int = 0) -> tuple[str, str]:
    """Return |x| / 2^top in binary, as two texts.

    The first text ends `fraction` places after the point. The second one has the digits that follow, at least
    `least_tail` and at most `TAIL`, and ends with … if more nonzero digits follow.

    >>> framed(Exact(False, 0b1111111001, -13), 0, 10)
    ('0.0001111111', '001')
    """
    last = top - fraction
    beyond = min(max(last - x.q, least_tail), TAIL)
    shift = x.q - (last - beyond)
    scaled = x.c << shift if shift >= 0 else x.c >> -shift
    more = shift < 0 and scaled << -shift != x.c
    text = f"{scaled:0{1 + fraction + beyond}b}"
    whole = len(text) - fraction - beyond
    kept = text[:whole] + ("." + text[whole : whole + fraction] if fraction else "")
    return kept, text[whole + fraction :] + "…" * more


def _digits(kept: str, tail: str, exponent: int, negative: bool = False) -> Line:
    whole, _, fraction = kept.partition(".")
    digits = line(Span(whole, Role.IMPLICIT), "." if fraction else "", Span(fraction, Role.SIGNIFICAND))
    beyond = line("|", Span(tail, Role.LOST)) if tail else ()
    return line("−" if negative else "", digits, beyond, f" × 2^{exponent}")


def _frame(x: Exact, fmt: Format, exponent: int | None = None) -> Line:
    top = x.exponent if exponent is None else exponent
    kept, tail = framed(x, top, fmt.trailing_bits)
    return _digits(kept, tail.rstrip("0"), top, x.negative)


def _value(x: Exact) -> Line:
    return line(f"= {exact_decimal(x, PAGE_DIGITS)}")


def align_blocks(step: steps.Align, fmt: Format, moved: int | None = None) -> list[Block]:
    """Draw two aligned terms. `moved` is for animation: the smaller term is shifted by only this many places."""
    top = max(step.left.exponent, step.right.exponent)
    t = fmt.trailing_bits
    last = top - t
    tail = max(min(max(last - step.left.q, last - step.right.q), TAIL), 0)
    lines = []
    for index, x in enumerate((step.left, step.right)):
        to_go = step.shift - moved if moved is not None and index == step.moved else 0
        kept, rest = framed(Exact(x.negative, x.c, x.q + to_go), top, t, tail)
        lines.append(_digits(kept, rest, top - to_go, x.negative))
    if step.left.negative != step.right.negative:
        lines = [each if text_of(each).startswith("−") else line(" ", each) for each in lines]
    note = "same exponent: no shift"
    if moved is not None:
        note = f"shift the smaller term right: {moved} of {step.shift}"
    elif step.shift:
        note = f"shift the smaller term right by {step.shift} {words.plural(step.shift, 'place')}"
        if step.shift > fmt.precision + 1:
            note += ", all of it past the last digit"
    return [Strip("align", (lines[0], lines[1]), label_first=True), Row("", note)]


def _combined(step: steps.Combine, fmt: Format, aligned: Step | None) -> list[Block]:
    x, label = step.exact, step.kind.value
    if not x.c:
        return [Row(label, line("−0" if x.negative else "0", ", exactly"))]
    if step.kind is not Combination.SUM or not isinstance(aligned, steps.Align):
        return [Row(label, _frame(x, fmt), _value(x))]
    top = max(aligned.left.exponent, aligned.right.exponent)
    rows: list[Block] = [Row("sum", _frame(x, fmt, top), _value(x))]
    moved = top - x.exponent
    if moved:
        note = f"{moved} leading {words.plural(moved, 'digit')} cancelled" if moved > 0 else "a carry: one more digit"
        rows.append(Row("normalise", _frame(x, fmt), note))
    return rows


def rounding_rows(rounded: Rounded, derivation: Derivation, fmt: Format) -> list[Block]:
    """Return rows with the kept digits, the discarded digits, the guard, round and sticky bits, and the decision."""
    direction = derivation.context.rounding
    grs = (
        f"G {int(rounded.guard)} R {int(rounded.round)} S {int(rounded.sticky)}"
        if rounded.between is None and words.cut(rounded, fmt)[1]
        else ()
    )
    carry = "the carry increases the exponent" if rounded.carried else ()
    rows: list[Block] = [
        Row(f"round {direction.value}", words.rounded_digits(rounded, fmt), grs),
        Row("", words.decision(rounded, derivation.context), carry),
    ]
    if note := words.tininess_words(rounded):
        rows.append(Row("", note))
    return rows


def step_blocks(step: Step, derivation: Derivation, seen: tuple[Step, ...], draw_bits: bool = True) -> list[Block]:
    """Return the rows of one step; `seen` are the earlier steps.

    `draw_bits` says whether to draw the bits of the operands.
    """
    fmt, own = derivation.rounding_format, derivation.result.format
    match step:
        case steps.Decode() if not any(isinstance(each, steps.Decode) for each in seen):
            # The first operand's step shows all operands at once.
            operands = tuple(each for each in derivation.operands if isinstance(each, Datum))
            return operand_rows(operands, derivation.literals, derivation.context, own, draw_bits)
        case steps.Promote(datum, promoted):
            return [Row("promote", f"{datum.format.name} → {promoted.format.name}, exactly", coded(promoted))]
        case steps.Align():
            return align_blocks(step, fmt)
        case steps.Combine():
            return _combined(step, fmt, seen[-1] if seen else None)
        case steps.Divide(n, sticky) if derivation.operation == "remainder":
            relation = "lies nearest to" if sticky else "is"
            return [Row("quotient", f"a/b {relation} n = {exact_decimal(n, PAGE_DIGITS)}")]
        case steps.Divide(quotient, sticky):
            return [_cut_off("quotient", quotient, sticky, fmt)]
        case steps.Root(root, sticky):
            return [_cut_off("root", root, sticky, fmt)]
        case steps.Integral(rounded):
            return integral_rows(rounded, derivation.context)
        case steps.Choose(index, why):
            larger = derivation.operation.startswith("max")
            return [Row("choose", line(Span("ab"[index], Role.VALUE), f": {_CHOSEN[why][larger]}"))]
        case steps.Special(rule, flags):
            return [Row("rule", sentence(rule), words.flags_line(flags) if flags else ())]
        case steps.Round(_, rounded):
            rows = rounding_rows(rounded, derivation, fmt)
            return rows if fmt is own else [*rows, Row("", precision_words(fmt, own))]
        case steps.Encode(datum):
            return result_rows(datum, derivation, "result")
    return []


def precision_words(fmt: Format, own: Format) -> str:
    """Describe the precision to which the x87 rounds under precision control."""
    return f"precision control: {fmt.precision} digits, {own.name}'s exponents ({fmt.name})"


def _cut_off(label: str, x: Exact, sticky: bool, fmt: Format) -> Row:
    if not x.c:
        return Row(label, "0, exactly")
    kept, tail = framed(x, x.exponent, fmt.trailing_bits)
    if sticky and not tail.endswith("…"):
        tail += "…"
    return Row(label, _digits(kept, tail, x.exponent, x.negative), "does not terminate" if sticky else "exact")


def operand_rows(
    operands: tuple[Datum, ...],
    literals: tuple[str | None, ...],
    context: Context,
    shared: Format | None,
    draw_bits: bool = True,
) -> list[Block]:
    """Return rows for the operands a, b and c. If an operand was rounded when it was read, show its text and error.

    An operand whose format is not `shared` is labelled with its format. `draw_bits` says whether to draw the bits.
    """
    blocks: list[Block] = []
    for name, datum, reading in zip("abc", operands, readings(operands, literals, context), strict=False):
        if draw_bits:
            blocks.append(datum_strip(datum, name if datum.format == shared else f"{name} {datum.format.name}"))
        if reading is not None and reading.flags:
            typed = line(f"read from {words.abbreviated(words.operand_text(reading), 30)}")
            blocks.append(Row("" if draw_bits else name, typed, words.verdict_line(reading)))
            if replaced := words.replaced_words(reading):
                blocks.append(Row("", Span(replaced, Role.HINT)))
    return blocks


def integral_rows(rounded: Rounded, context: Context) -> list[Block]:
    """Return rows for a rounding to an integer: the digits before and after the point, and the rounding decision."""
    shift = rounded.unit.bit_length() - 1
    tail = f"{rounded.rest2 >> 1:0{shift}b}".rstrip("0") if shift else ""
    shown = tail[:TAIL] + "…" * (len(tail) > TAIL)
    digits = line(Span(f"{rounded.kept:b}", Role.SIGNIFICAND), line("|", Span(shown, Role.LOST)) if shown else ())
    return [
        Row("to integer", words.signed(rounded.negative, digits), line("cut at the binary point") if shown else ()),
        Row("", line(f"{context.rounding.value}: " if shown else "", words.decision(rounded, context, integral=True))),
    ]


def result_rows(datum: Datum, derivation: Derivation, label: str) -> list[Block]:
    """Return the rows of the result: bits, code, value, error, flags; and a remark, for instance on overflow."""
    error = words.error_words(derivation) if derivation.result == datum else ""
    flags = words.flags_line(derivation.flags)
    rows: list[Block] = [datum_strip(datum, label), Row("", line(error) if error else flags, flags if error else ())]
    if replaced := words.replaced_words(derivation):
        rows.append(Row("", Span(replaced, Role.HINT)))
    return rows


def _stage_name(step: Step) -> str:
    if isinstance(step, steps.Combine):
        return step.kind.value
    if isinstance(step, steps.Special):
        return "flush" if step.rule is Rule.FLUSHED_INPUT else "rule"
    return _NAMES.get(type(step), type(step).__name__.lower())


def step_groups(
    derivation: Derivation, start: int = 0, stop: int | None = None, draw_bits: bool = True
) -> list[StepGroup]:
    """Return the steps from `start` up to `stop` with their rows, grouped as on a page.

    >>> from floatlab.arith import add
    >>> [stage.name for stage in step_groups(add("1", "0.1", "fp16"))]
    ['operands', 'align', 'sum', 'round', 'result']
    """
    found: list[StepGroup] = []
    for index, step in enumerate(derivation.steps[:stop]):
        if index < start:
            continue
        name, blocks = _stage_name(step), tuple(step_blocks(step, derivation, derivation.steps[:index], draw_bits))
        if found and name == found[-1].name and name in _TOGETHER:
            blocks = found.pop().blocks + blocks
        found.append(StepGroup(name, blocks, index))
    return found


def operation_heading(derivation: Derivation) -> Note:
    """Return the first line of an operation's page: its title."""
    return heading(f"{expression(derivation)} in {derivation.result.format.name}")


def stage_rows(derivation: Derivation, shown: list[StepGroup], why: bool) -> list[Block]:
    """Return the rows of groups of steps.

    If `why` is true, each group is followed by the reason for its last step.
    """
    if not why:
        return [block for stage in shown for block in stage.blocks]
    from floatlab.verbs.arithmetic.reasons import reason

    return [each for stage in shown for each in (*stage.blocks, Row("why", reason(derivation, stage.index)))]


def closing_rows(derivation: Derivation) -> list[Block]:
    """Return the rows after the last step.

    The rows show the result that the typed numbers would have if they were not rounded first. There are no rows if this
    is also the actual result. Under x87 precision control, the rows show instead the number that a store of the result
    into a narrower format gives.
    """
    if derivation.context.precision == DEFAULT.precision:
        if not any(derivation.literals):
            return []
        from floatlab.verbs.arithmetic.as_typed import typed_rows

        return typed_rows(derivation)
    from floatlab.verbs.arithmetic.storing import stored_rows

    return stored_rows(derivation)


def derivation_page(derivation: Derivation, steps: int | None = None, why: bool = False) -> Page:
    """Return the page of an operation, or of its first `steps` steps. If `why` is true, add the reason of each step."""
    title = operation_heading(derivation)
    blocks: list[Block] = [title, *stage_rows(derivation, step_groups(derivation, stop=steps), why)]
    left = len(derivation.steps) - len(derivation.steps[:steps])
    blocks += closing_rows(derivation) * (not left)
    if left:
        blocks.append(Row("", Span(f"{left} more {words.plural(left, 'step')}", Role.HINT)))
    return Page(tuple(blocks), text_of(title.content))


def summary(derivation: Derivation) -> Line:
    """Return a summary of an operation in one line."""
    result = derivation.result
    parts = [f"{expression(derivation)} {words.equals(result)} in {result.format.name} ("]
    error = words.error_words(derivation)
    rest = ", ".join(part for part in (error, ", ".join(derivation.flags.names).replace("_", " ")) if part)
    return line(*parts, Span(hexadecimal_code(result), Role.CODE), ")" + (f", {rest}" if rest else ""))


def summary_page(derivations: list[Derivation]) -> Page:
    """Return a page with one line per operation."""
    return Page(tuple(Note(summary(each)) for each in derivations), expression(derivations[0]))
