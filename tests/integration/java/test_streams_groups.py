"""Kafka Streams with the streams protocol (KIP-1071) and exactly-once processing, while instances of the
application and the host are killed: what it has counted is what was produced.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from contrib.capture.ports import free_port

from integration.java.jvm import Jvm
from integration.java.stream_load import (
    APPLICATION,
    COPIES,
    COUNTS,
    FROM,
    PARTITIONS,
    PATIENCE_S,
    Application,
    Load,
    running,
    started,
)
from odradek.client.admin import AdminClient
from odradek.client.group_descriptions import GroupDescription
from odradek.client.resources import NewTopic
from support.hosts import ServeProcess
from support.waiting import wait_until

pytestmark = [pytest.mark.java, pytest.mark.timeout(600)]
INSTANCES = 3
QUICK = {
    # an instance that was killed is missed soon, and one on a busy machine is not
    "group.streams.min.session.timeout.ms": 15_000,
    "group.streams.session.timeout.ms": 15_000,
    "group.streams.min.heartbeat.interval.ms": 500,
    "group.streams.heartbeat.interval.ms": 500,
    "group.streams.initial.rebalance.delay.ms": 1_000,
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 500,
}
STREAMS = (
    "group.protocol=streams",
    "num.stream.threads=1",
    "producer.transaction.timeout.ms=10000",
    "commit.interval.ms=200",
)
"""A transaction of an instance that was killed holds back its readers until its timeout."""


@dataclass(slots=True)
class Cluster:
    """A host and the instances of the application."""

    jvm: Jvm
    folder: Path
    port: int = field(default_factory=free_port)
    host: ServeProcess | None = None
    instances: list[Application] = field(default_factory=list)
    """All that were started; the last ones run."""

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start_host(self) -> None:
        settings = {"listeners": f"PLAINTEXT://{self.bootstrap}", "data.dir": self.folder / "data", **QUICK}
        options = [option for key, value in settings.items() for option in ("--set", f"{key}={value}")]
        self.host = ServeProcess(*options)

    def kill_host(self) -> None:
        assert self.host is not None
        self.host.kill()
        self.start_host()

    def start_instance(self) -> None:
        folder = self.folder / f"instance-{len(self.instances)}"
        self.instances.append(started(self.jvm, self.bootstrap, folder, *STREAMS))

    def kill_instance(self) -> None:
        """Kill the oldest instance that runs, and start another one."""
        self.instances[-INSTANCES].kill()
        self.start_instance()

    def all_run(self) -> None:
        """Wait until all instances have tasks, or know that there are none for them."""
        wait_until(
            lambda: all(each.lines[-1:] == ["state=RUNNING"] for each in self.instances[-INSTANCES:]),
            lambda: [each.lines for each in self.instances],
            PATIENCE_S,
        )

    def states(self) -> dict[str, int]:
        """The number of members of the group, by the state of the group."""
        with AdminClient(self.bootstrap, timeout_s=10) as admin:
            (group,) = admin.describe_groups([APPLICATION]).values()
        assert isinstance(group, GroupDescription), group
        return {group.state: len(group.members)}


@pytest.fixture
def cluster(jvm: Jvm, tmp_path: Path) -> Iterator[Cluster]:
    """A host with the topics of the application, and its instances."""
    made = Cluster(jvm, tmp_path)
    try:
        made.start_host()
        with AdminClient(made.bootstrap, timeout_s=10) as admin:
            admin.create_topics(
                [NewTopic(name=name, partitions=PARTITIONS) for name in (FROM, COPIES, COUNTS)]
            )
        for _ in range(INSTANCES):
            made.start_instance()
        yield made
    finally:
        for instance in made.instances:
            instance.kill()
        if made.host is not None:
            made.host.terminate()


@pytest.mark.nightly
def test_what_was_counted_is_what_was_produced_while_instances_and_the_host_are_killed(
    cluster: Cluster,
) -> None:
    load = Load()
    with running(load, cluster.bootstrap):
        cluster.all_run()
        load.goes_on()
        for kill in (
            cluster.kill_host,
            cluster.kill_instance,
            cluster.kill_instance,
            cluster.kill_host,
            cluster.kill_instance,
        ):
            kill()
            cluster.all_run()
            load.goes_on()
        load.ends()
        wait_until(lambda: cluster.states() == {"Stable": INSTANCES}, cluster.states, PATIENCE_S)

    load.check()
    assert not [each.lines for each in cluster.instances if "state=ERROR" in each.lines]
