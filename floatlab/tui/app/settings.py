"""The user's settings (TOML, read only), and the session (JSON), which the next start of the explorer continues."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from floatlab.atomic_write import replacing
from floatlab.errors import FloatlabError
from floatlab.sandbox import confined

_MOST_SETTINGS, _MOST_SESSION = 20_000, 200_000  # maximum lengths of the files, in characters
_MOST_QUESTION = 20_000  # questions longer than this (in characters of JSON) are not saved
_MOST_IN_HISTORY = 1_000  # questions longer than this are not saved in the history
# The settings and their types.
_KNOWN = {"theme": str, "slide": bool, "animations": bool, "keys": dict}


def _folder(variable: str, otherwise: str) -> Path | None:
    named = os.environ.get(variable, "")
    try:
        folder = Path(named) if os.path.isabs(named) else Path.home() / otherwise
    except RuntimeError:  # there is no home directory
        return None
    return folder / "floatlab" if folder.is_absolute() else None


def settings_file() -> Path | None:
    """Return the path of the settings: floatlab/explorer.toml in the XDG configuration directory.

    Return None if the variable XDG_CONFIG_HOME has no absolute path, and the user has no home directory.
    """
    folder = _folder("XDG_CONFIG_HOME", ".config")
    return folder and folder / "explorer.toml"


def session_file() -> Path | None:
    """Return the path of the session: floatlab/explorer.json in the XDG state directory.

    Return None if the variable XDG_STATE_HOME has no absolute path, and the user has no home directory.
    """
    folder = _folder("XDG_STATE_HOME", ".local/state")
    return folder and folder / "explorer.json"


def _read(path: Path | None, most: int) -> str:
    """Return the text of a file, or an empty text if `path` is None or the file does not exist.

    Raises OSError if the file cannot be read. Raises ValueError if it is not a regular file, too long, or not UTF-8.
    """
    if path is None or not path.exists():
        return ""
    if not path.is_file():
        raise ValueError("it is not a file")
    with open(path, encoding="utf-8") as file:
        text = file.read(most + 1)
    if len(text) > most:
        raise ValueError(f"it is longer than {most:,} characters")
    return text


def read_settings() -> tuple[dict[str, object], str]:
    """Return the valid settings, and a message about invalid ones (empty if all are valid)."""
    path = settings_file()
    read: dict[str, object] = {}
    try:
        if text := _read(path, _MOST_SETTINGS):
            import tomllib  # only here: the import takes time, and most people have no settings

            read = tomllib.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        return {}, f"{path} is not used: {error or type(error).__name__}"
    type_names = {str: "a string", bool: "true or false", dict: "a table"}
    wrong = [
        f"{name} takes {type_names[kind]}"
        for name, kind in _KNOWN.items()
        if name in read and not isinstance(read[name], kind)
    ]
    wrong += [f"there is no setting {name!r}" for name in read if name not in _KNOWN]
    usable: dict[str, object] = {name: value for name, value in read.items() if isinstance(value, _KNOWN.get(name, ()))}
    keys = read.get("keys")
    if isinstance(keys, dict):
        usable["keys"] = {name: key for name, key in keys.items() if isinstance(key, str)}
        if usable["keys"] != keys:
            wrong.append('keys takes strings, such as "bits.flip" = "f9"')
    return usable, f"{path}: {'; '.join(wrong)}" if wrong else ""


def read_session() -> dict[str, object]:
    """Return the last session; empty if there is no last session, or if the file cannot be read."""
    try:
        session = json.loads(_read(session_file(), _MOST_SESSION) or "{}")
    except (OSError, ValueError, RecursionError):
        return {}
    return session if isinstance(session, dict) else {}


def write_session(session: dict[str, object]) -> None:
    """Write a session to its file; ignore failures. An explorer that a server runs for a visitor writes nothing.

    Very long questions are omitted: a session that exceeds the maximum length would not be read again.
    """
    path = session_file()
    if path is None or confined():
        return
    history = session.get("history")
    if isinstance(history, list):
        kept_history = [words for words in history if len(json.dumps(words)) <= _MOST_IN_HISTORY]
        session = session | {"history": kept_history}
    questions = session.get("questions")
    if isinstance(questions, dict):
        kept = {name: words for name, words in questions.items() if len(json.dumps(words)) <= _MOST_QUESTION}
        session = session | {"questions": kept}
    with suppress(OSError, FloatlabError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:  # atomic, even if two explorers exit at the same time
            file.write(json.dumps(session, indent=1).encode())
