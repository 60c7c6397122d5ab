"""The list of keys, made from the active bindings."""

from __future__ import annotations

from textual.screen import Screen

from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, line

_HIDDEN = ("scroll_", "page_", "app.focus", "focus_", "screen.copy_text", "help_quit", "copy_text")


def keys_page(screen: Screen[object]) -> Page:
    """Return a page of the keys that work now, those of the focused widget first, and the help texts."""
    groups: dict[str, dict[str, list[str]]] = {}
    seen: set[tuple[str, str]] = set()
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if binding.description and not binding.action.startswith(_HIDDEN) and (key, binding.action) not in seen:
            seen.add((key, binding.action))
            owner = getattr(active.node, "PLACE", "") or f"In {type(active.node).__name__.lower()}"
            rows = groups.setdefault(owner, {})
            rows.setdefault(binding.tooltip or binding.description, []).append(screen.app.get_key_display(binding))
    blocks: list[Block] = []
    for owner, rows in groups.items():
        blocks += [Gap()] if blocks else []
        blocks.append(Note(line(Span(owner, Role.HEADING))))
        blocks += [Row(" ".join(keys), line(words)) for words, keys in rows.items()]
    texts = [widget.HELP for widget in (screen.focused, screen) if widget is not None and widget.HELP]
    for text in texts:
        blocks += [Gap(), Note(line(text))]
    blocks += [Gap(), Note(line("Ctrl+P opens the palette: formats, rules, examples and everything else by name."))]
    return Page(tuple(blocks), "keys")
