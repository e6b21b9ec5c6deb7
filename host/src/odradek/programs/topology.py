"""Who uses which topic: it is looked at now and then, and told on the page for ``odradek topology``."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from odradek.metrics.metric import MetricRow
from odradek.programs.spine import Part, Spine
from odradek.telemetry.topology import LOOK_MS, Topology
from odradek.waiting.step_runner import StepRunner
from odradek.waiting.steps import Steps


class TopologyLooks:
    """Looks at what clients use, again and again.

    Args:
        topology: Takes the uses.
        look: Notes those of all clients.
        spine: Has the time, and the page.
    """

    def __init__(self, topology: Topology, look: Callable[[], Steps], spine: Spine) -> None:
        self.topology = topology
        self.look = look
        self.clock, self.timer = spine.clock, spine.timer
        self.steps = StepRunner(spine.timer, spine.clock)
        self.stopped = False
        spine.outlets.topology = self.topology.rows

    def start(self) -> None:
        """Look, now and from now on."""
        if not self.stopped:
            self.topology.name_topics(self.clock.now_ms())
            self.steps.run(self.look(), lambda _outcome: self.later())

    def later(self) -> None:
        self.timer.schedule(self.clock.monotonic_ms() + LOOK_MS, self.start)

    def stop(self) -> None:
        """Look no more."""
        self.stopped = True
        self.steps.stop()

    def metric_rows(self) -> Iterator[MetricRow]:
        """Figures of the topology."""
        return self.topology.metric_rows()

    @property
    def part(self) -> Part:
        return Part(self.start, self.stop, self.metric_rows)
