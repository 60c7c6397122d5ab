"""The JSON of exercise sheets and of marks; floatlab writes it but does not read it."""

from __future__ import annotations

from floatlab.wire.schema import attributes, common_members, derived, schema

SHEET = schema(**common_members("practice"), **attributes("command"), key=derived("has_key"), questions=derived("rows"))
MARKING = schema(
    **common_members("practice"), **attributes("command", "right", "asked", "unread"), marks=derived("rows")
)
