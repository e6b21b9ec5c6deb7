"""An answer that comes later, and work that runs elsewhere.

A room that cannot answer at once returns a `Deferred`, and says there who completes it. On its way up, each
room that has something to do with the outcome adds a step with `after`, and the last one sets a callback. So
an answer takes one object, and comes up once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, cast

R = TypeVar("R")
S = TypeVar("S")

Offload = Callable[[Callable[[], Any], Callable[[Any], None]], None]
"""Run work on a thread or in a process, then call back on the loop with its result or its exception."""


def offload_inline(work: Callable[[], Any], done: Callable[[Any], None]) -> None:
    """Run the work here and now: the `Offload` of tests and of hosts without workers."""
    done(outcome_of(work))


def outcome_of(work: Callable[..., Any], *arguments: Any) -> Any:
    """What a function returns or raises.

    A caller must not keep the outcome in a variable: an error holds the frames that it came through, and its
    callers', so a frame that held the error would be freed by a full collection only.
    """
    try:
        return work(*arguments)
    except Exception as error:  # noqa: BLE001  whoever waits for the outcome handles it
        return error


class Deferred(Generic[R]):
    """The promise of one outcome: a response, or the exception that prevented it.

    The next requests of the connection wait for the outcome, as in Kafka.
    """

    __slots__ = (
        "abandon", "around", "callback", "done", "finish", "gone", "hurry", "outcome", "steps", "taken",
    )  # fmt: skip

    def __init__(self) -> None:
        self.outcome: Any = None
        """Until it is handed over to the callback."""
        self.done = False
        """Whether the outcome is known."""
        self.taken = False
        """`complete` was called; a step may still be waiting for a second deferred."""
        self.steps: list[Callable[[Any], Any]] | None = None
        self.callback: Callable[[Any], None] | None = None
        self.abandon: Callable[[], None] | None = None
        """Set by the room that waits: stops the wait, because the connection is lost."""
        self.hurry: Callable[[], None] | None = None
        """Set by a room that can answer early: completes now, because the host is about to stop."""
        self.finish: Callable[[R | Exception], Any] | None = None
        """Set by the dispatcher: turns the outcome into a frame. Not called after `lost`."""
        self.around: Callable[[Callable[[], Any]], Any] | None = None
        """Set by the dispatcher: runs the rest of the handler, or a part of it, and measures it."""
        self.gone: Callable[[], object] | None = None
        """Set by the dispatcher: called when the connection is lost before the outcome is known."""

    def then(self, step: Callable[[R], S | Deferred[S]]) -> Deferred[S]:
        """Replace the outcome with the result of a step, at once if the outcome is known.

        The step also runs after the connection is lost. It may return another deferred, whose outcome counts.
        An exception skips the steps; an exception in a step becomes the outcome.
        """
        if self.steps is None:
            self.steps = [step]
        else:
            self.steps.append(step)
        if self.done:
            self.done = False
            self.advance(self.outcome)
        return cast("Deferred[S]", self)

    def result(self) -> R:
        """The outcome.

        Raises:
            Exception: The outcome, if it is an exception.
            RuntimeError: The outcome is not known yet.
        """
        if not self.done:
            raise RuntimeError("the outcome is not known yet")
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return cast("R", self.outcome)

    def complete(self, outcome: R | Exception) -> None:
        """Set the outcome. Later calls are ignored: a time-out and an event may come in the same turn."""
        if not self.taken:
            self.taken = True
            self.advance(outcome)

    def complete_by(self, work: Callable[[], R]) -> None:
        """Set the outcome to what a function returns or raises.

        The caller is a timer, or another client's append, and must not be hit by an exception.
        """
        if not self.taken:
            self.complete(outcome_of(work) if self.around is None else outcome_of(self.around, work))

    def advance(self, outcome: Any) -> None:
        """Run the steps, then call back. Releases everything that may hold this object in turn."""
        self.outcome = outcome
        del outcome
        while self.steps and not isinstance(self.outcome, Exception):
            self.outcome = outcome_of(self.steps.pop(0), self.outcome)
            if self.outcome.__class__ is Deferred:
                self.wait_for(self.outcome)
                return
        self.done, self.steps = True, None
        self.abandon = self.hurry = self.around = self.gone = None
        if self.callback is not None:
            self.report(self.callback)

    def wait_for(self, second: Deferred[Any]) -> None:
        """Go on with the outcome of the deferred that a step has returned."""
        self.outcome = None
        self.abandon, self.hurry = second.abandon, second.hurry
        self.gone = second.gone or self.gone
        second.around = second.around or self.around
        second.when_done(self.advance)

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Call back with the finished outcome; at once if it is already known."""
        if self.done:
            self.report(callback)
        else:
            self.callback = callback

    def report(self, callback: Callable[[Any], None]) -> None:
        """Hand the outcome over, and keep nothing: if it is an error, its frames may hold this object."""
        finish, outcome = self.finish, self.outcome
        self.callback = self.finish = self.outcome = None
        callback(outcome if finish is None else finish(outcome))

    def lost(self) -> None:
        """The connection is lost: release the request. The callback is not called; the steps still run if an
        outcome follows.
        """
        abandon, gone = self.abandon, self.gone
        self.callback = dropped
        self.finish = self.abandon = self.hurry = self.around = self.gone = None
        if not self.done:
            if abandon is not None:
                abandon()
            if gone is not None:
                gone()


def after(answer: R | Deferred[R], step: Callable[[R], S | Deferred[S]]) -> S | Deferred[S]:
    """Go on with an answer: here and now, or where it waits; see `Deferred.then`."""
    return answer.then(step) if isinstance(answer, Deferred) else step(answer)


def dropped(_outcome: object) -> None:
    """Take an outcome that nobody waits for any more."""
