"""The JSON schema of `audit --from`, which finds the recipe that produced the codes of a tensor."""

from __future__ import annotations

from floatlab.auditing.recipe_search.records import RecipeSearch
from floatlab.wire.schema import Schema, common_members, derived, field_codecs

RECIPE_SEARCH = Schema(
    RecipeSearch,
    {**common_members("audit"), "made_by": derived("verdict"), **field_codecs(RecipeSearch)},
)
