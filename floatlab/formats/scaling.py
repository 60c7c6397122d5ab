"""Scale rules: how the scale of a block follows from its values, as formulas in the order in which they are computed.

A rule is a list of lines, `name = formula`. Every operation of a line is rounded once into the rule's working
precision; in an exact rule nothing is rounded but the results. Three names are results: `tensor` and `scale` are
rounded into the formats in which they are stored, `scaled` into the element's format. Formats with minima have two
more results, `minimum` and `tensor_minimum`. The lines start from `x` (an element), from `amax` (the largest magnitude
in the block), `peak` (the first number that has it), `low` and `high` (the least and the largest number), and from
`tensor_amax` (the largest magnitude in the tensor). They know constants of the format: `largest` (the largest
element), `emax` (its exponent), `p` (the element's precision), `top` (the largest scale); and of the values' format:
`input_max` (its largest number) and `input_eps` (2^(1 − its precision)). In formats
whose groups have exponents of their own (HiF4), `amax8` and `amax4` are the largest magnitudes in the element's groups,
and the results `micro8` and `micro4` are the groups' factors, 1 or 2.

To add a rule, add a row to `SCALE_RULES` in `formats.scale_rules`.
"""

from __future__ import annotations

from functools import lru_cache

from floatlab.formats.formulas import Formula, parse_formula
from floatlab.record import Record

TENSOR, BLOCK, ELEMENT = range(3)  # how often a line is computed: once, for each block, for each element
PRODUCT = "q * scale * tensor"  # the value of an element, unless a rule says otherwise
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
    """A choice between scales: the block is rounded with each factor `grow`, and the smallest error wins.

    `error` is the formula of an element's error, where `q` is the rounded element; `measure` says how errors are
    combined: the sum of squares (`square`) or of magnitudes (`absolute`), or the `largest` magnitude. A sum adds one
    element after the other in each row, then the rows in pairs, row i to row i + n/2. Of equal errors, the first factor
    wins.
    """

    factors: tuple[str, ...]
    error: str
    measure: str


class ScaleRule(Record):
    """A rule for scales; see the module's text for its lines.

    `working` is the format in which every operation is rounded: a format's name; `input` for that of the values; empty
    for exact arithmetic. `stored` is the direction in which scales are rounded into their format, `rounding` that of
    elements: a direction, `RNZ` or `RND` (nearest with ties toward zero, or to the lower number), or `closest` (the
    first code with the least |q·scale − x|, computed in the working precision). `nan` is the code of an element that is
    NaN, for formats without NaN. `wraps`: elements beyond the largest do not saturate; the exponent's excess bits are
    lost. `elements` are the elements to which the rule applies; empty for all floating-point elements. `value` is the
    formula that decodes an element `q`, exactly. `search` names an algorithm (`arith.searches`) that gives quantities
    of a block to the lines, such as `step`; `tensor_step` is then the largest of them, and `found` is an element as the
    search left it. `takes` is the format into which values are rounded first; empty for binary32 or the values' own
    narrower format.

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

    def steps(self) -> tuple[RuleLine, ...]:
        """Return the parsed lines."""
        return _parsed(self.lines)

    @property
    def scales(self) -> bool:
        """Whether scales depend on the values; they are constant in the rule `none`."""
        return any(line.formula.names() & {"amax", "peak", "high", "step"} for line in self.steps())

    @property
    def is_exact(self) -> bool:
        """Whether only the results are rounded."""
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
