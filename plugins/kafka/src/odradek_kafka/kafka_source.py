"""Brings records in from telemetry topics of a cluster, as a member of a consumer group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from confluent_kafka import Message

from odradek.plugin import Intake, Origin, TelemetryRecord
from odradek.topic import MalformedTelemetry, decode_message
from odradek_kafka.consumer_session import ConsumerSession
from odradek_kafka.source_settings import SourceSettings

log = logging.getLogger(__name__)

PATIENCE_S: Final = 60.0
"""A host whose log has no room for so long leaves the group, and others take over its partitions. Kafka's
``max.poll.interval.ms`` is longer."""
WAIT_S, WAIT_MAX_S = 0.05, 2.0
GRACE_S: Final = 0.5
"""A stop waits this long for records that are being stored, so that they are not read again."""


class NoRoomError(Exception):
    """The host's log stayed full."""


class KafkaSource:
    """Stores the records of the topics, and commits their offsets afterwards.

    So a record that was not stored when the host or the cluster failed is read again, by this host or by
    another one of the group. The host recognizes those that it had stored by their origin.
    """

    def __init__(
        self,
        settings: SourceSettings,
        session: Callable[[SourceSettings], ConsumerSession] = ConsumerSession,
        patience_s: float = PATIENCE_S,
    ) -> None:
        self.settings = settings
        self.new_session = session
        self.patience_s = patience_s
        self.session: ConsumerSession | None = None
        self.skipped = 0
        """Records that were not stored because they are not telemetry, or too large."""

    async def run(self, intake: Intake) -> None:
        """Read, store and commit, until cancelled.

        Raises:
            KafkaException: The consumer cannot go on.
            TokenError: The options name the file of a token, and it cannot be used.
            NoRoomError: The host's log stays full.
        """
        self.session = session = self.new_session(self.settings)
        try:
            while True:
                messages = session.read()
                if messages:
                    await finished(self.bring_in(intake, session, messages))
                await asyncio.sleep(0)
        finally:
            self.session = None
            session.close()

    def lag(self) -> int | None:
        """The records of this member's partitions that are not stored; None until the cluster answered."""
        session = self.session
        return None if session is None else session.lag

    async def bring_in(self, intake: Intake, session: ConsumerSession, messages: Sequence[Message]) -> None:
        """Store messages, then commit them."""
        found = [self.records_of(session, message) for message in messages]
        intake.unreadable(sum(records is None for records in found))
        await self.store(intake, [record for records in found for record in records or ()])
        session.commit(messages)

    def records_of(self, session: ConsumerSession, message: Message) -> list[TelemetryRecord] | None:
        """The records of a message; None if it is not telemetry in the format of its topic."""
        topic, settings = message.topic(), self.settings
        try:
            records = decode_message(
                settings.format_of(topic),
                message.key(),
                message.value(),
                message.headers() or (),
                timestamp_ms=message.timestamp()[1],
                interval_ms=settings.interval_ms,
            )
        except MalformedTelemetry as error:
            self.skip(f"not telemetry as {settings.format_of(topic)}: {error}", place_of(message))
            return None
        for record in records:
            if record.origin is None and (topic_id := session.topic_id(topic)):
                record.origin = Origin(topic_id, message.partition(), message.offset())
        return records

    async def store(self, intake: Intake, records: Sequence[TelemetryRecord]) -> None:
        """Store records; wait while the log has no room.

        Raises:
            NoRoomError: It has had no room for too long.
        """
        loop = asyncio.get_running_loop()
        deadline_s, wait_s = loop.time() + self.patience_s, WAIT_S
        left = records
        while left:
            receipt = await intake.store(left)
            for each in receipt.refused:
                self.skip(each.reason, str(each.record.origin))
            if len(receipt.left) < len(left):
                deadline_s, wait_s = loop.time() + self.patience_s, WAIT_S
            left = receipt.left
            if left:
                if loop.time() > deadline_s:
                    raise NoRoomError(
                        f"the log has had no room for {self.patience_s:g} s, leaving the group; "
                        "see odradek.spool.refused"
                    )
                await asyncio.sleep(wait_s)
                wait_s = min(2 * wait_s, WAIT_MAX_S)

    def skip(self, reason: str, place: str) -> None:
        """Count a record that will never be stored. Log the first, and then with doubling distance."""
        self.skipped += 1
        if self.skipped.bit_count() == 1:
            log.warning(
                "a record cannot be stored and is skipped",
                extra={"problem": reason, "record": place, "skipped": self.skipped},
            )


def place_of(message: Message) -> str:
    return f"{message.topic()}-{message.partition()} offset {message.offset()}"


async def finished(work: Coroutine[Any, Any, None]) -> None:
    """Await work. If the task is cancelled meanwhile, give the work a moment to finish."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task}, timeout=GRACE_S)
        task.cancel()
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise
