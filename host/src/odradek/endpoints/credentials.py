"""The headers of each request: headers of the table, and secrets from files that may change at run time."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek.bounds.small_file import read_small_file
from odradek.endpoints.watched_files import WatchedFiles
from odradek.plugin.config import PluginConfig

log = logging.getLogger(__name__)

HEADER_NAME = re.compile(r"[a-z0-9_.-]+")
ANY_HEADER_NAME = re.compile(r"[a-z0-9!#$%&'*+.^_`|~-]+")
"""The names of HTTP (RFC 9110, token), in lower case."""
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
OURS = ("content-encoding", "content-length", "content-type", "te", "transfer-encoding")
"""Headers that describe the body, which the plugin sets itself."""
MAX_FILE_BYTES = 64 * 1024


class SecretKind(StrEnum):
    """The content of a file. The value is its key in the table."""

    BEARER = "bearer.token.file"
    """A token, for ``authorization: Bearer``."""
    BASIC = "basic.auth.file"
    """``user:password``, for ``authorization: Basic``."""
    HEADERS = "secret.headers.file"
    """One header per line, ``name: value``."""


class BadSecret(ValueError):
    """The content of a file is malformed. The message never shows the content."""


@dataclass(slots=True, eq=False)
class Credentials:
    """Headers that are read at the start, after a file has changed, and after the endpoint refused them.

    If a file cannot be read, for example while it is being replaced, the last good headers stay in use.
    """

    headers: Mapping[str, str] = field(repr=False)
    """The headers of the table; names in lower case."""
    files: Mapping[SecretKind, Path]
    watched: WatchedFiles = field(init=False)
    current: Mapping[str, str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self.watched = WatchedFiles(self.files.values())
        self.watched.changed()
        self.current = self.read()

    def request_headers(self) -> Mapping[str, str]:
        """Headers for the next request."""
        return self.reread() if self.files and self.watched.changed() else self.current

    def reread(self) -> Mapping[str, str]:
        """Read the files again, changed or not, and return the headers for the next request."""
        try:
            self.current = self.read()
        except (OSError, BadSecret) as error:
            log.warning("secret not renewed, using the last good one", extra={"problem": str(error)})
        return self.current

    def read(self) -> dict[str, str]:
        """Read all headers.

        Raises:
            OSError: A file cannot be read.
            BadSecret: The content of a file is malformed.
        """
        found = dict(self.headers)
        for kind, path in self.files.items():
            found |= secret_headers(kind, path)
        return found


def secret_headers(kind: SecretKind, path: Path) -> dict[str, str]:
    """The headers from one file.

    Raises:
        OSError: The file cannot be read.
        BadSecret: Its content is malformed.
    """
    raw = read_small_file(path, MAX_FILE_BYTES)
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise BadSecret(f"{path}: expected text") from None
    if not text:
        raise BadSecret(f"{path}: expected 1 to {MAX_FILE_BYTES} bytes of text")
    if kind is SecretKind.HEADERS:
        return header_lines(path, text)
    if kind is SecretKind.BASIC:
        if ":" not in text or "\n" in text:
            raise BadSecret(f"{path}: expected user:password")
        return {"authorization": f"Basic {base64.b64encode(text.encode()).decode()}"}
    if not HEADER_VALUE.fullmatch(text) or " " in text:
        raise BadSecret(f"{path}: expected a token in printable ASCII")
    return {"authorization": f"Bearer {text}"}


def header_lines(path: Path, text: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        name, separator, value = line.partition(":")
        name, value = name.strip().lower(), value.strip()
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if not separator or not HEADER_NAME.fullmatch(name) or not HEADER_VALUE.fullmatch(value):
            raise BadSecret(f"{path}, line {number}: expected name: value in printable ASCII")
        if name in OURS or name.endswith("-bin") or name.startswith("grpc-"):
            raise BadSecret(f"{path}, line {number}: {name} cannot be set here")
        found[name] = value
    return found


def checked_headers(
    config: PluginConfig,
    rows: Mapping[str, str],
    is_ours: Callable[[str], bool] = lambda name: False,
    names: re.Pattern[str] = ANY_HEADER_NAME,
    key: str = "",
) -> dict[str, str]:
    """The headers that a plugin's table has for each request, with names in lower case.

    Args:
        config: The table.
        rows: Its headers.
        is_ours: Whether the plugin itself sets a header, besides `OURS`.
        names: The names that the protocol allows, in lower case.
        key: The key that has all of them; by default they are in the table ``headers``.

    Raises:
        ConfigError: A header is malformed. The error never shows a value: it may be a secret.
    """
    found = {}
    for name, value in rows.items():
        place, lower = key or f"headers.{name}", name.lower()
        if not names.fullmatch(lower):
            raise config.error(place, f"expected the name of a header, found {name!r}")
        if lower in OURS or is_ours(lower):
            raise config.error(place, f"the plugin sets the header {lower} itself: remove it")
        if not HEADER_VALUE.fullmatch(value):
            raise config.error(place, f"expected printable ASCII in the value of {lower}")
        found[lower] = value
    return found


def read_secrets(config: PluginConfig, headers: Mapping[str, str]) -> dict[SecretKind, Path]:
    """Files with secrets, read once to check them.

    Raises:
        ConfigError: A file is unusable, or two settings set the authorization header.
    """
    found = {kind: path for kind in SecretKind if (path := config.file(kind.value)) is not None}
    if SecretKind.BEARER in found and SecretKind.BASIC in found:
        raise config.error(SecretKind.BASIC, f"expected either this or {SecretKind.BEARER.value}, found both")
    for kind in found:
        read_secret(config, kind)
        if kind is not SecretKind.HEADERS and "authorization" in headers:
            raise config.error(kind.value, "expected no authorization in headers beside this file")
    return found


def read_secret(config: PluginConfig, kind: SecretKind) -> Path | None:
    """A file with secrets, read once to check it; None if the key is not set.

    Raises:
        ConfigError: The file is unusable.
    """
    path = config.file(kind.value)
    if path is not None:
        try:
            secret_headers(kind, path)
        except (OSError, BadSecret) as error:
            raise config.error(kind.value, str(error)) from error
    return path
