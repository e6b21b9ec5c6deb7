"""The batches of one Produce request, which are all validated before the first is appended.

As in Kafka, a batch is validated before its producer is looked at. What one request may do on the event loop
is bounded: batches beyond its budget are validated by a worker process, while other connections are served.
The channel is muted for that time, so the requests of a connection are appended in their order.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from odradek.broker.topics import Topic
from odradek.log.batch_work import BatchesWork, BatchOffload, BatchWork, Prepared
from odradek.log.log_validator import OpeningBudget, PreparedBatch
from odradek.log.partition_log import PartitionLog
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.batch_check import check_extent
from odradek.wire.compression import Buffer
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.wire.record_batch import HEADER_BYTES, parse_header

TOPIC_ID_VERSION: Final = 13
ALL_ACKS: Final = (-1, 0, 1)
WORK_BYTES: Final = 1 << 20
"""Batches go to the worker together up to this size; a larger batch goes alone."""

Row = tuple[int, int]
"""The number of a topic in the request, and of a partition among `last_of_each`."""


def last_of_each(data: TopicProduceData) -> list[PartitionProduceData]:
    """The partitions of a topic: of several mentions the last one counts."""
    return list({partition.index: partition for partition in data.partition_data}.values())


def is_transactional(records: Buffer) -> bool:
    """Whether the first batch belongs to a transaction. False if it is too short to be one."""
    return len(records) >= HEADER_BYTES and parse_header(records).is_transactional


def prepared(
    topic: Topic,
    log: PartitionLog,
    records: Buffer,
    acks: int,
    context: RequestContext,
    budget: OpeningBudget,
) -> PreparedBatch | BatchWork:
    """Validate one batch within a budget; see `PartitionLog.prepare`. Kafka looks at the acks of a request
    only for batches that are whole, of partitions that exist.

    Raises:
        ApiError: The batch is refused.
    """
    if acks not in ALL_ACKS:
        check_extent(records, context.api_version)
        raise ApiError(ErrorCode.INVALID_REQUIRED_ACKS)
    check, guard = None, topic.guard
    if guard is not None:
        if guard.closed:
            raise ApiError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Cannot append to internal topic {topic.name}")
        check = guard.check_record
    return log.prepare(records, context.received_ms, context.api_version, budget, check)


@dataclass(slots=True)
class ProduceBatches:
    """The outcome of each validation, and the work that is left."""

    offload: BatchOffload
    budget: OpeningBudget
    """The budget of the request: the work that may be done on the event loop."""
    outcomes: dict[Row, Prepared] = field(default_factory=dict)
    """Without the batches for partitions that do not exist."""
    waiting: deque[tuple[Row, BatchWork]] = field(default_factory=deque)
    running: tuple[tuple[Row, BatchWork], ...] = ()
    looping: bool = False
    done: Deferred[None] = field(default_factory=Deferred)

    def prepare(
        self,
        request: ProduceRequest,
        context: RequestContext,
        find: Callable[[TopicProduceData], tuple[Topic | None, object]],
    ) -> Generator[None, None, None]:
        """Validate what the budget of one request allows, in steps of one batch.

        Args:
            request: The request.
            context: The caller.
            find: Finds the topic of a part of the request: None, and the error, if there is none for this
                caller.
        """
        for number, data in enumerate(request.topic_data):
            for place, partition in enumerate(last_of_each(data)):
                if place or number:
                    yield
                topic, _ = find(data)
                log = None if topic is None else topic.partition(partition.index)
                if topic is None or log is None:
                    continue
                try:
                    records = partition.records or b""
                    batch = prepared(topic, log, records, request.acks, context, self.budget)
                except ApiError as error:
                    self.outcomes[number, place] = error.kept()
                    continue
                if isinstance(batch, BatchWork):
                    self.waiting.append(((number, place), batch))
                else:
                    self.outcomes[number, place] = batch

    def finish(self) -> Deferred[None]:
        """Validate the rest elsewhere, one piece after the other."""
        self.run()
        return self.done

    def run(self) -> None:
        """Send the next piece, unless one is out. A loop, because an `Offload` may call back at once."""
        if self.looping:
            return
        self.looping = True
        while self.waiting and not self.running:
            self.running = tuple(self.piece())
            self.offload(BatchesWork(tuple(work for _, work in self.running)), self.piece_done)
        self.looping = False
        if not self.waiting and not self.running:
            self.done.complete(None)

    def piece(self) -> Iterator[tuple[Row, BatchWork]]:
        """Take the batches of the next piece off the queue."""
        left_bytes = WORK_BYTES
        while self.waiting:
            yield (taken := self.waiting.popleft())
            left_bytes -= len(taken[1].data)
            if self.waiting and len(self.waiting[0][1].data) > left_bytes:
                return

    def piece_done(self, outcome: Any) -> None:
        """Note the outcome of a piece and send the next one."""
        if isinstance(outcome, Exception):
            # The worker died, or too much waits for it: the client should try again.
            failed = ApiError(ErrorCode.REQUEST_TIMED_OUT, "the batch could not be validated in time")
            outcome = [failed] * len(self.running)
        for (row, work), each in zip(self.running, outcome, strict=True):
            self.outcomes[row] = work.completed(each)
        self.running = ()
        self.run()
