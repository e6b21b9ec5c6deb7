"""Sent records, the handling of delivery reports, and the result for the host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import pytest

from odradek.plugin import Reject, Retry, TelemetryRecord
from odradek_kafka.kafka_forwarder import KafkaForwarder
from odradek_kafka.kafka_settings import Encoding, KafkaSettings, Key
from odradek_kafka.producer_session import ProducerSession
from odradek_kafka.topic_names import read_template

Kit = Any
"""From conftest."""


def settings_of(**fields: Any) -> KafkaSettings:
    return KafkaSettings(**{"options": {}, "topic_create": False, "deliver_timeout_ms": 5_000, **fields})


def forwarder_of(producer: Any, **fields: Any) -> KafkaForwarder:
    return KafkaForwarder(settings_of(**fields), partial(ProducerSession, make=producer))


def delivered(producer: Any, *batches: Sequence[TelemetryRecord], **fields: Any) -> list[Exception | None]:
    """Deliver batch after batch with one forwarder; return the exception of each call."""

    async def run() -> list[Exception | None]:
        forwarder = forwarder_of(producer, **fields)
        await forwarder.start()
        try:
            return [await outcome(forwarder, batch) for batch in batches]
        finally:
            await forwarder.close()

    return asyncio.run(run())


async def outcome(forwarder: KafkaForwarder, batch: Sequence[TelemetryRecord]) -> Exception | None:
    try:
        await forwarder.deliver(batch)
    except (Retry, Reject) as error:
        return error
    return None


def test_a_push_is_a_record_with_its_payload_and_its_client(kit: Kit) -> None:
    producer = kit.producer()
    record = kit.record(3, received_ms=1_760_000_000_000)

    errors = delivered(producer, [record])

    (sent,) = producer.sent
    assert errors == [None]
    assert (sent.topic, sent.value, sent.timestamp) == (
        "client_telemetry",
        record.payload.data,
        1_760_000_000_000,
    )
    assert sent.key == b"AwMDAwMDAwMDAwMDAwMDAw"
    assert dict(sent.headers) | {
        "client_id": b"orders",
        "client_software_name": b"librdkafka",
        "client_software_version": b"2.16.0",
        "client_source_address": b"127.0.0.1",
        "principal": b"User:ann",
        "terminating": b"false",
    } == dict(sent.headers)


@pytest.mark.parametrize(
    ("key", "client_id", "expected"),
    [
        (Key.CLIENT_ID, "orders", b"orders"),
        (Key.CLIENT_ID, None, None),
        (Key.CLIENT_ID, "\udcff", b"\xff"),
        (Key.NONE, "orders", None),
    ],
)
def test_other_keys_can_be_configured(
    kit: Kit, key: Key, client_id: str | None, expected: bytes | None
) -> None:
    producer = kit.producer()

    delivered(producer, [kit.record(client_id=client_id)], key=key)

    assert [sent.key for sent in producer.sent] == [expected]


def test_a_push_can_be_exported_as_json(kit: Kit) -> None:
    producer = kit.producer()

    delivered(producer, [kit.record(data=kit.data("a.b"))], encoding=Encoding.JSON)

    (entry,) = json.loads(producer.sent[0].value)["resourceMetrics"]
    assert entry["scopeMetrics"] == [
        {"metrics": [{"name": "a.b", "gauge": {"dataPoints": [{"asInt": "7"}]}}]}
    ]


def test_a_payload_that_is_not_otlp_is_rejected_and_the_others_are_sent(kit: Kit) -> None:
    producer = kit.producer()
    bad, good = kit.record(data=b"\xff\xff"), kit.record(1)

    (error,) = delivered(producer, [bad, good], encoding=Encoding.JSON)

    assert isinstance(error, Reject)
    assert (error.records, error.delivered) == ([bad], [good])


def test_the_topic_can_depend_on_the_kind_of_client(kit: Kit) -> None:
    producer = kit.producer()
    batch = [
        kit.record(data=kit.data("org.apache.kafka.consumer.lag")),
        kit.record(data=kit.data("mine")),
    ]

    delivered(producer, batch, topic=read_template("telemetry.{family}"))

    assert [sent.topic for sent in producer.sent] == ["telemetry.consumer", "telemetry.other"]


def test_an_empty_push_is_not_exported(kit: Kit) -> None:
    producer = kit.producer()

    errors = delivered(producer, [kit.record(data=b"")], [])

    assert errors == [None, None]
    assert producer.sent == []


def test_liveness_is_the_newest_push_of_each_instance_including_empty_ones(kit: Kit) -> None:
    producer = kit.producer()
    batch = [
        kit.record(1, received_ms=10),
        kit.record(2, data=b"", received_ms=20),
        kit.record(1, data=b"", received_ms=30, terminating=True),
    ]

    delivered(producer, batch, liveness_topic="alive")

    rows = [json.loads(sent.value) for sent in producer.sent if sent.topic == "alive"]
    assert len(producer.sent) == 3
    assert [(row["last_seen_ms"], row["terminating"]) for row in rows] == [(30, True), (20, False)]
    assert [sent.key.decode() for sent in producer.sent[1:]] == [row["client_instance_id"] for row in rows]
    assert rows[0] == {
        "client_instance_id": "AQEBAQEBAQEBAQEBAQEBAQ",
        "last_seen_ms": 30,
        "terminating": True,
        "push_interval_ms": 1000,
        "client_id": "orders",
        "client_software_name": "librdkafka",
        "client_software_version": "2.16.0",
        "client_source_address": "127.0.0.1",
        "client_source_port": 40000,
        "principal": "User:ann",
        "listener": "SASL",
        "broker_id": 1,
    }


def test_a_client_id_that_is_not_text_has_a_liveness_record(kit: Kit) -> None:
    producer = kit.producer()

    delivered(producer, [kit.record(client_id="\udcff", data=b"")], liveness_topic="alive")

    assert json.loads(producer.sent[0].value)["client_id"] == "\udcff"


@pytest.mark.parametrize(
    "name",
    [
        "_MSG_TIMED_OUT",
        "_ALL_BROKERS_DOWN",
        "_TRANSPORT",
        "_UNKNOWN_TOPIC",
        "TOPIC_AUTHORIZATION_FAILED",
        "NOT_ENOUGH_REPLICAS",
        "THROTTLING_QUOTA_EXCEEDED",
        "INVALID_MSG",
    ],
)
def test_a_retriable_error_retries_unacknowledged_records(kit: Kit, name: str) -> None:
    batch = [kit.record(0), kit.record(1)]
    producer = kit.producer(judge=lambda sent, _: kit.error(name) if sent.key.startswith(b"AQ") else None)

    (error,) = delivered(producer, batch)

    assert isinstance(error, Retry)
    assert str(error) == f"{name}: {name} it is"
    assert error.delivered == [batch[0]]


@pytest.mark.parametrize("name", ["MSG_SIZE_TOO_LARGE", "INVALID_RECORD"])
def test_a_batch_refused_as_a_whole_is_sent_one_by_one(kit: Kit, name: str) -> None:
    batch = [kit.record(number) for number in range(3)]

    def judge(sent: Any, together: list[Any]) -> object:
        producer.batch = 0
        return kit.error(name) if any(other.key.startswith(b"AQ") for other in together) else None

    producer = kit.producer(judge=judge, batch=3)

    (error,) = delivered(producer, batch)

    assert isinstance(error, Reject)
    assert error.records == [batch[1]]
    assert error.delivered == [batch[0], batch[2]]
    assert len(producer.sent) == 6


def test_a_record_next_to_an_invalid_one_is_sent_again(kit: Kit) -> None:
    batch = [kit.record(0), kit.record(1)]

    def judge(sent: Any, together: list[Any]) -> object:
        mine = sent.key.startswith(b"AQ")
        if mine:
            return kit.error("INVALID_RECORD")
        return kit.error("_INVALID_DIFFERENT_RECORD") if len(producer.sent) == 2 else None

    producer = kit.producer(judge=judge)

    (error,) = delivered(producer, batch)

    assert isinstance(error, Reject)
    assert (error.records, error.delivered) == ([batch[1]], [batch[0]])


def test_an_immediate_refusal_of_librdkafka_counts_like_a_report(kit: Kit) -> None:
    batch = [kit.record(0), kit.record(1)]
    too_large = kit.raised(kit.error("MSG_SIZE_TOO_LARGE"))
    producer = kit.producer(refuse=lambda sent: too_large if sent.key.startswith(b"AQ") else None)

    (error,) = delivered(producer, batch)

    assert isinstance(error, Reject)
    assert (error.records, error.delivered) == ([batch[1]], [batch[0]])


def test_a_full_queue_of_librdkafka_is_a_retry(kit: Kit) -> None:
    producer = kit.producer(refuse=lambda sent: BufferError("Local: Queue full"))

    (error,) = delivered(producer, [kit.record()])

    assert isinstance(error, Retry)
    assert "_QUEUE_FULL" in str(error)


def test_rejected_and_retriable_records_in_one_batch(kit: Kit) -> None:
    batch = [kit.record(number) for number in range(3)]
    wrong = {b"AQ": "MSG_SIZE_TOO_LARGE", b"Ag": "_MSG_TIMED_OUT"}

    def judge(sent: Any, together: list[Any]) -> object:
        return kit.error(wrong[sent.key[:2]]) if sent.key[:2] in wrong else None

    (error,) = delivered(kit.producer(judge=judge), batch)

    assert isinstance(error, Reject)
    assert (error.records, error.delivered) == ([batch[1]], [batch[0]])


def test_missing_reports_are_a_retry_before_the_hosts_timeout(kit: Kit) -> None:
    batch = [kit.record(0), kit.record(1)]
    producer = kit.producer(judge=lambda sent, _: kit.hang if sent.key.startswith(b"AQ") else None)

    (error,) = delivered(producer, batch, deliver_timeout_ms=1_500)

    assert isinstance(error, Retry)
    assert error.delivered == [batch[0]]
    assert producer.purged == 2, "once when the time was over, once at the end"


def test_a_cancelled_call_purges_its_records_in_flight(kit: Kit) -> None:
    producer = kit.producer(judge=lambda sent, _: kit.hang)

    async def run() -> None:
        forwarder = forwarder_of(producer)
        await forwarder.start()
        call = asyncio.ensure_future(forwarder.deliver([kit.record()]))
        while not producer.sent:
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    asyncio.run(run())

    assert producer.purged == 1


def test_the_reason_includes_librdkafkas_connection_errors(kit: Kit) -> None:
    producer = kit.producer(judge=lambda sent, _: kit.error("_MSG_TIMED_OUT"))

    async def run() -> Exception | None:
        forwarder = forwarder_of(producer)
        await forwarder.start()
        producer.callbacks["error_cb"](kit.error("_AUTHENTICATION"))
        found = await outcome(forwarder, [kit.record()])
        await forwarder.close()
        return found

    error = asyncio.run(run())

    assert str(error).endswith("(_AUTHENTICATION: _AUTHENTICATION it is)")


def test_a_success_clears_librdkafkas_errors(kit: Kit) -> None:
    producer = kit.producer()

    async def run() -> str | None:
        forwarder = forwarder_of(producer)
        await forwarder.start()
        producer.callbacks["error_cb"](kit.error("_ALL_BROKERS_DOWN"))
        await forwarder.deliver([kit.record()])
        assert forwarder.session is not None
        problem_after = forwarder.session.last_error
        await forwarder.close()
        return problem_after

    assert asyncio.run(run()) is None


def problem_after(producer: Any, *errors: Any) -> str | None:
    """The known problem after librdkafka called back with these errors."""

    async def run() -> str | None:
        forwarder = forwarder_of(producer)
        await forwarder.start()
        for error in errors:
            producer.callbacks["error_cb"](error)
        assert forwarder.session is not None
        found = forwarder.session.last_error
        await forwarder.close()
        return found

    return asyncio.run(run())


def test_a_problem_is_logged_when_it_begins(kit: Kit, caplog: pytest.LogCaptureFixture) -> None:
    found = problem_after(
        kit.producer(), kit.error("_TRANSPORT"), kit.error("_RESOLVE"), kit.error("_TRANSPORT")
    )

    assert found == "_TRANSPORT: _TRANSPORT it is"
    assert [record.__dict__["problem"] for record in caplog.records] == [found]


def test_the_reason_why_brokers_are_down_is_kept(kit: Kit) -> None:
    found = problem_after(kit.producer(), kit.error("_AUTHENTICATION"), kit.error("_ALL_BROKERS_DOWN"))

    assert found == "_AUTHENTICATION: _AUTHENTICATION it is"


def test_a_fatal_error_is_a_retry_with_a_new_producer(kit: Kit) -> None:
    batch = [kit.record()]
    first = kit.producer(judge=lambda sent, _: kit.error("OUT_OF_ORDER_SEQUENCE_NUMBER", fatal=True))
    second = kit.producer()
    producers = [first, second]

    def make(options: dict[str, str], **callbacks: Any) -> Any:
        return producers.pop(0)(options, **callbacks)

    errors = delivered(make, batch, batch)

    assert isinstance(errors[0], Retry)
    assert errors[1] is None
    assert (len(first.sent), len(second.sent)) == (1, 1)


def test_a_liveness_failure_does_not_send_the_pushes_again(kit: Kit) -> None:
    batch = [kit.record(1), kit.record(1)]
    failures = [kit.error("_MSG_TIMED_OUT")]
    producer = kit.producer(
        judge=lambda sent, _: failures.pop() if sent.topic == "alive" and failures else None
    )

    errors = delivered(producer, batch, batch[1:], liveness_topic="alive")

    assert isinstance(errors[0], Retry)
    assert errors[0].delivered == [batch[0]]
    assert errors[1] is None
    topics = [sent.topic for sent in producer.sent]
    assert topics == ["client_telemetry", "client_telemetry", "alive", "alive"]


def test_close_works_without_start_and_twice(kit: Kit) -> None:
    async def run() -> None:
        forwarder = forwarder_of(kit.producer())
        await forwarder.close()
        await forwarder.start()
        await forwarder.close()
        await forwarder.close()

    asyncio.run(run())


def test_the_thread_ends_with_the_session(kit: Kit) -> None:
    async def run() -> ProducerSession:
        forwarder = forwarder_of(kit.producer())
        await forwarder.start()
        session = forwarder.session
        await forwarder.close()
        assert session is not None
        return session

    session = asyncio.run(run())

    assert session.thread is not None
    session.thread.join(5)
    assert not session.thread.is_alive()
