"""The limit of open files, which bounds the number of connections."""

from __future__ import annotations

import resource


def allow_descriptors(wanted: int) -> int:
    """Raise the limit of open files, for servers started later too; return the limit in force.

    A limit that is high enough stays: a lower one would take files from others in this process.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return max(soft, wanted)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, OSError):  # only root may exceed the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
