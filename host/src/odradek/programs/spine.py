"""The spine of every program: time, threads, certificates and the outlets of metrics, and a list of parts.

A program makes its parts in one order, each with what it needs, and lists them. `Spine` starts them in the
order of the list and stops them in the reverse one. Nobody else starts or stops a part.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from odradek.hosting.forwarder_reports import problem_of
from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.meters.certificate_metrics import certificate_rows
from odradek.meters.health import Probe
from odradek.meters.metrics_outlets import MetricsOutlets
from odradek.meters.metrics_settings import METRICS_LISTENER
from odradek.meters.process_metrics import PROCESS
from odradek.metrics.cluster_name import ClusterName
from odradek.metrics.metric import MetricRow
from odradek.process.file_threads import FileThreads
from odradek.process.log_format import NOT_SET
from odradek.process.loop_timer import LoopTimer
from odradek.programs.certificates import Certificates
from odradek.programs.config import HostConfig
from odradek.programs.stop_report import StopReport
from odradek.waiting.clock import Clock, SystemClock

if TYPE_CHECKING:
    from odradek.meters.host_meter import ReadRows

OURS: Final = logging.getLogger("odradek")
Step = Callable[[], Awaitable[object] | None]
"""A start or a stop, on the loop."""


def nothing() -> None:
    """What a part does that has nothing to do."""


def quick() -> str:
    """What a stop waits for that waits for nobody."""
    return "open files and threads"


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a program, as the program sees it."""

    start: Step = nothing
    stop: Step = nothing
    """Comes also after a start that failed, or that never came."""
    metric_rows: Callable[[], Iterable[MetricRow]] = tuple
    not_ready: Probe = nothing
    """Why load balancers should send no clients here; None if they should. Called on other threads."""
    waits_for: Callable[[], str] = quick
    """The work that its stop waits for now, for an operator."""


class Spine:
    """What all programs have. Make it on the running event loop.

    Args:
        config: The configuration.
        clock: The time; by default the system's.
        needs_plugins: Whether a forwarder that does not work makes the process unready.
        not_alive: See `MetricsOutlets`.
        trouble: See `MetricsOutlets`; by default a forwarder that does not work.
        read_rows: See `MetricsOutlets`; by default the metrics of the parts.

    Raises:
        ConfigError: A certificate is not usable.
    """

    def __init__(
        self,
        config: HostConfig,
        clock: Clock | None = None,
        *,
        needs_plugins: bool = True,
        not_alive: Probe = nothing,
        trouble: Probe | None = None,
        read_rows: ReadRows | None = None,
    ) -> None:
        self.config = config
        self.clock = clock or SystemClock()
        self.begin_ms = self.clock.monotonic_ms()
        self.cluster = ClusterName(config.lag.cluster_name)
        self.timer = LoopTimer(self.clock)
        self.threads: list[FileThreads] = []
        self.file_threads = self.new_threads(2)
        self.certificates = Certificates(config, self.clock, self.timer, self.file_threads.offload)
        self.forwarders: list[ForwarderRunner] = []
        """Filled by the part that has them."""
        self.modules: dict[str, str] = {}
        """The names of the plugins, by module. Filled by the part that has them."""
        self.trouble = trouble or partial(problem_of, self.forwarders)
        self.outlets = MetricsOutlets(
            read_rows or self.metric_rows,
            self.cluster,
            config.gateway.own_telemetry.name or socket.gethostname(),
            self.modules,
            self.not_ready,
            not_alive,
            self.trouble,
            needs_plugins=needs_plugins,
        )
        self.stop_s = config.shutdown_timeout_ms / 1000
        """How long a part may take to stop."""
        self.level_before = OURS.level
        self.has_started = False
        self.stopping = Part()
        """The part that is being stopped."""
        self.stop_report = StopReport(self.clock, lambda: self.stopping.waits_for())
        self.parts: list[Part] = []
        """The parts of the program, with `base` among them."""
        self.base = (
            Part(stop=self.close_threads),
            Part(self.timer.start, self.timer.stop),
            Part(self.certificates.start, metric_rows=self.certificate_rows),
            Part(
                self.open_outlets,
                self.close_outlets,
                lambda: PROCESS.rows((self.clock.monotonic_ms() - self.begin_ms) / 1000),
                waits_for=lambda: "the last push of metrics",
            ),
        )

    def new_threads(self, number: int = 1) -> FileThreads:
        """Threads that end with the program, after its timed actions have."""
        self.threads.append(FileThreads(number))
        return self.threads[-1]

    async def close_threads(self) -> None:
        for each in self.threads:
            await each.close()

    def topology_rows(self) -> Iterable[Mapping[str, Any]]:
        """Who uses which topic; nothing if that is not known."""
        return () if self.outlets.topology is None else self.outlets.topology()

    def open_outlets(self) -> None:
        config, tls = self.config, self.certificates.listeners.get(METRICS_LISTENER)
        self.outlets.listen(config.metrics_listener, config.metrics_token, tls)
        self.outlets.push_to(config.metrics_push)

    async def close_outlets(self) -> None:
        await self.outlets.close(self.stop_s)

    def certificate_rows(self) -> Iterator[MetricRow]:
        yield from certificate_rows(self.certificates.listeners, self.clock.now_ms())

    async def start(self) -> None:
        """Start the parts.

        Raises:
            ConfigError, ApiError: A part cannot start; the program has to be stopped.
        """
        if self.config.log_level != NOT_SET:
            OURS.setLevel(self.config.log_level)
        for part in self.parts:
            await done(part.start)
        self.has_started = True

    async def stop(self) -> None:
        """Stop the parts, each of them whatever the others do."""
        self.outlets.drain()
        self.stop_report.begin()
        try:
            async with AsyncExitStack() as closing:  # from the last to the first
                for part in self.parts:
                    closing.push_async_callback(self.stop_part, part)
        finally:
            self.stop_report.end()
            if self.config.log_level != NOT_SET:
                OURS.setLevel(self.level_before)

    async def stop_part(self, part: Part) -> None:
        self.stopping = part
        await done(part.stop)

    def hurry(self) -> None:
        """Let the stop wait for nothing."""
        self.stop_s = 0

    def metric_rows(self) -> Iterator[MetricRow]:
        """The current values of all metrics."""
        for part in self.parts:
            yield from part.metric_rows()

    def not_ready(self) -> str | None:
        """Why load balancers should send no clients here; None if they should. Called on other threads."""
        starting = None if self.has_started else "starting"
        return next((problem for part in self.parts if (problem := part.not_ready())), starting)


async def done(step: Step) -> None:
    """Take a step to its end."""
    waits = step()
    if waits is not None:
        await waits
