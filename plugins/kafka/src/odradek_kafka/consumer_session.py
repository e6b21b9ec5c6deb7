"""One consumer of librdkafka. All methods are called on one thread; each blocks for `POLL_S` at most."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from odradek.endpoints import with_token_file
from odradek_kafka.producer_session import described, library_log
from odradek_kafka.source_settings import SourceSettings

log = logging.getLogger(__name__)

POLL_S: Final = 0.02
"""Longest wait for a record, so longest delay before a stop is noticed."""
DESCRIBE_S: Final = 5.0
COMMIT_AGAIN_S: Final = 1.0
AS_KAFKA: Final = str.maketrans("+/", "-_")
"""librdkafka prints ids in the usual base64, Kafka in that of addresses."""
NO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
CLIENTS_OWN: Final = (
    "security.",
    "ssl.",
    "sasl.",
    "enable.ssl.",
    "socket.",
    "broker.",
    "client.id",
    "enable.metrics.push",
    "oauth_cb",
)
"""Options that an admin client takes too."""


class ConsumerSession:
    """Reads topics as a member of a group, and commits what is stored.

    Raises:
        TokenError: The options name the file of a token, and it cannot be used.
    """

    def __init__(
        self,
        settings: SourceSettings,
        make: Callable[..., Any] = Consumer,
        make_admin: Callable[..., Any] = AdminClient,
    ) -> None:
        self.settings = settings
        self.make_admin = make_admin
        self.lag: int | None = None
        self.problem: str | None = None
        """The last error of the connection to the cluster; None since records arrived."""
        self.topic_ids: dict[str, str] = {}
        self.uncommitted: dict[tuple[str, int], int] = {}
        """The next offset by topic and partition, until the cluster has confirmed it."""
        self.sent_s = 0.0
        options = with_token_file(settings.options, time.time())
        callbacks = {"error_cb": self.note_error, "stats_cb": self.note_stats, "on_commit": self.note_commit}
        self.consumer = make({**options, **callbacks}, logger=library_log)
        self.consumer.subscribe(list(settings.topics))

    def read(self) -> list[Message]:
        """The next records; empty if none arrive within `POLL_S`.

        Raises:
            KafkaException: The consumer cannot go on.
        """
        if self.uncommitted and time.monotonic() - self.sent_s > COMMIT_AGAIN_S:
            self.send_commit()
        first = self.consumer.poll(POLL_S)
        if first is None:
            return []
        messages = [first, *self.consumer.consume(self.settings.batch_max_records - 1, 0.0)]
        found = []
        for message in messages:
            if (error := message.error()) is None:
                found.append(message)
            elif error.fatal():
                raise KafkaException(error)
            else:
                self.note_error(error)
        if found:
            self.problem = None
        return found

    def topic_id(self, topic: str) -> str:
        """The id of a topic as Kafka prints it; empty if the cluster does not tell.

        Raises:
            KafkaException: The cluster cannot be asked now.
        """
        known = self.topic_ids.get(topic)
        if known is None:
            known = self.topic_ids[topic] = self.described_id(topic)
        return known

    def described_id(self, topic: str) -> str:
        options = with_token_file(self.settings.options, time.time())
        own = {key: value for key, value in options.items() if key.startswith(CLIENTS_OWN)}
        admin = self.make_admin(
            {**own, "bootstrap.servers": options["bootstrap.servers"]}, logger=library_log
        )
        futures = admin.describe_topics(TopicCollection([topic]), request_timeout=DESCRIBE_S)
        try:
            found = str(futures[topic].result(DESCRIBE_S + 1).topic_id)
        except KafkaException as error:
            if error.args[0].retriable() or error.args[0].code() == KafkaError._TIMED_OUT:  # noqa: SLF001
                raise
            log.warning(
                "the id of the topic is not known, so repeated records are not recognized",
                extra={"topic": topic, "problem": described(error.args[0])},
            )
            return ""
        return "" if found == NO_TOPIC_ID else found.translate(AS_KAFKA)

    def commit(self, messages: Sequence[Message]) -> None:
        """Commit that the messages, and all before them, are stored. The cluster confirms it later."""
        for message in messages:
            self.uncommitted[message.topic(), message.partition()] = message.offset() + 1
        self.send_commit()

    def send_commit(self) -> None:
        """Send what is not confirmed. The offsets of a lost partition belong to its new owner."""
        self.sent_s = time.monotonic()
        owned = {(each.topic, each.partition) for each in self.consumer.assignment()}
        self.uncommitted = {place: offset for place, offset in self.uncommitted.items() if place in owned}
        if self.uncommitted:
            offsets = [TopicPartition(*place, offset) for place, offset in self.uncommitted.items()]
            self.consumer.commit(offsets=offsets, asynchronous=True)

    def close(self) -> None:
        """Leave the group, after the commits that were sent."""
        self.consumer.close()

    # librdkafka's callbacks, during `read` and `close`

    def note_commit(self, error: KafkaError | None, offsets: Sequence[TopicPartition]) -> None:
        if error is not None:
            log.warning("offsets cannot be committed, trying again", extra={"problem": described(error)})
            return
        for each in offsets:
            if each.error is None and self.uncommitted.get((each.topic, each.partition)) == each.offset:
                del self.uncommitted[each.topic, each.partition]

    def note_error(self, error: KafkaError) -> None:
        """Log an error about connections or topics once, until records arrive again."""
        text = described(error)
        if self.problem is None:
            log.warning("the source cannot read its topics", extra={"problem": text})
        self.problem = self.problem or text

    def note_stats(self, text: str) -> None:
        """Note the lag: the records of our partitions that are not committed."""
        lags = [
            partition["consumer_lag"]
            for topic in json.loads(text)["topics"].values()
            for number, partition in topic["partitions"].items()
            if int(number) >= 0 and partition["consumer_lag"] >= 0
        ]
        self.lag = sum(lags) if lags else None
