"""A costly value that all who look at it within some seconds share."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

Value = TypeVar("Value")
KEPT_S: Final = 5.0
SHARE: Final = 10
"""A value is kept so many times as long as it took: all viewers take a tenth of a processor for it."""


class Shared(Generic[Value]):
    """The last value. Any thread may ask for it; one at a time makes it.

    Args:
        now_s: A monotonic clock.
    """

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self.now_s = now_s
        self.lock = threading.Lock()
        self.made: tuple[object, Value] | None = None
        self.until_s = 0.0

    def of(self, origin: object, make: Callable[[], Value]) -> Value:
        """The value that is made from an origin: the last one if its origin is equal and it is new enough."""
        with self.lock:
            begun_s = self.now_s()
            if self.made is None or self.made[0] != origin or begun_s >= self.until_s:
                self.made = origin, make()
                made_s = self.now_s()
                self.until_s = made_s + max(KEPT_S, SHARE * (made_s - begun_s))
            return self.made[1]
