"""Scale rules: formulas that compute the scale of a block from its values, in the order of their evaluation.

A rule is a list of lines, `name = formula`. The results of a rule are `tensor`, `scale` and `scaled`. `tensor` and
`scale` are rounded to the formats in which they are stored, `scaled` to the element's format. Formats with minima have
the result `minimum` and, with superblocks, `tensor_minimum`. Exact rules round only the results. Other rules round
every operation to their working precision, except operations inside `fp32(…)` and `fp64(…)`. The lines may use these
quantities of the values: `x` (an element), `amax` (the largest magnitude in the block), `peak` (the first number with
this magnitude), `low` and `high` (the smallest and the largest number), and `tensor_amax` (the largest magnitude in the
blocks that share a tensor scale). The lines may use these constants of the block format: `largest` (the largest
element), `emax` (the exponent of this element), `p` (the precision of elements), and `top` (the largest scale). The
lines may use two constants of the values' format: `input_max` (the largest number of this format) and `input_eps`
(2^(1−n) for a precision of n digits). In HiF4, each element is in a group of 8 and in a group of 4. `amax8` and `amax4`
are the largest magnitudes in these groups; the results `micro8` and `micro4` are the factors (1 or 2) of these groups.

To add a rule, add a row to `SCALE_RULES` in `formats.scale_rules`.
"""

from __future__ import annotations

from functools import lru_cache

from floatlab.formats.formulas import Formula, parse_formula
from floatlab.record import Record

# How often a line is computed: once for each tensor scale, for each block, or for each element.
TENSOR, BLOCK, ELEMENT = range(3)
PRODUCT = "q * scale * tensor"  # the formula that decodes an element, unless a rule has another formula
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
    """Try several scales: round a block once for each factor, and keep the result with the smallest error.

    In the lines of the rule, the factor is the variable `grow`. `error` is the formula of an element's error, where `q`
    is the rounded element. The error of a block is the sum of the squares (`measure` = `square`) or of the magnitudes
    (`absolute`) of these errors, or the largest magnitude (`largest`). If errors are equal, the first factor wins. The
    order of additions matters, because sums are rounded. Each row of a block is added serially. Then the row sums are
    added in pairs until one sum is left: while n sums s[0], s[1], ... are left, s[i + ⌈n/2⌉] is added to s[i].
    """

    factors: tuple[str, ...]
    error: str
    measure: str


class ScaleRule(Record):
    """A rule for scales. The docstring of the module explains `lines`.

    - `working`: the format to which every operation is rounded; `input` means the format of the values. Empty: exact.
    - `stored`: the direction in which scales are rounded to their format.
    - `rounding`: how elements are rounded: in a direction; to nearest with ties toward zero (`RNZ`) or toward −∞
      (`RND`); or to the `closest` code, the first code q with the smallest |q·scale − x| in working precision. If the
      direction of the context is not RNE, this direction replaces the rounding of the rule, except `closest`.
    - `nan`: the code that a library's rule gives for NaN in formats without NaN. There, exact rules give zero.
    - `wraps`: elements beyond the largest number do not saturate; the excess bits of the exponent are lost.
    - `value`: the exact formula that decodes an element `q`.
    - `elements`: the element formats to which a library's rule applies. Empty: all floating-point formats that are not
      given by a table, and that are not in `elements` of another rule of the same name and family. Exact rules apply to
      all elements.
    - `search`: an algorithm of `arith.blocks.searches`. It computes more variables of a block, such as `step`, and the
      variable `found`, the integer of each element. `tensor_step` is the largest `step` of the blocks that share a
      tensor scale.
    - `takes`: the format to which values are rounded first. Empty: exact rules take the values as they are. Other rules
      take the values as they are if all values have the same format and this format is narrower than binary32;
      otherwise, they round the values to binary32.
    - `shapes`: the shapes of blocks to which the rule applies. Empty: all.

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
        """Return the parsed lines. If no line computes `scaled`, the line `scaled = x / scale` is added."""
        return _parsed(self.lines)

    @property
    def scales(self) -> bool:
        """Whether the scales depend on the values. In the rule `none`, the scales are constant."""
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
