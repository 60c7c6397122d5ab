"""The first line of a diagnosis: the answer for a person who asks whether to worry."""

from __future__ import annotations

from floatlab.reduce.results.verdicts import DiagnosedCause, Diagnosis, Place

LETTERS = {"actual": "A", "expected": "B", "both": "A and B"}
_NOUNS = {
    "order": "order", "fma": "FMA", "accumulator": "accumulator", "compensated": "compensated sum",
    "partials": "partial sums in a narrower format", "products": "products in a narrower format",
    "inputs-rounded": "inputs rounded", "inputs-quantized": "inputs quantised", "inputs-split": "inputs in parts",
    "output-rounded": "output rounded", "flush-to-zero": "subnormal numbers flushed to zero",
}  # fmt: skip
_COUNTED = ("decimals", "digits")
_MOST = 4  # places that are written out


def rounding_line(causes: tuple[DiagnosedCause, ...], share: float) -> str:
    """Return the answer for two results that differ by rounding.

    >>> order = DiagnosedCause("order", "order", "both", 1.0, (), ())
    >>> rounding_line((order,), 0.031)
    'No: this is rounding (order), 3.1 % of what would be worth a look.'
    """
    plain = [each for each in causes if each.name in ("order", "fma", "accumulator", "compensated")]
    if len(plain) == len(causes):
        names = " or ".join(dict.fromkeys(_NOUNS[each.name] for each in causes))
        return f"No: this is rounding ({names}), {_percent(share)} of what would be worth a look."
    said = "; ".join(dict.fromkeys(_cause_text(each) for each in causes if each not in plain or each.side != "both"))
    return f"No: this is rounding, by a choice of precision: {said}."


def shared_line(causes: tuple[DiagnosedCause, ...]) -> str:
    """Return the answer for two results that differ by rounding, but are off the product alike."""
    said = "; ".join(_cause_text(each) for each in causes)
    return f"No: A and B differ by rounding from each other. But {said}."


def bug_line(causes: tuple[DiagnosedCause, ...]) -> str:
    """Return the answer for two results one of which is wrong, by the causes with what is wrong first.

    >>> bug_line((DiagnosedCause("elements", "result", "expected", 0.01, ((11, 7),), ()),))
    'Yes: element (11, 7) of B is wrong; all others agree.'
    """
    wrong = [each for each in causes if each.name not in _NOUNS]
    said = "; ".join(_cause_text(each) for each in wrong)
    others = [each for each in causes if each.name in _NOUNS and each.name not in ("order", "fma")]
    if others:
        return f"Yes: {said}. Besides: {'; '.join(_cause_text(each) for each in others)}."
    return f"Yes: {said}{'; all others agree' if _is_local(wrong) else ''}."


def noun_of(found: Diagnosis) -> str:
    """Return the causes of a diagnosis in a few words.

    >>> noun_of(Diagnosis("rounding", "", (DiagnosedCause("fma", "order", "both", 1.0, (), ()),), None))
    'FMA'
    """
    return " or ".join(_NOUNS.get(name, name) for name in found.names)


def _is_local(causes: list[DiagnosedCause]) -> bool:
    return all(each.name in ("elements", "region", "nan") for each in causes)


def _percent(share: float) -> str:
    return "less than 0.1 %" if share < 0.001 else f"{100 * share:.2g} %"


def _cause_text(cause: DiagnosedCause) -> str:
    whose, known = LETTERS[cause.side], dict(cause.evidence)
    are = "are" if cause.side == "both" else "is"
    if cause.name == "elements":
        return f"{_elements(cause)} of {whose} {'is' if len(cause.where) == 1 else 'are'} wrong"
    if cause.name == "nan":
        return f"{_elements(cause)} of {whose} {'is' if len(cause.where) == 1 else 'are'} NaN or infinite, or should be"
    if cause.name == "region":
        said = "; ".join(_box(box) for box in cause.where[:_MOST])
        return f"{said} of {whose} are {'zero' if known.get('holds') == 'zeros' else 'wrong'}"
    if cause.name in ("rows-moved", "columns-moved", "products-moved"):
        noun = cause.name.partition("-")[0]
        moved = ", ".join(f"{to} holds {source}" for to, source in cause.where[:_MOST])
        more = f" and {len(cause.where) - _MOST:,} more" if len(cause.where) > _MOST else ""
        return f"{noun} of {whose} are moved: {moved}{more}"
    if cause.name in ("terms-missing", "terms-twice"):
        ranges = ", ".join(_range(*each) for each in cause.where[:_MOST])
        many = not ranges.isdecimal()
        did = "missing" if cause.name == "terms-missing" else "counted twice"
        return f"term{'s' * many} {ranges} of {whose} {'are' if many else 'is'} {did}"
    if cause.name == "bias":
        verb, each = "differ" if cause.side == "both" else "differs", known.get("one number a", "row or column")
        return f"{whose} {verb} from the product by one number a {each} (a bias)"
    if cause.name == "scale":
        return f"{whose} {are} the product times {known.get('factor', 'a factor')}"
    if cause.name.startswith("transposed"):
        return f"{whose} {are} the product with {known.get('transposed', '')} transposed"
    if cause.name == "not-the-product":
        return "neither A nor B is the product of these inputs" if cause.side == "both" else (
            f"{whose} is not the product of these inputs"
        )  # fmt: skip
    words = ", ".join(f"{value} {key}" if key in _COUNTED else value for key, value in cause.evidence)
    return f"{_NOUNS[cause.name]} in {whose}" + (f" ({words})" if words else "")


def _range(first: int, stop: int) -> str:
    return str(first) if stop == first + 1 else f"{first}–{stop - 1}"


def _box(box: Place) -> str:
    spans = [bounds for bounds in box if isinstance(bounds, tuple)]
    if len(spans) != 2:  # of a result that is no matrix
        return f"[{', '.join(str(a) if b == a + 1 else f'{a}:{b}' for a, b in spans)}]"
    words = []
    for noun, (first, stop) in zip(("row", "column"), spans, strict=True):
        words.append(f"{noun}{'s' * (stop > first + 1)} {_range(first, stop)}")
    return ", ".join(words)


def _elements(cause: DiagnosedCause) -> str:
    count = len(cause.where)
    if cause.where == ((),):
        return "the only element"
    places = ", ".join(str(tuple(at)) for at in cause.where[:_MOST])
    return f"element{'s' * (count > 1)} {places}" + (f" and {count - _MOST:,} more" if count > _MOST else "")
