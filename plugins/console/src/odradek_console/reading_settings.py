"""The settings that all commands share: the cluster, and what is read of its topic."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from odradek.settings import FILE, TEXT, declare
from odradek_console.setting_kinds import MILLISECONDS, SERVERS
from odradek_console.view import HISTORY_MS, TOPIC


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingSettings:
    """The cluster and its topic."""

    # fmt: off
    bootstrap_servers: str | None = declare(
        "bootstrap.servers", SERVERS, None, "Brokers to connect to, tried in order.", unset="the host",
        option="--bootstrap-server",
    )
    command_config: Path | None = declare(
        "command.config", FILE, None,
        "Properties file of the client: client.id, request.timeout.ms, security.protocol, sasl.* and ssl.*",
        unset="none",
    )
    topic: str = declare("topic", TEXT, TOPIC, "The telemetry topic.")
    history_ms: int = declare(
        "history.ms", MILLISECONDS, HISTORY_MS, "Read the topic from this long ago on.", unit="ms",
        option="--history",
    )
    owners: Path | None = declare(
        "owners", FILE, None, "TOML file of the teams that own clients.", unset="none", page="#owners",
    )
    # fmt: on
