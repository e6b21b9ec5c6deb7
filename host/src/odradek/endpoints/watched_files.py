"""Detects changes of files that are renewed at run time: secrets and certificates."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Signature = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Tells whether files have changed since the last look. It keeps no file open and no thread running."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self.seen: Signature = ()

    def changed(self) -> bool:
        """Whether a file changed since the last call; True at the first call.

        A file that is replaced through a symbolic link, as in Kubernetes, is detected by its inode.
        """
        now = tuple(signature(path) for path in self.paths)
        changed = now != self.seen
        self.seen = now
        return changed


def signature(path: Path) -> tuple[int, int, int] | None:
    """Modification time in nanoseconds, inode and size; None if the file is inaccessible."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
