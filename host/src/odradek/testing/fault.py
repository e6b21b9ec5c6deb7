"""Faults that a test injects into a host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from odradek.plugin.config import nearest
from odradek.plugin.context import RequestContext
from odradek.testing.arrivals import Arrivals
from odradek.wire.error_code import ErrorCode

Drop = Literal["before", "after"]
GARBAGE = b"\xff" * 16
"""A body that no client can decode as a response: all its lengths and counts are far too large."""


@dataclass(slots=True, eq=False, kw_only=True)
class Fault:
    """An injected fault for requests of one API. `RunningHost.fault` describes the fields."""

    api: str
    arrivals: Arrivals = field(repr=False)
    client_id: str | None = None
    times: int | None = 1
    error: ErrorCode | None = None
    delay_ms: int = 0
    drop: Drop | None = None
    throttle_ms: int = 0
    garbage: bytes | None = None
    used: int = 0
    """Number of requests that the fault has hit."""

    def hits(self, api: str, context: RequestContext) -> bool:
        """Whether the fault applies to a request."""
        return (
            api == self.api
            and (self.times is None or self.used < self.times)
            and (self.client_id is None or fnmatchcase(context.client_id or "", self.client_id))
        )

    def wait(self, timeout_s: float = 5, *, times: int = 1) -> None:
        """Wait until the fault has hit ``times`` requests.

        Raises:
            NothingCame: It has hit fewer until the timeout.
        """
        wanted = f"request hit by fault {self}"
        self.arrivals.wait_for(lambda: True if self.used >= times else None, timeout_s, wanted)

    def remove(self) -> None:
        """Stop the fault from hitting further requests."""
        self.times = self.used

    def __str__(self) -> str:
        effects = [
            f"error={self.error.name}" if self.error is not None else "",
            f"delay_ms={self.delay_ms}" if self.delay_ms else "",
            f"drop={self.drop}" if self.drop else "",
            f"throttle_ms={self.throttle_ms}" if self.throttle_ms else "",
            "garbage" if self.garbage is not None else "",
        ]
        client = f" client_id={self.client_id}" if self.client_id is not None else ""
        return f"{self.api}{client} {' '.join(filter(None, effects))} ({self.used} of {self.times or 'all'})"


def error_code(error: ErrorCode | str | int) -> ErrorCode:
    """The error code with a name or number.

    Raises:
        ValueError: There is no such error code.
    """
    if not isinstance(error, str):
        return ErrorCode(error)
    if error not in ErrorCode.__members__:
        raise ValueError(f"unknown error code {error!r}{meant(error, ErrorCode.__members__)}")
    return ErrorCode[error]


def meant(name: str, known: Iterable[str]) -> str:
    """A suggestion for an unknown name; empty if no known name is close to it."""
    close = nearest(name, known)
    return f": did you mean {close}?" if close else ""
