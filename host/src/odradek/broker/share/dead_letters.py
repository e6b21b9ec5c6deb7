"""Dead-letter topics of share groups (KIP-1191): what a group gives up is written to a topic, then archived.

After ShareGroupDLQStateManager (Kafka 4.4). Between the two the host may fail: the record is written again
then, and is in the topic twice.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from odradek.bounds.sampled_log import SampledLog
from odradek.broker.topic_changes import ChangeableTopics, NewTopics
from odradek.broker.topics import INTERNAL_TOPICS, Topic, check_name
from odradek.group.share_config import ShareGroupConfig
from odradek.log.log_config import DEAD_LETTERS_KEY
from odradek.share.deliveries import Deliveries, Delivery
from odradek.share.given_up import GivenUp, first_of
from odradek.waiting.clock import Clock
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Pause, Step, Steps
from odradek.wire.api_error import ApiError
from odradek.wire.compression import Codec
from odradek.wire.error_code import ErrorCode
from odradek.wire.record import Record
from odradek.wire.record_batch import HEADER_BYTES, build_batch

if TYPE_CHECKING:
    from odradek.broker.share.original_records import Originals

log = logging.getLogger(__name__)

MAX_RECORDS: Final = 500
"""Of one batch, and of one step."""
MAX_BYTES: Final = 262_144
"""Of one batch, unless a single record is larger."""
RECORD_ROOM_BYTES: Final = 40
"""More than the lengths and deltas of a record take."""
NOTHING: Final = Record(None, None)
"""Stands for a record that is not copied, or that the log does not have any more."""
ATTEMPTS: Final = 5
BACKOFF_MS: Final = 1_000
"""Before the second attempt; twice as long before each other. Kafka's figures."""
PASSING: Final = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.TOPIC_ALREADY_EXISTS})
"""Errors that another attempt may not meet."""
OUTCOMES: Final = ("written", "failed", "refused")
"""``failed``: the topic did not take the record. ``refused``: the group may not use the topic."""


