"""The schema of the differences of one tensor in two checkpoints; `compare --json` writes a line for each tensor."""

from __future__ import annotations

from floatlab.auditing.comparison import TensorDifference, TensorSide
from floatlab.auditing.roundings import NarrowedCopy
from floatlab.wire.codecs import FORMAT, optional
from floatlab.wire.schema import Member, Schema, common_members, derived, field, field_codecs, schema_of

_SIDE = schema_of(TensorSide)
_ROUNDED = schema_of(NarrowedCopy)
_OWN = ("tensor", "result", "size", "failing", "share", "absolute", "relative", "ulps", "reason")
TENSOR_DIFFERENCE = Schema(
    TensorDifference,
    {
        **common_members("compare"),
        **field_codecs(TensorDifference, *_OWN),
        "within": derived("within"),
        "actual": field(optional(_SIDE), "actual"),
        "expected": field(optional(_SIDE), "expected"),
        "ulp_format": field(optional(FORMAT), "ulp_format"),
        "rounded": Member(optional(_ROUNDED), lambda found: found.rounded, "rounded"),
    },
)
