"""One producer of librdkafka, and the thread that polls its delivery reports unless its user does."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from odradek.endpoints import with_token_file
from odradek_kafka.export_message import ExportMessage

log = logging.getLogger(__name__)

POLL_S = 0.2
"""Longest delay before the thread notices that the session is closed; reports wake it at once."""


class LibraryLog:
    """Takes the lines of librdkafka, each kind (``FAIL``, ``ERROR``) as that of a logger of its own.

    These loggers are not the plugin's: the host bounds the lines of libraries, and librdkafka repeats one for
    each attempt to connect.
    """

    def log(self, level: int, message: str, *arguments: object) -> None:
        kind = str(arguments[0]) if arguments else "log"
        logging.getLogger(f"librdkafka.{kind}").log(level, message, *arguments)


library_log = LibraryLog()
"""The ``logger`` of all clients."""
Outcome: TypeAlias = KafkaError | None
"""Outcome of one message; None if a broker acknowledged it."""


@dataclass(slots=True, eq=False)
class Reports:
    """The delivery reports of some messages; `complete` is set by the last one."""

    loop: asyncio.AbstractEventLoop
    outcomes: list[Outcome]
    missing: int
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    lock: Lock = field(default_factory=Lock)

    def note(self, index: int, error: Outcome, _message: object = None) -> None:
        """Record one report; called on any thread."""
        with self.lock:
            self.outcomes[index] = error
            self.missing -= 1
            if self.missing:
                return
        try:
            self.loop.call_soon_threadsafe(self.complete.set)
        except RuntimeError:
            log.debug("a delivery report came after the event loop ended")


class ProducerSession:
    """Sends messages and waits for their delivery reports.

    Call `send` and `close` on one event loop. After a fatal error the session is unusable: create a new one.

    Args:
        options: Of librdkafka.
        make: Creates the producer.
        has_thread: Whether a thread of the session runs the callbacks. Otherwise the user calls ``poll`` of
            the producer, often.

    Raises:
        TokenError: The options name the file of a token, and it cannot be used.
    """

    def __init__(
        self, options: Mapping[str, str], make: Callable[..., Any] = Producer, has_thread: bool = True
    ) -> None:
        self.last_error: str | None = None
        """librdkafka's last error about its connections since the last success; reports have less detail."""
        self.ended = Event()
        options = with_token_file(options, time.time())
        self.producer = make(options, error_cb=self.note_error, logger=library_log)
        self.thread: Thread | None = None
        if has_thread:
            polling = (self.producer,)
            self.thread = Thread(target=self.poll, args=polling, name="odradek-kafka-poll", daemon=True)
            self.thread.start()

    def poll(self, producer: Any) -> None:
        """Run librdkafka's callbacks on the session's own thread until the session is closed."""
        while not self.ended.is_set():
            producer.poll(POLL_S)

    async def send(self, messages: Sequence[ExportMessage], timeout_s: float) -> list[Outcome]:
        """Send all messages; return the outcome of each, in order.

        A message without a report in time is purged and counts as timed out; it may still have arrived.
        """
        if not messages:
            return []
        reports = Reports(asyncio.get_running_loop(), [timed_out()] * len(messages), len(messages))
        for index, message in enumerate(messages):
            self.produce(message, partial(reports.note, index))
        try:
            async with asyncio.timeout(timeout_s):
                await reports.complete.wait()
        except TimeoutError:
            self.take_back()
        except asyncio.CancelledError:
            self.take_back()
            raise
        outcomes = list(reports.outcomes)
        # Not `None in outcomes`: comparing a KafkaError with None leaves a pending TypeError in the C API.
        if any(outcome is None for outcome in outcomes):
            self.last_error = None
        return outcomes

    def produce(self, message: ExportMessage, report: Callable[..., None]) -> None:
        """Queue one message; an immediate error of librdkafka is reported like any other."""
        try:
            self.producer.produce(
                message.topic,
                message.value,
                message.key,
                headers=message.headers,
                timestamp=message.timestamp_ms,
                on_delivery=report,
            )
        except KafkaException as error:
            report(error.args[0])
        except BufferError:
            report(KafkaError(KafkaError._QUEUE_FULL))  # noqa: SLF001

    def take_back(self) -> None:
        """Purge unreported messages: they will be sent again, and would arrive twice."""
        self.producer.purge(in_queue=True, in_flight=True, blocking=False)

    def note_error(self, error: KafkaError) -> None:
        """Record an error about connections; called on the session's thread.

        Only the first is logged here; librdkafka's own log has the others. "All brokers are down" does not
        replace an earlier error, which has more detail.
        """
        if self.last_error is None:
            log.warning("the producer cannot reach the cluster", extra={"problem": described(error)})
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            return
        self.last_error = described(error)

    def close(self) -> None:
        """Close the producer on a thread. Returns at once; unreported messages are lost."""
        self.take_back()
        self.ended.set()
        last = [self.producer]
        del self.producer
        if self.thread is None:
            Thread(target=last.clear, name="odradek-kafka-close", daemon=True).start()


def timed_out() -> KafkaError:
    return KafkaError(KafkaError._TIMED_OUT, "no report in time")  # noqa: SLF001


def described(error: KafkaError) -> str:
    """Name and text in one line."""
    return f"{error.name()}: {error.str()}"
