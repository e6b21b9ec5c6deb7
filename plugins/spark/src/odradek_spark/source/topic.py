"""The topic through confluent-kafka: its partitions, its offsets, ranges of its records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)

from odradek_spark.decoder.record import TopicRecord
from odradek_spark.source.offsets import OffsetRange, Offsets
from odradek_spark.source.options import SourceOptions

TIMEOUT_S = 30.0
POLL_S = 0.5
POLLED = 100
"""Records that are taken from librdkafka at once; each may be as large as the topic lets it."""
CHUNK_BYTES = 16 << 20
"""About what is decoded together."""
SAMPLE = 50
"""Records whose mean size stands for a backlog."""


class TopicError(Exception):
    """The topic cannot be read; the message says why."""


class Unreachable(TopicError):
    """Nobody answers; that may pass."""


class DataLoss(TopicError):
    """Offsets are gone that were not read yet."""


class TopicReader:
    """One consumer without a group membership: partitions are assigned by whoever calls.

    Args:
        options: Which topic, and of whom.
        timeout_s: How long an answer may take.

    Raises:
        TopicError: An option is none of librdkafka's.
    """

    def __init__(self, options: SourceOptions, timeout_s: float = TIMEOUT_S) -> None:
        self.options = options
        self.timeout_s = timeout_s
        self.lost = 0
        """Offsets that retention took before they were read, of those that were asked for."""
        self.trouble = ""
        """What librdkafka said last of a connection."""
        try:
            self.consumer = Consumer(client_config(options) | {"error_cb": self.note_trouble})
        except (KafkaException, TypeError) as error:
            raise TopicError(f"kafka options: {reason(error)}") from error

    def note_trouble(self, error: KafkaError) -> None:
        """Called by librdkafka while it polls."""
        self.trouble = error.str()

    def partitions(self) -> list[int]:
        """The partitions of the topic.

        Raises:
            TopicError: There is no such topic, or it may not be read.
            Unreachable: Nobody answers.
        """
        with self.speaking_of(f"topic {self.options.topic}"):
            found = self.consumer.list_topics(self.options.topic, timeout=self.timeout_s)
        topic = found.topics[self.options.topic]
        if topic.error is not None:
            unknown = topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            hint = "; on a host, telemetry.durability has to be log or fsync" if unknown else ""
            raise TopicError(f"topic {self.options.topic}: {topic.error.str()}{hint}")
        return sorted(topic.partitions)

    def watermarks(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        """By partition: the first offset, and the one behind the last that is committed."""
        with self.speaking_of(f"offsets of {self.options.topic}"):
            return {
                partition: self.consumer.get_watermark_offsets(
                    TopicPartition(self.options.topic, partition), timeout=self.timeout_s
                )
                for partition in partitions
            }

    def offsets_since(self, partitions: Sequence[int], at_ms: int) -> Offsets:
        """By partition: the first offset that is not older; none where all are older.

        Args:
            partitions: Of the topic.
            at_ms: Epoch milliseconds.
        """
        asked = [TopicPartition(self.options.topic, partition, at_ms) for partition in partitions]
        with self.speaking_of(f"offsets of {self.options.topic}"):
            found = self.consumer.offsets_for_times(asked, timeout=self.timeout_s)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def sizes(self, found: Sequence[OffsetRange]) -> dict[int, float]:
        """By partition: the mean size of the first records of its range, in bytes."""
        means = {}
        for each in found:
            first = OffsetRange(each.partition, each.start, min(each.end, each.start + SAMPLE))
            sizes = [len(record.value or b"") for chunk in self.read(first) for record in chunk]
            if sizes:
                means[each.partition] = sum(sizes) / len(sizes)
        return means

    def read(self, found: OffsetRange) -> Iterator[list[TopicRecord]]:
        """The records of a range, in chunks of about `CHUNK_BYTES`.

        Raises:
            DataLoss: Retention was faster, and that is not allowed.
            Unreachable: The broker does not answer in time.
        """
        topic = self.options.topic
        self.consumer.assign([TopicPartition(topic, found.partition, found.start)])
        try:
            yield from self.chunks(found)
        finally:
            with contextlib.suppress(RuntimeError):  # closed before: whoever read has failed
                self.consumer.unassign()

    def chunks(self, found: OffsetRange) -> Iterator[list[TopicRecord]]:
        chunk: list[TopicRecord] = []
        held = 0
        at, since_s = found.start, time.monotonic()
        while at < found.end:
            # librdkafka waits until it has as many: more than there are would cost the whole time
            messages = self.consumer.consume(min(POLLED, found.end - at), POLL_S)
            before = at
            for message in messages:
                at = self.next_offset(message, at, found)
                if message.error() is None and message.offset() < found.end:
                    chunk.append(record_of(message))
                    held += len(chunk[-1].value or b"")
                    if held >= CHUNK_BYTES:
                        yield chunk
                        chunk, held = [], 0
            if at > before:
                since_s = time.monotonic()  # behind what was done with the chunks
            elif time.monotonic() - since_s > self.timeout_s:
                raise self.unreachable(f"{self.options.topic}-{found.partition} at offset {at}", "no answer")
        if chunk:
            yield chunk

    def next_offset(self, message: Message, at: int, found: OffsetRange) -> int:
        """Where to go on after a message, or after what librdkafka says instead of one."""
        error = message.error()
        if error is None:
            return int(message.offset()) + 1
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  its public name
            return max(at, int(message.offset()))
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            return self.behind_retention(at, found)
        if error.retriable() or error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            return at
        raise TopicError(f"{self.options.topic}-{found.partition}: {error.str()}")

    def behind_retention(self, at: int, found: OffsetRange) -> int:
        """Where the log begins now that an offset is gone."""
        topic = self.options.topic
        first, _ = self.watermarks([found.partition])[found.partition]
        if not self.options.fail_on_data_loss and first > at:
            reached = min(first, found.end)
            self.lost += reached - at
            self.consumer.assign([TopicPartition(topic, found.partition, reached)])
            return reached
        raise DataLoss(
            f"{topic}-{found.partition}: offset {at} is not there any more; retention deletes faster than "
            "this reads. failOnDataLoss=false goes on with what is left"
        )

    @contextlib.contextmanager
    def speaking_of(self, what: str) -> Iterator[None]:
        """Say what was asked of whom when librdkafka fails."""
        try:
            yield
        except KafkaException as error:
            self.consumer.poll(0)  # hear of the trouble
            raise self.unreachable(what, reason(error)) from error

    def unreachable(self, what: str, why: str) -> Unreachable:
        """What to raise when nobody answered in time."""
        trouble = f"; {self.trouble}" if self.trouble else ""
        return Unreachable(f"{what}: {self.options.client['bootstrap.servers']}: {why}{trouble}")

    def show_progress(self, offsets: Offsets) -> None:
        """Commit as the group, so that Kafka's tools show the lag. Nothing ever reads it back."""
        if self.options.group:
            positions = [TopicPartition(self.options.topic, part, at) for part, at in offsets.items()]
            with contextlib.suppress(KafkaException):
                self.consumer.commit(offsets=positions, asynchronous=False)

    def close(self) -> None:
        """Leave."""
        self.consumer.close()


