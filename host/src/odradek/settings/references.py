"""References in the configuration: ``${file:PATH}``, ``${file:PATH:KEY}`` and ``${env:NAME}``.

The forms are those of Kafka's FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider (KIP-297).
A text may have several references, and other text around them.
"""

from __future__ import annotations

import logging
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from odradek.bounds.small_file import expanded, read_small_file
from odradek.plugin.config import ConfigError
from odradek.settings.properties import properties

log = logging.getLogger(__name__)

REFERENCE = re.compile(r"\$\{(file|env):([^}]+)\}")
FILE: Final = "file"
MAX_BYTES: Final = 1 << 20


def resolved(key: str, value: object, environment: Mapping[str, str], found: set[str]) -> object:
    """Return a value with the texts that its references stand for.

    Args:
        key: The key, for errors.
        value: A value of the configuration; only texts and lists of texts can have references.
        environment: The environment variables.
        found: Takes the texts of the references.

    Raises:
        ConfigError: A file cannot be read, or a key of a file or an environment variable does not exist.
    """
    if isinstance(value, str):

        def text(reference: re.Match[str]) -> str:
            text = referenced(key, reference[1], reference[2], environment)
            found.add(text)
            return text

        return REFERENCE.sub(text, value)
    return [resolved(key, each, environment, found) for each in value] if isinstance(value, list) else value


def providers(value: object) -> set[str]:
    """The kinds of references in a value: ``file``, ``env``."""
    if isinstance(value, str):
        return {found[1] for found in REFERENCE.finditer(value)}
    return set().union(*map(providers, value)) if isinstance(value, list) else set()


def referenced(key: str, provider: str, name: str, environment: Mapping[str, str]) -> str:
    """The text of one reference."""
    if provider == FILE:
        return from_file(key, name)
    if name not in environment:
        raise ConfigError(key, f"expected the environment variable {name}, which is not set")
    return environment[name]


def from_file(key: str, name: str) -> str:
    """The content of a file without its last line break, or the value of one key of a properties file."""
    path, colon, entry = name.rpartition(":")
    if not colon or Path(name).is_file():
        return content(key, Path(name)).removesuffix("\n").removesuffix("\r")
    entries = properties(content(key, Path(path)))
    if entry not in entries:
        raise ConfigError(key, f"expected the key {entry} in the file {path}, which does not have it")
    return entries[entry]


def content(key: str, path: Path) -> str:
    """Read a file with a secret; warn if other users can read it too."""
    try:
        text = read_small_file(expanded(path), MAX_BYTES).decode()
        warn_if_others_read(path, expanded(path).stat(), key)
    except OSError as error:
        raise ConfigError(key, f"the file {path} cannot be read: {(error.strerror or '').lower()}") from None
    except UnicodeDecodeError:
        raise ConfigError(key, f"the file {path} is not a text in UTF-8") from None
    return text


def warn_if_others_read(path: Path, status: os.stat_result, key: str) -> None:
    """Warn about a file with a secret that every user of this machine can read."""
    if status.st_mode & stat.S_IROTH:
        log.warning(
            "every user of this machine can read a file with a secret; remove the permission: chmod o= FILE",
            extra={"file": str(path), "key": key, "mode": f"{stat.S_IMODE(status.st_mode):04o}"},
        )
