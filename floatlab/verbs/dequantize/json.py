"""The JSON schema of the answers of `dequantize`: checkpoints that were written as plain numbers."""

from __future__ import annotations

from floatlab.auditing.dequantization import Dequantization
from floatlab.wire.schema import Schema, common_members, field_codecs

DEQUANTIZATION = Schema(Dequantization, {**common_members("dequantize"), **field_codecs(Dequantization)})
