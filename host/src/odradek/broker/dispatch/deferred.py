"""An answer that comes later: a long poll, work done elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(slots=True, eq=False)
class Deferred:
    """A handler's promise of a response, kept once.

    Until then the connection's next requests wait, as in Kafka.
    """

    response: Any = None
    done: bool = False
    callback: Callable[[Any], None] | None = None
    """Called with the response; with the exception itself if there could be none."""
    abandon: Callable[[], None] | None = None
    """Set by the handler: called when the connection is lost first, so that nothing waits for nobody."""

    hurry: Callable[[], None] | None = None
    """Set by the handler where it can answer early with what is there: the host is about to stop."""

    around: Callable[[Callable[[], Any]], Any] | None = None
    """Set by the dispatcher: runs what is left of the handler, to measure it."""

    def complete(self, response: Any) -> None:
        """Keep the promise. A second call is ignored: a time-out and an event may come in the same turn."""
        if self.done:
            return
        self.done = True
        self.response = response
        if self.callback is not None:
            self.callback(response)

    def complete_by(self, response: Callable[[], Any]) -> None:
        """Keep the promise with what a function returns.

        Whatever it raises becomes the response, for the dispatcher to answer: who calls here is a timer, or
        another client's append, and must not be hit by it.
        """
        if self.done:
            return
        try:
            result = response() if self.around is None else self.around(response)
        except Exception as error:  # noqa: BLE001  see above
            result = error
        self.complete(result)

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
