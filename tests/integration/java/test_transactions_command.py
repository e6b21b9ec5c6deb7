"""kafka-transactions.sh with an open transaction; the expectations hold for Apache Kafka 4.3.1 too, but Kafka
accepts an abort by markers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(180)]
TRANSACTIONS = "kafka-transactions"
ID = "a-teller"
TOPIC = "accounts"


@pytest.fixture(scope="module")
def producer_id(tools: ConsoleTools) -> Iterator[str]:
    """The id of a producer that has sent a record in a transaction and does not end it."""
    confluent_kafka = pytest.importorskip("confluent_kafka")
    tools.create_topic(TOPIC, 2)
    producer = confluent_kafka.Producer({"bootstrap.servers": tools.bootstrap, "transactional.id": ID})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce(TOPIC, b"open", partition=1)
    assert producer.flush(20) == 0
    rows = table(tools, "describe-producers", "--topic", TOPIC, "--partition", "1")
    yield rows[0]["ProducerId"]
    producer.abort_transaction(20)


def table(tools: ConsoleTools, *args: str) -> list[dict[str, str]]:
    """The rows that the tool prints, by heading."""
    lines = tools.succeed(TRANSACTIONS, *args)
    heading, *rows = [[cell.strip() for cell in line.rstrip("\t").split("\t")] for line in lines]
    return [dict(zip(heading, row, strict=True)) for row in rows]


def test_an_open_transaction_is_listed(tools: ConsoleTools, producer_id: str) -> None:
    rows = table(tools, "list")

    assert {
        "TransactionalId": ID,
        "Coordinator": "1",
        "ProducerId": producer_id,
        "TransactionState": "Ongoing",
    } in rows


def test_an_open_transaction_is_described(tools: ConsoleTools, producer_id: str) -> None:
    [row] = table(tools, "describe", "--transactional-id", ID)

    assert row["ProducerId"] == producer_id
    assert row["TransactionState"] == "Ongoing"
    assert row["TopicPartitions"] == f"{TOPIC}-1"
    assert int(row["TransactionTimeoutMs"]) == 60_000
    assert int(row["TransactionDurationMs"]) >= 0


def test_the_producers_of_a_partition_are_described(tools: ConsoleTools, producer_id: str) -> None:
    [row] = table(tools, "describe-producers", "--topic", TOPIC, "--partition", "1")

    assert row["ProducerId"] == producer_id
    assert row["LastSequence"] == "0"
    assert row["CurrentTransactionStartOffset"] == "0"


@pytest.mark.usefixtures("producer_id")
@pytest.mark.parametrize("where", [("--broker-id", "1"), ("--topic", TOPIC)], ids=["broker", "topic"])
def test_an_open_transaction_does_not_hang(tools: ConsoleTools, where: tuple[str, str]) -> None:
    assert table(tools, "find-hanging", *where) == []


def test_an_unknown_id_is_reported(tools: ConsoleTools) -> None:
    described = tools.run(TRANSACTIONS, "describe", "--transactional-id", "never")

    assert described.status == 1
    assert "failed because the ID could not be found" in described.said


def test_an_open_transaction_can_be_ended_by_its_id_but_not_by_markers(tools: ConsoleTools) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    tools.create_topic("forced")
    producer = confluent_kafka.Producer({"bootstrap.servers": tools.bootstrap, "transactional.id": "forced"})
    producer.init_transactions(20)
    producer.begin_transaction()
    producer.produce("forced", b"open")
    assert producer.flush(20) == 0

    aborted = tools.run(TRANSACTIONS, "abort", "--topic", "forced", "--partition", "0", "--start-offset", "0")
    forced = tools.run(TRANSACTIONS, "forceTerminateTransaction", "--transactionalId", "forced")

    assert "The node does not support WRITE_TXN_MARKERS" in aborted.said
    assert forced.status == 0, forced.said
    [row] = table(tools, "describe", "--transactional-id", "forced")
    assert row["TransactionState"] == "Empty"
