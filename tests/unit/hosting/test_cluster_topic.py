"""The plugin that writes the telemetry topic of a cluster, and configurations that are refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.spool_settings import Durability, SpoolSettings
from odradek.hosting.active_plugin import ActivePlugin, activate
from odradek.hosting.cluster_topic import chosen_writer
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin import ConfigError, NotWritten, TelemetryRecord, hookimpl
from support.spooling import FarSide

KAFKA = SpoolSettings(durability=Durability.KAFKA)


class Writer:
    """Does nothing."""

    def start(self, topic: str, timeout_ms: int, report: Callable[[int, NotWritten | None], None]) -> None:
        """Nothing to prepare."""

    def write(self, number: int, record: TelemetryRecord) -> None:
        """Never called."""

    def flush(self, timeout_s: float) -> None:
        """Nothing to wait for."""


def plugins_of(writer: object = None, forwarder: object = None, name: str = "rows") -> list[ActivePlugin]:
    class Plugin:
        @hookimpl
        def odradek_topic_writer(self, config: object) -> object:
            return writer

        @hookimpl
        def odradek_forwarder(self, config: object) -> object:
            return forwarder

    manager = HostPluginManager()
    manager.add(name, Plugin(), "odradek-rows", "1.0")
    return activate(manager, {})


def test_the_plugin_that_offers_a_writer_is_used() -> None:
    writer = Writer()

    assert chosen_writer(KAFKA, plugins_of(writer)) is writer


@pytest.mark.parametrize("durability", [each for each in Durability if each is not Durability.KAFKA])
def test_otherwise_pushes_stay_in_the_host(durability: Durability) -> None:
    assert chosen_writer(SpoolSettings(durability=durability), plugins_of()) is None


@pytest.mark.parametrize(
    ("settings", "plugins", "expected"),
    [
        (KAFKA, [], r"telemetry.durability: kafka needs a plugin .* install the extra odradek\[kafka\]"),
        (KAFKA, plugins_of(name="kafka"), 'set plugins.kafka "telemetry.bootstrap.servers"'),
        (SpoolSettings(), plugins_of(Writer()), "plugins.rows: .* telemetry.durability is log, not kafka"),
        (KAFKA, plugins_of(Writer(), FarSide()), "plugins.rows: forwarders run beside the topic"),
        (KAFKA, plugins_of(Writer()) + plugins_of(Writer(), name="b"), "only one plugin may write"),
    ],
)
def test_a_configuration_that_would_lose_pushes_is_refused(
    settings: SpoolSettings, plugins: list[ActivePlugin], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected):
        chosen_writer(settings, plugins)
