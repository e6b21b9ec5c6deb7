"""Files that may change while the plugin runs: secrets and certificates that somebody renews."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

Signature = tuple[tuple[int, int, int] | None, ...]


class WatchedFiles:
    """Says when a look at the files is worth it. Nothing is kept open and nothing runs in between."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.paths = tuple(paths)
        self.seen: Signature = ()

    def changed(self) -> bool:
        """Whether they changed since the last call; True at the first one.

        A file that was replaced through a symbolic link (as Kubernetes does) has another inode.
        """
        now = tuple(signature(path) for path in self.paths)
        changed = now != self.seen
        self.seen = now
        return changed


def signature(path: Path) -> tuple[int, int, int] | None:
    """Time of change in nanoseconds, inode, size; None when the file cannot be seen."""
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_ino, stat.st_size
