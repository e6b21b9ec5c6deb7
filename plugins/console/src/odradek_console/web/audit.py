"""The audit log of the pages: acts and refusals, each with its user.

It is the logger of a host's audit log. The cluster sees the console's principal: these lines name the user.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from odradek.endpoints import holder_of
from odradek_console.web.rate_limit import RateLimit
from odradek_console.web.users import User

log = logging.getLogger("odradek.audit")

ALLOWED: Final = "allowed"
DENIED: Final = "denied"
FAILED: Final = "failed"
LONGEST: Final = 1_000
REFUSALS_PER_MINUTE: Final = 60


class Audit:
    """Writes the lines. Any thread may call it, except `refused`, which belongs to the loop.

    Args:
        now_s: A monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float]) -> None:
        self.lines = RateLimit(REFUSALS_PER_MINUTE / 60, REFUSALS_PER_MINUTE, now_s)
        self.unwritten = 0
        """Refusals without a line since the last one that has a line."""

    def write(self, user: User, act: str, target: str, outcome: str, why: str = "") -> None:
        """Write what a user has done.

        Args:
            user: The user.
            act: Such as ``subscription.alter``.
            target: The name of what was changed.
            outcome: ``allowed``, ``denied`` or ``failed``.
            why: The reason, if it was not allowed; of a login, how the user is known.
        """
        fields: dict[str, Any] = {
            "user": user.name,
            "role": str(user.role),
            "address": user.address,
            "act": act,
            "target": shortened(target),
            "outcome": outcome,
        }
        log.info("administration", extra=fields | ({"why": shortened(why)} if why else {}))

    @contextmanager
    def act(self, user: User, act: str, target: str) -> Iterator[None]:
        """Do something, and write it with its outcome."""
        try:
            yield
        except Exception as error:
            self.write(user, act, target, FAILED, f"{type(error).__name__}: {error}")
            raise
        self.write(user, act, target, ALLOWED)

    def refused(self, user: User, act: str, target: str, why: str, outcome: str = DENIED) -> None:
        """Write a refusal or a failure, of each address only so many in a minute."""
        if self.lines.take(holder_of(user.address)) > 0:
            self.unwritten += 1
            return
        unwritten, self.unwritten = self.unwritten, 0
        before = f" ({unwritten} more refusals before have no line)" if unwritten else ""
        self.write(user, act, target, outcome, why + before)


def shortened(text: str) -> str:
    """A text that fits into a line."""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
