"""The log tells people of one forwarder that its destination is down, or that the plugin itself fails.

One line when either begins and one when it ends, none per attempt; a failing plugin's with the traceback, and
again each minute. Each batch that is given up has a line.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from odradek.bounds.sampled_log import SampledLog
from odradek.delivery.spooled_record import SpooledRecord
from odradek.hosting.bounded_call import CutOffError
from odradek.plugin.places import place_of
from odradek.plugin.plugin_stats import described
from odradek.plugin.protocols import TelemetryRecord
from odradek.temporality import StoreFailed

log = logging.getLogger(__name__)

START: Final = "start"
DELIVER: Final = "deliver"
METRICS: Final = "metrics"
MOST_PLACES: Final = 20
"""Partitions that a line names."""


class DestinationLog:
    """Knows whether one forwarder works. Used by its thread, except `problem`, `outage` and `metrics_failed`.

    Args:
        name: The forwarder.
        patience: Calls of ``deliver`` in a row that must raise before the plugin counts as broken: a single
            push may have set off its bug.
    """

    def __init__(self, name: str, patience: int = 1) -> None:
        self.name = name
        self.patience = patience
        self.down_since_ms: int | None = None
        """None while it delivers."""
        self.attempts = 0
        """Failed calls of ``deliver`` since then."""
        self.error = ""
        """The last one, of the destination or the plugin."""
        self.failing_since_ms: int | None = None
        """None while calls succeed."""
        self.fault: str | None = None
        """The error that the plugin raised last; None since a call succeeded."""
        self.faults = 0
        """Calls in a row that raised."""
        self.failing = ""
        """The method that raised them."""
        self.bugs = {each: SampledLog(log) for each in (START, DELIVER, METRICS)}
        self.has_answered = False
        self.calling: tuple[str, int, float] | None = None
        """The method that is being called, when it must have ended, and its time limit in seconds."""

    @contextlib.contextmanager
    def call(self, method: str, limit_s: float, now_ms: int) -> Iterator[None]:
        """Note that a method is being called."""
        # Twice the limit: a cancelled call has some time to end.
        self.calling = method, now_ms + int(2_000 * limit_s), limit_s
        try:
            yield
        finally:
            self.calling = None

    def problem(self, now_ms: int) -> str | None:
        """Why the plugin does not work; None if it does, or if only its destination is down. Any thread may
        ask.
        """
        calling = self.calling
        if calling is not None and now_ms > calling[1]:
            return f"{calling[0]} has not returned within its time limit of {calling[2]:g} s"
        fault, patience = self.fault, self.patience if self.failing == DELIVER else 1
        return f"{self.failing} raised {fault}" if fault is not None and self.faults >= patience else None

    def outage(self, now_ms: int) -> dict[str, float]:
        """For how many seconds nothing has succeeded, by the last error; empty if it works. Any thread may
        ask.
        """
        error, since_ms, calling = self.error, self.failing_since_ms, self.calling
        if since_ms is None and calling is not None and now_ms > calling[1]:
            error, since_ms = str(self.problem(now_ms)), calling[1]
        return {} if since_ms is None else {error: (now_ms - since_ms) / 1000}

    def note(self, error: BaseException, now_ms: int) -> str:
        """Remember an error, and since when there are any; return its text."""
        self.error = described(error)
        if self.failing_since_ms is None:
            self.failing_since_ms = now_ms
        return self.error

    def failed(self, error: Exception, records: int, now_ms: int) -> None:
        """A call failed and will be tried again. Only the first one is a warning."""
        level = logging.DEBUG
        message = "destination of %s is still down: %s"
        if self.down_since_ms is None:
            self.down_since_ms, self.attempts = now_ms, 0
            level, message = logging.WARNING, "destination of %s is down, trying again: %s"
        self.attempts += 1
        extra = {"plugin": self.name, "problem": self.note(error, now_ms), "records": records}
        where = error.where if isinstance(error, CutOffError) else ""
        log.log(level, message, self.name, f"{extra['problem']}{where}", extra=extra)

    def broken(self, method: str, error: Exception, records: int, now_ms: int) -> None:
        """The plugin raised what it should not, and will be called again."""
        self.fault = self.note(error, now_ms)
        self.faults = self.faults + 1 if method == self.failing else 1
        self.failing = method
        self.bug(method, "; trying again", method, error, now_ms, records=records)

    def metrics_failed(self, error: Exception, now_ms: int) -> None:
        """The plugin's own figures cannot be read; the host's are shown without them."""
        self.bug("its metrics", "", METRICS, error, now_ms)

    def bug(self, where: str, then: str, method: str, error: Exception, now_ms: int, **more: object) -> None:
        """Log an error of the plugin's own with its traceback; a store of totals tells all in its text."""
        if isinstance(error, StoreFailed):
            told = "totals of %s cannot be kept, trying again: %s"
            self.bugs[method].write(logging.ERROR, now_ms, told, self.name, error, plugin=self.name)
            return
        fields = {"plugin": self.name, "problem": described(error), **more}
        words = self.name, where, described(error) + place_of(error) + then
        self.bugs[method].write(
            logging.ERROR, now_ms, "plugin %s failed in %s: %s", *words, error=error, **fields
        )

    def answered(self, answer: object, where: str) -> None:
        """Tell once that ``deliver`` returns something: its author may mean that it has failed."""
        if not self.has_answered:
            self.has_answered = True
            told = (
                "plugin %s: deliver returned %.100r, and the batch counts as delivered; "
                "raise Retry or Reject for what was not%s"
            )
            log.warning(told, self.name, answer, where, extra={"plugin": self.name})

    def given_up(self, records: Sequence[TelemetryRecord], reason: str, then: str) -> None:
        """Records will not be delivered.

        Args:
            records: At least one.
            reason: The destination's words, or the bound that was reached.
            then: What becomes of them.
        """
        extra = {"plugin": self.name, "reason": reason, "records": len(records)}
        if offsets := places(records):
            extra["offsets"] = offsets
        if self.fault is not None:
            extra["problem"] = self.fault
        told = "plugin %s: %d pushes are given up and %s: %s"
        log.warning(told, self.name, len(records), then, reason, extra=extra)

    def started(self) -> None:
        """The start succeeded."""
        self.recovered("plugin %s has started")

    def delivered(self, now_ms: int) -> None:
        """A call of ``deliver`` succeeded."""
        self.recovered("plugin %s delivers again")
        if self.down_since_ms is None:
            return
        extra = {
            "plugin": self.name,
            "down_s": round((now_ms - self.down_since_ms) / 1000, 1),
            "attempts": self.attempts,
        }
        self.down_since_ms = None
        log.warning("destination of %s delivers again", self.name, extra=extra)

    def recovered(self, message: str) -> None:
        """A call succeeded; tell so if the plugin has failed before."""
        if self.fault is not None:
            log.warning(message, self.name, extra={"plugin": self.name, "faults": self.faults})
        self.fault, self.faults, self.failing_since_ms = None, 0, None


def places(records: Iterable[TelemetryRecord]) -> dict[int, str]:
    """The first and last offset of records of a log, by partition."""
    found: dict[int, list[int]] = {}
    for record in records:
        if isinstance(record, SpooledRecord):
            found.setdefault(record.partition, []).append(record.original.offset)
    spans = {index: sorted({min(offsets), max(offsets)}) for index, offsets in sorted(found.items())}
    return {index: "-".join(map(str, span)) for index, span in list(spans.items())[:MOST_PLACES]}
