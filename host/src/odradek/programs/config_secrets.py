"""The secrets of a configuration: which values they are, and where they come from."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from odradek.settings.listener_values import base_of
from odradek.settings.references import FILE, providers, resolved, warn_if_others_read
from odradek.settings.secrets import SECRET_KEY, Secrets, secret, texts_of

PLUGINS = "plugins."


def with_references(values: Mapping[str, object], environment: Mapping[str, str]) -> dict[str, object]:
    """Return the values with the texts that their references stand for.

    A text from a file is a secret. One from the environment is a secret if it belongs to a plugin, whose
    settings are not declared; the others may as well be a host name.

    Raises:
        ConfigError: A reference has no text.
    """
    found = {}
    for key, value in values.items():
        kinds = providers(value)
        parts: set[str] = set()
        text = resolved(key, value, environment, parts) if kinds else value
        hide = FILE in kinds or (kinds and key.startswith(PLUGINS))
        found[key] = secret(text, parts) if hide else text
    return found


def with_secrets(values: Mapping[str, object], sensitive: Collection[str]) -> dict[str, object]:
    """Return the values, those of keys that hold secrets as secrets.

    Args:
        values: The values by dotted key.
        sensitive: The declared keys that hold secrets.
    """
    return {key: secret(value) if is_secret(key, sensitive) else value for key, value in values.items()}


def is_secret(key: str, sensitive: Collection[str]) -> bool:
    """Whether a key holds a secret, wherever its value stands."""
    if key.startswith(PLUGINS):
        return SECRET_KEY.search(key) is not None
    return base_of(key) in sensitive


def secrets_of(values: Mapping[str, object]) -> Secrets:
    """The secrets among the values."""
    return Secrets({key: value for key, value in values.items() if any(texts_of(value))})


def warn_about_secrets_in(file: Path, values: Mapping[str, object], sensitive: Collection[str]) -> None:
    """Warn if every user can read a configuration file that has secrets in the clear."""
    for key, value in values.items():
        if is_secret(key, sensitive) and value and not providers(value):
            warn_if_others_read(file, file.stat(), key)
            return
