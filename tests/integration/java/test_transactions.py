"""Transactions of the Java client, which uses version 2 (KIP-890), and kafka-transactions."""

from __future__ import annotations

import pytest

from integration.java.console_tools import ConsoleTools

pytestmark = [pytest.mark.java, pytest.mark.timeout(120)]
RECORDS = 1_000


@pytest.fixture(scope="module")
def produced(tools: ConsoleTools) -> ConsoleTools:
    """Many transactions of the id ``perf`` on the topic of this name."""
    load = ("--num-records", str(RECORDS), "--record-size", "20", "--throughput", "1000")
    transactions = ("--transactional-id", "perf", "--transaction-duration-ms", "50")
    tools.create_topic("perf")
    tools.succeed("kafka-producer-perf-test", "--topic", "perf", *load, *transactions)
    return tools


def test_all_committed_records_are_read(produced: ConsoleTools) -> None:
    committed = ("--isolation-level", "read_committed", "--partition", "0", "--offset", "earliest")

    consumed = produced.consume_lines("perf", RECORDS, *committed)

    assert len(consumed) == RECORDS


def test_every_end_bumps_the_epoch(produced: ConsoleTools) -> None:
    (end,) = produced.succeed("kafka-get-offsets", "--topic", "perf")
    markers = int(end.rpartition(":")[2]) - RECORDS

    _, described = produced.succeed("kafka-transactions", "describe", "--transactional-id", "perf")

    _, name, _, epoch, state, *_ = described.split()
    assert (name, state) == ("perf", "CompleteCommit")
    assert int(epoch) == markers > 1


def test_transactions_are_listed(produced: ConsoleTools) -> None:
    _, *listed = produced.succeed("kafka-transactions", "list")

    assert [line.split()[0] for line in listed] == ["perf"]


def test_the_producer_of_a_partition_is_described(produced: ConsoleTools) -> None:
    _, producer = produced.succeed(
        "kafka-transactions", "describe-producers", "--topic", "perf", "--partition", "0"
    )

    assert producer.split()[-1] == "None"  # no transaction is open


def test_no_transaction_hangs(produced: ConsoleTools) -> None:
    _, *hanging = produced.succeed("kafka-transactions", "find-hanging", "--topic", "perf")

    assert hanging == []
