"""Records written one by one: what is sent, and the report about each."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from odradek.plugin import ConfigError, NotWritten, PluginConfig, TelemetryRecord, TopicWriter
from odradek_kafka import odradek_forwarder, odradek_topic_writer
from odradek_kafka.kafka_topic_writer import KafkaTopicWriter
from odradek_kafka.producer_session import ProducerSession
from odradek_kafka.writer_settings import WRITER, WriterSettings, read_writer_settings
from support.waiting import wait_until

Kit = Any
"""From conftest."""
SERVERS = "127.0.0.1:9092"
PATIENCE_S = 20.0


class Maker:
    """Creates topics."""

    def __init__(self) -> None:
        self.asked = threading.Semaphore(0)

    async def ensure(self, topics: list[str], timeout_s: float) -> str | None:
        self.asked.release()
        return None

    def forget(self, topics: list[str]) -> None:
        """Nothing is remembered."""


class Reports:
    """The reports by number."""

    def __init__(self) -> None:
        self.outcomes: dict[int, NotWritten | None] = {}
        self.maker = Maker()

    def take(self, number: int, problem: NotWritten | None) -> None:
        assert number not in self.outcomes
        self.outcomes[number] = problem

    def await_all(self, numbers: int) -> dict[int, NotWritten | None]:
        wait_until(lambda: len(self.outcomes) >= numbers, lambda: self.outcomes)
        return dict(sorted(self.outcomes.items()))


class OnLoop:
    """A writer on the loop of a thread, as in a host."""

    def __init__(self, loop: asyncio.AbstractEventLoop, writer: KafkaTopicWriter) -> None:
        self.loop = loop
        self.writer = writer
        self.flush = writer.flush

    def write(self, number: int, record: TelemetryRecord) -> None:
        self.call(self.writer.write, number, record)

    def call(self, action: Callable[..., None], *arguments: object) -> None:
        async def act() -> None:
            action(*arguments)

        asyncio.run_coroutine_threadsafe(act(), self.loop).result(PATIENCE_S)


@contextmanager
def writing(*producers: Any) -> Iterator[tuple[OnLoop, Reports]]:
    """A writer with a producer, and one more after each fatal error."""
    reports, made = Reports(), iter(producers)

    def session(options: dict[str, str]) -> ProducerSession:
        return ProducerSession(options, make=next(made), has_thread=False)

    maker: Any = reports.maker
    writer = KafkaTopicWriter(WriterSettings(options={"acks": "all"}), session, maker)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    on_loop = OnLoop(loop, writer)
    try:
        on_loop.call(writer.start, "__client_telemetry", 8_000, reports.take)
        yield on_loop, reports
    finally:
        on_loop.call(writer.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


def test_a_record_has_the_format_of_the_telemetry_topic(kit: Kit) -> None:
    producer, record = kit.producer(), kit.record(3, received_ms=1_760_000_000_000)
    with writing(producer) as (writer, reports):
        writer.write(7, record)
        assert reports.await_all(1) == {7: None}

    (sent,) = producer.sent
    assert (sent.topic, sent.key, sent.value, sent.timestamp) == (
        "__client_telemetry",
        b"AwMDAwMDAwMDAwMDAwMDAw",
        record.payload.data,
        1_760_000_000_000,
    )
    assert dict(sent.headers)["principal"] == b"User:ann"
    assert producer.options["delivery.timeout.ms"] == "8000"
    assert producer.options["acks"] == "all"


@pytest.mark.parametrize(
    ("name", "of_record"),
    [
        ("MSG_SIZE_TOO_LARGE", True),
        ("INVALID_RECORD", True),
        ("TOPIC_AUTHORIZATION_FAILED", False),
        ("_MSG_TIMED_OUT", False),
        ("NOT_ENOUGH_REPLICAS", False),
    ],
)
def test_a_refusal_has_its_name_and_whose_fault_it_is(kit: Kit, name: str, of_record: bool) -> None:
    producer = kit.producer(judge=lambda sent, together: kit.error(name))
    with writing(producer) as (writer, reports):
        writer.write(1, kit.record())
        problem = reports.await_all(1)[1]

    assert problem == NotWritten(name, f"{name}: {name} it is", of_record)


def test_a_missing_topic_is_created_again(kit: Kit) -> None:
    producer = kit.producer(judge=lambda sent, together: kit.error("UNKNOWN_TOPIC_OR_PART"))
    with writing(producer) as (writer, reports):
        assert reports.maker.asked.acquire(timeout=PATIENCE_S)
        writer.write(1, kit.record())
        assert reports.maker.asked.acquire(timeout=PATIENCE_S)
        problem = reports.await_all(1)[1]

    assert problem is not None
    assert (problem.reason, problem.of_record) == ("UNKNOWN_TOPIC_OR_PART", False)


@pytest.mark.parametrize("raised", ["full", "refused"])
def test_a_record_that_the_producer_does_not_take_is_reported(kit: Kit, raised: str) -> None:
    errors = {"full": BufferError(), "refused": kit.raised(kit.error("MSG_SIZE_TOO_LARGE"))}
    with writing(kit.producer(refuse=lambda sent: errors[raised])) as (writer, reports):
        writer.write(1, kit.record())
        problem = reports.await_all(1)[1]

    assert problem is not None
    assert problem.reason == {"full": "_QUEUE_FULL", "refused": "MSG_SIZE_TOO_LARGE"}[raised]


def test_after_a_fatal_error_there_is_another_producer(kit: Kit) -> None:
    def judge(sent: Any, together: list[Any]) -> object:
        return kit.hang if sent.value == b"lost" else kit.error("INVALID_PRODUCER_EPOCH", fatal=True)

    broken, second = kit.producer(judge=judge), kit.producer()
    with writing(broken, second) as (writer, reports):
        writer.write(1, kit.record(data=b"lost"))
        writer.write(2, kit.record())
        wait_until(lambda: 2 in reports.outcomes, lambda: reports.outcomes)
        writer.write(3, kit.record())
        outcomes = reports.await_all(3)
        broken.sent[0].on_delivery(None, None)  # too late

    assert [each and each.reason for each in outcomes.values()] == [
        "replaced",
        "INVALID_PRODUCER_EPOCH",
        None,
    ]
    assert broken.purged >= 1


def test_reports_come_although_a_callback_raised(kit: Kit) -> None:
    class Raising(kit.producer):  # type: ignore[misc]
        raised = False

        def poll(self, timeout_s: float) -> int:
            if self.waiting and not self.raised:
                self.raised = True
                raise RuntimeError("of a callback")
            return int(super().poll(timeout_s))

    with writing(Raising()) as (writer, reports):
        writer.write(1, kit.record())
        outcomes = reports.await_all(1)

    assert outcomes == {1: None}


def test_a_flush_waits_for_the_last_callback(kit: Kit) -> None:
    may_report = threading.Event()

    def judge(sent: Any, together: list[Any]) -> None:
        may_report.wait(PATIENCE_S)

    producer = kit.producer(judge=judge)
    producer.flush = lambda timeout_s: 0
    with writing(producer) as (writer, reports):
        writer.write(1, kit.record())
        flushing = threading.Thread(target=writer.flush, args=(PATIENCE_S,))
        flushing.start()
        may_report.set()
        flushing.join(PATIENCE_S)

        assert reports.outcomes == {1: None}


# The table


def settings_of(**table: object) -> WriterSettings:
    config = PluginConfig("plugins.kafka", {"telemetry.bootstrap.servers": SERVERS, **table})
    found = read_writer_settings(config)
    config.finish()
    return found


def test_without_servers_there_is_no_writer() -> None:
    assert odradek_topic_writer(PluginConfig("plugins.kafka", {"bootstrap.servers": SERVERS})) is None


def test_writer_and_exporter_are_independent() -> None:
    config = PluginConfig("plugins.kafka", {"telemetry.bootstrap.servers": SERVERS})

    assert isinstance(odradek_topic_writer(config), TopicWriter)
    assert odradek_forwarder(config) is None


def test_omitted_keys_have_their_defaults() -> None:
    assert settings_of() == WriterSettings(
        bootstrap_servers=SERVERS,
        options={**WRITER.defaults, "bootstrap.servers": SERVERS, "acks": "all"},
    )


def test_all_keys_are_read() -> None:
    found = settings_of(
        **{
            "telemetry.topic.create": False,
            "telemetry.topic.partitions": 12,
            "telemetry.topic.replication.factor": 3,
            "telemetry.client.linger.ms": 50,
        }
    )

    assert (found.topic_create, found.topic_partitions, found.topic_replication_factor) == (False, 12, 3)
    assert found.options["linger.ms"] == "50"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("telemetry.client.acks", "1", "all replicas in sync"),
        ("telemetry.client.enable.idempotence", "false", "must not write a push twice"),
        ("telemetry.client.message.timeout.ms", "5", "telemetry.acknowledge.timeout.ms"),
        ("telemetry.client.no.such.option", "1", "No such configuration property"),
        ("telemetry.topic.partitions", 0, "expected 1 to 10000"),
    ],
)
def test_a_bad_value_is_refused_with_its_key(key: str, value: object, expected: str) -> None:
    with pytest.raises(ConfigError, match=expected) as caught:
        settings_of(**{key: value})

    assert caught.value.path == f"plugins.kafka.{key}"


def test_a_source_of_the_own_topic_is_refused() -> None:
    from odradek_kafka import odradek_source

    table = {
        "telemetry.bootstrap.servers": f"{SERVERS},127.0.0.2:9092",
        "source.bootstrap.servers": SERVERS,
        "source.topics": ["__client_telemetry"],
    }
    with pytest.raises(ConfigError, match="its records would return"):
        odradek_source(PluginConfig("plugins.kafka", table))