def client_config(options: SourceOptions) -> dict[str, Any]:
    """Options for librdkafka: a reader of ranges, that does not report itself to the topic it reads."""
    ours: dict[str, Any] = {
        "group.id": options.group_id,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.metrics.push": False,
        # little is fetched in vain behind the end of a range: librdkafka's 64 MB are a whole task's
        "fetch.message.max.bytes": 1 << 20,
        "queued.max.messages.kbytes": 16 << 10,
        # when so much is waiting it would sleep for a second
        "fetch.queue.backoff.ms": 20,
        # what is read is there: a fetch that waits for more would hold up the next partition
        "fetch.wait.max.ms": 10,
        "log_level": 2,
    }
    return ours | dict(options.client)


def record_of(message: Message) -> TopicRecord:
    return TopicRecord(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
    )


def reason(error: Exception) -> str:
    """What librdkafka says, for a person."""
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)


def clamped(
    start: Mapping[int, int],
    end: Mapping[int, int],
    marks: Mapping[int, tuple[int, int]],
    *,
    fail: bool,
    topic: str,
) -> Offsets:
    """Where to read on, given what retention has left; never behind the end.

    Raises:
        DataLoss: Records are gone and that is not allowed; or the topic ends before the start.
    """
    gone = sorted(start.keys() - marks.keys())
    if gone:
        raise DataLoss(
            f"{topic} has no partition {gone[0]} any more, of which records are in: the topic was made anew. "
            "A topic made anew needs another dataset"
        )
    reached = dict(start)
    for partition, (first, high) in marks.items():
        at = start.get(partition, first)
        if at > high:
            raise DataLoss(
                f"{topic}-{partition} ends at offset {high}, and it was read up to {at} already: the topic "
                "was made anew, or its broker lost records. A topic made anew needs another dataset"
            )
        if at < first and fail:
            raise DataLoss(
                f"{topic}-{partition}: offsets {at} to {first - 1} were deleted by retention before they "
                "were read. failOnDataLoss=false goes on with what is left"
            )
        reached[partition] = max(at, min(first, end.get(partition, first)))
    return reached
