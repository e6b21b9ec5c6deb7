"""The headers of each request: those of the table, and secrets out of files that may change while it runs."""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from odradek_otlp.watched_files import WatchedFiles

log = logging.getLogger(__name__)

HEADER_NAME = re.compile(r"[a-z0-9_.-]+")
HEADER_VALUE = re.compile(r"[\x20-\x7e]*")
OURS = ("content-encoding", "content-length", "content-type", "te", "transfer-encoding")
"""Headers that say what the body is."""
MAX_FILE_BYTES = 64 * 1024


class SecretKind(StrEnum):
    """What a file holds. The value is its key in the table."""

    BEARER = "bearer.token.file"
    """A token, for ``authorization: Bearer``."""
    BASIC = "basic.auth.file"
    """``user:password``, for ``authorization: Basic``."""
    HEADERS = "secret.headers.file"
    """A header in each line, ``name: value``."""


class BadSecret(ValueError):
    """A file does not hold what it should. The message never shows what it holds."""


@dataclass(slots=True, eq=False)
class Credentials:
    """Read at the start, after a change of a file, and when the far side does not accept them.

    A file that cannot be read while it is being replaced leaves the last good headers in place.
    """

    headers: Mapping[str, str] = field(repr=False)
    """Of the table; names in lower case."""
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
        """Headers for the next request, the files read again whether they seem to have changed or not."""
        try:
            self.current = self.read()
        except (OSError, BadSecret) as error:
            log.warning("secret not renewed", extra={"problem": str(error)})
        return self.current

    def read(self) -> dict[str, str]:
        """All headers.

        Raises:
            OSError: A file cannot be read.
            BadSecret: It does not hold what it should.
        """
        found = dict(self.headers)
        for kind, path in self.files.items():
            found |= secret_headers(kind, path)
        return found


def secret_headers(kind: SecretKind, path: Path) -> dict[str, str]:
    """The headers that one file makes."""
    with path.open("rb") as file:
        raw = file.read(MAX_FILE_BYTES + 1)
    try:
        text = raw.decode().strip()
    except UnicodeDecodeError:
        raise BadSecret(f"{path}: expected text") from None
    if not text or len(raw) > MAX_FILE_BYTES:
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
