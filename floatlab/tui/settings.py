"""What is kept between starts: the user's settings (TOML, read only), and where each screen was left (JSON)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST = 200_000  # bytes that are read of either file


def _folder(variable: str, otherwise: str) -> Path | None:
    named = os.environ.get(variable, "")
    try:
        return (Path(named) if os.path.isabs(named) else Path.home() / otherwise) / "floatlab"
    except RuntimeError:  # no home
        return None


def settings_file() -> Path | None:
    """Return where settings are looked for: explorer.toml in the XDG configuration directory."""
    folder = _folder("XDG_CONFIG_HOME", ".config")
    return folder and folder / "explorer.toml"


def session_file() -> Path | None:
    """Return where a session is kept: explorer.json in the XDG state directory."""
    folder = _folder("XDG_STATE_HOME", ".local/state")
    return folder and folder / "explorer.json"


def _read(path: Path | None) -> str:
    if path is None:
        return ""
    with open(path, encoding="utf-8") as file:
        return file.read(_MOST)


def read_settings() -> tuple[dict[str, Any], str]:
    """Return the settings, and a complaint where the file cannot be used."""
    import tomllib

    path = settings_file()
    try:
        return tomllib.loads(_read(path)), ""
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError) as error:
        return {}, f"{path} is not used: {error}"


def read_session() -> dict[str, Any]:
    """Return the last session, or nothing where there is none that can be read."""
    try:
        found = json.loads(_read(session_file()) or "{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_session(session: dict[str, Any]) -> None:
    """Keep a session; a place that cannot be written is no reason to complain at the end."""
    path = session_file()
    if path is None:
        return
    part = path.with_suffix(f".{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(part, "w", encoding="utf-8") as file:
            json.dump(session, file, indent=1)
        part.replace(path)  # whole or not at all, also when two explorers end at once
    except OSError:
        with suppress(OSError):
            part.unlink()
