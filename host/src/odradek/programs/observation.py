"""Metrics of clients that do not push, derived from their requests: on a host as on a gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from odradek.gateway.observation.observation import SOURCE_NAME, Observation
from odradek.gateway.observation.settings import ObservationSettings, Observe
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow
from odradek.programs.pushes import Pushes
from odradek.programs.spine import Part
from odradek.telemetry.record_source import RecordSource
from odradek.telemetry.topology import Topology


class Observed(NamedTuple):
    """The observation of a program's clients, and the part that writes it."""

    observation: Observation
    part: Part


def observation_of(
    settings: ObservationSettings,
    pushes: Pushes,
    responses: Mapping[int, type[Any]],
    *,
    follows_fetches: bool = False,
    topology: Topology | None = None,
    name_of: Callable[[bytes], str | None],
) -> Observed | None:
    """The observation of clients; None if nobody wants to know anything of them.

    Args:
        settings: Which clients are observed.
        pushes: Take the records.
        responses: The declared responses, by API key.
        follows_fetches: Whether to know what clients read.
        topology: Takes who uses which topic; None not to know it.
        name_of: The name of a topic with an id; None if it is not known.
    """
    if not pushes.takes_records:
        settings = replace(settings, observe=Observe.NONE)
    if settings.observe is Observe.NONE and not follows_fetches and topology is None:
        return None
    source = RecordSource(SOURCE_NAME, pushes.manager, pushes.sources.keep)
    clock, timer, goodbyes = pushes.spine.clock, pushes.spine.timer, pushes.manager.goodbyes
    found = Observation(
        settings,
        source,
        clock,
        timer,
        responses,
        goodbyes,
        pushes.origin,
        follows_fetches=follows_fetches,
        topology=topology,
        name_of=name_of,
    )
    pushes.incidents.known = found.known
    pushes.incidents.observes = lambda place: any(
        key.place == place and found.is_reported(each) for key, each in found.clients.items()
    )

    def rows() -> Iterator[MetricRow]:
        yield from found.metric_rows()
        yield from source_rows(source)

    return Observed(found, Part(found.start, found.stop, rows))
