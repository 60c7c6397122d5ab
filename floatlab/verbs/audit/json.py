"""The JSON schema of an audited weight; `audit --json` writes a line for each."""

from __future__ import annotations

from floatlab.auditing.audit import AuditedTensor
from floatlab.wire.schema import Schema, common_members, field_codecs

AUDITED_TENSOR = Schema(AuditedTensor, {**common_members("audit"), **field_codecs(AuditedTensor)})
