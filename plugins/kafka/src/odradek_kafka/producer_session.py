"""One producer of librdkafka, from its making to its end, and the thread that hears its reports."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, TypeAlias

from confluent_kafka import KafkaError, KafkaException, Producer

from odradek_kafka.export_message import ExportMessage

log = logging.getLogger(__name__)
library_log = logging.getLogger(f"{__name__}.librdkafka")

POLL_S = 0.2
"""How late the end of a session may be noticed; reports wake the thread at once."""

Outcome: TypeAlias = KafkaError | None
"""Of one message; None: a broker has it."""


@dataclass(slots=True, eq=False)
class Reports:
    """The reports on some messages; `complete` is set when the last one is in."""

    loop: asyncio.AbstractEventLoop
    outcomes: list[Outcome]
    missing: int
    complete: asyncio.Event = field(default_factory=asyncio.Event)
    lock: Lock = field(default_factory=Lock)

    def note(self, index: int, error: Outcome, _message: object = None) -> None:
        """One report, on any thread."""
        with self.lock:
            self.outcomes[index] = error
            self.missing -= 1
            if self.missing:
                return
        try:
            self.loop.call_soon_threadsafe(self.complete.set)
        except RuntimeError:
            log.debug("a report came after the end of the loop")


class ProducerSession:
    """Sends messages and waits for their reports.

    `send` and `close` are called on one event loop. After a fatal error the session is of no use any more:
    make a new one.
    """

    def __init__(self, options: Mapping[str, str], make: Callable[..., Any] = Producer) -> None:
        self.last_error: str | None = None
        """What librdkafka said about its connections since the last success; the reports say less."""
        self.ended = Event()
        self.producer = make(dict(options), error_cb=self.note_error, logger=library_log)
        self.thread = Thread(target=self.poll, args=(self.producer,), name="odradek-kafka-poll", daemon=True)
        self.thread.start()

    def poll(self, producer: Any) -> None:
        """Call back for what librdkafka reports, on the session's own thread, until it is closed."""
        while not self.ended.is_set():
            producer.poll(POLL_S)

    async def send(self, messages: Sequence[ExportMessage], timeout_s: float) -> list[Outcome]:
        """Send all; what became of each, in the order of the messages.

        What is not reported in time is taken back and counts as timed out; it may arrive all the same.
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
        # Not `None in outcomes`: a KafkaError that is held against None leaves a TypeError behind, for later.
        if any(outcome is None for outcome in outcomes):
            self.last_error = None
        return outcomes

    def produce(self, message: ExportMessage, report: Callable[..., None]) -> None:
        """Queue one message; what librdkafka refuses at once is reported like the rest."""
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
        """Nobody waits for what is still on its way: it would arrive beside the next attempt."""
        self.producer.purge(in_queue=True, in_flight=True, blocking=False)

    def note_error(self, error: KafkaError) -> None:
        """On the session's thread: a broker is not there, refuses the credentials, ...

        Logged when it begins; librdkafka's own lines tell the rest. That all brokers are down says less than
        what came before it.
        """
        if self.last_error is None:
            log.warning("exporting producer has a problem", extra={"problem": described(error)})
        elif error.code() == KafkaError._ALL_BROKERS_DOWN:  # noqa: SLF001
            return
        self.last_error = described(error)

    def close(self) -> None:
        """End the thread, which lets the producer go: returns at once. What is not reported is lost."""
        self.take_back()
        self.ended.set()
        del self.producer


def timed_out() -> KafkaError:
    return KafkaError(KafkaError._TIMED_OUT, "no report in time")  # noqa: SLF001


def described(error: KafkaError) -> str:
    """Name and text in one line."""
    return f"{error.name()}: {error.str()}"
