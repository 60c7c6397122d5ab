"""Recipes (a block format and a rule for its scales), and the parser for their notation.

recipe     base, then /shape (of a block), /channel (a tensor scale per row) and :rule; only the base is required
base       a block format (mxfp4, q4_0), a format (e4m3, int8), or block(element, scale, shape[, tensor scale])
shape      N (1×N), RxC, tensor, channel (row), or flatN (N elements of the flattened tensor)
rule       a scale rule of floatlab (floor, nearest, 4over6, none) or of a library (torchao, te, modelopt)

If the base is a plain format (`e4m3/128x128`), the scales are binary32. Without a shape (`e4m3`), the default rule is
`none`: elements are rounded without scaling.
"""

from __future__ import annotations

import re
from functools import lru_cache

from floatlab.errors import ContextError, FormatError, RecipeError, UnsupportedError, guess, quoted
from floatlab.formats.blocks import (
    BLOCK_CATALOG,
    INTEGERS,
    LARGEST_BLOCK,
    BlockFormat,
    Integers,
    is_block_format,
)
from floatlab.formats.blocks import parse_block_format as _named
from floatlab.formats.catalog import BLOCK_FAMILIES, BLOCK_NAMES, parse_format, short_name
from floatlab.formats.format import Format
from floatlab.formats.scale_rules import SCALE_RULES
from floatlab.formats.scaling import ScaleRule
from floatlab.presenter import Drawn
from floatlab.record import Record
from floatlab.tokens import TokenReader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_TOKEN = r"[A-Za-z_0-9+-]+|."
_SHAPE = re.compile(r"(?:([0-9]+)x|(flat))?([0-9]+)")
_LONGEST = 200
_WHOLE = {"tensor": (None, None), "channel": (1, None), "row": (1, None)}
# The recipes in the list of formats and in the completion of shells. Other formats and shapes can be used as well.
NAMED_RECIPES = (
    *(row.format.name for row in BLOCK_CATALOG),
    *("nvfp4/16x16", "e4m3/tensor", "e4m3/channel", "e4m3/1x128", "e4m3/128x128", "e5m2/tensor", "nf4/64"),
    *("bnb_fp4/64", "int8/channel", "int4/32"),
)
# Ambiguous words such as "fp4". For each word: the element formats and recipes that it may mean, for error messages.
RECIPE_FAMILIES = {
    **dict.fromkeys(
        ("fp8", "float8", "f8"),
        (("e4m3", "e5m2"), ("e4m3/tensor", "e4m3/channel", "e4m3/128x128", "mxfp8_e4m3", "e5m2/tensor")),
    ),
    **dict.fromkeys(("fp6", "float6", "f6"), (("e2m3", "e3m2"), ("mxfp6_e2m3", "mxfp6_e3m2"))),
    **dict.fromkeys(("fp4", "float4", "f4"), (("e2m1",), ("mxfp4", "nvfp4", "nf4/64", "bnb_fp4/64"))),
}
SPELLINGS = {"ocp": "floor", "rceil": "up"}  # alternative names of scale rules


class Recipe(Drawn, Record):
    """A block format and the rule for its scales.

    Format, rule and rounding context determine the codes of a tensor, unless the caller passes a tensor scale.

    >>> recipe = parse_recipe("nvfp4/16x16:te")
    >>> recipe.format.element.name, recipe.format.rows, recipe.rule.name, recipe.name
    ('e2m1fn', 16, 'te', 'nvfp4/16x16:te')
    """

    format: BlockFormat
    rule: ScaleRule

    @property
    def name(self) -> str:
        """The recipe as text; the default rule of the format is left out."""
        default = self.rule is default_rule(self.format)
        return self.format.name if default else f"{self.format.name}:{self.rule.name}"

    def with_rule(self, word: str | ScaleRule | None) -> Recipe:
        """Return the recipe with this scale rule; for None, return the recipe unchanged.

        Raises ContextError if the format has no such rule, or if the recipe already has another rule that is not the
        default.

        >>> parse_recipe("mxfp4").with_rule("up").name
        'mxfp4:up'
        """
        if word is None:
            return self
        rule = parse_rule(word, self.format)
        if rule.name != self.rule.name and self.rule is not default_rule(self.format):
            raise ContextError(f"{self.name} names the scale rule {self.rule.name}, so scale cannot be {rule.name}")
        return self.replace(rule=rule)

    def __repr__(self) -> str:
        """Return `Recipe('NAME')`; `parse_recipe` reads NAME as the same recipe."""
        return f"Recipe({self.name!r})"


