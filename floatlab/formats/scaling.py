"""Scale rules: formulas that compute the scale of a block from its values, in the order of their evaluation.

A rule is a list of lines, `name = formula`. Every operation of a line is rounded once to the rule's working precision;
inside `fp32(…)` and `fp64(…)`, it is rounded to that format. Exact rules round only their results. A rule has three
results, each in the line of this name: `tensor` and `scale` are rounded to the formats in which they are stored, and
`scaled` is rounded to the element's format. Formats with minima have two more results, `minimum` and `tensor_minimum`.
The lines may use these quantities of the values: `x` (an element), `amax` (the largest magnitude in the block), `peak`
(the first number with this magnitude), `low` and `high` (the smallest and the largest number), and `tensor_amax` (the
largest magnitude in the blocks that share a tensor scale). They may use these constants of the block format: `largest`
(the largest element), `emax` (the exponent of this element), `p` (the precision of elements), and `top` (the largest
scale). They may use two constants of the values' format: `input_max` (its largest number) and `input_eps` (2^(1 − its
precision)). In HiF4, groups of elements also have exponents. There, `amax8` and `amax4` are the largest magnitudes in
the groups of the element, and the results `micro8` and `micro4` are the factors of these groups, 1 or 2.

To add a rule, add a row to `SCALE_RULES` in `formats.scale_rules`.
"""

from __future__ import annotations

from functools import lru_cache

from floatlab.formats.formulas import Formula, parse_formula
from floatlab.record import Record

# How often a line is computed: once for each tensor scale, for each block, or for each element.
TENSOR, BLOCK, ELEMENT = range(3)
PRODUCT = "q * scale * tensor"  # the formula that decodes an element, unless a rule has another one
_LEVELS = {
    **dict.fromkeys(("amax", "low", "high", "peak", "scale", "grow", "step", "depth"), BLOCK),
    **dict.fromkeys(("x", "q", "amax8", "amax4", "found"), ELEMENT),
}


class RuleLine(Record):
    """One line of a rule: a name, its formula, and how often it is computed (TENSOR, BLOCK or ELEMENT)."""

    name: str
    formula: Formula
    level: int

    def __str__(self) -> str:
        """Return the line as text."""
        return f"{self.name} = {self.formula}"


class ScaleChoice(Record):
    """A choice between scales: a block is rounded once for each factor, and the result with the smallest error is kept.

    In the lines of the rule, the factor is the variable `grow`. `error` is the formula of an element's error, where `q`
    is the rounded element. `measure` says how the errors of a block are combined: the sum of their squares (`square`),
    the sum of their magnitudes (`absolute`), or the `largest` magnitude. A sum adds the elements of each row one after
    the other. It then adds the n sums of rows in pairs until one sum is left: the sum of row i + ⌈n/2⌉ is added to the
    sum of row i. If several factors give the same error, the first one is kept.
    """

    factors: tuple[str, ...]
    error: str
    measure: str


class ScaleRule(Record):
    """A rule for scales; the module's docstring explains its lines.

    `working` is the format to which every operation is rounded: the name of a format, `input` for the format of the
    values, or empty for exact arithmetic. `stored` is the direction in which scales are rounded to their format.
    `rounding` says how elements are rounded: in a direction, with `RNZ` or `RND` (nearest with ties toward zero, or
    toward −∞), or `closest` (the first code with the smallest |q·scale − x|, computed in the working precision). A
    direction of the context other than RNE takes precedence, except over `closest`. `nan` is the code that a library's
    rule gives for NaN in formats without NaN (exact rules give zero). If `wraps` is true, elements beyond the largest
    number do not saturate; the excess bits of the exponent are lost. `elements` are the element formats to which a
    library's rule applies. If it is empty, the rule applies to the floating-point formats that are not given by a
    table, unless an earlier rule of the same name and family lists them. Exact rules apply to all elements. `value` is
    the exact formula that decodes an element `q`. `search` names an algorithm (`arith.blocks.searches`) that computes
    more variables of a block for the lines, such as `step`. `tensor_step` is then the largest step among the blocks
    that share a tensor scale, and `found` is the element that the search gave. `takes` is the format to which values
    are rounded first. If it is empty, exact rules take the values as they are; other rules keep a format narrower than
    binary32, and round everything else to binary32. `shapes` are the shapes of blocks to which the rule applies; if it
    is empty, it applies to all.

    >>> rule = ScaleRule("own", "mx", ("scale = amax / largest",), source="custom")
    >>> [str(line) for line in rule.steps()]
    ['scale = amax / largest', 'scaled = x / scale']
    """

    name: str
    family: str
    lines: tuple[str, ...]
    source: str
    working: str = ""
    stored: str = "RNE"
    rounding: str = "RNE"
    nan: int = 0
    wraps: bool = False
    value: str = PRODUCT
    choice: ScaleChoice | None = None
    elements: tuple[str, ...] = ()
    search: str = ""
    takes: str = ""
    shapes: tuple[str, ...] = ()

    def steps(self) -> tuple[RuleLine, ...]:
        """Return the parsed lines."""
        return _parsed(self.lines)

    @property
    def scales(self) -> bool:
        """Whether the rule has scales that depend on the values; in the rule `none`, they are constant."""
        return any(line.formula.names() & {"amax", "peak", "high", "step"} for line in self.steps())

    @property
    def is_exact(self) -> bool:
        """Whether the rule rounds only its results."""
        return not self.working


@lru_cache(maxsize=256)
def _parsed(lines: tuple[str, ...]) -> tuple[RuleLine, ...]:
    levels = dict(_LEVELS)
    steps = []
    texts = lines if any(text.startswith("scaled ") for text in lines) else (*lines, "scaled = x / scale")
    for text in texts:
        name, _, formula = text.partition("=")
        term = parse_formula(formula)
        level = max((levels.get(each, TENSOR) for each in term.names()), default=TENSOR)
        if name.strip() == "scale":
            level = BLOCK
        levels[name.strip()] = level
        steps.append(RuleLine(name.strip(), term, level))
    return tuple(steps)
