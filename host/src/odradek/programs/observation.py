"""Metrics of clients that do not push, derived from their requests: on a host as on a gateway."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Protocol

from odradek.broker.broker import Broker
from odradek.broker.dispatch.dispatcher import Dispatcher
from odradek.gateway.observation.observation import SOURCE_NAME, Observation
from odradek.gateway.observation.settings import ObservationSettings, Observe
from odradek.hosting.sources import Sources
from odradek.meters.metrics import source_rows
from odradek.metrics.metric import MetricRow
from odradek.net.listener import Listener
from odradek.net.observed_channel import ObservedChannel
from odradek.programs.config import HostConfig
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.record_source import RecordSource
from odradek.waiting.clock import Clock, Timer


class ObservedHost(Protocol):
    """The parts of a `Host` that an observation needs."""

    config: HostConfig
    broker: Broker
    dispatcher: Dispatcher
    telemetry: ClientMetricsManager
    clock: Clock
    timer: Timer
    meters: list[Callable[[], Iterator[MetricRow]]]
    listeners: list[Listener]
    sources: Sources


def observation_of(host: ObservedHost, settings: ObservationSettings, origin: str) -> Observation | None:
    """The observation of clients; None if it is off, or if nothing takes its records.

    Args:
        host: Its telemetry takes the records.
        settings: Which clients are observed.
        origin: What two observers see of a client are two series; this tells them apart.
    """
    if settings.observe is Observe.NONE or not host.broker.wants_telemetry:
        return None
    source = RecordSource(SOURCE_NAME, host.telemetry, host.sources.keep)
    responses = {key: route.response for key, route in host.dispatcher.routes.items()}
    observation = Observation(settings, source, host.clock, host.timer, responses, origin)
    host.meters += (observation.metric_rows, partial(source_rows, source))
    return observation


def observe_listeners(host: ObservedHost) -> Observation | None:
    """Observe the connections that the listeners of a host accept from now on."""
    config = host.config
    settings = replace(config.gateway.own_telemetry.observation, observe=config.observation.observe)
    origin = f"{socket.gethostname()}/{config.broker.node_id}"
    observation = observation_of(host, settings, origin)
    if observation is not None:
        observation.start()
        for listener in host.listeners:
            listener.channel_kind = partial(ObservedChannel, observer=observation)
    return observation