def rules_for(format: BlockFormat) -> tuple[ScaleRule, ...]:
    """Return the scale rules for a block format, the default first.

    >>> [rule.name for rule in rules_for(_named("nvfp4"))][:4]
    ['nearest', 'up', '4over6', 'modelopt']
    """
    return tuple(rule for rule in SCALE_RULES if rule.family == format.family and _applies(rule, format))


def _applies(rule: ScaleRule, format: BlockFormat) -> bool:
    element = format.element
    if rule.shapes and format.shape not in rule.shapes:
        return False
    if rule.is_exact or element.name in rule.elements:
        return True
    if rule.elements or isinstance(element, Integers) or element.is_table:
        return False
    earlier = [each for each in SCALE_RULES if (each.name, each.family) == (rule.name, rule.family)]
    return not any(element.name in each.elements for each in earlier)


@lru_cache(maxsize=1024)
def default_rule(format: BlockFormat) -> ScaleRule:
    """Return the rule of a recipe that names no rule.

    For a plain format without a shape (`e4m3`), this rule is `none`; for other formats, the first of `rules_for`.

    >>> default_rule(_named("mxfp4")).name
    'floor'
    """
    rules = rules_for(format)
    unscaled = format.name == _spelled(format.element)
    return next(rule for rule in rules if rule.name == "none") if unscaled else rules[0]


def parse_rule(word: str | ScaleRule | None, format: BlockFormat) -> ScaleRule:
    """Return the rule with this name for a block format. The name None means the default rule.

    Raises ContextError if the format has no rule with this name.

    >>> parse_rule("rceil", _named("mxfp4")).name, parse_rule(None, _named("mxfp4")).name
    ('up', 'floor')
    """
    if word is None:
        return default_rule(format)
    if isinstance(word, ScaleRule) and word in rules_for(format):
        return word
    plain = (word.name if isinstance(word, ScaleRule) else str(word)).lower().replace("-", "_")
    plain = SPELLINGS.get(plain, plain)
    known = {rule.name: rule for rule in rules_for(format)}
    if plain not in known:
        near = guess(plain, list(known))
        own = " ".join(name for name, rule in known.items() if rule.is_exact)
        libraries = f", or the rule of a library (floatlab formats {format.name})" * any(
            not rule.is_exact for rule in known.values()
        )
        raise ContextError(f"scale must be one of {own} for {format.name}{libraries}, not {quoted(plain)}{near}")
    return known[plain]


def parse_recipe(text: str | BlockFormat | Recipe) -> Recipe:
    """Return the recipe that a text describes.

    Parameters
    ----------
    text : str, BlockFormat or Recipe
        A recipe such as "mxfp4", "nvfp4/16x16:te", "e4m3/128x128" or "block(e2m1, ue5m3, 16)". A BlockFormat gets its
        default rule; a Recipe is returned unchanged.

    Returns
    -------
    Recipe

    Raises
    ------
    RecipeError
        The text is not a recipe; the message marks the position with a caret. A RecipeError is a FormatError.
    FormatError
        The argument has another type, or the text is too long.

    Examples
    --------
    >>> parse_recipe("e4m3/128x128:deepseek").rule.lines
    ('scale = max(amax, 1e-4) / largest',)
    >>> float(parse_recipe("block(e2m1, ue5m3, 16)").format.bits)
    4.5
    """
    if isinstance(text, Recipe):
        return text
    if isinstance(text, BlockFormat):
        return Recipe(text, default_rule(text))
    if not isinstance(text, str):
        raise FormatError(f"a recipe must be text, a BlockFormat or a Recipe, not {type(text).__name__}")
    if len(text) > _LONGEST:
        raise FormatError(f"a recipe must have at most {_LONGEST} characters, not {len(text):,}")
    return _read(text)


@lru_cache(maxsize=256)
def _read(text: str) -> Recipe:
    return _Reader(text).whole()


