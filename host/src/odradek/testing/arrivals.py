"""Waiting in a test's thread for what happens on the host's."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

Found = TypeVar("Found")


class NothingCame(AssertionError):
    """What a test waited for did not come. The message says what came instead."""


class Arrivals:
    """One condition for everything that a host tells its test."""

    def __init__(self) -> None:
        self.condition = threading.Condition()
        self.explain: Callable[[], Iterable[str]] = tuple
        """Lines about what came so far."""

    def wait_for(self, find: Callable[[], Found | None], timeout_s: float, wanted: str) -> Found:
        """What ``find`` finds, now or as soon as something new makes it find it.

        Args:
            find: Called with the lock held.
            timeout_s: Of the machine's clock.
            wanted: What is waited for, for the message.

        Raises:
            NothingCame: It found nothing in time.
        """
        deadline_s = time.monotonic() + timeout_s
        with self.condition:
            while (found := find()) is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise NothingCame("\n".join([f"no {wanted} within {timeout_s:g} s", *self.explain()]))
                self.condition.wait(left_s)
        return found
