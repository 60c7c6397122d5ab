"""The colours of the explorer's themes, and colours for Textual's other themes.

The *role* of a text on a page, such as sign, exponent or hint, determines its colour.
"""

from __future__ import annotations

from dataclasses import replace

from rich.style import Style
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from floatlab.page.model import Role
from floatlab.page.png import ON_WHITE, PageColours
from floatlab.record import Record

# The colours of the roles in five themes: dark, light, for colour-blind users, and two with the terminal's sixteen
# colours, for a dark and for a light background. The third theme uses blue, orange and yellow of Okabe and Ito, a pale
# purple, white and grey. They differ in lightness as well as in hue, and no pair of them is red and green. In all
# themes, the contrast with the background is at least 4.5:1. Some of the sixteen colours are avoided because they are
# hard to read: blue, bright blue, red, magenta and yellow (brown on the console) on black; green, cyan and yellow on
# white.
_COLOURS = {
    "label": ("#9aa4af", "#525c66", "#b0b0b0", "ansi_default", "ansi_default"),
    "sign": ("#ff9e64", "#a63c00", "#e69f00", "ansi_bright_red", "ansi_red"),
    "exponent": ("#5fd7a7", "#00664f", "#f0e442", "ansi_bright_green", "ansi_magenta"),
    "significand": ("#6cb6ff", "#005a94", "#56b4e9", "ansi_bright_cyan", "ansi_blue"),
    "implicit": ("#7ee0e6", "#0a5f7a", "#ffffff", "ansi_cyan", "ansi_blue"),
    "lost": ("#f2a3cf", "#96356f", "#d0a0c8", "ansi_bright_magenta", "ansi_magenta"),
    "code": ("#f0c674", "#6b4c00", "#ffffff", "ansi_bright_yellow", "ansi_default"),
    "good": ("#5fd7a7", "#00664f", "#56b4e9", "ansi_bright_green", "ansi_blue"),
    "bad": ("#ff9e64", "#a63c00", "#e69f00", "ansi_bright_red", "ansi_red"),
    "flag": ("#f2a3cf", "#96356f", "#e69f00", "ansi_bright_magenta", "ansi_magenta"),
}
# The colours of controls in the first three themes: buttons, the row under the cursor, that row while the focus is
# elsewhere, and borders.
_FRAME = {
    "button": ("#2f3743", "#dde3ea", "#3a3a3a"),
    "row": ("#28405c", "#cfe4fa", "#123f5c"),
    "row-left": ("#222932", "#e9eef3", "#2a2a2a"),
    "border-blurred": ("#414b58", "#c3ccd6", "#6a6a6a"),
}
_DARK, _LIGHT, _SAFE, _ANSI, _ANSI_LIGHT = (
    {f"role-{role}": row[column] for role, row in _COLOURS.items()} for column in range(5)
)


def _theme(name: str, roles: dict[str, str], ground: tuple[str, str, str, str], **colours: str) -> Theme:
    """Return a theme. `ground` has the colours of foreground, background, surface and panel."""
    usual = {
        "primary": roles["role-significand"],
        "secondary": roles["role-implicit"],
        "accent": roles["role-code"],
        "warning": roles["role-code"],
        "error": roles["role-bad"],
        "success": roles["role-good"],
        **dict(zip(("foreground", "background", "surface", "panel"), ground, strict=True)),
        **colours,
    }
    column = (_DARK, _LIGHT, _SAFE).index(roles)
    frame = {name: colours[column] for name, colours in _FRAME.items()}
    return Theme(name, dark=roles is not _LIGHT, variables=roles | frame, **usual)  # type: ignore[arg-type]


