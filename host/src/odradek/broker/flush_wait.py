"""A produce answer that waits until its records are on the disk, for topics with ``flush.messages``."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from odradek.log.partition_log import PartitionLog
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import PartitionProduceResponse

R = TypeVar("R")


@dataclass(slots=True)
class FlushWait:
    """The flushes that one request waits for."""

    waiting: list[tuple[PartitionLog, PartitionProduceResponse]] = field(default_factory=list)
    missing: int = 0

    def appended(self, log: PartitionLog, answer: PartitionProduceResponse) -> None:
        """Add a batch that was appended, with its part of the response."""
        if log.must_flush:
            self.waiting.append((log, answer))

    def before(self, response: R) -> R | Deferred[R]:
        """The response, once everything is on the disk. Nobody waits for the disk without a response."""
        if response is None or not self.waiting:
            return response
        return self.finish().then(lambda _: response)

    def finish(self) -> Deferred[None]:
        """Done once everything is on the disk. A partition that cannot be flushed gets an error."""
        done = Deferred[None]()
        self.missing = len(self.waiting)
        for log, answer in self.waiting:
            log.when_flushed(partial(self.flushed, done, answer))
        return done

    def flushed(self, done: Deferred[None], answer: PartitionProduceResponse, error: ApiError | None) -> None:
        """One log is on the disk, or could not be flushed."""
        if error is not None:
            answer.error_code, answer.error_message = ErrorCode(error.code), error.message
            answer.base_offset = answer.log_append_time_ms = answer.log_start_offset = -1
        self.missing -= 1
        if not self.missing:
            done.complete(None)
