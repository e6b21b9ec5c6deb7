"""Writes accepted pushes to the telemetry topic of a cluster, one by one; librdkafka makes the batches."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from threading import Event, Thread
from typing import Final

from confluent_kafka import KafkaError

from odradek.endpoints import TokenError
from odradek.plugin import NotWritten, TelemetryRecord
from odradek_kafka.export_message import export_message
from odradek_kafka.kafka_forwarder import FINAL, fatal
from odradek_kafka.kafka_settings import Encoding, Key
from odradek_kafka.producer_session import Outcome, ProducerSession, described
from odradek_kafka.topic_maker import TopicMaker
from odradek_kafka.writer_settings import WriterSettings

log = logging.getLogger(__name__)

CREATE_S: Final = 10.0
AGAIN_S: Final = 1.0
"""Wait before the topic is looked for again."""
LOOK_S: Final = 0.005
POLL_S: Final = 0.002
"""Time between two looks for reports while records are in flight."""
IDLE_POLL_S: Final = 0.1
"""The same otherwise: librdkafka also asks for tokens, and reports errors of connections."""
NO_TOPIC: Final = frozenset(
    {KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_TOPIC}  # noqa: SLF001  librdkafka's name
)
REPLACED: Final = NotWritten("replaced", "the producer had a fatal error")


WITHOUT_THREAD: Final = partial(ProducerSession, has_thread=False)


class KafkaTopicWriter:
    """A producer of librdkafka with acks=all, idempotent.

    The event loop runs its callbacks. A thread would have to take the interpreter's lock from the loop for
    each of them: while the loop is busy, it gets the lock only a few hundred times a second.

    Args:
        settings: The cluster.
        session: Makes the producer.
        maker: Creates the topic.
    """

    def __init__(
        self,
        settings: WriterSettings,
        session: Callable[..., ProducerSession] = WITHOUT_THREAD,
        maker: TopicMaker | None = None,
    ) -> None:
        self.settings = settings
        self.new_session = session
        self.maker = maker or TopicMaker(settings)
        self.topic = ""
        self.options = dict(settings.options)
        self.report: Callable[[int, NotWritten | None], None] = lambda _number, _problem: None
        self.session: ProducerSession | None = None
        self.pending: set[int] = set()
        """The records of the session without a report."""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.poll_timer: asyncio.TimerHandle | None = None
        """The next poll; None while one runs."""
        self.is_broken = False
        """The session has had a fatal error."""
        self.is_missing = Event()
        """The topic may not exist."""
        self.ended = Event()

    def start(self, topic: str, timeout_ms: int, report: Callable[[int, NotWritten | None], None]) -> None:
        """Begin to connect, and to create the topic if it does not exist."""
        self.topic, self.report, self.loop = topic, report, asyncio.get_running_loop()
        self.options["delivery.timeout.ms"] = str(timeout_ms)
        # An unknown topic is reported as such, before the record times out.
        self.options.setdefault("topic.metadata.propagation.max.ms", str(timeout_ms // 2))
        try:
            self.connect()
        except TokenError as error:
            log.warning("the producer cannot be made yet", extra={"problem": str(error)})
        self.is_missing.set()
        Thread(target=self.keep_topic, name="odradek-kafka-topic", daemon=True).start()
        self.poll_within(IDLE_POLL_S)

    def poll(self) -> None:
        """Run the callbacks of librdkafka that are due, and plan the next poll."""
        self.poll_timer = None
        if self.ended.is_set():
            return
        try:
            if self.session is not None:
                self.session.producer.poll(0)
        finally:  # the others are polled even if a callback raises
            self.poll_within(POLL_S if self.pending else IDLE_POLL_S)

    def poll_within(self, delay_s: float) -> None:
        """Poll after this time, or earlier if that is planned."""
        assert self.loop is not None
        due_s = self.loop.time() + delay_s
        if self.poll_timer is not None:
            if self.poll_timer.when() <= due_s:
                return
            self.poll_timer.cancel()
        self.poll_timer = self.loop.call_at(due_s, self.poll)

    def connect(self) -> ProducerSession:
        """The producer; a new one after a fatal error.

        Raises:
            TokenError: The options name the file of a token, and it cannot be used.
        """
        if self.is_broken:
            self.discard()
        if self.session is None:
            self.session = self.new_session(self.options)
        return self.session

    def discard(self) -> None:
        """Give up the producer, and the records that it has not reported."""
        session, self.session, self.is_broken = self.session, None, False
        lost, self.pending = self.pending, set()
        if session is not None:
            session.close()
        while lost:
            self.report(lost.pop(), REPLACED)

    def write(self, number: int, record: TelemetryRecord) -> None:
        """Queue a record for the producer."""
        try:
            session = self.connect()
        except TokenError as error:
            self.report(number, NotWritten("token", str(error)))
            return
        message = export_message(record, self.topic, Encoding.PROTO, Key.CLIENT_INSTANCE_ID)
        self.pending.add(number)
        session.produce(message, partial(self.reported, session, self.pending, number))
        self.poll_within(POLL_S)

    def reported(
        self,
        session: ProducerSession,
        pending: set[int],
        number: int,
        error: Outcome,
        _message: object = None,
    ) -> None:
        """Take a delivery report, on the event loop, or on the thread of `flush`."""
        try:
            pending.remove(number)
        except KeyError:  # given up with its producer
            return
        if error is None:
            session.last_error = None
            self.report(number, None)
            return
        code, said = error.code(), session.last_error
        if code in NO_TOPIC:
            self.is_missing.set()
        if fatal(error) and session is self.session:
            self.is_broken = True
        text = f"{described(error)} ({said})" if said else described(error)
        self.report(number, NotWritten(error.name(), text, of_record=code in FINAL))

    def keep_topic(self) -> None:
        """Create the topic when it is missing, on a thread of its own."""
        last: str | None = None
        while self.is_missing.wait() and not self.ended.is_set():
            self.is_missing.clear()
            self.maker.forget([self.topic])
            problem = self.created()
            if problem is not None:
                if problem != last:
                    log.warning("the telemetry topic may not exist", extra={"problem": problem})
                self.is_missing.set()
            last = problem
            self.ended.wait(AGAIN_S)

    def created(self) -> str | None:
        """The problem with the topic; None if it exists, or may exist."""
        try:
            return asyncio.run(self.maker.ensure([self.topic], CREATE_S))
        except TokenError as error:
            return str(error)
        except Exception as error:  # the thread must not end
            log.exception("the telemetry topic cannot be created")
            return repr(error)

    def flush(self, timeout_s: float) -> None:
        """Wait until all records have their reports."""
        deadline_s = time.monotonic() + timeout_s
        if self.session is not None:
            self.session.producer.flush(timeout_s)
        while self.pending and time.monotonic() < deadline_s:
            time.sleep(LOOK_S)  # the event loop is in the last callbacks

    def close(self) -> None:
        """Close the producer. Its unreported records are lost."""
        self.ended.set()
        self.is_missing.set()
        self.pending = set()
        session, self.session = self.session, None
        if session is not None:
            session.close()
