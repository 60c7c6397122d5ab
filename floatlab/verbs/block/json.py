"""Blocks as JSON objects: one for each block, with INTERFACE's names where a block has what they name."""

from __future__ import annotations

from floatlab.arith.blocks import BlockDerivation, Element
from floatlab.numbers import Datum, Ratio
from floatlab.numbers.decimals import exact_decimal, fraction_text, ratio_text
from floatlab.verbs.block.page import element_code, value_text
from floatlab.wire.encode import SCHEMA, context_to_wire, datum_to_wire, rounded_to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Wire = dict[str, Any]


def block_to_wire(block: BlockDerivation) -> Wire:
    """Return a block: what its scale came from, each element's way, and the codes and values that it ends in."""
    fmt, tensor = block.format, block.tensor
    return {
        "schema": SCHEMA,
        "operation": "block",
        "format": fmt.name,
        "block": fmt.block,
        "element_format": fmt.element.name,
        "scale_format": fmt.scale.name,
        "context": context_to_wire(block.context),
        "operands": [
            _value_to_wire(element, text) for element, text in zip(block.elements, block.literals, strict=True)
        ],
        "rule": block.rule.value,
        "amax": _ratio_text(block.amax),
        "exponent": block.exponent,
        "wanted_scale": _ratio_text(block.wanted),
        "steps": [_element_to_wire(element, block) for element in block.elements],
        "result": {
            "scale": datum_to_wire(block.scale),
            "tensor_scale": None if tensor is None else datum_to_wire(tensor.datum),
            "tensor_amax": None if tensor is None else _ratio_text(tensor.amax),
            "codes": [element_code(element, fmt) for element in block.elements],
            "values": [_decoded(element) for element in block.elements],
        },
        "flags": block.flags.names,
        "error": {"exact": None, "ulps": None},  # each element has its own
    }


def _ratio_text(x: Ratio | None) -> str | None:
    return None if x is None else _exact(x)


def _exact(x: Ratio) -> str:
    """Return the exact value: a decimal where there is one, else N/D."""
    if x.denominator & (x.denominator - 1):
        return ratio_text(x)
    return ratio_text(x.replace(denominator=1, twos=x.twos - x.denominator.bit_length() + 1))


def _value_to_wire(element: Element, text: str | None) -> Wire:
    exact = _exact(element.value) if isinstance(element.value, Ratio) else value_text(element)
    return {"exact": exact} | ({} if text is None else {"literal": text})


def _decoded(element: Element) -> str | None:
    return None if element.decoded is None else exact_decimal(element.decoded)


def _element_to_wire(element: Element, block: BlockDerivation) -> Wire:
    """Return an element's way; its result is a datum, or the code of an integer."""
    fmt, error = block.format, element.error
    wire: Wire = {"scaled": _ratio_text(element.scaled), "code": element_code(element, fmt)}
    if element.rounded is not None:
        wire |= {"round": rounded_to_wire(element.rounded)}
        if fmt.element is fmt.magnitudes:
            wire |= {"result": datum_to_wire(Datum(fmt.magnitudes, element.code))}
    return wire | {
        "value": _decoded(element),
        "flags": element.flags.names,
        "error": {"exact": None if error is None else fraction_text(error)},
    }
