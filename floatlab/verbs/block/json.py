"""The JSON schema of a block: the derivation of its scale, the steps of each element, and the codes and values."""

from __future__ import annotations

from floatlab.arith.blocks.records import BlockDerivation, Element, ScaleStep, TensorScale
from floatlab.errors import FileFormatError
from floatlab.formats.recipes import parse_recipe, parse_rule
from floatlab.numbers import Datum, Ratio, parse_literal
from floatlab.numbers.exact import Infinity, NotANumber
from floatlab.numbers.printing import fraction_text
from floatlab.verbs.block.page import element_code, exact_text, special_text, value_text
from floatlab.wire.codecs import CODE, FLAGS, INTEGER, TEXT, Codec, list_of, optional
from floatlab.wire.derivations import CONTEXT, DATUM, RATIO, ROUNDED
from floatlab.wire.schema import Member, common_members, constant, derived, field, schema, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.arith.blocks.formulas import Value
    from floatlab.wire.codecs import Scope

    Placed = tuple[BlockDerivation, Element, str | None]  # an element, with its block and its value as typed


def _read_exact(wire: object, scope: Scope) -> Ratio:
    value = parse_literal(TEXT.read(wire, scope)).value
    if not isinstance(value, Ratio):
        raise FileFormatError("is not a number")
    x = value.as_fraction()
    return Ratio(value.negative, abs(x.numerator), x.denominator)


_NUMBER = optional(Codec(lambda x, _: exact_text(x), _read_exact))
_VALUES = {"numerator": RATIO, "payload": schema_of(NotANumber), "negative": schema_of(Infinity)}


def _write_value(value: Value, scope: Scope) -> object:
    kind = "numerator" if isinstance(value, Ratio) else "payload" if isinstance(value, NotANumber) else "negative"
    return _VALUES[kind].write(value, scope)


def _read_value(wire: Any, scope: Scope) -> Value:
    kind = next((member for member in _VALUES if member in wire), "numerator")
    value: Value = _VALUES[kind].read(wire, scope)
    return value


def _value_text(placed: Placed) -> str:
    element = placed[1]
    return exact_text(element.value) if isinstance(element.value, Ratio) else value_text(element)


def _result(placed: Placed) -> Datum | None:
    """Return the rounded element as a `Datum`, or None if the element is an integer or was not rounded."""
    block, element, _ = placed
    fmt = block.format
    is_datum = element.rounded is not None and fmt.element is fmt.magnitudes
    return Datum(fmt.magnitudes, element.code) if is_datum else None


def _error(placed: Placed) -> dict[str, str | None]:
    error = placed[1].error
    return {"exact": None if error is None else fraction_text(error)}


_OPERAND = schema(
    lambda value, literal=None: (value, literal),
    exact=derived(_value_text),
    value=Member(Codec(_write_value, _read_value), lambda placed: placed[1].value, "value"),
    literal=Member(TEXT, lambda placed: placed[2], "literal", is_optional=True),
)
_STEP = schema(
    dict,
    scaled=Member(_NUMBER, lambda placed: placed[1].scaled, "scaled"),
    code=Member(CODE, lambda placed: element_code(placed[1], placed[0].format), "code"),
    round=Member(ROUNDED, lambda placed: placed[1].rounded, "rounded", is_optional=True),
    result=derived(_result, DATUM).replace(is_optional=True),
    value=Member(_NUMBER, lambda placed: placed[1].decoded, "decoded"),
    flags=Member(FLAGS, lambda placed: placed[1].flags, "flags"),
    error=derived(_error),
)


def _placed(block: BlockDerivation) -> list[Placed]:
    return [(block, *pair) for pair in zip(block.elements, block.literals, strict=True)]


_LINE = schema(
    lambda name, formula, value: ScaleStep(name, formula, value),
    name=TEXT,
    formula=TEXT,
    exact=derived(lambda step: exact_text(step.value) if isinstance(step.value, Ratio) else special_text(step.value)),
    value=Codec(_write_value, _read_value),
)


def _block(
    operands: Any, steps: Any, tensor_scale: Datum | None, tensor_amax: Ratio | None, **fields: Any
) -> BlockDerivation:
    rule, scale_steps, groups = (fields.pop(name) for name in ("rule", "scale_steps", "groups"))
    tensor_minimum = fields.pop("tensor_minimum", None)
    if len(operands) != len(steps):
        raise FileFormatError(f"{len(operands)} operands, but {len(steps)} steps")
    elements = tuple(
        Element(value=value, rounded=step.pop("rounded", None), **step)
        for (value, _), step in zip(operands, steps, strict=True)
    )
    return BlockDerivation(
        elements=elements,
        literals=tuple(literal for _, literal in operands),
        rule=parse_rule(rule, fields["format"]),
        steps=tuple(scale_steps),
        groups=tuple(map(tuple, groups)),
        tensor=None if tensor_scale is None else TensorScale(tensor_amax, tensor_scale, tensor_minimum),
        **fields,
    )


BLOCK = schema(
    _block,
    **common_members("block"),
    format=Codec(lambda fmt, _: fmt.name, lambda wire, scope: parse_recipe(TEXT.read(wire, scope)).format),
    block=derived("format.block"),
    element_format=derived("format.element.name"),
    scale_format=derived("format.scale.name"),
    context=CONTEXT,
    operands=Member(list_of(_OPERAND), _placed, "operands"),
    rule=Codec(lambda rule, _: rule.name, TEXT.read),
    scale_steps=Member(list_of(_LINE), lambda block: block.steps, "scale_steps"),
    amax=_NUMBER,
    exponent=optional(INTEGER),
    wanted_scale=field(_NUMBER, "wanted"),
    steps=Member(list_of(_STEP), _placed, "steps"),
    result={
        "scale": DATUM,
        "minimum": field(DATUM, "minimum").replace(is_optional=True),
        "tensor_scale": Member(optional(DATUM), lambda block: block.tensor and block.tensor.datum, "tensor_scale"),
        "tensor_minimum": Member(
            DATUM, lambda block: block.tensor and block.tensor.minimum, "tensor_minimum", is_optional=True
        ),
        "tensor_amax": Member(_NUMBER, lambda block: block.tensor and block.tensor.amax, "tensor_amax"),
        "groups": Member(list_of(list_of(INTEGER)), lambda block: block.groups, "groups"),
        "codes": derived(lambda block: [element_code(element, block.format) for element in block.elements]),
        "values": derived(lambda block: [element.decoded for element in block.elements], list_of(_NUMBER)),
    },
    flags=derived("flags", FLAGS),
    error=constant({"exact": None, "ulps": None}),  # a block has no single error: each element has one
)
