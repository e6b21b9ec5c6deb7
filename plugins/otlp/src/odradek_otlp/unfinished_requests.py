"""Requests that were stored in part, or whose senders left before the answer.

A sender repeats such a request with the same bytes. The repetition continues where the first attempt ended,
so that no record is stored twice.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final

MAX_REQUESTS: Final = 1_024
"""At most 1000 bytes each. A request that is repeated after so many others is stored again."""


@dataclass(slots=True, eq=False)
class Attempt:
    """The storing of one request, until it is answered."""

    settled: bytearray
    """1 for each record that is stored or refused, in the order of the request."""
    refused_points: int = 0
    refusal: str = ""
    """The first reason."""
    task: asyncio.Task[None] | None = None
    """Set if the sender left while the records were being stored."""


@dataclass(slots=True, eq=False)
class UnfinishedRequests:
    """A bounded memory of attempts, oldest first."""

    attempts: OrderedDict[bytes, Attempt] = field(default_factory=OrderedDict)

    def add(self, data: bytes, attempt: Attempt) -> None:
        """Remember an attempt without an answer."""
        self.attempts[digest(data)] = attempt
        if len(self.attempts) > MAX_REQUESTS:
            self.attempts.popitem(last=False)

    async def resumed(self, data: bytes) -> Attempt | None:
        """The attempt that the request repeats, once it stores no more; None if the request is new."""
        # A request is hashed only if there may be something to find.
        attempt = self.attempts.pop(digest(data), None) if self.attempts else None
        if attempt is not None and attempt.task is not None:
            try:
                await asyncio.wait({attempt.task})
            except asyncio.CancelledError:
                self.add(data, attempt)
                raise
            attempt.task = None
        return attempt


def digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()[:16]
