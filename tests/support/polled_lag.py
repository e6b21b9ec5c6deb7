"""The lag of a running cluster's groups, polled when the test says so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from odradek.client.admin import AdminClient
from odradek.client.asked_brokers import AskedBrokers
from odradek.client.cluster_positions import ClusterPositions
from odradek.lag.group_lag import GroupLag, PartitionLag
from odradek.waiting.clock import Clock
from odradek.waiting.steps import result_of, run_steps

TIMEOUT_S = 5.0


class PolledLag:
    """The poller of a cluster.

    Args:
        bootstrap: Of the cluster.
        clock: The time.
        connect: Makes a client; by default one without a login.
        settings: Of `ClusterPositions`.
    """

    def __init__(
        self, bootstrap: str, clock: Clock, connect: Callable[[], AdminClient] | None = None, **settings: Any
    ) -> None:
        chosen: dict[str, Any] = {"wants_group": lambda _: True, "wants_topic": lambda _: True}
        self.problems: list[str] = []
        connect = connect or (lambda: AdminClient(bootstrap, timeout_s=TIMEOUT_S))
        brokers = AskedBrokers(connect, clock, self.problems.append)
        self.positions = ClusterPositions(brokers, clock, **(chosen | settings))

    def round(self) -> ClusterPositions:
        run_steps(self.positions.begin())
        return self.positions

    def note_ends(self) -> None:
        run_steps(self.positions.note_ends())

    def of(self, group: str) -> GroupLag | None:
        """What the last round found about a group; None if it is gone."""
        found = result_of(self.positions.measured(group))
        return None if found is None else found.lag

    def at(self, group: str, topic: str, partition: int = 0) -> PartitionLag | None:
        """The same of one partition; None if there is no lag to tell."""
        found = self.of(group)
        read = found.topics[topic].partitions if found is not None and topic in found.topics else ()
        return next((each for each in read if each.partition == partition), None)
