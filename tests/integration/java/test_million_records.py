"""A million records through Kafka's Java clients: each read once and in order, though the host is killed."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from integration.java.console_tools import ConsoleTools
from integration.java.jvm import Jvm
from integration.numbered_records import KILLS, PARTITIONS, RECORDS, TOPIC, KillableHost

pytestmark = [pytest.mark.java, pytest.mark.slow, pytest.mark.timeout(400)]


def produce(jvm: Jvm, host: KillableHost) -> list[str]:
    """The producer's output; the host is killed each time enough records are acknowledged."""
    lines: list[str] = []
    arguments = (host.bootstrap, TOPIC, str(PARTITIONS), str(RECORDS))
    with jvm.started("odradek.NumberedProducer", *arguments) as producer:
        assert producer.stdout is not None
        for line in producer.stdout:
            lines.append(line.strip())
            name, _, number = lines[-1].partition("=")
            if name == "acknowledged":
                host.kill_when_due(int(number))
    return lines


@pytest.fixture(scope="module")
def filled(jvm: Jvm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KillableHost]:
    """A host that holds the million records, and was killed meanwhile."""
    with KillableHost(tmp_path_factory.mktemp("data")) as host:
        ConsoleTools(jvm, host.bootstrap).create_topic(TOPIC, PARTITIONS)
        started = time.monotonic()
        lines = produce(jvm, host)
        print(f"\nproduced in {time.monotonic() - started:.1f} s, killed {host.killed} times")
        assert lines[-2:] == [f"acknowledged={RECORDS}", "failed=0"]
        assert host.killed == KILLS
        yield host


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_record_is_read_once_and_in_order(jvm: Jvm, filled: KillableHost, protocol: str) -> None:
    arguments = (filled.bootstrap, TOPIC, str(PARTITIONS), str(RECORDS), protocol)

    started = time.monotonic()
    read = jvm.apart.run("odradek.NumberedGroup", *arguments, timeout_s=200)

    print(f"\nread in {time.monotonic() - started:.1f} s: {read.out.split()}")
    assert read.status == 0, read.said
    said = dict(line.split("=") for line in read.out.splitlines())
    assert (said["read"], said["surprises"]) == (str(RECORDS), "0")
    assert int(said["assignments"]) > 3
    ends = ConsoleTools(jvm, filled.bootstrap).succeed("kafka-get-offsets", "--topic", TOPIC)
    assert sum(int(line.rpartition(":")[2]) for line in ends) == RECORDS
