"""The JSON schemas of audits; `audit --json` writes a line for each weight or tensor."""

from __future__ import annotations

from floatlab.auditing.judging import AuditedTensor
from floatlab.auditing.survival.figures import RecipeAudit, RecipeFigures, Recommendation, TensorFigures
from floatlab.wire.codecs import list_of
from floatlab.wire.schema import Schema, common_members, derived, field_codecs, schema_of

AUDITED_TENSOR = Schema(AuditedTensor, {**common_members("audit"), **field_codecs(AuditedTensor)})
TENSOR_FIGURES = Schema(TensorFigures, {**common_members("audit"), **field_codecs(TensorFigures)})
# The last line of `audit --to`: all tensors together.
RECIPE_AUDIT = Schema(
    None,
    {
        **common_members("audit"),
        **field_codecs(RecipeAudit, "sources", "recipes", "min_sqnr", "inputs"),
        "tensors": derived(lambda found: len(found.tensors)),
        "failing": derived(lambda found: [each.tensor for each in found.failing]),
        "totals": list_of(schema_of(RecipeFigures)),
        "recommendation": schema_of(Recommendation),
    },
)
