"""Reads the topic with confluent-kafka: its partitions, its offsets, ranges of its records."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from odradek_spark.conditions import Condition
from odradek_spark.source.offsets import OffsetRange, Offsets
from odradek_spark.source.options import ReadOptions
from odradek_tables.decoder.topic_record import TopicRecord

TIMEOUT_S = 30.0
POLL_S = 0.5
POLLED = 100
"""Records fetched from librdkafka in one call; each may be as large as the topic allows."""
CHUNK_BYTES = 2 << 20
"""Approximate size of the records that are returned together: small Arrow batches cost Spark a tenth less."""
SAMPLE = 50
"""Records read to estimate the mean size of a backlog's records."""

HARMLESS = (KafkaError._ALL_BROKERS_DOWN, KafkaError.GROUP_AUTHORIZATION_FAILED)  # noqa: SLF001
"""Errors that do not end a read: brokers may come back, and librdkafka asks for the coordinator of a group
that the reader does not use.
"""

SECURITY_HINT = (
    "if its listener requires TLS or a login, set security.protocol: in the file of --command-config, in the "
    "file of command.config in [plugins.spark], or as the option kafka.security.protocol of the source"
)


class TopicError(Condition):
    """The topic cannot be read; the message says why."""

    condition = "ODRADEK_NO_TOPIC"


class Unreachable(TopicError):
    """No broker answers; a retry may help."""

    condition = "ODRADEK_UNREACHABLE"


TOKEN_URL: Final = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  a key
CONTINUE: Final = (
    "Continue with the remaining records by --allow-data-loss; where a session of your own reads the topic, "
    "by the option failOnDataLoss=false of its source"
)


class DataLoss(TopicError):
    """Records were deleted before they were read."""

    condition = "ODRADEK_DATA_LOSS"


