"""The candidates of a search: recipes with all block formats and block shapes that suit the stored codes and scales.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from fractions import Fraction

from floatlab.auditing.recipe_search.arrangements import Arrangement
from floatlab.auditing.recipe_search.encoding import RecipeCandidate
from floatlab.auditing.recipe_search.stored_codes import FLOATS, GROUPS_OF_K, WITH_MINIMA
from floatlab.errors import FormatError
from floatlab.formats import parse_format
from floatlab.formats.formulas import Formula
from floatlab.formats.recipes import Recipe, parse_recipe, rules_for
from floatlab.formats.scaling import ELEMENT, ScaleRule

_MX = {
    "e4m3": "mxfp8_e4m3", "e5m2": "mxfp8_e5m2", "e2m3": "mxfp6_e2m3", "e3m2": "mxfp6_e3m2", "e2m1": "mxfp4",
    "int8": "mxint8",
}  # fmt: skip
_WIDEST_CLOSEST = 4  # bits; rules that compare a number with every code are tried only for elements up to this width
_FP8 = ("e4m3", "e5m2")
_GGML = {"int8": "q8_0", "int4": "q4_0"}
# For each reading of scales with minima: the name of the format, and the shape of its groups.
MINIMA = {WITH_MINIMA: ("q4_1", "flat32"), GROUPS_OF_K: ("q4_k", "flat256")}
_SINGLE = "binary32"


def formats_for(
    element: str, kind: str | None, arrangement: Arrangement, rows: bool = False, powers: bool = True
) -> Iterator[str]:
    """Yield the names of the block formats with this element format, this format of scales, and these blocks.

    `kind` is the format of the scales, or None if there are none. `rows` tells whether there is, beside the scales of
    blocks, a scale for each row instead of one for the tensor. `powers` tells whether all scales are powers of two.

    >>> list(formats_for("e2m1", "e4m3fn", Arrangement("16", 1)))
    ['nvfp4/16']
    """
    shape, shapes = arrangement.shape, arrangement.shapes
    if element == "uint4" or kind in MINIMA:
        if element == "uint4" and kind in MINIMA and MINIMA[kind][1] in shapes:
            yield MINIMA[kind][0]
        return
    blocks = next((each for each in shapes if each not in ("tensor", "channel", "")), "")
    if element in _MX and kind in (None, "e8m0fnu", *FLOATS) and blocks and powers:
        yield f"{_MX[element]}/{blocks}"
    if element == "e2m1" and kind in (None, "e4m3fn") and blocks:
        yield f"nvfp4/{blocks}" + "/channel" * rows
    elif kind == "e4m3fn" and blocks and is_floating(element):
        yield f"block({element}, e4m3, {blocks}, fp32)"
    if kind in (None, "float16") and "flat32" in shapes and element in _GGML:
        yield _GGML[element]
    if kind is None and not shape and is_floating(element):
        yield f"{element}:none"
    if (kind in (None, *FLOATS) and shape) or (kind == "e8m0fnu" and element in _FP8 and "32" not in shapes):
        yield f"{element}/{shape}"


def is_floating(element: str) -> bool:
    """Return whether the format of an element is a floating-point format, not integers.

    >>> is_floating("e4m3"), is_floating("int8")
    (True, False)
    """
    return not element.startswith("int")


def candidates(formats: Iterable[str], arrangement: Arrangement, own: str) -> Iterator[RecipeCandidate]:
    """Yield a candidate for each scale rule of these formats, the rules of libraries first.

    `own` is the format of the values. Rules that compute in this format are also tried with values that were widened to
    binary32. Rules of PyTorch's libraries are also tried with the division of CUDA.
    """
    for text in formats:
        try:
            base = parse_recipe(text)
        except FormatError:
            continue  # no recipe has this element and this shape
        shape = base.format.shape
        where = arrangement
        if shape != arrangement.shape and shape in arrangement.shapes:
            where = arrangement.replace(shape=shape, same=tuple(each for each in arrangement.shapes if each != shape))
        rules = (base.rule,) if ":" in text else rules_for(base.format)
        for rule in sorted(rules, key=lambda each: each.is_exact):
            is_slow = rule.rounding == "closest" and base.format.element.width > _WIDEST_CLOSEST
            if is_slow or (rule.name == "none" and ":" not in text):
                continue
            recipe = Recipe(base.format, rule)
            name = f"{recipe.format.name}:{rule.name}"
            plain = RecipeCandidate(name, recipe, where)
            narrow = parse_format(own).width < parse_format(_SINGLE).width
            found = [plain]
            if rule.working == "input" and narrow:
                found.append(plain.replace(takes=_SINGLE, changes=("values widened to binary32",)))
            for each in found:
                yield each
                yield from _on_cuda(each)


# Recipes as PyTorch computes them on CUDA.

# If a divisor is a number on the CPU, PyTorch multiplies by its reciprocal (ATen/native/cuda/BinaryDivTrueKernel.cu).
_IN_TORCH = ("torchao", "modelopt", "ct", "deepseek", "deepgemm")
_FAMILIES = ("fp32", "nvfp4")
_CONSTANTS = frozenset({"largest", "top"})
_ONE = Fraction(1)


def _on_cuda(candidate: RecipeCandidate) -> Iterator[RecipeCandidate]:
    """Yield the candidate as PyTorch computes it on CUDA, if its rule has a division by a constant.

    On CUDA, the quotient of a tensor and a Python number, amax / 448, is amax * (1 / 448): the reciprocal is rounded to
    binary32, and so is the product. The last bits of some scales then differ from those that a true division would
    give.
    """
    rule = candidate.recipe.rule
    if rule.family not in _FAMILIES or rule.name.split("_")[0] not in _IN_TORCH:
        return
    products: list[Formula] = []
    lines = []
    for line in rule.steps():
        term = line.formula if line.level == ELEMENT else _multiplied(line.formula, rule, products)
        lines.append(f"{line.name} = {term}")
    if products:
        recipe = candidate.recipe.replace(rule=rule.replace(lines=tuple(lines)))
        words = f"{' and '.join(map(str, products))} on CUDA"
        yield candidate.replace(recipe=recipe, changes=(*candidate.changes, words), on_cuda=True)


def _multiplied(term: Formula, rule: ScaleRule, products: list[Formula]) -> Formula:
    """Replace each x / constant in a formula with x * (1 / constant), and append these products to `products`."""
    if not term.arguments:
        return term
    arguments = tuple(_multiplied(each, rule, products) for each in term.arguments)
    if term.name == "/" and arguments[0].names() - _CONSTANTS and not arguments[1].names() - _CONSTANTS:
        product = Formula("*", (arguments[0], Formula("/", (Formula("1", number=_ONE), arguments[1]))))
        products.append(product)
        # If the tensor has a narrower format, the product is computed in binary32 and then rounded to this format.
        return Formula("input", (Formula("fp32", (product,)),)) if rule.working == "input" else product
    return term.replace(arguments=arguments)


# Variations: changes of recipes that no library uses. They are tried if no named recipe gives the codes.

_ROUNDINGS = {
    "RNE": "ties to even", "RNA": "ties away from zero", "RNZ": "ties toward zero", "RTZ": "toward zero",
    "RTP": "toward +∞", "RTN": "toward −∞", "RAZ": "away from zero",
}  # fmt: skip
_STORED = {"RNE": "to nearest", "RTP": "up", "RTZ": "toward zero", "RNA": "to nearest, ties away"}
_WORKING = {"fp32": "binary32", "fp64": "binary64", "bf16": "bfloat16"}
_QUOTIENTS = ("x / scale", "x * (1 / scale)")
_WITH_TENSOR = (
    "x / (scale * tensor)", "x * (1 / (scale * tensor))", "x / tensor / scale", "x / scale / tensor",
    "x * (1 / tensor / scale)",
)  # fmt: skip
_TAKEN = ("bfloat16", "binary16")
_NARROW, _WIDTH = ("bfloat16", "float16"), 32


def scale_variations(candidate: RecipeCandidate, kind: str = "") -> Iterator[RecipeCandidate]:
    """Yield copies of the candidate that compute scales differently.

    The copies round the scales differently, compute in another precision, or first round the values to another format.
    If `kind`, the format of the stored scales, has 16 bits, some copies divide by scales that were rounded to this
    format.

    >>> first = next(candidates(["e4m3/tensor"], Arrangement("tensor", 1), "fp32"))
    >>> [each.changes[0] for each in scale_variations(first)][:3]
    ['scales rounded up', 'scales rounded toward zero', 'scales rounded to nearest, ties away']
    """
    rule, format = candidate.recipe.rule, candidate.recipe.format
    if kind in _NARROW and format.scale.width == _WIDTH:
        narrow = candidate.recipe.replace(format=format.replace(scale=parse_format(kind)))
        words = f"divided by scales that were rounded to {kind}"
        yield candidate.replace(recipe=narrow, changes=(*candidate.changes, words))
    for stored, words in _STORED.items():
        if stored != rule.stored and not candidate.recipe.format.scales_by_powers:
            yield _changed(candidate, f"scales rounded {words}", stored=stored)
    for working, words in _WORKING.items():
        if working != rule.working and not rule.is_exact:
            yield _changed(candidate, f"arithmetic in {words}", working=working)
    for takes in _TAKEN if not candidate.takes else ():
        yield candidate.replace(takes=takes, changes=(*candidate.changes, f"values rounded to {takes} first"))


def element_variations(candidate: RecipeCandidate) -> Iterator[RecipeCandidate]:
    """Yield copies of the candidate with another rounding of elements, another formula for x / scale, or both.

    In one further copy, elements beyond the largest number of their format wrap around.
    """
    rule = candidate.recipe.rule
    *lines, last = rule.steps()
    uses_tensor = any(line.name == "tensor" for line in lines)
    kept = tuple(str(line) for line in lines)
    for quotient in ("", *(_WITH_TENSOR if uses_tensor else _QUOTIENTS)):
        if quotient == str(last.formula):
            continue
        said = (f"scaled = {quotient}",) if quotient else ()
        by: dict[str, object] = {"lines": (*kept, f"scaled = {quotient}")} if quotient else {}
        if quotient:
            yield _changed(candidate, *said, **by)
        for rounding, words in _ROUNDINGS.items() if rule.rounding != "closest" else ():
            if rounding != rule.rounding:
                yield _changed(candidate, *said, f"elements {words}", rounding=rounding, **by)
    if not rule.wraps and is_floating(candidate.base):
        yield _changed(candidate, "elements beyond the largest wrap", wraps=True)


def _changed(candidate: RecipeCandidate, *words: str, **changes: object) -> RecipeCandidate:
    """Return the candidate with a changed rule. If the rule computes exactly, the changed one computes in binary64."""
    recipe = candidate.recipe
    rule = recipe.rule.replace(**({"working": "fp64"} if recipe.rule.is_exact else {}) | changes)
    return candidate.replace(recipe=recipe.replace(rule=rule), changes=(*candidate.changes, *words))
