"""The limit of open files, which bounds the number of connections."""

from __future__ import annotations

import resource


def allow_descriptors(wanted: int) -> int:
    """Raise the limit of open files, for servers started later too; return the new limit."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, max(wanted, hard)))
    except (ValueError, OSError):  # only root may exceed the hard limit
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]
