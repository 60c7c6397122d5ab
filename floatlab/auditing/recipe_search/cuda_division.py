"""Rules as PyTorch computes them on CUDA, where it divides a tensor by a Python number in another way than on a CPU.

The quotient amax / 448 is then amax * (1 / 448): the reciprocal is rounded to binary32, and so is the product. The last
bits of some scales then differ from those of the quotients.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from floatlab.auditing.recipe_search.encoding import RecipeCandidate
from floatlab.formats.formulas import Formula
from floatlab.formats.scaling import ELEMENT, ScaleRule

# PyTorch, aten/src/ATen/native/cuda/BinaryDivTrueKernel.cu: a divisor that is a number on the CPU becomes a factor.
_IN_TORCH = ("torchao", "modelopt", "ct", "deepseek", "deepgemm")
_FAMILIES = ("fp32", "nvfp4")
_CONSTANTS = frozenset({"largest", "top"})
_ONE = Fraction(1)


def on_cuda(candidate: RecipeCandidate) -> Iterator[RecipeCandidate]:
    """Yield the candidate with its divisions by constants as on CUDA; nothing if its rule has none."""
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
    """Return the formula with divisions by constants replaced by products with reciprocals, which `products` gets."""
    if not term.arguments:
        return term
    arguments = tuple(_multiplied(each, rule, products) for each in term.arguments)
    if term.name == "/" and arguments[0].names() - _CONSTANTS and not arguments[1].names() - _CONSTANTS:
        product = Formula("*", (arguments[0], Formula("/", (Formula("1", number=_ONE), arguments[1]))))
        products.append(product)
        # The product is computed in binary32 also if the tensor has a narrower format, and then rounded to it.
        return Formula("input", (Formula("fp32", (product,)),)) if rule.working == "input" else product
    return term.replace(arguments=arguments)