def parse_recipes(text: str | Recipe | Sequence[str | Recipe]) -> tuple[Recipe, ...]:
    """Return the recipes in a list, or in a text with commas between them.

    Commas in parentheses belong to a recipe. A recipe that is named twice is returned once. Raises RecipeError for a
    text that is not a recipe, and for an ambiguous word such as `fp8`; the message lists the possible recipes.
    Raises FormatError for other types and for texts that are too long.

    >>> [each.name for each in parse_recipes("mxfp4, block(e2m1, ue5m3, 16),mxfp4")]
    ['mxfp4', 'block(e2m1, ue5m3, 16)']
    """
    if not isinstance(text, str | Recipe | BlockFormat | list | tuple):
        raise FormatError(f"recipes must be a text such as 'e4m3,mxfp4' or a list, not {type(text).__name__}")
    words = _split(text) if isinstance(text, str) else list(text) if isinstance(text, list | tuple) else [text]
    if not words or any(isinstance(word, str) and not word.strip() for word in words):
        raise RecipeError("a recipe is missing between commas" if len(words) > 1 else "at least one recipe is needed")
    for word in words:
        if isinstance(word, str):
            _refuse_family(word.strip())
    return tuple({recipe.name: recipe for recipe in map(parse_recipe, words)}.values())


def _refuse_family(word: str) -> None:
    """Raise RecipeError for a word that gives only the width of the elements.

    A word with a shape (`fp4/32`) is refused only if several element formats have this width.

    >>> _refuse_family("fp4")
    Traceback (most recent call last):
      ...
    floatlab.errors.RecipeError: fp4 is not one recipe: name mxfp4, nvfp4, nf4/64, bnb_fp4/64 or e2m1 (no scales)
      fp4
      ^
    """
    name, slash, rest = word.partition("/")
    if (family := RECIPE_FAMILIES.get(name.rstrip().lower())) is None:
        return
    formats, recipes = family
    if not slash:
        *names, last = (*recipes, *(f"{format} (no scales)" for format in formats))
        said = f"recipe: name {', '.join(names)} or {last}"
    elif len(formats) > 1:
        said = f"format: name {' or '.join(f'{format}/{rest}' for format in formats)}"
    else:
        return
    raise RecipeError(TokenReader(word, _TOKEN).marked(f"{name.rstrip()} is not one {said}", 0))


