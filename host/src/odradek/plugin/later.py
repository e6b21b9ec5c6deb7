"""Labels that come later, and labels that change while a client is connected."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from inspect import isawaitable
from typing import Any, Final, Protocol, runtime_checkable

LABELS_MISSING: Final = "labels_missing"
"""The label of a push whose labels are not complete: the plugins whose labels are missing, with commas."""


class Later:
    """An answer of an enricher that is not known yet.

    Either it has an awaitable, which the host runs on a loop on a thread of the plugin::

        return Later(self.ask(context.connection.principal))

    or the enricher keeps the object and calls `set` or `fail`, on any thread. The first outcome counts.

    Args:
        awaitable: Returns the labels.

    Raises:
        TypeError: It is not awaitable, such as a function that has not been called.
    """

    def __init__(self, awaitable: Awaitable[Mapping[str, str]] | None = None) -> None:
        if callable(awaitable) and not isawaitable(awaitable):
            name = getattr(awaitable, "__name__", "...")
            raise TypeError(f"Later got the function {name}; call it, Later({name}(...))")
        if awaitable is not None and not isawaitable(awaitable):
            raise TypeError(f"Later got {awaitable!r:.100}, expected an awaitable or nothing")
        self.awaitable = awaitable
        self.outcomes: deque[object] = deque()
        self.listener: Callable[[Any], None] | None = None

    def set(self, labels: Mapping[str, str]) -> None:
        """Give the labels."""
        self.outcomes.append(labels)
        tell(self)

    def fail(self, error: BaseException) -> None:
        """Tell that the labels cannot be found now. The enricher is asked again after ten seconds."""
        self.outcomes.append(error)
        tell(self)

    def when_done(self, listener: Callable[[Any], None]) -> None:
        """Called by the host: call back once with the outcome, on the thread that knows it."""
        self.listener = listener
        tell(self)


def tell(later: Later) -> None:
    """Tell an outcome. Two threads may come here at once: only one of them gets it out of the queue."""
    if later.listener is not None and later.outcomes:
        try:
            outcome = later.outcomes.popleft()
        except IndexError:
            return
        later.listener(outcome)


@runtime_checkable
class Invalidates(Protocol):
    """An enricher that knows when labels change, in addition to its other methods."""

    def use_invalidate(self, invalidate: Callable[[str | None], None]) -> None:
        """Called once, before the first connection.

        Args:
            invalidate: Call it, on any thread, with the principal whose labels have changed, as in
                `ConnectionContext.principal`, or with None if all may have. The enricher is asked again at
                the next push of each of these clients.
        """
