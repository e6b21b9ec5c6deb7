"""How much memory this process can have."""

from __future__ import annotations

import os
from pathlib import Path


def machine_memory_bytes(root: Path = Path("/")) -> int:
    """The memory of the machine, or the limit of the control group if that is less.

    Args:
        root: The file system with ``proc`` and ``sys``.
    """
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return min([physical, *group_limits(root)])


def group_limits(root: Path) -> list[int]:
    """The limits of the process's control groups and of those that contain them, in versions 1 and 2."""
    limits = []
    for line in lines_of(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, name = rest.partition(":")
        if number == "0" and not controllers:
            top, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            top, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        group = Path(name.lstrip("/"))
        # in a container the name may be that of the machine outside: its own limit is then at the top
        for each in (group, *group.parents):
            limits += [int(text) for text in lines_of(top / each / file) if text.isdecimal()]
    return limits


def lines_of(path: Path) -> list[str]:
    """The lines of a file; none if it cannot be read."""
    try:
        return path.read_text().splitlines()
    except OSError:
        return []
