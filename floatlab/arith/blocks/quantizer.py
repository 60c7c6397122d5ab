"""Quantizes the blocks of a tensor: computes the scales by a scale rule, and rounds the elements.

A rule consists of lines, such as `scale = amax / largest`. `formats.scaling` explains lines, and `formats.scale_rules`
has the rules.
"""

from __future__ import annotations

from floatlab.arith.blocks.formulas import (
    NAN,
    Value,
    evaluate,
    exponent_of,
    is_less,
    magnitude,
    measured,
    positive,
    power_of_two,
    ratio,
    stored,
    value_of,
)
from floatlab.arith.blocks.records import (
    BlockDerivation,
    Element,
    ScaleStep,
    TensorScale,
    element_value,
    zero_code,
)
from floatlab.arith.blocks.searches import Found
from floatlab.arith.blocks.tensor_scale import read_tensor_scale
from floatlab.arith.blocks.values import (
    first_run,
    greatest,
    largest_magnitude,
    measures,
    without_tens,
)
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.formats.blocks import BlockFormat, Integers
from floatlab.formats.format import Format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.scaling import BLOCK, ELEMENT, TENSOR, ScaleRule
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Infinity, NotANumber, Ratio
from floatlab.numbers.projection import Rounded, Tail, infinity_code, round_exact
from floatlab.numbers.rounding import Context, Direction, Flags

# The results that blocks share: the tensor scale, the steps that computed it, and the variables of the rule by name.
OfTensor = tuple[TensorScale | None, tuple[ScaleStep, ...], dict[str, Value]]
# A block rounded with one factor `grow` (`ScaleChoice`): scale, steps, elements, variables by name, group exponents.
Attempt = tuple[Datum, tuple[ScaleStep, ...], tuple[Element, ...], dict[str, Value], tuple[tuple[int, ...], ...]]

BY_EXPONENT = ("floor", "even", "ceil")  # rules whose scale is a power of two with an exponent near log2(amax)
ERROR = "error at grow"  # with a factor appended, the name of the step that has the block's error (`ScaleChoice`)
TIES_TO_ZERO, TIES_DOWN = "RNZ", "RND"
_DISTANCE = parse_formula("q * scale - x")


def wider(numbers: Format) -> Format:
    """Return a format with the smallest number and the precision of `numbers`, but with four more exponent bits.

    >>> wider(parse_format("e2m1")).largest > 10**9
    True
    """
    more = numbers.exponent_bits + 4
    return Format(numbers.name, numbers.precision, more, bias=numbers.bias, infinities=False, nans=0)


