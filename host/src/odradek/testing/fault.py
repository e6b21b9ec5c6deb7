"""Faults that a test injects into a host."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Literal

from odradek.plugin.config import nearest
from odradek.plugin.context import RequestContext
from odradek.testing.arrivals import Arrivals, Arrived
from odradek.testing.topic_scope import SHAPES, TopicScope
from odradek.wire.error_code import ErrorCode

__tracebackhide__ = True  # pytest shows where the test waits, not these frames

Drop = Literal["before", "after"]
GARBAGE = b"\xff" * 16
"""A body that no client can decode as a response: all its lengths and counts are far too large."""


class FaultNotHit(AssertionError):
    """A fault was injected and hit no request, so the test did not test what it meant to."""


@dataclass(slots=True, eq=False, kw_only=True)
class Fault(Arrived):
    """An injected fault for requests of one API. `RunningHost.fault` describes the fields."""

    api: str
    arrivals: Arrivals = field(repr=False)
    client_id: str | None = None
    scope: TopicScope | None = None
    times: int | None = 1
    error: ErrorCode | None = None
    delay_ms: int = 0
    drop: Drop | None = None
    throttle_ms: int = 0
    garbage: bytes | None = None
    optional: bool = False
    used: int = 0
    """Number of requests that the fault has hit."""

    def hits(self, api: str, context: RequestContext) -> bool:
        """Whether the fault applies to a request."""
        return (
            api == self.api
            and (self.times is None or self.used < self.times)
            and (self.client_id is None or fnmatchcase(context.client_id or "", self.client_id))
        )

    def wait(self, timeout_s: float = 5, *, times: int = 1) -> Fault:
        """Wait until the fault has hit ``times`` requests, and return it. Await it in a coroutine.

        Raises:
            NothingCame: It has hit fewer until the timeout.
        """
        wanted = f"request hit by fault {self}"
        return self.arrivals.wait_for(lambda: self if self.used >= times else None, timeout_s, wanted)

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
        topic = "" if self.scope is None else f" {self.scope}"
        effect = " ".join(filter(None, effects))
        return f"{self.api}{client}{topic} {effect} ({self.used} of {self.times or 'all'})"


def topic_scope(api: str, topic: str | None, partition: int | None) -> TopicScope | None:
    """The topics and partitions that a fault affects; None for whole requests.

    Raises:
        ValueError: Requests of the API name no topics or no partitions, or a partition has no topic.
    """
    if topic is None:
        if partition is not None:
            raise ValueError(f"partition={partition} without a topic: expected topic=... too")
        return None
    if api not in SHAPES:
        raise ValueError(f"a fault of {api} cannot be limited to a topic, only one of {', '.join(SHAPES)}")
    if partition is not None and SHAPES[api].partitions is None:
        raise ValueError(f"a fault of {api} cannot be limited to a partition: its requests name only topics")
    return TopicScope(api, topic, partition)


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