SIXTEEN = "floatlab-16"
_TEXTUALS = BUILTIN_THEMES["ansi-dark"]
THEMES = (
    _theme("floatlab-dark", _DARK, ("#e6e9ee", "#14171c", "#1b1f26", "#242a33")),
    _theme("floatlab-light", _LIGHT, ("#1f2328", "#ffffff", "#f4f6f8", "#e6eaef")),
    _theme(
        "floatlab-safe",
        _SAFE,
        ("#f2f2f2", "#101010", "#1a1a1a", "#2a2a2a"),
        secondary="#f0e442",
        accent="#f0e442",
        warning="#e69f00",
    ),
    # For terminals with sixteen colours and a dark background; `ansi-light` is for a light background.
    replace(
        _TEXTUALS,
        name=SIXTEEN,
        primary="ansi_cyan",
        accent="ansi_bright_yellow",
        variables=_TEXTUALS.variables | _ANSI | {"border-blurred": "ansi_bright_black"},
    ),
)
# The themes that the theme key cycles through; the command palette also lists Textual's themes.
CYCLE = (*(theme.name for theme in THEMES), "ansi-dark", "ansi-light")


def role_colours(dark: bool, ansi: bool) -> dict[str, str]:
    """Return the colours of the roles for a theme that does not define them.

    If `ansi` is true, the colours are among the sixteen colours of the terminal.
    """
    if ansi:
        return _ANSI if dark else _ANSI_LIGHT
    return _DARK if dark else _LIGHT


# Roles that share the colour of another role. A role that is listed nowhere has the colour of text.
_SAME = {"ruler": "label", "hint": "label"}
_BOLD = frozenset({Role.HEADING, Role.VALUE, Role.CHANGED})
# Styles added under the cursor, under the mouse and to changed characters. They are visible without colour.
CURSOR, HOVER, CHANGED = Style(reverse=True, bold=True), Style(underline=True, bold=True), Style(underline=True)
LEFT = Style(underline=True, bold=True)  # for the cursor of a widget without the focus


def inks(variables: dict[str, str]) -> dict[Role, Style]:
    """Return the style of each role from the variables of a theme.

    Textual's component classes would compute these styles again for each widget. That would take most of the time
    before the first frame.
    """
    styles = {}
    for role in Role:
        colour = variables.get(f"role-{_SAME.get(role.value, role.value)}")
        styles[role] = Style(color=Color.parse(colour).rich_color if colour else None, bold=role in _BOLD or None)
    return styles


def page_colours(variables: dict[str, str]) -> PageColours:
    """Return the colours for pictures of pages from the variables of a theme.

    Some themes use the colours of the terminal, which are not known. Such themes get colours for a white background.
    """
    found = {name: variables[name] for name in ("foreground", "background")}
    roles = {role: variables.get(f"role-{_SAME.get(role.value, role.value)}") for role in Role}
    found |= {role.value: colour for role, colour in roles.items() if colour}
    if any(colour.startswith("ansi") for colour in found.values()):
        return ON_WHITE
    parsed = {name: Color.parse(colour).hex6 for name, colour in found.items()}
    kept = {role: parsed[role.value] for role in Role if role.value in parsed}
    return PageColours(kept, parsed["foreground"], parsed["background"])


class Chrome(Record):
    """The styles of tabs, buttons and rows.

    If `plain` is true, the styles need no colours: buttons have brackets, and the row under the cursor is in reverse
    video.
    """

    plain: bool
    tab: Style = CURSOR  # the current tab
    button: Style = Style()
    pressed: Style = CURSOR  # the button that is on
    row: Style = CURSOR  # the row under the cursor
    row_left: Style = LEFT  # that row while the focus is elsewhere


def chrome(variables: dict[str, str], plain: bool) -> Chrome:
    """Return the styles of tabs, buttons and rows from a theme's variables, or plain styles.

    The styles are plain if `plain` is true, or if the variables define no styles.
    """
    if plain or "button" not in variables:
        return Chrome(plain=True)
    colours = {name: Color.parse(variables[name]).rich_color for name in ("button", "row", "row-left")}
    primary, ground = (Color.parse(variables[name]).rich_color for name in ("primary", "background"))
    text = Color.parse(variables["foreground"]).rich_color
    return Chrome(
        plain=False,
        tab=Style(color=ground, bgcolor=primary, bold=True),
        button=Style(color=text, bgcolor=colours["button"]),
        pressed=Style(color=ground, bgcolor=primary, bold=True),
        row=Style(bgcolor=colours["row"], bold=True),
        row_left=Style(bgcolor=colours["row-left"]),
    )
