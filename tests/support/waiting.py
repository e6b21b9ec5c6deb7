"""Wait in a test until a condition holds."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PATIENCE_S = 60.0
"""Long for a busy machine; only a test that fails waits for so long."""


def wait_until(
    condition: Callable[[], Found], why: str | Callable[[], object], patience_s: float = PATIENCE_S
) -> Found:
    """The condition's value once it is true.

    ``why`` tells what was awaited, or returns what is known when the time is over.

    Raises:
        AssertionError: The condition did not become true in time.
    """
    end_s = time.monotonic() + patience_s
    while not (found := condition()):
        if time.monotonic() > end_s:
            reason = why if isinstance(why, str) else why()
            raise AssertionError(f"not true after {patience_s:g} s: {reason}")
        time.sleep(0.01)
    return found


async def until(condition: Callable[[], object], patience_s: float = PATIENCE_S) -> None:
    """As `wait_until`, in a coroutine.

    Raises:
        TimeoutError: The condition did not become true in time.
    """
    async with asyncio.timeout(patience_s):
        while not condition():
            await asyncio.sleep(0.01)
