"""Creating, deleting and extending topics, in steps.

A request may name thousands of partitions, each of which takes some hundred microseconds. So the work is a
generator that yields after each partition, and other requests run in between.

Nothing is half done for a client or after a crash. The logs of a new topic exist before the topic is stored,
and a topic is visible once it is stored; the next start removes logs without a topic. A deleted topic is
invisible as soon as its deletion is stored, and its logs are deleted afterwards. Its name is free from then
on, so whoever deletes logs checks that they are still the same.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Final, Self

from odradek.broker.topics import TOPIC_RESOURCE, TOPICS_BEING_DELETED, Topic, Topics
from odradek.log.partition_log import PartitionLog
from odradek.metadata.store import TopicRow
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

STORED_TOGETHER: Final = 50
"""Topics in one transaction: one write to the disk, and about a millisecond of work."""
FREED_TOGETHER: Final = 20
"""Logs of a deleted topic. To free that many takes 0.1 ms."""


class ChangeableTopics(Topics):
    """All topics of the host."""

    def create(self, name: str, partitions: int, properties: Mapping[str, str]) -> Topic:
        """Create a topic and its logs at once; on failure, neither exists.

        Raises:
            ApiError: The name, the number of partitions or a property is not legal, the topic exists, or
                KAFKA_STORAGE_ERROR.
        """
        with NewTopics(self) as new:
            topic = result_of(new.add(name, partitions, properties))
            result_of(new.store())
        if name in new.failed:
            raise new.failed[name]
        return topic

    def delete(self, topic: Topic) -> None:
        """Delete a topic, its configuration and its logs at once.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR: the topic is deleted, but some of its files remain.
        """
        failed = result_of(self.deletion([topic]))
        if failed:
            raise failed[topic.id]

    def grow(self, topic: Topic, partitions: int) -> None:
        """Add partitions at once until the topic has ``partitions``; on failure, add none.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        result_of(self.growth(topic, partitions))

    def deletion(self, topics: Sequence[Topic]) -> Generator[None, None, dict[bytes, ApiError]]:
        """Delete up to `STORED_TOGETHER` topics. Returns by topic id why one or its logs are not deleted."""
        failed: dict[bytes, ApiError] = {}
        present = [topic for topic in topics if self.by_name.get(topic.name) is topic]
        for topic in topics:
            if topic not in present:  # another request was faster
                failed[topic.id] = ApiError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition."
                )
        try:
            self.unlist(present)
        except ApiError as error:
            return failed | dict.fromkeys((topic.id for topic in present), error.kept())
        for topic in present:
            problem = yield from self.delete_logs(topic.name, topic.partitions)
            if problem is None:
                self.being_deleted.discard(topic.id)
            else:
                failed[topic.id] = problem
            while topic.partitions:  # which takes milliseconds in one step if they are a thousand
                del topic.partitions[-FREED_TOGETHER:]
                yield
        return failed

    def unlist(self, topics: Sequence[Topic]) -> None:
        """Delete topics, but not their logs.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR; they stay.
        """
        if not topics:
            return
        with self.metadata.transaction():
            for topic in topics:
                self.metadata.delete_topic(topic.name)
                self.metadata.put_resource(TOPIC_RESOURCE, topic.name, {})
            # The next start deletes the logs that a stop or a crash leaves. An id is removed from the list by
            # a later deletion, which saves a write.
            ids = self.being_deleted | {topic.id for topic in topics}
            self.metadata.put_value(TOPICS_BEING_DELETED, ",".join(sorted(each.hex() for each in ids)))
        self.being_deleted = ids
        for topic in topics:
            self.hide(topic)
        self.tell()

    def growth(self, topic: Topic, partitions: int) -> Generator[None, None, None]:
        """Add partitions until the topic has ``partitions``; on failure, add none. The caller is the only
        one that extends the topic, see `Topic.extending`.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR, or UNKNOWN_TOPIC_OR_PARTITION: the topic was deleted meanwhile.
        """
        first = len(topic.partitions)
        added: list[PartitionLog] = []
        try:
            for log in self.opened_logs(topic, first, partitions):
                added.append(log)
                yield
                if self.by_name.get(topic.name) is not topic:
                    raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            with self.metadata.transaction():
                self.metadata.put_topic(TopicRow(topic.name, topic.id, partitions))
        except Exception:
            yield from self.delete_logs(topic.name, added, first)
            raise
        for log in added:
            log.config = topic.config  # may have changed meanwhile
        topic.partitions += added
        self.tell()

    def opened_logs(self, topic: Topic, first: int, end: int) -> Iterator[PartitionLog]:
        """Create the logs of partitions one by one. They count as existing from the beginning.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        missing = end - first
        self.partitions_limit.reserved += missing
        try:
            for index in range(first, end):
                log = self.open_log(topic, index)
                self.partitions_limit.reserved -= 1
                missing -= 1
                yield log
        finally:
            self.partitions_limit.reserved -= missing

    def open_log(self, topic: Topic, index: int) -> PartitionLog:
        """Create the log of a partition.

        Raises:
            ApiError: KAFKA_STORAGE_ERROR.
        """
        if self.logs.log(topic.name, index) is not None:
            self.logs.delete(topic.name, index)  # of a deleted topic, whose deletion has not come to it yet
        return self.logs.open(topic.name, index, topic.config, topic.id, self.clock.now_ms())

    def delete_logs(
        self, name: str, logs: Sequence[PartitionLog], first: int = 0
    ) -> Generator[None, None, ApiError | None]:
        """Delete the logs of a topic from index ``first`` on. Returns the first failure; the others are
        still deleted.
        """
        failure = None
        for index, log in enumerate(logs, first):
            if self.logs.log(name, index) is log:
                try:
                    self.logs.delete(name, index)
                except ApiError as error:
                    failure = failure or error.kept()
                yield
        return failure


class NewTopics:
    """The topics that one request creates. None is visible before it is stored.

    A context manager: at its end the names of topics that were not stored are free again.
    """

    def __init__(self, topics: ChangeableTopics) -> None:
        self.topics = topics
        self.defaults = topics.defaults
        self.begun: dict[str, Topic] = {}
        """The topics that are not stored yet, by name."""
        self.ready: list[tuple[Topic, Mapping[str, str]]] = []
        """Those whose logs exist, with their properties."""
        self.failed: dict[str, ApiError] = {}
        """Why topics could not be stored, by name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for topic in list(self.begun.values()):
            # The host stops if the generator was closed: the next start removes the logs.
            result_of(self.discard(topic, keep_logs=isinstance(error, GeneratorExit)))

    def add(self, name: str, partitions: int, properties: Mapping[str, str]) -> Generator[None, None, Topic]:
        """Create the logs of a topic, and store the topics that wait for it if there are many.

        Raises:
            ApiError: The name, the number of partitions or a property is not legal, the topic exists, or
                KAFKA_STORAGE_ERROR.
        """
        topics = self.topics
        topics.check_new(name, partitions, properties)
        topic = Topic(name, topics.fresh_id(), topics.config_of(properties))
        topics.names.add(name)
        self.begun[name] = topic
        try:
            for log in topics.opened_logs(topic, 0, partitions):
                topic.partitions.append(log)
                yield
        except ApiError:
            yield from self.discard(topic)
            raise
        self.ready.append((topic, properties))
        if len(self.ready) >= STORED_TOGETHER:
            yield from self.store()
        return topic

    def store(self) -> Generator[None, None, None]:
        """Store the topics that are ready, and make them visible."""
        ready, self.ready = self.ready, []
        if not ready:
            return
        metadata = self.topics.metadata
        try:
            with metadata.transaction():
                for topic, properties in ready:
                    metadata.put_topic(TopicRow(topic.name, topic.id, len(topic.partitions)))
                    metadata.put_resource(TOPIC_RESOURCE, topic.name, properties)
        except ApiError as error:
            for topic, _ in ready:
                self.failed[topic.name] = error.kept()
                yield from self.discard(topic)
            return
        for topic, properties in ready:
            del self.begun[topic.name]
            self.topics.show(topic, properties)
            if self.topics.defaults is not self.defaults:
                self.topics.refresh(topic, properties)
        self.topics.tell()

    def discard(self, topic: Topic, *, keep_logs: bool = False) -> Generator[None, None, None]:
        """Give up a topic that is not stored."""
        if not keep_logs:
            yield from self.topics.delete_logs(topic.name, topic.partitions)
        del self.begun[topic.name]
        self.topics.names.discard(topic.name)
