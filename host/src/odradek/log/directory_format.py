"""The version of the format in which a log directory stores partitions, in a file of that directory.

A release that stores logs in a way that older releases would misread adds a step. Directories from before
the file existed have version 0.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from odradek import __version__
from odradek.log.private_file import write_private

FORMAT_FILE: Final = "odradek.properties"
_VERSION: Final = re.compile(r"^version=([0-9]{1,9})$", re.MULTILINE)


def _nothing(_directory: Path) -> None:
    """Version 1 stores logs as version 0 does; only the file is new."""


STEPS: Final[tuple[Callable[[Path], None], ...]] = (_nothing,)
"""Each turns a directory of version N into one of version N + 1. A crash repeats a step."""
FORMAT_VERSION: Final = len(STEPS)


class FormatError(Exception):
    """The directory has a newer version, or a file that does not name one."""


def version_of(directory: Path) -> int:
    """The version of a directory, which may be new.

    Raises:
        FormatError: The file names no version.
        OSError: The file cannot be read.
    """
    path = directory / FORMAT_FILE
    try:
        found = _VERSION.search(path.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return 0
    if found is None:
        raise FormatError(f"{path} has no line version=NUMBER; restore the file from a backup")
    return int(found[1])


def refuse_newer(directory: Path, supported: int = FORMAT_VERSION) -> None:
    """Check that this release knows the format of a directory. Nothing is written.

    Raises:
        FormatError: It does not.
        OSError: The file cannot be read.
    """
    version = version_of(directory)
    if version > supported:
        raise FormatError(
            f"{directory / FORMAT_FILE} has version {version} of the log format, but odradek {__version__}"
            f" supports versions up to {supported}: start the release that wrote it, or restore a backup of"
            " the whole data directory from before the upgrade"
        )


def migrate(directory: Path, steps: Sequence[Callable[[Path], None]] = STEPS) -> None:
    """Bring a directory, which is created if it does not exist, to the newest version.

    Raises:
        FormatError: The file names no version.
        OSError: A file cannot be read or written. The version is that of the last complete step.
    """
    for version in range(version_of(directory), len(steps)):
        steps[version](directory)
        _write(directory, version + 1)


def _write(directory: Path, version: int) -> None:
    """Replace the file; it is whole after a power failure, too."""
    draft = directory / f"{FORMAT_FILE}.tmp"
    write_private(draft, f"# format of the logs in this directory\nversion={version}\n".encode())
    for path in (draft, directory):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        if path == draft:
            os.replace(draft, directory / FORMAT_FILE)