class TopicReader:
    """A consumer that is not a member of its group: the caller chooses partitions and offsets.

    Raises:
        TopicError: librdkafka refuses an option.
        Unreachable: The file of a token cannot be used.
    """

    def __init__(self, options: ReadOptions, timeout_s: float = TIMEOUT_S) -> None:
        self.options = options
        self.timeout_s = timeout_s
        self.lost = 0
        """Number of requested offsets that retention deleted before they were read."""
        self.trouble = ""
        """librdkafka's last error about a connection."""
        try:
            self.consumer = Consumer(client_config(options) | {"error_cb": self.note_trouble})
        except (KafkaException, TypeError) as error:
            raise TopicError(f"kafka options: {reason(error)}") from error

    def note_trouble(self, error: KafkaError) -> None:
        """Remember a connection's error; librdkafka calls this from ``poll``."""
        self.trouble = error.str()

    def partitions(self) -> list[int]:
        """The partitions of the topic.

        Raises:
            TopicError: The topic does not exist, or access is denied.
            Unreachable: No broker answers.
        """
        with self.speaking_of(f"topic {self.options.topic}"):
            found = self.consumer.list_topics(self.options.topic, timeout=self.timeout_s)
        topic = found.topics[self.options.topic]
        if topic.error is not None:
            unknown = topic.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART
            hint = "; on a host, set telemetry.durability to log or fsync" if unknown else ""
            raise TopicError(f"topic {self.options.topic}: {topic.error.str()}{hint}")
        return sorted(topic.partitions)

    def watermarks(self, partitions: Sequence[int]) -> dict[int, tuple[int, int]]:
        """By partition: the first offset, and the end offset of committed records (last + 1)."""
        with self.speaking_of(f"offsets of {self.options.topic}"):
            return {
                partition: self.consumer.get_watermark_offsets(
                    TopicPartition(self.options.topic, partition), timeout=self.timeout_s
                )
                for partition in partitions
            }

    def offsets_since(self, partitions: Sequence[int], at_ms: int) -> Offsets:
        """By partition: the offset of the first record since a time, epoch milliseconds, if there is one."""
        asked = [TopicPartition(self.options.topic, partition, at_ms) for partition in partitions]
        with self.speaking_of(f"offsets of {self.options.topic}"):
            found = self.consumer.offsets_for_times(asked, timeout=self.timeout_s)
        return {each.partition: each.offset for each in found if each.offset >= 0}

    def reachable(
        self, start: Mapping[int, int], end: Mapping[int, int], marks: Mapping[int, tuple[int, int]]
    ) -> Offsets:
        """The offsets to continue from, after those that retention has deleted; never beyond the end.

        Raises:
            DataLoss: Records were deleted, and that is not allowed; or the topic ends before the start.
        """
        topic = self.options.topic
        gone = sorted(start.keys() - marks.keys())
        if gone:
            raise DataLoss(
                f"{topic} has no partition {gone[0]} any more, but the dataset has records of it: the topic "
                "was deleted and created again. Use a new dataset for it"
            )
        reached = dict(start)
        for partition, (first, high) in marks.items():
            at = start.get(partition, first)
            if at > high:
                raise DataLoss(
                    f"{topic}-{partition} ends at offset {high}, but it was already read up to {at}: the "
                    "topic was deleted and created again, or its broker lost records. Use a new dataset for "
                    "a new topic"
                )
            if at < first and self.options.fail_on_data_loss:
                raise DataLoss(
                    f"{topic}-{partition}: offsets {at} to {first - 1} were deleted by retention before "
                    f"they were read. {CONTINUE}"
                )
            reached[partition] = max(at, min(first, end.get(partition, first)))
        return reached

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
            Unreachable: No broker answers in time.
        """
        topic = self.options.topic
        self.consumer.assign([TopicPartition(topic, found.partition, found.start)])
        try:
            yield from self.chunks(found)
        finally:
            with contextlib.suppress(RuntimeError):  # already closed, because the caller failed
                self.consumer.unassign()

    def chunks(self, found: OffsetRange) -> Iterator[list[TopicRecord]]:
        chunk: list[TopicRecord] = []
        held = 0
        at, since_s = found.start, time.monotonic()
        while at < found.end:
            # librdkafka waits for this many records: asking for more than exist would wait for the time-out
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
                since_s = time.monotonic()  # after the caller has processed the chunk
            elif time.monotonic() - since_s > self.timeout_s:
                raise self.unreachable(f"{self.options.topic}-{found.partition} at offset {at}", "no answer")
        if chunk:
            yield chunk

    def next_offset(self, message: Message, at: int, found: OffsetRange) -> int:
        """The offset after a message, or after an event that librdkafka delivers as a message."""
        error = message.error()
        if error is None:
            return int(message.offset()) + 1
        if error.code() == KafkaError._PARTITION_EOF:  # noqa: SLF001  its public name
            return max(at, int(message.offset()))
        if error.code() == KafkaError._AUTO_OFFSET_RESET:  # noqa: SLF001
            return self.behind_retention(at, found)
        if error.retriable() or error.code() in HARMLESS:
            return at
        raise TopicError(f"{self.options.topic}-{found.partition}: {error.str()}")

    def behind_retention(self, at: int, found: OffsetRange) -> int:
        """The offset at which the log begins, after retention deleted the requested one."""
        topic = self.options.topic
        first, _ = self.watermarks([found.partition])[found.partition]
        if not self.options.fail_on_data_loss and first > at:
            reached = min(first, found.end)
            self.lost += reached - at
            self.consumer.assign([TopicPartition(topic, found.partition, reached)])
            return reached
        raise DataLoss(
            f"{topic}-{found.partition}: retention deleted offset {at} before it was read. {CONTINUE}"
        )

    @contextlib.contextmanager
    def speaking_of(self, what: str) -> Iterator[None]:
        """Turn errors of librdkafka into `Unreachable`, naming the request and the brokers."""
        try:
            yield
        except KafkaException as error:
            self.consumer.poll(0)  # calls `note_trouble`
            raise self.unreachable(what, reason(error)) from error

    def unreachable(self, what: str, why: str) -> Unreachable:
        """The error if no broker answered in time."""
        client = self.options.client
        hint = "" if "security.protocol" in client else SECURITY_HINT
        return Unreachable(
            "; ".join(filter(None, (f"{what}: {client['bootstrap.servers']}: {why}", self.trouble, hint)))
        )

    def show_progress(self, offsets: Offsets) -> None:
        """Commit offsets for the group, so that Kafka's tools show the lag. Nothing reads them back."""
        if self.options.group:
            positions = [TopicPartition(self.options.topic, part, at) for part, at in offsets.items()]
            with contextlib.suppress(KafkaException):
                self.consumer.commit(offsets=positions, asynchronous=False)

    def close(self) -> None:
        self.consumer.close()


def client_config(options: ReadOptions) -> dict[str, Any]:
    """Options of librdkafka for reading ranges; the consumer pushes no metrics into the topic it reads."""
    ours: dict[str, Any] = {
        "group.id": options.group_id,
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "isolation.level": "read_committed",
        "enable.metrics.push": False,
        # Small, to fetch little beyond the end of a range: librdkafka's 64 MB would be a whole task.
        "fetch.message.max.bytes": 1 << 20,
        "queued.max.messages.kbytes": 16 << 10,
        # With a full queue librdkafka would pause for a second by default.
        "fetch.queue.backoff.ms": 20,
        # The records exist already: a fetch that waits for more would delay the next partition.
        "fetch.wait.max.ms": 10,
        "log_level": 2,
    }
    return ours | with_token(options.client)


def with_token(client: Mapping[str, str]) -> dict[str, Any]:
    if TOKEN_URL not in client:
        return dict(client)
    from odradek.endpoints import TokenError, with_token_file  # a planner starts sooner without it

    try:
        return with_token_file(client, time.time())
    except TokenError as error:
        raise Unreachable(str(error)) from error


def record_of(message: Message) -> TopicRecord:
    return TopicRecord(
        message.partition(),
        message.offset(),
        message.timestamp()[1],
        message.key(),
        message.value(),
        message.headers() or [],
        message.timestamp()[0] - 1,  # librdkafka counts from the missing one
    )


def reason(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)
