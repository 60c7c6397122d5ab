"""The first line of a diagnosis: one sentence that says whether the difference is a bug, and why."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from floatlab.arrays.types import Array
from floatlab.reduce.explain.residuals import LISTED
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Diagnosis, Place

LETTERS = {"actual": "A", "expected": "B", "both": "A and B"}
_NOUNS = {
    "order": "order", "fma": "FMA", "accumulator": "accumulator", "compensated": "compensated sum",
    "partials": "partial sums in a narrower format", "products": "products in a narrower format",
    "inputs-rounded": "inputs rounded", "inputs-quantized": "inputs quantised", "inputs-split": "inputs in parts",
    "fast-product": "fast matrix product",
    "output-rounded": "output rounded", "flush-to-zero": "subnormal numbers flushed to zero",
}  # fmt: skip
_INPUTS = {"both": "both inputs", "x": "the first input", "y": "the second input"}
_DIRECTIONS = {
    "RNE": "to nearest even",
    "RNA": "to nearest with ties away",
    "RTZ": "toward zero",
    "RTN": "down",
    "RTP": "up",
}
_AROUND = {
    "decimals": ("", " decimals"), "digits": ("", " digits"),
    "scale per": ("one scale per ", ""), "parts": ("", " parts"),
    "products": ("products ", ""), "blocks": ("blocks: ", ""), "added in": ("added in ", ""),
    "stored after each block": ("stored after each block: ", ""),
    "x": ("first input ", ""), "y": ("second input ", ""), "or": ("or ", ""),
    "quotients": ("quotients ", ""),
}  # fmt: skip
_TRANSPOSED = {
    "the result": "the transposed product", "none: y·x": "the product with x and y swapped",
    "the result in memory": "the product with its columns stored one after the other, as if they were rows",
    "x in memory": "the product with x read in another memory order",
    "y in memory": "the product with y read in another memory order",
}  # fmt: skip
# Evidence that the first line omits.
_UNSAID = ("computed as", "an error is seen if it exceeds", "seen by", "all others", "others")
_MOST = 4  # largest number of positions that the first line lists


def rounding_line(causes: tuple[DiagnosedCause, ...], share: float) -> str:
    """Return the first line of the diagnosis if the results differ by rounding.

    The line names the causes. If none of them is a choice of precision or algorithm, the line also gives `share`,
    unless it exceeds 100 %. For each element, the difference is divided by the sum of the rounding error bounds of both
    results; `share` is the largest quotient.

    >>> order = DiagnosedCause("order", "order", "both", 1.0, (), ())
    >>> rounding_line((order,), 0.031)
    'No: this is rounding (order), 3.1 % of what would be worth a look.'
    >>> half = DiagnosedCause("accumulator", "accumulator", "expected", 1.0, (), (("format", "binary16"),))
    >>> rounding_line((half,), 0.2)
    'No: this is rounding, by a choice of precision: sums of B in binary16.'
    """
    plain = [each for each in causes if _is_plain(each)]
    if len(plain) == len(causes):
        names = " or ".join(dict.fromkeys(_NOUNS[each.name] for each in causes))
        # A share above 1 is omitted. The causes were then confirmed bit for bit, so the share does not matter.
        size = f", {_percent(share)} of what would be worth a look" if share <= 1 else ""
        return f"No: this is rounding ({names}){size}."
    said = _texts([each for each in causes if each not in plain or each.side != "both"])
    choice = "algorithm" if all(each.name in ("fast-product", "order", "fma") for each in causes) else "precision"
    return f"No: this is rounding, by a choice of {choice}: {said}."


def _is_plain(cause: DiagnosedCause) -> bool:
    """Return whether a cause is the order, FMA, accumulator or compensation of the sums, and names no format."""
    known = dict(cause.evidence)
    is_named = "format" in known or "errors" in known
    return cause.name in ("order", "fma", "accumulator", "compensated") and not is_named


def shared_line(causes: tuple[DiagnosedCause, ...]) -> str:
    """Return the first line of the diagnosis if both results have the same causes and differ only by rounding."""
    said = _texts(causes)
    return f"No: A and B differ from each other only by rounding. But {said.replace('A and B are', 'both are')}."


def lone_line(cause: DiagnosedCause) -> str:
    """Return the first line of the diagnosis if only a few elements differ.

    The differences are small enough for rounding, but another order of addition would probably change more elements.
    """
    verb = "differs" if len(cause.where) == 1 else "differ"
    said = f"{_elements(cause)} alone {verb}, and rounding can explain a difference of this size"
    return f"I can't tell: {said}; computing the product again would settle it."


def one_sided_line(count: int) -> str:
    """Return the first line of the diagnosis if `count` elements differ, all in one direction.

    The differences are small enough for rounding.
    """
    said = f"only {count:,} elements differ, all in one direction, as a factor or a bias makes them; their differences"
    return f"I can't tell: {said} are small enough for rounding; computing the product again would settle it."


def doubt_line(doubts: list[str], rival: str) -> str:
    """Return the first line of the diagnosis if the faults in `doubts` are not certain.

    The alternative `rival` explains the errors, too.
    """
    tell = "the precision of the inputs" if rival.startswith("inputs") else "how the sums are computed"
    return f"I can't tell: the cause is {' and '.join(doubts)}, or {rival}; knowing {tell} would settle it."


def outlying_line(cause: DiagnosedCause) -> str:
    """Return the first line of the diagnosis if rows or columns have unusually large errors.

    An order of addition that was not tried may have caused these errors.
    """
    said = cause_text(cause).replace(" are wrong", " are wrong, or added in an order that was not tried")
    return f"I can't tell: {said}; knowing how the sums are computed would settle it."


def rough_line(letter: str, times: float) -> str:
    """Return the first line of the diagnosis if a result has larger errors than every order that was tried.

    The errors are within the rounding error bound.
    """
    said = f"the errors of {letter} are small enough for rounding, but {times:.2g} times those of every order tried"
    return f"I can't tell: {said}; knowing how the sums are computed would settle it."


def unexplained_line(letter: str, is_function: bool) -> str:
    """Return the first line of the diagnosis if results are not explained. `letter` names these results.

    `is_function` says whether they look like a function of the product.

    >>> unexplained_line("B", True).partition("; ")[2]
    'knowing what follows it would settle it.'
    """
    if is_function:
        verb = "look" if " and " in letter else "looks"
        what = "a function of the product, as GELU or softmax are; knowing what follows it"
        return f"I can't tell: {letter} {verb} like {what} would settle it."
    verb = "are" if " and " in letter else "is"
    said = f"I can't tell: {letter} {verb} off by more than rounding, and no cause that was tried explains it"
    return f"{said}; knowing the precision of inputs and sums, or what follows the product, would settle it."


def bug_line(causes: tuple[DiagnosedCause, ...], differing: Array | None = None, are_known: bool = True) -> str:
    """Return the first line of the diagnosis if a result is wrong.

    The line names the faults first. Then it names other causes of the difference or, if only single elements or regions
    are wrong, says how well all others agree.

    `differing` marks the elements whose values differ. `are_known` says whether all elements that are not named as
    wrong agree within rounding.

    >>> bug_line((DiagnosedCause("elements", "result", "expected", 0.01, ((11, 7),), ()),))
    'Yes: element (11, 7) of B is wrong; all others agree.'
    """
    wrong = faults_among(causes)
    strange = [each for each in wrong if each.name == "not-the-product"]
    if len(strange) == 2:
        wrong = [strange[0].replace(side="both"), *(each for each in wrong if each not in strange)]
    said = _faults_text(wrong)
    others = [each for each in causes if each.name in _NOUNS and each.name not in ("order", "fma")]
    if others:
        return f"Yes: {said}. Besides: {_texts(others)}."
    return f"Yes: {said}{_of_others(wrong, differing, are_known) if _is_local(wrong) else ''}."


def identical_line(faults: Sequence[DiagnosedCause]) -> str:
    """Return the first line of the diagnosis if the results are identical.

    `faults` are the faults of both results; the sequence is empty if both are right.

    >>> identical_line(())
    'No: all numbers are equal.'
    >>> identical_line([DiagnosedCause("elements", "result", "both", 0.01, ((11, 7),), ())])
    'All numbers are equal, but both results are wrong: element (11, 7) of A and B is wrong.'
    """
    if not faults:
        return "No: all numbers are equal."
    return f"All numbers are equal, but both results are wrong: {_faults_text(faults)}."


def faults_among(causes: Sequence[DiagnosedCause]) -> list[DiagnosedCause]:
    """Return the causes that are faults, and not choices of an order, a precision or an algorithm."""
    return [each for each in causes if each.name not in _NOUNS]


def _texts(causes: Iterable[DiagnosedCause]) -> str:
    """Return the texts of causes. Two causes that the errors cannot distinguish have the same text, which is said once.

    >>> unclear = ("format", "bfloat16"), ("sums", "all, or those of blocks")
    >>> _texts(DiagnosedCause(name, name, "expected", 1.0, (), unclear) for name in ("accumulator", "partials"))
    'all sums of B, or those of blocks, in bfloat16'
    """
    return "; ".join(dict.fromkeys(map(cause_text, causes)))


def _faults_text(faults: Sequence[DiagnosedCause]) -> str:
    texts: list[str] = []
    for before, each in zip([None, *faults[:-1]], faults, strict=True):
        if before is not None and (before.name, before.side, each.name) == ("scale", each.side, "bias"):
            texts[-1] += cause_text(each).partition("the product")[2]
        else:
            texts.append(cause_text(each))
    return "; ".join(texts)


def _of_others(causes: list[DiagnosedCause], differing: Array | None, are_known: bool) -> str:
    """Return the end of the first line: how well the elements outside the causes agree, or "" if this is not known."""
    others = [value for cause in causes for key, value in cause.evidence if key == "others"]
    if others:
        return f"; others are {others[0]}"
    if differing is None:
        return "; all others agree"
    left = differing.copy()
    for place in (place for cause in causes for place in cause.where):
        left[tuple(slice(*each) if isinstance(each, tuple) else each for each in place)] = False
    unlisted = sum(max(0, round(cause.share * left.size) - len(cause.where)) for cause in causes if _is_cut(cause))
    if left.sum() <= unlisted:
        return "; all others agree"
    return "; all others agree within rounding" if are_known else ""


def _is_cut(cause: DiagnosedCause) -> bool:
    """Return whether a cause concerns more elements than it lists."""
    return cause.name != "region" and "elements" in dict(cause.evidence)


def noun_of(found: Diagnosis) -> str:
    """Return the causes of a diagnosis as nouns, for use in a sentence.

    >>> noun_of(Diagnosis("rounding", "", (DiagnosedCause("fma", "order", "both", 1.0, (), ()),), None))
    'FMA'
    """
    return " or ".join(_NOUNS.get(name, name) for name in found.names)


def _is_local(causes: list[DiagnosedCause]) -> bool:
    local = all(each.name in ("elements", "region", "nan") for each in causes)
    return local and not any("all" in dict(each.evidence) or each.share == 1 for each in causes)


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %" if share < 0.0995 else f"{100 * share:.0f} %"


def cause_text(cause: DiagnosedCause, most: int = _MOST) -> str:
    """Return a cause in words: what is wrong with a result, or how it was computed.

    At most `most` positions are listed.

    >>> cause_text(DiagnosedCause("terms-missing", "terms", "expected", 1.0, ((49, 50),), ()))
    'term 49 of B is missing'
    """
    whose, known = LETTERS[cause.side], dict(cause.evidence)
    are = "are" if cause.side == "both" else "is"
    if cause.name in ("elements", "nan"):
        return f"{_elements(cause, most)} of {whose} {'is' if len(cause.where) == 1 else 'are'} {_state(cause, known)}"
    boxes = _boxes(cause, most) if cause.name == "region" or cause.name in _NOUNS else ""
    if cause.name in _NOUNS and boxes:
        whose = f"{boxes} of {whose}"
    if cause.name == "region":
        state = "zero" if known.get("holds") == "zeros" else "wrong"
        if "element" in known:
            return f"{whose} holds one number everywhere, that of element {known['element']}"
        if "there" in known:
            state += f": {_terms(known['terms'])} {known['there']} there"
        if "the given bias" in known:
            state += f": the bias {known['the given bias']} there"
        return f"all of {whose} is {state}" if "all" in known else f"{boxes} of {whose} are {state}"
    if cause.name in ("rows-moved", "columns-moved", "products-moved"):
        noun = cause.name.partition("-")[0]
        moved = ", ".join(f"{to} holds {source}" for to, source in cause.where[:most])
        more = f" and {len(cause.where) - most:,} more" if len(cause.where) > most else ""
        return f"{noun} of {whose} are moved: {moved}{more}"
    if cause.name in ("terms-missing", "terms-twice"):
        ranges = ", ".join(_range(*each) for each in cause.where[:most])
        more = f" and {len(cause.where) - most:,} more" if len(cause.where) > most else ""
        more += " ranges" if more and "–" in ranges else ""
        times = f"{known['times']} times" if "times" in known else "twice"
        did = "missing" if cause.name == "terms-missing" else f"counted {times}"
        bias = f"; the bias {known['the given bias']}, too" if "the given bias" in known else ""
        return f"{_terms(ranges, f'{more} of {whose}')} {did}{bias}"
    if "the given bias" in known:
        return f"the bias {known['the given bias']} in {whose}"
    if cause.name == "bias":
        each = known.get("one number a", "row or column")
        size = f", {known['number']}" if "number" in known else ""
        added = f"the same number in every element{size}" if each == "result" else f"one number per {each}"
        return f"{whose} {are} the product plus {added} (a bias)"
    if cause.name == "scale":
        return f"{whose} {are} the product times {known.get('factor', 'a factor')}"
    if cause.name == "clipped":
        return f"in {whose}, {' and '.join(value for key, value in cause.evidence if key != 'elements')}"
    if cause.name == "function-applied":
        return f"{whose} {are} {known['function']} of the product"
    if cause.name.startswith("transposed"):
        which = known.get("transposed", "")
        return f"{whose} {are} {_TRANSPOSED.get(which, f'the product with {which} transposed')}"
    if cause.name == "not-the-product":
        return "neither A nor B is the product of these inputs" if cause.side == "both" else (
            f"{whose} is not the product of these inputs"
        )  # fmt: skip
    if cause.name == "fast-product":
        return f"{_NOUNS[cause.name]} in {whose} ({known['algorithm']}'s algorithm)"
    if "errors" in known:
        return f"{whose} {'have' if are == 'are' else 'has'} {known['errors']}"
    words = ", ".join(_known_text(*item) for item in cause.evidence if item[0] not in _UNSAID)
    if "sums" in known:
        return f"all sums of {whose}, or those of blocks, in {known['format']}"
    if cause.name == "accumulator" and "format" in known:
        return f"sums of {whose} in {words}"
    return f"{_NOUNS[cause.name]} in {whose}" + (f" ({words})" if words else "")


def _known_text(key: str, value: str) -> str:
    if key == "inputs":
        return _INPUTS.get(value, value)
    if key == "rounding":
        value = value.replace("RNE or RNA", "to nearest")
        for short, words in _DIRECTIONS.items():
            value = value.replace(short, words)
    before, after = _AROUND.get(key, ("", ""))
    return f"{before}{value}{after}"


def _state(cause: DiagnosedCause, known: dict[str, str]) -> str:
    """Describe what is wrong with single elements: a wrong number, zero, an unexpected NaN, or an overflow."""
    if cause.name == "elements":
        return "zero" if known.get("holds") == "zeros" else "wrong"
    if "partial sums" in known:
        return f"{known['holds']}: partial sums there overflowed"
    if "largest" in known:
        most = f"{known['format']}'s largest, {known['largest']}"
        return f"infinite: the product there, {known['product']}, is beyond {most}"
    return known.get("holds", "NaN or infinite where a finite number is right, or the reverse")


def _range(first: int, stop: int) -> str:
    return str(first) if stop == first + 1 else f"{first}–{stop - 1}"


def _boxes(cause: DiagnosedCause, most: int) -> str:
    """Return the rectangles of a cause in words; an empty text if the cause has no rectangles."""
    boxes = [box for box in cause.where if box and isinstance(box[0], tuple)]
    more = f" and {len(boxes) - most:,} more places" if len(boxes) > most else ""
    return "; ".join(map(_box, boxes[:most])) + more


def _terms(ranges: str, more: str = "") -> str:
    """Return the subject and the verb of a sentence on ranges of terms; `more` stands before the verb."""
    return f"term {ranges}{more} is" if ranges.isdecimal() else f"terms {ranges}{more} are"


def _box(box: Place) -> str:
    spans = [bounds for bounds in box if isinstance(bounds, tuple)]
    if len(spans) != 2:  # the result is not a matrix
        return f"[{', '.join(str(a) if b == a + 1 else f'{a}:{b}' for a, b in spans)}]"
    words = []
    for noun, (first, stop) in zip(("row", "column"), spans, strict=True):
        words.append(f"{noun}{'s' * (stop > first + 1)} {_range(first, stop)}")
    return ", ".join(words)


def _elements(cause: DiagnosedCause, most: int = _MOST) -> str:
    if cause.where == ((),):
        return "the only element"
    count = len(cause.where)
    if "elements" in dict(cause.evidence) and count > most:
        return f"{dict(cause.evidence)['elements']} elements"
    places = ", ".join(str(tuple(at)) for at in cause.where[:most])
    if count > most and cause.share == 1:
        return "all elements"
    if count == LISTED:  # there may be more
        return f"elements {places} and others, {_percent(cause.share)} of all elements,"
    return f"element{'s' * (count > 1)} {places}" + (f" and {count - most:,} more" if count > most else "")
