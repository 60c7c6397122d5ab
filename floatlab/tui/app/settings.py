"""What is kept between starts: the user's settings (TOML, read only), and where each screen was left (JSON)."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from floatlab.confinement import confined
from floatlab.errors import FloatlabError
from floatlab.writing import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MOST_SETTINGS, _MOST_SESSION = 20_000, 200_000  # characters of a file that are taken for one
_MOST_QUESTION = 20_000  # and of the words of a question that is worth keeping
# What can be set, and what it takes.
_KNOWN = {"theme": str, "slide": bool, "animations": bool, "keys": dict}


def _folder(variable: str, otherwise: str) -> Path | None:
    named = os.environ.get(variable, "")
    try:
        folder = Path(named) if os.path.isabs(named) else Path.home() / otherwise
    except RuntimeError:  # no home
        return None
    return folder / "floatlab" if folder.is_absolute() else None


def settings_file() -> Path | None:
    """Return where settings are looked for: explorer.toml in the XDG configuration directory."""
    folder = _folder("XDG_CONFIG_HOME", ".config")
    return folder and folder / "explorer.toml"


def session_file() -> Path | None:
    """Return where a session is kept: explorer.json in the XDG state directory."""
    folder = _folder("XDG_STATE_HOME", ".local/state")
    return folder and folder / "explorer.json"


def _read(path: Path | None, most: int) -> str:
    """Return a file's text; raises OSError or ValueError where it is no file of a sensible size."""
    if path is None or not path.exists():
        return ""
    if not path.is_file():
        raise ValueError("it is not a file")
    with open(path, encoding="utf-8") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it is longer than {most:,} characters")
    return text


def read_settings() -> tuple[dict[str, Any], str]:
    """Return the settings that can be used, and a complaint about the others."""
    import tomllib

    path = settings_file()
    try:
        found = tomllib.loads(_read(path, _MOST_SETTINGS))
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path} is not used: {error or type(error).__name__}"
    words = {str: "a text", bool: "true or false", dict: "a table"}
    wrong = [
        f"{name} takes {words[kind]}"
        for name, kind in _KNOWN.items()
        if name in found and not isinstance(found[name], kind)
    ]
    wrong += [f"there is no setting {name!r}" for name in found if name not in _KNOWN]
    keys = found.get("keys")
    if isinstance(keys, dict) and not all(isinstance(key, str) for key in keys.values()):
        wrong.append('keys takes texts, such as "bits.flip" = "f9"')
    usable: dict[str, Any] = {name: value for name, value in found.items() if isinstance(value, _KNOWN.get(name, ()))}
    if isinstance(keys, dict):
        usable["keys"] = {name: key for name, key in keys.items() if isinstance(key, str)}
    return usable, f"{path}: {'; '.join(wrong)}" if wrong else ""


def read_session() -> dict[str, Any]:
    """Return the last session, or nothing where there is none that can be read."""
    try:
        found = json.loads(_read(session_file(), _MOST_SESSION) or "{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def write_session(session: dict[str, Any]) -> None:
    """Keep a session; a place that cannot be written is no reason to complain at the end.

    Questions of enormous length are left out: a session that cannot be read again would be lost whole.
    """
    path = session_file()
    if path is None or confined():
        return
    questions = session.get("questions", {})
    kept = {name: words for name, words in questions.items() if len(json.dumps(words)) <= _MOST_QUESTION}
    session = session | {"questions": kept}
    with suppress(OSError, FloatlabError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:  # whole or not at all, also when two explorers end at once
            file.write(json.dumps(session, indent=1).encode())