def _split(text: str) -> list[str]:
    """Split a text at commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth <= 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def is_recipe(name: str) -> bool:
    """Return whether a text has the form of a recipe: it is the name of a block format or contains `/`, `:` or `(`.

    >>> is_recipe("mxfp4"), is_recipe("e4m3/tensor"), is_recipe("e4m3")
    (True, True, False)
    """
    return is_block_format(name) or any(mark in name for mark in "/:(")


class _Reader:
    """Reads one recipe from left to right."""

    def __init__(self, text: str) -> None:
        self.tokens = TokenReader(text, _TOKEN)

    def _refuse(self, message: str, place: int) -> RecipeError:
        return RecipeError(self.tokens.marked(message, place))

    def whole(self) -> Recipe:
        format, bare = self._base()
        if self.tokens.peek() == "/":
            self.tokens.take()
            format, bare = self._shaped(format, *self.tokens.take(), bare), False
        if self.tokens.peek() == "/":
            self.tokens.take()
            format = self._scaled_by_row(format, *self.tokens.take())
        rule = default_rule(format)
        if self.tokens.peek() == ":":
            self.tokens.take()
            word, place = self.tokens.take()
            try:
                rule = parse_rule(word, format)
            except ContextError as error:
                raise self._refuse(str(error), place) from None
        token, place = self.tokens.take()
        if token:
            raise self._refuse(f"the recipe ends before {token!r}; /shape and :rule may follow its format", place)
        return Recipe(format, rule)

    def _base(self) -> tuple[BlockFormat, bool]:
        """Read the base. Return its block format, and whether the base is a plain format."""
        name, place = self.tokens.take()
        if name.lower() == "block" and self.tokens.peek() == "(":
            return self._custom(), False
        if is_block_format(name):
            return _named(name), False
        element = self._element(name, place, is_base=True)
        single = parse_format("binary32")
        return BlockFormat(_spelled(element), element, single, None, rows=None), True

    def _element(self, name: str, place: int, is_base: bool = False) -> Format | Integers:
        if name.lower() in INTEGERS:
            return INTEGERS[name.lower()]
        try:
            found = parse_format(name)
            _ = found.largest  # raises UnsupportedError for logarithmic formats: rules need a rational number
            return found
        except UnsupportedError as error:
            raise self._refuse(str(error), place) from None
        except FormatError as error:
            known = " ".join(row.format.name for row in BLOCK_CATALOG)
            plain = name.lower().replace("-", "_")
            if plain in BLOCK_FAMILIES:
                raise self._refuse(f"{name} is a family of block formats: {BLOCK_FAMILIES[plain]}", place) from None
            if is_block_format(name):
                raise self._refuse(f"{name} is a block format, not a format of single numbers", place) from None
            near = guess(plain, list(BLOCK_NAMES)) if is_base else ""
            message = f"unknown block format {quoted(name)}{near}" if near else str(error)
            for family in RECIPE_FAMILIES:  # do not suggest an ambiguous word, which would be refused, too
                message = message.replace(f"; did you mean '{family}'?", "")
            if is_base and message.startswith("unknown"):
                message = f"{message} (block formats: {known})"
            message = message if name else "a recipe begins with a format"
            raise self._refuse(message, place) from None

    def _custom(self) -> BlockFormat:
        """Read block(element, scale, shape[, tensor scale])."""
        self.tokens.take()
        element, scale = self._element(*self._argument("an element format")), self._format("a scale format")
        rows, columns, flat = self._extent(*self._argument("a shape"))
        tensor = self._format("a tensor scale format") if self.tokens.peek() == "," else None
        closed, place = self.tokens.take()
        if closed != ")":
            raise self._refuse("block( takes an element, a scale, a shape and a tensor scale; then ')'", place)
        format = BlockFormat("block", element, scale, columns, tensor, rows, flat=flat)
        parts = [_spelled(element), _spelled(scale), format.shape, *([_spelled(tensor)] if tensor else [])]
        return format.replace(name=f"block({', '.join(parts)})")

    def _argument(self, kind: str) -> tuple[str, int]:
        if self.tokens.last() != "(":
            comma, place = self.tokens.take()
            if comma != ",":
                raise self._refuse(f"{kind} is missing here, after a comma: block(ELEMENT, SCALE, SHAPE)", place)
        return self.tokens.take()

    def _format(self, kind: str) -> Format:
        name, place = self._argument(kind)
        found = self._element(name, place)
        if not isinstance(found, Format):
            raise self._refuse(f"{name} is not a format of scales", place)
        return found

    def _extent(self, word: str, place: int) -> tuple[int | None, int | None, bool]:
        """Return the rows and columns of a shape, and whether the shape refers to the flattened tensor."""
        if word.lower() in _WHOLE:
            return *_WHOLE[word.lower()], False
        found = _SHAPE.fullmatch(word.lower())
        if not found:
            raise self._refuse("a shape must be N, RxC, tensor, channel or flatN", place)
        if not all(1 <= int(size) <= LARGEST_BLOCK for size in (found[1] or 1, found[3])):
            raise self._refuse(f"the numbers of a shape must be from 1 to {LARGEST_BLOCK:,}", place)
        return int(found[1] or 1), int(found[3]), bool(found[2])

    def _shaped(self, format: BlockFormat, word: str, place: int, bare: bool) -> BlockFormat:
        rows, columns, flat = self._extent(word, place)
        if format.superblock is not None:
            raise self._refuse(
                f"{format.name} has one shape, blocks of {format.block} in groups of {format.superblock}", place
            )
        try:
            shaped = format.replace(rows=rows, block=columns, flat=flat)
        except FormatError as error:
            raise self._refuse(str(error), place) from None
        if shaped == format and not bare:
            return format
        return shaped.replace(name=f"{format.name}/{shaped.shape}")

    def _scaled_by_row(self, format: BlockFormat, word: str, place: int) -> BlockFormat:
        if word.lower() not in ("channel", "row") or format.tensor is None:
            raise self._refuse("a second shape can only be channel, and only for formats with a tensor scale", place)
        base = format.name if "/" in format.name else f"{format.name}/{format.shape}"
        return format.replace(by_row=True, name=f"{base}/channel")


def _spelled(element: Format | Integers) -> str:
    return short_name(element) if isinstance(element, Format) else element.name
