"""``reference/kafka-commands.md`` has every command of Kafka with ours, or the reason why there is none."""

from __future__ import annotations

import re

from odradek.cli.main import SUBCOMMANDS
from support.reference_page import page, rows

NAMES = """
connect-distributed connect-mirror-maker connect-plugin-path connect-standalone kafka-acls
kafka-broker-api-versions kafka-client-metrics kafka-cluster kafka-configs kafka-console-consumer
kafka-console-producer kafka-console-share-consumer kafka-consumer-groups kafka-consumer-perf-test
kafka-delegation-tokens kafka-delete-records kafka-dump-log kafka-e2e-latency kafka-features
kafka-get-offsets kafka-groups kafka-jmx kafka-leader-election kafka-log-dirs kafka-metadata-quorum
kafka-metadata-shell kafka-producer-perf-test kafka-reassign-partitions kafka-replica-verification
kafka-run-class kafka-server-start kafka-server-stop kafka-share-consumer-perf-test kafka-share-groups
kafka-storage kafka-streams-application-reset kafka-streams-groups kafka-topics kafka-transactions
kafka-verifiable-consumer kafka-verifiable-producer kafka-verifiable-share-consumer trogdor
"""
"""The folder ``bin`` of Kafka 4.4, without ``.sh``."""
TABLE = rows(page("reference/kafka-commands.md"))


def test_every_command_of_kafka_is_on_the_page_in_order() -> None:
    names = [name for name in TABLE if name.endswith(".sh")]

    assert names == [f"{name}.sh" for name in NAMES.split()]


def test_each_has_a_command_of_ours_or_a_reason() -> None:
    for name, (_, ours, *remark) in ((name, cells) for name, cells in TABLE.items() if name.endswith(".sh")):
        found = re.findall(r"`odradek ([a-z-]+)`", " ".join((ours, *remark)))
        assert set(found) <= SUBCOMMANDS.keys(), name
        assert ours.startswith("`odradek ") or (ours == "-" and remark), name
