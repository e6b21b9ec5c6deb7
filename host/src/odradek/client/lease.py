"""Leases of subscriptions: the name of a subscription tells when it ends.

A command that sets a subscription for a while may be killed before it takes it back. Whoever sees the name,
a host or the next command, then knows that it has ended, and deletes it.
"""

from __future__ import annotations

import re
from typing import Final

PREFIX: Final = "odradek-watch-"
NAME: Final = re.compile(rf"{PREFIX}([0-9]{{1,12}})-[A-Za-z0-9_-]{{1,64}}")


def lease_name(end_s: int, token: str) -> str:
    """The name of a subscription that ends.

    Args:
        end_s: When it ends, epoch seconds.
        token: Tells it from others.
    """
    return f"{PREFIX}{end_s}-{token}"


def lease_end_s(name: str) -> int | None:
    """When the subscription of this name ends, epoch seconds; None if it is no lease."""
    found = NAME.fullmatch(name)
    return None if found is None else int(found[1])


def is_over(name: str, now_s: float) -> bool:
    """Whether a subscription is a lease that has ended."""
    end_s = lease_end_s(name)
    return end_s is not None and end_s <= now_s
