"""Waits in the thread of a test for events in the thread of the host."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

Found = TypeVar("Found")


class NothingCame(AssertionError):
    """The event that a test waited for did not happen. The message lists what arrived instead."""


class Arrivals:
    """One condition variable for all events that a host reports to its test."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.explain: Callable[[], Iterable[str]] = tuple
        """Lines that describe what has arrived so far."""

    def wait_for(self, find: Callable[[], Found | None], timeout_s: float, wanted: str) -> Found:
        """Wait until ``find`` returns a value other than None, and return it.

        Args:
            find: Called at once and after every event, with the lock held.
            timeout_s: Timeout by the machine's clock.
            wanted: Description of the awaited event, for the message.

        Raises:
            NothingCame: ``find`` returned None until the timeout.
        """
        deadline_s = time.monotonic() + timeout_s
        with self.condition:
            while (found := find()) is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise NothingCame("\n".join([f"no {wanted} within {timeout_s:g} s", *self.explain()]))
                self.condition.wait(left_s)
        return found
