"""Answers that are due, sent once the state is right.

An answer may wake a connection whose next request reaches the same group at once. So nothing is sent while a
group is being changed.
"""

from __future__ import annotations

from collections import deque
from typing import Any, Self, TypeVar

from odradek.waiting.deferred import Deferred

R = TypeVar("R")


class Outbox:
    """Code that changes groups puts answers here and sends them when it is done, also after an error."""

    def __init__(self) -> None:
        self.due: deque[tuple[Deferred[Any], Any]] = deque()
        self.sending = False

    def put(self, parked: Deferred[R] | None, response: R) -> None:
        """Answer a parked request later; None if no request is parked."""
        if parked is not None:
            self.due.append((parked, response))

    def send(self) -> None:
        """Send every answer, including those that are put here meanwhile."""
        if self.sending:
            return
        self.sending = True
        try:
            while self.due:
                parked, response = self.due.popleft()
                parked.complete(response)
        finally:
            self.sending = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send()
