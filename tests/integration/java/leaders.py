"""Moves the leaders of partitions between the nodes of a cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from integration.java.console_tools import ConsoleTools
from integration.java.kafka_cluster import NODES
from support.waiting import wait_until

PATIENCE_S = 120
"""A node that has just started must be in sync before it can be elected."""


def leaders(tools: ConsoleTools, topic: str) -> list[int]:
    """The leader of each partition."""
    lines = tools.succeed("kafka-topics", "--describe", "--topic", topic)
    return [int(line.split("Leader: ")[1].split()[0]) for line in lines if "Leader: " in line]


def move_leaders(tools: ConsoleTools, folder: Path, topics: Sequence[str], partitions: int, to: int) -> None:
    """Make a node the leader of all partitions, by an assignment that names it first and an election."""
    replicas = [to, *(node for node in NODES if node != to)]
    rows = [
        {"topic": topic, "partition": number, "replicas": replicas}
        for topic in topics
        for number in range(partitions)
    ]
    file = folder / "assignment.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    tools.succeed("kafka-reassign-partitions", "--execute", "--reassignment-json-file", str(file))
    elected = [{"topic": row["topic"], "partition": row["partition"]} for row in rows]
    file.write_text(json.dumps({"partitions": elected}))

    def lead() -> bool:
        tools.run("kafka-leader-election", "--election-type", "preferred", "--path-to-json-file", str(file))
        return all(leaders(tools, topic) == [to] * partitions for topic in topics)

    wait_until(lead, f"node {to} leads", PATIENCE_S)
