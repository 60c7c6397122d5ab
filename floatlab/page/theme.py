"""Roles to colours. Terminals get the 16 ANSI colours of the user's own theme; pictures get fixed ones."""

from __future__ import annotations

from floatlab.page.model import Role

# Select Graphic Rendition codes: the user's palette, so that light and dark terminals both stay readable.
ANSI: dict[Role, str] = {
    Role.LABEL: "2",
    Role.HEADING: "1",
    Role.RULER: "2",
    Role.SIGN: "31",
    Role.EXPONENT: "32",
    Role.SIGNIFICAND: "34",
    Role.IMPLICIT: "36",
    Role.LOST: "35",
    Role.CHANGED: "1",
    Role.CODE: "33",
    Role.VALUE: "1",
    Role.FLAG: "35",
    Role.GOOD: "32",
    Role.BAD: "31",
    Role.HINT: "2",
}

# Okabe and Ito's palette, darkened to at least 4.5:1 on white: distinct to colour-blind eyes.
SVG_BACKGROUND = "#ffffff"
SVG_TEXT = "#1f2328"
SVG: dict[Role, str] = {
    Role.LABEL: "#656d76",
    Role.RULER: "#656d76",
    Role.HINT: "#656d76",
    Role.SIGN: "#b34700",
    Role.EXPONENT: "#00755a",
    Role.SIGNIFICAND: "#0065a3",
    Role.IMPLICIT: "#0b6e8f",
    Role.LOST: "#a0457c",
    Role.FLAG: "#a0457c",
    Role.CODE: "#7d5a00",
    Role.GOOD: "#00755a",
    Role.BAD: "#b34700",
}
SVG_BOLD = frozenset({Role.HEADING, Role.CHANGED, Role.VALUE})
