"""The result of a search for a recipe: the recipes that agree, the nearest other recipes, and examples."""

from __future__ import annotations

from fractions import Fraction

from floatlab.presenter import Answering
from floatlab.record import Record

FOUND, CLASS, NONE = "found", "several", "none"


class RecipeStep(Record):
    """One line of a scale rule: a variable, its formula, and its value, which is None for NaN and ∞."""

    name: str
    formula: str
    value: Fraction | None


class DerivedElement(Record):
    """One element as a recipe computes it: the lines of the rule, the stored scale, and the code.

    `scale` is None for NaN and ∞.
    """

    recipe: str
    steps: tuple[RecipeStep, ...]
    scale: Fraction | None
    code: int


class TellingElement(Record):
    """An element that recipes quantise differently, with the steps in which each recipe quantises this element.

    `number` is the value of the element before it was quantised, and `largest` is the largest magnitude of its block. A
    NaN or infinite value is stored as None. `code` and `scale` are the stored code and scale; both are None for an
    example that is not from the tensor. `scale` is also None if no scale is stored, or if the stored scale is not
    finite.
    """

    index: tuple[int, ...]
    number: Fraction | None
    largest: Fraction | None
    code: int | None
    scale: Fraction | None
    derivations: tuple[DerivedElement, ...]


class MatchedRecipe(Record):
    """A recipe that was tried, and how many of the stored codes and scales it gives.

    `recipe` is the name of a library's recipe. `changes` are the properties in which the tried recipe differs from it;
    there may be none. `properties` are pairs of a property and its value: scale rule, arithmetic, quotient, rounding
    and so on. `layout` says how codes and scales are stored. Of `codes_tried` codes, `codes` agree; of `scales_tried`
    scales, `scales` agree. `tensor_scale` says how the stored scale of the tensor relates to the scale that the recipe
    gives. `tensor_scale` is empty if the recipe or the tensor has no such scale. `first_code` is the position of the
    first code that differs, or None if no code differs. `first_scale` is the same for scales.
    """

    recipe: str
    changes: tuple[str, ...]
    source: str
    properties: tuple[tuple[str, str], ...]
    layout: tuple[str, ...]
    codes: int
    codes_tried: int
    scales: int
    scales_tried: int
    tensor_scale: str
    is_exact: bool
    first_code: tuple[int, ...] | None
    first_scale: tuple[int, ...] | None

    @property
    def name(self) -> str:
        """The recipe with its changes, as text."""
        return ", ".join((self.recipe, *self.changes))

    @property
    def share(self) -> float:
        """The share of the codes that agree."""
        return self.codes / self.codes_tried if self.codes_tried else 1.0


class RecipeSearch(Record, Answering):
    """The recipes that make the given codes from the original, bit for bit.

    `recipes` are the recipes with the fewest changes that give every code and every scale. If there are several, these
    data do not tell which of these recipes was used. `nearest` are the other recipes with the largest shares of equal
    codes and scales, the best first. If a recipe agrees, `element` is the first element that this recipe and the
    nearest other recipe quantise differently. If no recipe agrees, `element` is the first element for which the nearest
    recipe does not give the stored code. `examples` are other numbers that two of the `recipes` would quantise
    differently. `remarks` are further observations, such as a property that may differ.
    """

    _ASKS = ".is_found or .recipes"

    source: str
    original: str
    shape: tuple[int, ...]
    format: str
    tried: int
    recipes: tuple[MatchedRecipe, ...]
    nearest: tuple[MatchedRecipe, ...]
    element: TellingElement | None
    examples: tuple[TellingElement, ...]
    remarks: tuple[str, ...]

    @property
    def is_found(self) -> bool:
        """Whether at least one recipe gives every code and every scale."""
        return bool(self.recipes)

    @property
    def verdict(self) -> str:
        """The verdict in one word: found, several or none."""
        return NONE if not self.recipes else FOUND if len(self.recipes) == 1 else CLASS

    @property
    def recipe(self) -> str:
        """The name of the recipe. If several recipes agree, the first of them; if none agrees, ""."""
        return self.recipes[0].name if self.recipes else ""

    def __repr__(self) -> str:
        """Return one line with the verdict and the names of the recipes."""
        names = " = ".join(each.name for each in self.recipes)
        return f"RecipeSearch({self.source}: {names or 'no recipe gives these codes'})"
