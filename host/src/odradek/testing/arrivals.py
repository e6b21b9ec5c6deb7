"""Waits of a test for events in the thread of the host: blocking in a function, awaited in a coroutine."""

from __future__ import annotations

import asyncio
import threading
import time
import warnings
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextlib import suppress
from types import TracebackType
from typing import Any, Generic, NoReturn, Self, TypeVar, cast

__tracebackhide__ = True  # pytest shows where the test waits, not these frames

Found = TypeVar("Found")


class NothingCame(AssertionError):
    """The event that a test waited for did not happen. The message lists what arrived instead."""


class Arrived:
    """The result of a wait. In a coroutine it must be awaited, so to type checkers it is awaitable."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, Self]:
        yield from ()
        return self


class ArrivedList(list[Found], Arrived):
    """A list that is the result of a wait."""


class Arrivals:
    """One condition variable for all events that a host reports to its test."""

    def __init__(self, explain: Callable[[], Iterable[str]] = tuple) -> None:
        self.condition = threading.Condition()
        self.explain = explain
        """Lines that describe what has arrived so far."""
        self.wakers: set[Callable[[], object]] = set()
        """Called after every event, one for each coroutine that waits."""
        self.not_awaited: list[str] = []
        """Waits of coroutines that were started and forgotten."""

    def notify(self) -> None:
        """Let all waits look again. Called with the lock held."""
        self.condition.notify_all()
        for wake in self.wakers:
            with suppress(RuntimeError):  # the loop of that coroutine has closed
                wake()

    def wait_for(self, find: Callable[[], Found | None], timeout_s: float, wanted: str) -> Found:
        """Wait until ``find`` returns a value other than None, and return it.

        If an event loop runs in the calling thread, return a `Wait` at once: blocking would stop the client
        that the test waits for.

        Args:
            find: Called at once and after every event, with the lock held.
            timeout_s: Timeout by the machine's clock.
            wanted: Description of the awaited event, for the message.

        Raises:
            NothingCame: ``find`` returned None until the timeout.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self.block(find, timeout_s, wanted)
        # found is declared as awaitable: see Arrived
        return cast(Found, Wait(self.suspend(find, timeout_s, wanted), wanted, self.not_awaited))

    def block(self, find: Callable[[], Found | None], timeout_s: float, wanted: str) -> Found:
        deadline_s = time.monotonic() + timeout_s
        with self.condition:
            while (found := find()) is None:
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise self.missed(timeout_s, wanted)
                self.condition.wait(left_s)
        return found

    async def suspend(self, find: Callable[[], Found | None], timeout_s: float, wanted: str) -> Found:
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()
        deadline_s = loop.time() + timeout_s

        def wake() -> None:
            loop.call_soon_threadsafe(arrived.set)

        with self.condition:
            self.wakers.add(wake)
        try:
            while True:
                arrived.clear()
                with self.condition:
                    if (found := find()) is not None:
                        return found
                if loop.time() >= deadline_s:
                    raise self.missed(timeout_s, wanted)
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(deadline_s):
                        await arrived.wait()
        finally:
            with self.condition:
                self.wakers.discard(wake)

    def missed(self, timeout_s: float, wanted: str) -> NothingCame:
        return NothingCame("\n".join([f"no {wanted} within {timeout_s:g} s", *self.explain()]))


class Wait(Coroutine[Any, Any, Found], Generic[Found]):
    """A wait in a coroutine. Using it without ``await`` raises an error.

    A wait that is dropped without ``await`` cannot raise: it warns, and the test fails when its host is
    checked.
    """

    def __init__(self, waiting: Coroutine[Any, Any, Found], wanted: str, not_awaited: list[str]) -> None:
        self.waiting = waiting
        self.wanted = wanted
        self.not_awaited = not_awaited
        self.started = False

    def __await__(self) -> Generator[Any, Any, Found]:
        self.started = True
        return self.waiting.__await__()

    def send(self, value: Any) -> Any:
        self.started = True
        return self.waiting.send(value)

    def throw(self, kind: Any, value: Any = None, traceback: TracebackType | None = None) -> Any:
        self.started = True
        return self.waiting.throw(kind if value is None else value)

    def close(self) -> None:
        self.started = True
        self.waiting.close()

    def __del__(self) -> None:
        if not self.started:
            self.close()
            self.not_awaited.append(self.wanted)
            warnings.warn(self.complaint, RuntimeWarning, stacklevel=2)

    @property
    def complaint(self) -> str:
        return (
            f"the wait for a {self.wanted} was not awaited: an event loop runs in this thread, and a blocking"
            " wait would stop it; write `await` before the wait"
        )

    def misused(self, *_: object) -> NoReturn:
        """Raise the error for a use without ``await``."""
        self.close()
        raise RuntimeError(self.complaint)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith(("_", "cr_", "gi_")):  # asyncio and pytest look for these
            raise AttributeError(name)
        self.misused()

    __bool__ = __len__ = __iter__ = __getitem__ = __contains__ = misused
    __eq__ = __ne__ = __lt__ = __gt__ = misused
    __hash__ = object.__hash__
