"""The recommended recipes of an audit as JSON."""

from __future__ import annotations

import json

from floatlab.auditing.survival.figures import RecipeAudit


def plan_text(found: RecipeAudit) -> str:
    """Return a recommendation as JSON; tensors that should stay as they are have null as recipe.

    >>> import numpy as np
    >>> from floatlab.auditing.survival.survey import audit_recipes
    >>> print(plan_text(audit_recipes({"w": np.float32([1, 2])}, "e4m3", min_sqnr=20)), end="")
    {
      "schema": 1,
      "sources": ["the mapping"],
      "rule": "A tensor survives a recipe if its SQNR is at least 20 dB, and if no number becomes NaN or infinite.",
      "base": "e4m3",
      "bits": 8.0,
      "sqnr": null,
      "tensors": {
        "w": "e4m3"
      }
    }
    """
    advice = found.recommendation
    members = {
        "schema": 1, "sources": list(found.sources), "rule": advice.rule, "base": advice.base or None,
        "bits": advice.bits, "sqnr": advice.sqnr if advice.sqnr is not None and abs(advice.sqnr) < 1e9 else None,
    }  # fmt: skip
    lines = [f"  {json.dumps(name)}: {json.dumps(value)},\n" for name, value in members.items()]
    rows = [f"    {json.dumps(name)}: {json.dumps(recipe or None)}" for name, recipe in advice.plan]
    return "".join(("{\n", *lines, '  "tensors": {\n', ",\n".join(rows), "\n" * bool(rows), "  }\n}\n"))
