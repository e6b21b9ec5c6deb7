"""Three nodes of Apache Kafka, each a process, that name an address no client of a gateway may see."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from contrib.capture.kafka_node import CLUSTER_ID, stop
from contrib.capture.ports import answers, free_ports

from integration.java.jvm import OPTIONS, Jvm
from support.certificates import Files, authority

ADDRESS = "127.0.0.2"
"""Another address of the loopback interface than that of the gateway."""
NODES = (1, 2, 103)
"""The first is the controller too."""
LOGIN_MODULES = "org.apache.kafka.common.security"
REAUTHENTICATION_MS = 2_000
"""Of the listener with a login."""
NODE_RANGES = "1-2,103"
START_TIMEOUT_S = 400
"""Long, for a machine with other work."""
PROPERTIES = """\
node.id={node}
process.roles={roles}
listeners={listeners}
advertised.listeners=PLAINTEXT://{address}:{port},SECURE://{address}:{secure_port}
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL
controller.quorum.voters=1@127.0.0.1:{controller_port}
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location={keystore}
listener.name.secure.sasl.enabled.mechanisms=SCRAM-SHA-512,PLAIN
listener.name.secure.connections.max.reauth.ms={reauthentication_ms}
listener.name.secure.scram-sha-512.sasl.jaas.config={login}.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config={login}.plain.PlainLoginModule required user_alice="secret";
log.dirs={data_dir}
broker.session.timeout.ms=9000
broker.heartbeat.interval.ms=500
default.replication.factor=3
min.insync.replicas=2
offsets.topic.num.partitions=3
offsets.topic.replication.factor=3
transaction.state.log.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.min.isr=2
share.coordinator.state.topic.num.partitions=3
share.coordinator.state.topic.replication.factor=3
share.coordinator.state.topic.min.isr=2
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
group.consumer.min.heartbeat.interval.ms=100
group.consumer.heartbeat.interval.ms=300
group.consumer.min.session.timeout.ms=1000
group.consumer.session.timeout.ms=6000
"""


@dataclass(slots=True)
class KafkaCluster:
    """Running nodes by their ids."""

    jvm: Jvm
    folder: Path
    """The folder of the nodes' logs and data."""
    ports: dict[int, int]
    secure_ports: dict[int, int]
    """Of listeners with TLS and a login."""
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"{ADDRESS}:{port}" for port in self.ports.values())

    @property
    def secure_bootstrap(self) -> str:
        return ",".join(f"{ADDRESS}:{port}" for port in self.secure_ports.values())

    def start(self, node: int) -> None:
        """Start a node that is formatted."""
        command = self.jvm.command("kafka.Kafka", str(self.folder / f"{node}.properties"))
        assert command[1] == OPTIONS[0]
        command[1] = "-Xmx512m"
        with (self.folder / f"{node}.log").open("ab") as log:
            self.processes[node] = subprocess.Popen(
                command, stdout=log, stderr=log, env=os.environ | {"LOG_DIR": str(self.folder)}
            )

    def wait(self, *nodes: int) -> None:
        """Wait until nodes listen. The end of a log is shown if its node does not start."""
        deadline = time.monotonic() + START_TIMEOUT_S
        for node in nodes:
            while not answers(self.ports[node], ADDRESS):
                running = self.processes[node].poll() is None
                if not running or time.monotonic() > deadline:
                    log = (self.folder / f"{node}.log").read_text()
                    pytest.fail(f"Kafka did not start:\n{log[-3000:]}")
                time.sleep(0.2)

    def kill(self, node: int) -> None:
        """End a node with SIGKILL."""
        self.processes[node].kill()
        self.processes[node].wait()

    def roll(self, node: int) -> None:
        """Stop a node properly and start it again."""
        stop(self.processes[node])
        self.start(node)
        self.wait(node)

    def stop(self) -> None:
        """Stop the nodes, the controller last: the others tell it that they leave."""
        for process in reversed(self.processes.values()):
            stop(process)


def properties(folder: Path, node: int, port: int, secure_port: int, controller_port: int) -> str:
    """Write the properties of a node and return the file's path."""
    is_controller = node == NODES[0]
    listeners = f"PLAINTEXT://{ADDRESS}:{port},SECURE://{ADDRESS}:{secure_port}"
    if is_controller:
        listeners += f",CONTROLLER://127.0.0.1:{controller_port}"
    file = folder / f"{node}.properties"
    file.write_text(
        PROPERTIES.format(
            node=node,
            roles="broker,controller" if is_controller else "broker",
            listeners=listeners,
            address=ADDRESS,
            port=port,
            secure_port=secure_port,
            keystore=Files(folder).write("nodes.pem", authority().issue(ADDRESS, [ADDRESS]).both),
            login=LOGIN_MODULES,
            reauthentication_ms=REAUTHENTICATION_MS,
            controller_port=controller_port,
            data_dir=folder / str(node),
        )
    )
    return str(file)


@contextmanager
def kafka_cluster(jvm: Jvm, folder: Path) -> Iterator[KafkaCluster]:
    """Format, start, yield and stop three nodes."""
    nodes = len(NODES)
    controller_port, *others = free_ports(1 + 2 * nodes)
    ports = dict(zip(NODES, others[:nodes], strict=True))
    secure_ports = dict(zip(NODES, others[nodes:], strict=True))
    cluster = KafkaCluster(jvm, folder, ports, secure_ports)
    try:
        for node, port in cluster.ports.items():
            file = properties(folder, node, port, secure_ports[node], controller_port)
            formatted = jvm.run("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", file)
            assert formatted.status == 0, formatted.said
            cluster.start(node)
        cluster.wait(*NODES)
        yield cluster
    finally:
        cluster.stop()
