"""The settings of `odradek gateway`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from odradek.gateway.addressing_settings import PAGE, AddressingSettings
from odradek.gateway.telemetry_settings import GatewayTelemetrySettings
from odradek.plugin.config import PluginConfig
from odradek.settings.kinds import INT, LONG, Choice, Flag, Items, Special, Whole
from odradek.settings.setting import section, setting
from odradek.wire.config_resource import ConfigType
from odradek.wire.messages.fetch import FetchResponse

UPSTREAM, REUSE_PORT, WORKERS = "gateway.upstream", "gateway.reuse.port", "gateway.workers"
LAST_FETCH = FetchResponse.VERSIONS.last
LEAST_IDLE_MS = 600_001
"""Brokers close idle connections after 600 s."""

Telemetry = Literal["own", "pass", "off"]
UnknownApis = Literal["hide", "pass"]


def read_path(table: PluginConfig, key: str) -> Path | None:
    """Return the path of a file; None for an empty text."""
    text = table.text(key)
    return Path(text) if text else None


PATH = Special(type=ConfigType.STRING, shape="text", read=read_path)


@dataclass(frozen=True, slots=True, kw_only=True)
class GatewaySettings:
    """The settings of `odradek gateway`; other programs refuse them."""

    # fmt: off
    upstream: tuple[str, ...] = setting(
        UPSTREAM, Items(), (),
        "Brokers of the cluster, as `HOST:PORT`, that connections to the bootstrap address are passed to in "
        "turn; `--upstream` sets it.", unset="none", page=PAGE,
    )
    upstream_config: Path | None = setting(
        "gateway.upstream.command.config", PATH, None,
        "Properties file of the gateway's connections to the cluster, with the keys of Kafka's clients: "
        "`security.protocol`, `ssl.*`, and `sasl.*` for its own requests; clients authenticate themselves.",
        unset="plain connections", page=PAGE,
    )
    bypass_unmapped: bool = setting(
        "gateway.bypass.unmapped", Flag(), False,
        "Tells clients the own address of a broker whose id is not in `gateway.nodes`, so that they dial it "
        "directly; by default it is left out of all responses.", page=PAGE,
    )
    workers: int = setting(
        WORKERS, Whole(INT, 1, 64), 1,
        "Processes that share all ports and the work, one for each core that the gateway may use; "
        "`--workers` sets it.", unit="processes", page=PAGE,
    )
    reuse_port: bool = setting(
        REUSE_PORT, Flag(), False,
        "Lets several gateways of one machine share all ports (SO_REUSEPORT), with one configuration but for "
        "`data.dir`, `gateway.name` and `metrics.listener`; the system distributes the connections.",
        page=PAGE,
    )
    max_idle_ms: int | None = setting(
        "gateway.connections.max.idle.ms", Whole(LONG, LEAST_IDLE_MS), None,
        "Time after which a connection without traffic is closed; more than what clients and brokers wait "
        "themselves. A connection that never sent a request is closed after `connections.max.idle.ms`.",
        unit="ms", unset="the client or the broker closes", page=PAGE,
    )
    telemetry: Telemetry = setting(
        "gateway.telemetry", Choice({"own": "own", "pass": "pass", "off": "off"}), "own",
        "With `own`, the gateway answers telemetry; with `pass`, the brokers do; with `off`, clients are "
        "offered none.",
    )
    unknown_apis: UnknownApis = setting(
        "gateway.unknown.apis", Choice({"hide": "hide", "pass": "pass"}), "hide",
        "Whether clients see APIs that this version does not know; their responses may name addresses of "
        "brokers.",
    )
    hide_quorum: bool = setting(
        "gateway.hide.quorum", Flag(), False,
        "Hides the versions of DescribeQuorum that name the addresses of controllers.",
    )
    fetch_max_version: int = setting(
        "gateway.fetch.max.version", Whole(INT, 12, LAST_FETCH), LAST_FETCH,
        "Highest version of Fetch that clients see; 15 spares the gateway the walk through responses, but "
        "consumers learn of a new leader later.",
    )
    hold_bytes: int = setting(
        "gateway.hold.bytes", Whole(INT, 1024), 1_048_576,
        "Largest response that is held to be rewritten whole, for each connection.", unit="bytes",
    )
    memory_bytes: int = setting(
        "gateway.memory.max", Whole(LONG, -1), 256 << 20,
        "Memory for bytes that one side has sent and the other has not taken; above it the connections that "
        "hold the most are not read, and one that stands still for `queued.stalled.ms` is closed. `-1` is "
        "the default, too.", unit="bytes", page=PAGE,
    )
    most_in_flight: int = setting(
        "gateway.in.flight.max", Whole(INT, 2), 1000,
        "A client with this many requests outstanding is not read until half of them are answered.",
        unit="requests",
    )
    dial_timeout_ms: int = setting(
        "gateway.dial.timeout.ms", Whole(INT, 1), 5_000,
        "Time to connect to a broker; the client's connection is closed after it.", unit="ms",
    )
    upstream_stuck_ms: int = setting(
        "gateway.upstream.stuck.ms", Whole(INT, 1), 30_000,
        "Time after which a connection to a broker is closed that takes nothing of what a client has sent, "
        "or leaves its first request without an answer; more than brokers throttle clients, or wait for "
        "replicas.", unit="ms", page=PAGE,
    )
    drain_ms: int = setting(
        "gateway.drain.ms", Whole(INT, 0), 10_000,
        "Time for connections with requests outstanding when the gateway stops; idle ones are closed at "
        "once.",
        unit="ms",
    )
    switch_file: Path | None = setting(
        "gateway.switch", PATH, None,
        "File with one word: `full`, `no-observation`, `no-telemetry` or `rewrite-only`; read each second.",
        unset="none", page=PAGE,
    )
    # fmt: on
    addressing: AddressingSettings = section(AddressingSettings)
    own_telemetry: GatewayTelemetrySettings = section(GatewayTelemetrySettings)