class Quantizer:
    """Quantizes the blocks of a tensor; an instance has the settings that all blocks share."""

    def __init__(
        self, format: BlockFormat, rule: ScaleRule, context: Context, source: Format | None, tensor_scale: object
    ) -> None:
        self.format, self.rule, self.context = format, rule, context
        working = None if rule.is_exact else source if rule.working == "input" else parse_format(rule.working)
        self.working = working
        self.value = parse_formula(rule.value)
        numbers = format.magnitudes
        self.constants: dict[str, Value] = {
            "largest": ratio(numbers.largest),
            "emax": ratio(numbers.emax),
            "p": ratio(numbers.precision),
            "top": ratio(format.scale.largest),
        }
        if source is not None:
            self.constants["input_max"] = ratio(source.largest)
            self.constants["input_eps"] = ratio(power_of_two(1 - source.precision))
        self.given = None
        if tensor_scale is not None:
            if format.tensor is None or format.superblock is not None:
                raise UnsupportedError(f"tensor_scale: {format.name} has no scale for a whole tensor; nvfp4 has one")
            self.given = read_tensor_scale(tensor_scale, format.tensor)

    def tensor_scales(
        self, blocks: list[list[Value]], searched: list[Found], places: list[list[int]], columns: int
    ) -> list[OfTensor]:
        """Return, for each block, its tensor scale with steps and variables, as the method `tensor` returns them.

        The format decides which blocks share a tensor scale: the blocks of a superblock (a group of blocks, as in
        q4_k), the blocks of a row (`by_row`), or otherwise all blocks of the tensor. `tensor` is called once for all
        blocks that share a tensor scale.
        """
        size = self.format.superblock or (columns if self.format.by_row else 0)
        groups = [place[0] // size if size and place else 0 for place in places]
        members: dict[int, list[int]] = {}
        for n, group in enumerate(groups):
            members.setdefault(group, []).append(n)
        found = {
            group: self.tensor([blocks[n] for n in own], [searched[n] for n in own]) for group, own in members.items()
        }
        return [found[group] for group in groups]

    def tensor(self, blocks: list[list[Value]], searched: list[Found]) -> OfTensor:
        """Compute the tensor scale that `blocks` share.

        `searched` has the result of the rule's search for each block. Return the scale (None if the format or the rule
        has no tensor scale), a step for each computed line of the rule, and all variables computed so far.
        """
        known: dict[str, Value] = {**self.constants, "tensor": ratio(1)}
        largest = [largest_magnitude(block) for block in blocks if block]
        if self.rule.is_exact:  # in exact rules, a NaN or an infinity affects only the block that contains it
            largest = [each for each in largest if isinstance(each, Ratio)] or [ratio(0)]
        amax = largest_magnitude(largest or [ratio(0)])
        known["tensor_amax"] = amax
        for name in searched[0].values:
            known[f"tensor_{name}"] = greatest([each.values[name] for each in searched])
        kind, steps, kept = self.format.tensor, [], {}
        if self.given is not None:
            kept, known["tensor"] = {"tensor": self.given}, value_of(self.given)
        for line in self.rule.steps():
            stores = line.name in ("tensor", "tensor_minimum")
            if line.level != TENSOR or (stores and (kind is None or self.given is not None)):
                continue
            value = evaluate(line.formula, known, self.working)
            known[line.name] = value
            steps.append(ScaleStep(line.name, str(line.formula), value))
            if stores and kind is not None:
                datum = stored(value, kind, self.rule.is_exact)
                kept[line.name] = positive(datum) if self.rule.is_exact and line.name == "tensor" else datum
                known[line.name] = value_of(kept[line.name])
        derived = amax if isinstance(amax, Ratio) and self.given is None else None
        tensor = TensorScale(derived, kept["tensor"], kept.get("tensor_minimum")) if kept else None
        return tensor, tuple(steps), known

    def block(
        self, values: list[Value], literals: tuple[str | None, ...], places: list[int], found: Found, tensor: OfTensor
    ) -> BlockDerivation:
        """Quantize one block."""
        of_tensor, steps, known = tensor
        measured_here = {**measures(values), **found.values}
        amax = measured_here["amax"]
        finite = amax if isinstance(amax, Ratio) else None
        made = (self.format, self.rule, self.context, finite)
        if finite is None and self.rule.is_exact and self.rule.scales:
            nan = Datum(self.format.scale, self.format.scale.nan_code)
            lost = tuple(Element(value, None, None, zero_code(self.format), Flags.NONE, None) for value in values)
            low = nan if self.format.minimum else None
            return BlockDerivation(*made, None, None, nan, of_tensor, lost, literals, (), low)
        choice = self.rule.choice
        attempts = []
        for factor in choice.factors if choice else ("1",):
            more = {**known, **measured_here, "grow": evaluate(parse_formula(factor), {}, None)}
            attempts.append(self._attempt(values, places, more, found))
        best = attempts[0]
        own_steps: tuple[ScaleStep, ...] = ()
        if choice:
            wide = first_run(places)
            errors = [measured(choice, self._errors(attempt, values), self.working, wide) for attempt in attempts]
            for attempt, error in zip(attempts[1:], errors[1:], strict=True):
                if is_less(error, errors[0]):
                    best = attempt
            own_steps = tuple(
                ScaleStep(f"{ERROR} {factor}", f"{choice.measure}({choice.error})", error)
                for factor, error in zip(choice.factors, errors, strict=True)
            )
        scale, own, elements, of_block, groups = best
        wanted = (
            next((each.value for each in own if each.name == "scale"), None) if finite and finite.numerator else None
        )
        shown = wanted if isinstance(wanted, Ratio) else None
        exponent = None
        if shown and self.rule.name in BY_EXPONENT and self.rule.is_exact:
            exponent = exponent_of(shown.as_fraction()) + self.format.magnitudes.emax
        lines = (*steps, *found.steps(self.rule.search), *own, *own_steps)
        minimum = stored(of_block["minimum"], scale.format, False) if "minimum" in of_block else None
        return BlockDerivation(*made, exponent, shown, scale, of_tensor, elements, literals, lines, minimum, groups)

    def _attempt(self, values: list[Value], places: list[int], known: dict[str, Value], found: Found) -> Attempt:
        """Quantize a block with the factor `grow` that `known` has (1, unless the rule has a `ScaleChoice`).

        Returns five things: the scale; the lines of the rule that were computed, with their values; the elements; all
        variables by name; and, in HiF4, the exponents of the groups.
        """
        steps, kind = [], self.format.scale
        scale = Datum(kind, kind.compose(False, kind.smallest_magnitude))
        for line in self.rule.steps():
            if line.level == BLOCK:
                value = evaluate(line.formula, known, self.working)
                steps.append(ScaleStep(line.name, str(line.formula), value))
                known[line.name] = value
                if line.name == "scale":
                    scale = stored(value, kind, self.rule.is_exact, self.rule.stored)
                    scale = positive(scale) if self.rule.is_exact else scale
                    known["scale"] = value_of(scale)
                elif line.name == "minimum":
                    known["minimum"] = value_of(stored(value, kind, self.rule.is_exact))
        alone: list[dict[str, Value]] = [
            {**known, "x": value, "found": own} for value, own in zip(values, found.elements or values, strict=True)
        ]
        for size in self.format.groups:
            for first in range(0, len(values), size):
                largest = largest_magnitude(values[first : first + size])
                for each in alone[first : first + size]:
                    each[f"amax{size}"] = largest
        elements = tuple(self._element(value, own, at) for value, own, at in zip(values, alone, places, strict=True))
        groups = tuple(
            tuple(int(is_less(ratio(1), alone[first][f"micro{size}"])) for first in range(0, len(values), size))
            for size in self.format.groups
        )
        return scale, tuple(steps), elements, known, groups

    def _element(self, value: Value, known: dict[str, Value], index: int) -> Element:
        for line in self.rule.steps():
            if line.level == ELEMENT:
                known[line.name] = evaluate(line.formula, known, self.working)
        scaled = without_tens(known["scaled"])
        found, code, flags = self._rounded(scaled, value, known, index)
        element = element_value(code, self.format)
        decoded = NAN if element is None else evaluate(self.value, {**known, "q": element}, None)
        numbers = [each if isinstance(each, Ratio) else None for each in (scaled, decoded)]
        return Element(value, numbers[0], found, code, flags, numbers[1])

    def _rounded(
        self, scaled: Value, value: Value, known: dict[str, Value], index: int
    ) -> tuple[Rounded | None, int, Flags]:
        """Round a scaled element; return the rounding (None if nothing was rounded), the code and the flags."""
        kind, numbers = self.format.element, self.format.magnitudes
        if self.rule.rounding == "closest":
            return None, self._closest(value, known), Flags.NONE
        if isinstance(scaled, NotANumber):
            nan = zero_code(self.format) if self.rule.is_exact else self.rule.nan
            code = numbers.nan_code if numbers.has_nan else nan
            return None, code, Flags.INVALID
        if isinstance(scaled, Infinity):
            code, flags = infinity_code(numbers, self.context, scaled.negative)
            if isinstance(kind, Integers):
                n = -kind.lowest if scaled.negative and not self.rule.is_exact else numbers.magnitude(code)
                code = kind.code(scaled.negative, n)
            return None, code, flags
        found = self._once(scaled, numbers, index)
        code, flags = found.code, found.flags
        if self.rule.wraps and found.overflowed:
            code = numbers.compose(found.negative, 0) | self._once(scaled, wider(numbers), index).code
            return found, code & ((1 << numbers.width) - 1), flags
        if isinstance(kind, Integers):
            return self._integer(kind, scaled, found, index)
        if self.format.minimum:
            flags &= ~Flags.UNDERFLOW  # rounding to integers cannot underflow
        return found, code, flags

    def _integer(self, kind: Integers, scaled: Ratio, found: Rounded, index: int) -> tuple[Rounded, int, Flags]:
        """Return the rounding, the code and the flags of an element that is an integer.

        Under the rules of libraries, an element may be the lowest integer, such as −128 if the largest integer is 127.
        """
        n, numbers = kind.magnitudes.magnitude(found.code), wider(kind.magnitudes)
        if found.overflowed and found.negative and not self.rule.is_exact:
            n, wide = -kind.lowest, self._once(scaled, numbers, index)
            if value_of(Datum(numbers, wide.code)) == Ratio(True, n, twos=kind.quantum):
                found = wide
        return found, kind.code(found.negative, n), found.flags & ~Flags.UNDERFLOW

    def _once(self, scaled: Ratio, numbers: Format, index: int) -> Rounded:
        """Round a scaled value once: in the context's direction if this is not RNE, else in the rule's direction."""
        exact, sticky = scaled.enclose(numbers)
        context = self.context
        if self.rule.rounding != "RNE" and context.rounding is Direction.RNE:
            if self.rule.rounding not in (TIES_TO_ZERO, TIES_DOWN):
                context = context.replace(rounding=Direction(self.rule.rounding))
            else:
                down = Direction.RTN if self.rule.rounding == TIES_DOWN else Direction.RTZ
                lower = round_exact(exact, numbers, context.replace(rounding=down), sticky, index)
                if lower.tail is Tail.HALF:
                    return lower
        return round_exact(exact, numbers, context, sticky, index)

    def _closest(self, value: Value, known: dict[str, Value]) -> int:
        """Return the element's code: the first q for which |q·scale − x|, in working precision, is smallest."""
        numbers, best, least = self.format.magnitudes, 0, None
        for code in range(1 << numbers.width):
            known["q"] = value_of(Datum(numbers, code))
            error = magnitude(evaluate(_DISTANCE, known, self.working))
            if least is None or is_less(error, least):
                best, least = code, error
        return best

    def _before_wrapping(self, element: Element) -> Value:
        """Return the value of the rounded element, not multiplied by the scales.

        If the code lost excess bits of the exponent (`ScaleRule.wraps`), return the value before this loss.
        """
        found, numbers = element.rounded, self.format.magnitudes
        if not self.rule.wraps or found is None or not found.overflowed or element.scaled is None:
            return element_value(element.code, self.format) or NAN
        wide = wider(numbers)
        return value_of(Datum(wide, self._once(element.scaled, wide, 0).code))

    def _errors(self, attempt: Attempt, values: list[Value]) -> list[Value]:
        _, _, elements, known, _ = attempt
        assert self.rule.choice is not None
        formula = parse_formula(self.rule.choice.error)
        return [
            evaluate(formula, {**known, "x": value, "q": self._before_wrapping(element)}, self.working)
            for value, element in zip(values, elements, strict=True)
        ]