@dataclass(slots=True, eq=False)
class DeadLetters:
    """Writes what the share groups of a host have given up.

    Args:
        deliveries: Those of all groups.
        topics: All topics.
        config: The settings of a group.
        partitions: ``num.partitions``, for a topic that is made.
        steps: Runs the work.
        clock: The time.
    """

    deliveries: Deliveries
    topics: ChangeableTopics
    config: Callable[[str], ShareGroupConfig]
    partitions: int
    steps: StepRunner
    clock: Clock
    records: Counter[str] = field(default_factory=lambda: Counter(dict.fromkeys(OUTCOMES, 0)))
    """Records by what became of them."""
    sample: SampledLog = field(default_factory=lambda: SampledLog(log))

    def bury(self, delivery: Delivery) -> None:
        """Begin with what a partition has given up, unless its records are being written."""
        if not delivery.is_burying:
            delivery.is_burying = True
            self.steps.run(self.work(delivery))

    def work(self, delivery: Delivery) -> Steps:
        """Write all records that are given up, then archive them."""
        attempt = 1
        try:
            while delivery.partition.given_up and self.deliveries.is_current(delivery):
                lot = tuple(first_of(delivery.partition.given_up, MAX_RECORDS))
                try:
                    outcome, count = yield from self.write(delivery, lot)
                except ApiError as error:
                    if error.code in PASSING and attempt < ATTEMPTS:
                        yield Pause(BACKOFF_MS << attempt - 1)
                        attempt += 1
                        continue
                    outcome, count = "failed", sum(each.records for each in lot)
                    self.report(delivery, "a dead letter cannot be written", str(error))
                attempt = 1
                self.records[outcome] += count
                if self.deliveries.is_current(delivery):
                    delivery.partition.buried(count)
                    self.deliveries.settle_quietly([delivery])
                yield None
        finally:
            delivery.is_burying = False

    def write(self, delivery: Delivery, lot: Sequence[GivenUp]) -> Generator[Step, Any, tuple[str, int]]:
        """Write one batch of records; return what became of them, and how many they are.

        Raises:
            ApiError: They cannot be written.
        """
        from odradek.broker.share.original_records import Originals, originals  # seldom needed

        count = sum(each.records for each in lot)
        source = self.topics.by_id.get(delivery.key[0])
        if source is None:
            return "refused", count  # with the topic its deliveries go
        config = self.config(delivery.group_id)
        topic = yield from self.topic_of(delivery, config)
        if topic is None:
            return "refused", count
        found = Originals()
        if config.copies_dead_letters:
            try:
                found = yield from originals(source, delivery.key[1], lot[0].first, lot[-1].last)
            except ApiError as error:
                self.report(delivery, "a dead letter has no copy of its record", str(error))
        if not self.deliveries.is_current(delivery):
            return "refused", count
        return "written", self.append(topic, delivery, source.name, lot, found)

    def topic_of(self, delivery: Delivery, config: ShareGroupConfig) -> Generator[Step, Any, Topic | None]:
        """The topic for the records of a group, made if it may be; None if the group may not use it.

        Raises:
            ApiError: It cannot be made.
        """
        name = config.dead_letter_topic
        problem = unusable(name, config.dead_letter_prefix)
        topic = self.topics.named(name)
        if not problem and topic is None:
            if not config.makes_dead_letter_topics:
                problem = "the topic does not exist"
            else:
                with NewTopics(self.topics) as new:
                    topic = yield from new.add(name, self.partitions, {DEAD_LETTERS_KEY: "true"})
                    yield from new.store()
                if name in new.failed:
                    raise new.failed[name]
        if topic is not None and not problem:
            if not topic.config.takes_dead_letters:
                problem = f"{DEAD_LETTERS_KEY} of the topic is false"
            elif topic.guard is not None:
                problem = "the host needs the topic itself"
        if problem:
            self.report(delivery, "a share group may not use its dead-letter topic", problem)
        return None if problem else topic

    def append(
        self, topic: Topic, delivery: Delivery, source: str, lot: Sequence[GivenUp], found: Originals
    ) -> int:
        """Append a batch of the first records of a lot; return how many they are.

        Raises:
            ApiError: The topic does not take the batch.
        """
        most_bytes = min(MAX_BYTES, topic.config.max_message_bytes - HEADER_BYTES)
        letters: list[Record] = []
        size_bytes = 0
        for given in lot:
            for offset in range(given.first, min(given.last + 1, found.end)):
                heads, now_ms = headers(source, delivery, offset, given), self.clock.now_ms()
                letter = letter_of(found.by_offset.get(offset, NOTHING), heads, now_ms)
                if size_of(letter) > topic.config.max_message_bytes - HEADER_BYTES:
                    letter = letter_of(NOTHING, heads, now_ms)  # its origin is told all the same
                if letters and size_bytes + size_of(letter) > most_bytes:
                    return self.append_batch(topic, delivery.key[1], letters)
                letters.append(letter)
                size_bytes += size_of(letter)
            if given.last >= found.end:
                break
        return self.append_batch(topic, delivery.key[1], letters)

    def append_batch(self, topic: Topic, index: int, letters: Sequence[Record]) -> int:
        """Append to the partition with the number of the source's, or another if there are fewer."""
        if topic.config.is_compacted and any(each.key is None for each in letters):
            raise ApiError(ErrorCode.INVALID_RECORD, "a compacted topic takes no records without a key")
        codec = Codec.NONE if topic.config.compression_type is None else topic.config.compression_type
        batch = build_batch(letters, codec=codec)
        log = topic.partitions[index % len(topic.partitions)]
        log.append(batch, self.clock.now_ms(), trusted_records=True)
        return len(letters)

    def report(self, delivery: Delivery, message: str, problem: str) -> None:
        """Log why a record is in no topic, at most once a minute."""
        self.sample.write(
            logging.WARNING,
            self.clock.monotonic_ms(),
            message,
            group=delivery.group_id,
            topic=self.config(delivery.group_id).dead_letter_topic,
            partition=delivery.key[1],
            problem=problem,
        )


def unusable(name: str, prefix: str) -> str:
    """Why no group may use a topic of this name; empty if they may."""
    if not name:
        return "the group names no topic"
    if not name.startswith(prefix):
        return f"its name does not begin with {prefix!r} (errors.deadletterqueue.topic.name.prefix)"
    if name in INTERNAL_TOPICS:
        return "the topic is internal"
    try:
        check_name(name)
    except ApiError as error:
        return error.message or error.code.name
    return ""


def headers(
    topic: str, delivery: Delivery, offset: int, given: GivenUp
) -> tuple[tuple[str, bytes | None], ...]:
    """The origin of a record, and the reason why it is here; Kafka's names."""
    about = {
        "topic": topic,
        "partition": delivery.key[1],
        "offset": offset,
        "group": delivery.group_id,
        "delivery.count": given.deliveries,
        "message": given.reason,
    }
    return tuple((f"__dlq.errors.{name}", str(value).encode()) for name, value in about.items())


def letter_of(original: Record, heads: tuple[tuple[str, bytes | None], ...], now_ms: int) -> Record:
    """A dead letter with the key and the value of a record; Kafka copies no headers."""
    return Record(original.key, original.value, now_ms, heads)


def size_of(letter: Record) -> int:
    """At least as many bytes as a record takes in a batch."""
    named = sum(
        len(name.encode("utf-8", "surrogateescape")) + len(value or b"") + 10
        for name, value in letter.headers
    )
    return len(letter.key or b"") + len(letter.value or b"") + named + RECORD_ROOM_BYTES
