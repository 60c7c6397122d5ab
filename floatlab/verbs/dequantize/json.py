"""The JSON schema of a checkpoint that was written as numbers."""

from __future__ import annotations

from floatlab.auditing.dequantization import Dequantization
from floatlab.wire.schema import Schema, common_members, field_codecs

DEQUANTIZATION = Schema(Dequantization, {**common_members("dequantize"), **field_codecs(Dequantization)})
