"""Clients of librdkafka with exactly the rights that they need, and without one of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from support.limited_users import PASSWORD, TOPIC, LimitedUsers, limited_users

kafka = pytest.importorskip("confluent_kafka")

TIMEOUT_S = 20
WRITER = ("WRITE TOPIC orders",)
READER = ("READ TOPIC orders", "READ GROUP readers")
TRANSACTIONAL = (
    "READ TOPIC orders",
    "WRITE TOPIC orders",
    "WRITE TRANSACTIONAL_ID mover",
    "READ GROUP movers",
)
"""No client needs a right to push telemetry."""


class Users:
    """Settings for clients of a host."""

    def __init__(self, limited: LimitedUsers) -> None:
        self.limited = limited
        self.serve = limited.serve

    def with_rights(self, *rights: str) -> dict[str, Any]:
        """The settings of a client with these rights and no others."""
        return {
            "bootstrap.servers": self.limited.guarded,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.username": self.limited.with_rights(*rights),
            "sasl.password": PASSWORD,
        }


@pytest.fixture(scope="module")
def users(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Users]:
    with limited_users(tmp_path_factory.mktemp("rights") / "data") as limited:
        made = Users(limited)
        producer = kafka.Producer(made.with_rights(*WRITER))
        producer.produce(TOPIC, b"first")
        assert producer.flush(TIMEOUT_S) == 0
        yield made


def delivery(settings: dict[str, Any]) -> Any:
    """The error of a record; None if it was written."""
    found: list[Any] = []
    producer = kafka.Producer(settings)
    producer.produce(TOPIC, b"value", on_delivery=lambda error, _message: found.append(error))
    producer.flush(TIMEOUT_S)
    (error,) = found
    return None if error is None else error.name()


def first_of(settings: dict[str, Any], **more: Any) -> Any:
    """The value of the first record that a group member reads, or the name of the error it gets."""
    consumer = kafka.Consumer(
        settings
        | {"group.id": "readers", "auto.offset.reset": "earliest", "enable.auto.commit": False}
        | more
    )
    consumer.subscribe([TOPIC])
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is not None:
                return message.error().name() if message.error() else message.value()
    finally:
        consumer.close()
    raise AssertionError("no record and no error")


def test_a_producer_needs_write_and_pushes_its_telemetry(users: Users) -> None:
    settings = users.with_rights(*WRITER) | {"client.id": "least-producer"}
    producer = kafka.Producer(settings)
    producer.produce(TOPIC, b"value")

    unsent = producer.flush(TIMEOUT_S)
    push = users.serve.next_push(lambda row: row["context"]["client_id"] == "least-producer")

    assert unsent == 0
    assert push["context"]["principal"] == f"User:{settings['sasl.username']}"


def test_an_idempotent_producer_needs_no_more_than_write(users: Users) -> None:
    assert delivery(users.with_rights(*WRITER) | {"enable.idempotence": True}) is None


@pytest.mark.parametrize("rights", [(), ("DESCRIBE TOPIC orders",), ("READ TOPIC orders",)])
def test_a_producer_without_write_is_refused(users: Users, rights: tuple[str, ...]) -> None:
    assert delivery(users.with_rights(*rights)) == "TOPIC_AUTHORIZATION_FAILED"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_needs_read_of_its_topic_and_group(users: Users, protocol: str) -> None:
    settings = users.with_rights(*READER) | {"client.id": f"least-{protocol}", "group.protocol": protocol}

    value = first_of(settings)
    push = users.serve.next_push(lambda row: row["context"]["client_id"] == f"least-{protocol}")

    assert value == b"first"
    assert push["context"]["principal"] == f"User:{settings['sasl.username']}"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.parametrize(
    ("rights", "error"),
    [
        (("READ TOPIC orders",), "GROUP_AUTHORIZATION_FAILED"),
        (("READ GROUP readers",), "TOPIC_AUTHORIZATION_FAILED"),
        (("READ GROUP readers", "DESCRIBE TOPIC orders"), "TOPIC_AUTHORIZATION_FAILED"),
    ],
    ids=["no group", "no topic", "topic seen only"],
)
def test_a_consumer_without_a_right_is_refused(
    users: Users, protocol: str, rights: tuple[str, ...], error: str
) -> None:
    assert first_of(users.with_rights(*rights), **{"group.protocol": protocol}) == error


def test_a_transactional_producer_needs_its_id_its_topic_and_the_group_of_its_offsets(users: Users) -> None:
    settings = users.with_rights(*TRANSACTIONAL)
    producer = kafka.Producer(settings | {"transactional.id": "mover"})
    consumer = kafka.Consumer(settings | {"group.id": "movers"})
    offset = kafka.TopicPartition(TOPIC, 0, 1)

    producer.init_transactions(TIMEOUT_S)
    producer.begin_transaction()
    producer.produce(TOPIC, b"moved")
    producer.send_offsets_to_transaction([offset], consumer.consumer_group_metadata(), TIMEOUT_S)
    producer.commit_transaction(TIMEOUT_S)
    committed = consumer.committed([offset], TIMEOUT_S)
    consumer.close()

    assert [each.offset for each in committed] == [1]


@pytest.mark.ci
def test_a_transactional_producer_without_its_id_is_refused(users: Users) -> None:
    producer = kafka.Producer(users.with_rights("WRITE TOPIC orders") | {"transactional.id": "mover"})

    with pytest.raises(kafka.KafkaException) as refused:
        producer.init_transactions(TIMEOUT_S)

    assert refused.value.args[0].name() == "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"
