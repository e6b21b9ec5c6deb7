"""Answers that are due, sent once the state is right.

An answer may wake a connection whose next request comes back here at once; so nothing is sent while a group
is being changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Self, TypeVar

R = TypeVar("R")


class Outbox:
    """Whoever changes groups puts answers here and sends them when it is done, also after an error."""

    def __init__(self) -> None:
        self.due: deque[tuple[Callable[[Any], None], Any]] = deque()
        self.sending = False

    def put(self, reply: Callable[[R], None] | None, response: R) -> None:
        """Answer later; nobody may be waiting."""
        if reply is not None:
            self.due.append((reply, response))

    def send(self) -> None:
        """Send everything, also what is put here meanwhile."""
        if self.sending:
            return
        self.sending = True
        try:
            while self.due:
                reply, response = self.due.popleft()
                reply(response)
        finally:
            self.sending = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.send()
