"""Kafka's console tools by the names of their scripts, run against one bootstrap server."""

from __future__ import annotations

import subprocess
from contextlib import AbstractContextManager
from dataclasses import dataclass

from integration.java.jvm import Jvm
from integration.java.main_server import Finished

TOOLS = "org.apache.kafka.tools"
MAIN_CLASSES = {
    "kafka-acls": f"{TOOLS}.AclCommand",
    "kafka-broker-api-versions": f"{TOOLS}.BrokerApiVersionsCommand",
    "kafka-client-metrics": f"{TOOLS}.ClientMetricsCommand",
    "kafka-cluster": f"{TOOLS}.ClusterTool",
    "kafka-configs": "kafka.admin.ConfigCommand",
    "kafka-console-consumer": f"{TOOLS}.consumer.ConsoleConsumer",
    "kafka-console-producer": f"{TOOLS}.ConsoleProducer",
    "kafka-consumer-groups": f"{TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-consumer-perf-test": f"{TOOLS}.ConsumerPerformance",
    "kafka-delete-records": f"{TOOLS}.DeleteRecordsCommand",
    "kafka-e2e-latency": f"{TOOLS}.EndToEndLatency",
    "kafka-features": f"{TOOLS}.FeatureCommand",
    "kafka-get-offsets": f"{TOOLS}.GetOffsetShell",
    "kafka-groups": f"{TOOLS}.GroupsCommand",
    "kafka-leader-election": f"{TOOLS}.LeaderElectionCommand",
    "kafka-log-dirs": f"{TOOLS}.LogDirsCommand",
    "kafka-metadata-quorum": f"{TOOLS}.MetadataQuorumCommand",
    "kafka-producer-perf-test": f"{TOOLS}.ProducerPerformance",
    "kafka-reassign-partitions": f"{TOOLS}.reassign.ReassignPartitionsCommand",
    "kafka-share-groups": f"{TOOLS}.consumer.group.ShareGroupCommand",
    "kafka-topics": f"{TOOLS}.TopicCommand",
    "kafka-transactions": f"{TOOLS}.TransactionsCommand",
    "kafka-verifiable-consumer": f"{TOOLS}.VerifiableConsumer",
    "kafka-verifiable-producer": f"{TOOLS}.VerifiableProducer",
    "kafka-verifiable-share-consumer": f"{TOOLS}.VerifiableShareConsumer",
}
NEED_A_JVM = ("kafka-verifiable-producer",)
"""These call ``System.exit`` and register shutdown hooks with the JVM, past Kafka's own ``Exit``."""


@dataclass(frozen=True, slots=True)
class ConsoleTools:
    """The scripts of Kafka's ``bin`` folder. No tool gets an option beyond its ``--bootstrap-server``."""

    jvm: Jvm
    bootstrap: str

    def run(self, script: str, *args: str, stdin: str = "", timeout_s: float = 60) -> Finished:
        """Run a tool to its end. Subcommands (``kafka-features describe``) may follow the bootstrap
        server.
        """
        main_class, server = MAIN_CLASSES[script], ("--bootstrap-server", self.bootstrap)
        jvm = self.jvm.apart if script in NEED_A_JVM else self.jvm
        return jvm.run(main_class, *server, *args, stdin=stdin, timeout_s=timeout_s)

    def succeed(self, script: str, *args: str, stdin: str = "", timeout_s: float = 60) -> list[str]:
        """The lines of standard output of a run, which must end with status 0."""
        finished = self.run(script, *args, stdin=stdin, timeout_s=timeout_s)
        assert finished.status == 0, finished.said
        return finished.out.splitlines()

    def started(self, script: str, *args: str) -> AbstractContextManager[subprocess.Popen[str]]:
        """Start a tool that runs during the test."""
        return self.jvm.started(MAIN_CLASSES[script], "--bootstrap-server", self.bootstrap, *args)

    def create_topic(self, name: str, partitions: int = 1, *args: str) -> None:
        created = self.succeed(
            "kafka-topics", "--create", "--topic", name, "--partitions", str(partitions), *args
        )
        assert created == [f"Created topic {name}."]

    def produce_lines(self, topic: str, lines: list[str], *args: str) -> None:
        """kafka-console-producer: one record per line."""
        text = "".join(f"{line}\n" for line in lines)
        self.succeed("kafka-console-producer", "--topic", topic, *args, stdin=text)

    def consume_lines(self, topic: str, count: int, *args: str) -> list[str]:
        """kafka-console-consumer: the first ``count`` records."""
        limit = ("--max-messages", str(count), "--timeout-ms", "20000")
        return self.succeed("kafka-console-consumer", "--topic", topic, *limit, *args)
