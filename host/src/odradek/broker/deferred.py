"""An answer that comes later: a long poll, work done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True, eq=False)
class Deferred:
    """A handler's promise of a response, kept once. Until then the connection's next requests wait, as in Kafka."""

    response: Any = None
    done: bool = False
    callback: Callable[[Any], None] | None = None
    abandon: Callable[[], None] | None = None
    """Set by the handler: called when the connection is lost first, so that nothing waits for nobody."""

    hurry: Callable[[], None] | None = None
    """Set by the handler where it can answer early with what is there: the host is about to stop."""

    def complete(self, response: Any) -> None:
        """Keep the promise. A second call is ignored: a time-out and an event may come in the same turn."""
        if self.done:
            return
        self.done = True
        self.response = response
        if self.callback is not None:
            self.callback(response)

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Call back with the response; at once if it is there already."""
        if self.done:
            callback(self.response)
        else:
            self.callback = callback

    def lost(self) -> None:
        """The connection is gone; the response will not be written."""
        self.callback = None
        if not self.done and self.abandon is not None:
            self.abandon()
