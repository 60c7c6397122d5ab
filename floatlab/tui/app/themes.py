"""Colours: three themes of our own, and what the roles of a page fall back to in everybody else's."""

from __future__ import annotations

from rich.style import Style
from textual.color import Color
from textual.theme import Theme

from floatlab.page.model import Role

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# Every pair with its background is at least 4.5:1. Okabe and Ito's hues, which colour-blind eyes tell apart.
_DARK = {
    "role-label": "#9aa4af",
    "role-sign": "#ff9e64",
    "role-exponent": "#5fd7a7",
    "role-significand": "#6cb6ff",
    "role-implicit": "#7ee0e6",
    "role-lost": "#f2a3cf",
    "role-code": "#f0c674",
    "role-good": "#5fd7a7",
    "role-bad": "#ff9e64",
    "role-flag": "#f2a3cf",
}
_LIGHT = {
    "role-label": "#59636e",
    "role-sign": "#a63c00",
    "role-exponent": "#00664f",
    "role-significand": "#005a94",
    "role-implicit": "#0a5f7a",
    "role-lost": "#96356f",
    "role-code": "#6b4c00",
    "role-good": "#00664f",
    "role-bad": "#a63c00",
    "role-flag": "#96356f",
}
# Blue, orange, yellow and grey only: no pair of red and green, and lightness differs as well as hue.
_SAFE = {
    "role-label": "#b0b0b0",
    "role-sign": "#e69f00",
    "role-exponent": "#f0e442",
    "role-significand": "#56b4e9",
    "role-implicit": "#ffffff",
    "role-lost": "#d0a0c8",
    "role-code": "#ffffff",
    "role-good": "#56b4e9",
    "role-bad": "#e69f00",
    "role-flag": "#e69f00",
}
# The user's own sixteen colours.
_ANSI = {
    "role-label": "ansi_default",
    "role-sign": "ansi_red",
    "role-exponent": "ansi_green",
    "role-significand": "ansi_blue",
    "role-implicit": "ansi_cyan",
    "role-lost": "ansi_magenta",
    "role-code": "ansi_yellow",
    "role-good": "ansi_green",
    "role-bad": "ansi_red",
    "role-flag": "ansi_magenta",
}


def _theme(name: str, roles: dict[str, str], **otherwise: Any) -> Theme:
    """Return a theme whose own colours are the roles'."""
    colours = {
        "primary": roles["role-significand"],
        "secondary": roles["role-implicit"],
        "accent": roles["role-code"],
        "warning": roles["role-code"],
        "error": roles["role-bad"],
        "success": roles["role-good"],
    }
    return Theme(name, variables=roles, **(colours | otherwise))


THEMES = (
    _theme(
        "floatlab-dark",
        _DARK,
        foreground="#e6e9ee",
        background="#14171c",
        surface="#1b1f26",
        panel="#242a33",
    ),
    _theme(
        "floatlab-light",
        _LIGHT,
        foreground="#1f2328",
        background="#ffffff",
        surface="#f4f6f8",
        panel="#e6eaef",
        dark=False,
    ),
    _theme(
        "floatlab-safe",
        _SAFE,
        secondary="#f0e442",
        accent="#f0e442",
        warning="#e69f00",
        foreground="#f2f2f2",
        background="#101010",
        surface="#1a1a1a",
        panel="#2a2a2a",
    ),
)
# What the theme key goes through; the palette knows all of Textual's.
CYCLE = (*(theme.name for theme in THEMES), "ansi-dark", "ansi-light")


def role_colours(dark: bool, ansi: bool) -> dict[str, str]:
    """Return the roles' colours for a theme that does not know them."""
    return _ANSI if ansi else _DARK if dark else _LIGHT


# Roles that have the colour of another; all that stand nowhere here have the text's own.
_SAME = {"ruler": "label", "hint": "label"}
_BOLD = frozenset({Role.HEADING, Role.VALUE, Role.CHANGED})
# What a cursor, the mouse and a change do to a character, on top of its role; seen without colour too.
CURSOR, HOVER, CHANGED = Style(reverse=True, bold=True), Style(underline=True, bold=True), Style(underline=True)
LEFT = Style(underline=True, bold=True)  # where the cursor stands while the focus is elsewhere


def inks(variables: dict[str, str]) -> dict[Role, Style]:
    """Return each role's style from a theme's variables.

    Textual's component classes would do the same, one style sheet's worth of work a widget and role: most of
    the time to the first frame.
    """
    found = {}
    for role in Role:
        colour = variables.get(f"role-{_SAME.get(role.value, role.value)}")
        found[role] = Style(color=Color.parse(colour).rich_color if colour else None, bold=role in _BOLD or None)
    return found
