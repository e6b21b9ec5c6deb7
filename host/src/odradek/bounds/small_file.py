"""Reading a file that another program may replace at any time: a switch, a secret, a certificate, a token."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import Final

MOST_BYTES: Final = 1 << 20
KINDS: Final = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


def expanded(path: str | Path) -> Path:
    """The path with the home of a user in place of ``~`` or ``~NAME``.

    Raises:
        OSError: There is no such user.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise FileNotFoundError(errno.ENOENT, "there is no such user", str(path)) from None


def read_small_file(path: Path, most_bytes: int = MOST_BYTES) -> bytes:
    """Return the content of a regular file. It never waits for another program, as reading a pipe would.

    Raises:
        OSError: The file cannot be read, is something else, or has more bytes; `strerror` says which.
    """
    require_regular(path, path.stat().st_mode)  # opening a device can have effects
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    with os.fdopen(descriptor, "rb") as file:
        require_regular(path, os.fstat(descriptor).st_mode)
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {most_bytes} bytes", str(path))
    return content


def require_regular(path: Path, mode: int) -> None:
    """Refuse what is no regular file.

    Raises:
        OSError: It is something else.
    """
    if not stat.S_ISREG(mode):
        kind = KINDS.get(stat.S_IFMT(mode), "no regular file")
        raise OSError(errno.EINVAL, f"it is {kind}, expected a file", str(path))
