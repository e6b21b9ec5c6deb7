"""Delivers batches of pushes to topics of one cluster."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from confluent_kafka import KafkaError
from google.protobuf.message import DecodeError

from odradek.endpoints import TokenError
from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek_kafka.export_message import ExportMessage, export_message, liveness_message
from odradek_kafka.kafka_settings import Encoding, KafkaSettings
from odradek_kafka.producer_session import Outcome, ProducerSession, described
from odradek_kafka.topic_maker import TopicMaker
from odradek_kafka.topic_names import TopicNames

log = logging.getLogger(__name__)

FINAL = frozenset(
    {
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.UNSUPPORTED_FOR_MESSAGE_FORMAT,
    }
)
"""Errors that are the record's own fault, if it was alone in its batch."""
OF_ANOTHER_RECORD = KafkaError._INVALID_DIFFERENT_RECORD  # noqa: SLF001  librdkafka's name
CREATE_SHARE, PATIENCE_SHARE = 0.25, 0.9
"""Shares of the host's time-out for creating topics and for the whole call. They end before the time-out, so
that the host learns which records were delivered."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One message that was not acknowledged."""

    message: ExportMessage
    error: KafkaError

    @property
    def final(self) -> bool:
        return self.error.code() in FINAL

    @property
    def suspect(self) -> bool:
        """Whether another record may be at fault: a broker refuses a batch as a whole."""
        return self.final or self.error.code() == OF_ANOTHER_RECORD


class KafkaForwarder:
    """Writes one record per push with metrics, and one liveness record per client instance in the batch.

    A call returns once brokers have acknowledged every record. If a call fails, the host learns which records
    were acknowledged and does not deliver them again.
    """

    def __init__(
        self,
        settings: KafkaSettings,
        session: Callable[..., ProducerSession] = ProducerSession,
        maker: TopicMaker | None = None,
    ) -> None:
        self.settings = settings
        self.new_session = session
        self.maker = maker or TopicMaker(settings)
        self.names = TopicNames(settings.topic, settings.topic_max_count)
        self.session: ProducerSession | None = None
        self.exported: set[TelemetryRecord] = set()
        """Pushes that were acknowledged in a call whose liveness records were not."""

    async def start(self) -> None:
        """Create the producer, which then connects in the background.

        Without a usable token it is created by the first delivery that has one.
        """
        with contextlib.suppress(TokenError):
            self.session = self.new_session(self.settings.options)

    async def deliver(self, batch: Sequence[TelemetryRecord]) -> None:
        """Send the batch and wait for all delivery reports.

        Raises:
            Retry: The cluster is unreachable or too slow, or has a temporary error.
            Reject: The cluster will never accept the records that the error names.
        """
        loop = asyncio.get_running_loop()
        timeout_s = self.settings.deliver_timeout_ms / 1000
        deadline_s = loop.time() + timeout_s * PATIENCE_SHARE
        self.exported.intersection_update(batch)
        messages, unreadable = await self.messages(batch)
        try:
            topics = {message.topic for message in messages}
            problem = await self.maker.ensure(topics, timeout_s * CREATE_SHARE)
            if problem is not None:
                raise Retry(self.explained(problem))
            failures = await self.send(messages, deadline_s)
        except TokenError as error:
            raise Retry(str(error)) from error
        self.settle(batch, failures, unreadable)

    async def close(self) -> None:
        """Close the producer; also without or after a failed start."""
        session, self.session = self.session, None
        if session is not None:
            session.close()

    async def messages(
        self, batch: Sequence[TelemetryRecord]
    ) -> tuple[list[ExportMessage], list[TelemetryRecord]]:
        """The messages to send, and the pushes that cannot be encoded."""
        found: list[ExportMessage] = []
        unreadable: list[TelemetryRecord] = []
        latest: dict[bytes, TelemetryRecord] = {}
        settings = self.settings
        for record in batch:
            latest[record.payload.client_instance_id] = record
            if not record.payload.data or record in self.exported:
                continue
            topic = self.names.topic(record.payload.data)
            try:
                found.append(export_message(record, topic, settings.encoding, settings.key))
            except DecodeError:
                unreadable.append(record)
            if settings.encoding is Encoding.JSON:
                await asyncio.sleep(0)  # encoding took about a millisecond: let others run
        if settings.liveness_topic is not None:
            found += [liveness_message(record, settings.liveness_topic) for record in latest.values()]
        return found, unreadable

    async def send(self, messages: Sequence[ExportMessage], deadline_s: float) -> list[Failure]:
        """Send all messages, and again alone those that a broker refused together with others."""
        failures = await self.attempt(messages, deadline_s)
        if len(messages) == 1:
            return failures
        settled = [failure for failure in failures if not failure.suspect]
        for failure in failures:
            if failure.suspect:
                settled += await self.attempt([failure.message], deadline_s)
        return settled

    async def attempt(self, messages: Sequence[ExportMessage], deadline_s: float) -> list[Failure]:
        """Send all messages once and return the failures. A session with a fatal error is replaced."""
        session = self.session = self.session or self.new_session(self.settings.options)
        left_s = max(0.0, deadline_s - asyncio.get_running_loop().time())
        outcomes = await session.send(messages, left_s)
        if any(error is not None and fatal(error) for error in outcomes):
            log.error(
                "the producer had a fatal error; making a new one", extra={"problem": reason_of(outcomes)}
            )
            self.session = None
            session.close()
        return [
            Failure(message, error)
            for message, error in zip(messages, outcomes, strict=True)
            if error is not None
        ]

    def settle(
        self,
        batch: Sequence[TelemetryRecord],
        failures: Sequence[Failure],
        unreadable: Sequence[TelemetryRecord],
    ) -> None:
        """Raise for the records that were not delivered; return if all were."""
        if not failures and not unreadable:
            self.exported.clear()
            return
        late = {failure.message.record for failure in failures} | set(unreadable)
        delivered = [record for record in batch if record not in late]
        self.maker.forget(failure.message.topic for failure in failures)
        unsent = {failure.message.record for failure in failures if not self.is_liveness(failure.message)}
        self.exported = late - unsent
        refused = [failure for failure in failures if failure.final]
        if unreadable:
            raise Reject("not OTLP", unreadable, delivered)
        if refused:
            records = [failure.message.record for failure in refused]
            raise Reject(described(refused[0].error), records, delivered)
        raise Retry(self.explained(described(failures[0].error)), delivered=delivered)

    def is_liveness(self, message: ExportMessage) -> bool:
        return message.topic == self.settings.liveness_topic

    def explained(self, problem: str) -> str:
        """The problem, with librdkafka's last error about its connections."""
        said = self.session.last_error if self.session is not None else None
        return f"{problem} ({said})" if said else problem


def fatal(error: KafkaError) -> bool:
    """Whether the idempotent producer cannot continue (``rd_kafka_fatal_error``)."""
    return bool(error.fatal()) or error.code() == KafkaError._FATAL  # noqa: SLF001


def reason_of(outcomes: Iterable[Outcome]) -> str:
    return next((described(error) for error in outcomes if error is not None), "")
