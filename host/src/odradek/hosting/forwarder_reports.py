"""A process reports on its forwarders: metrics, and the answers to probes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from odradek.hosting.forwarder_runner import ForwarderRunner
from odradek.meters.destination_metrics import destination_rows
from odradek.metrics.metric import MetricRow


def runner_rows(runners: Iterable[ForwarderRunner]) -> Iterator[MetricRow]:
    for each in runners:
        yield from destination_rows(each.name, each.forwarder, each.stats(), each.metrics_failed)


def problem_of(runners: Iterable[ForwarderRunner]) -> str | None:
    """Which plugin does not work, and why; None if all do. Destinations may be down. Call from any thread."""
    found = ((runner.name, runner.problem()) for runner in runners)
    return next((f"forwarder {name}: {problem}" for name, problem in found if problem), None)


def running_forwarders(runners: Iterable[ForwarderRunner]) -> str:
    """The forwarders that have not ended, for an operator."""
    names = [each.name for each in runners if each.thread is not None and each.thread.is_alive()]
    return f"forwarders: {', '.join(names)}"
