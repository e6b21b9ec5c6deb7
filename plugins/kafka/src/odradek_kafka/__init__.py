"""Client metrics to topics of a Kafka cluster, this host included."""

from __future__ import annotations

from odradek.plugin import Forwarder, PluginConfig, hookimpl

__version__ = "0.1.0"


@hookimpl
def odradek_forwarder(config: PluginConfig) -> Forwarder | None:
    """Reads the table; None when it has no ``bootstrap.servers``.

    Raises:
        ConfigError: A key makes no sense, or librdkafka does not take a client option; the error names which.
    """
    if config.text("bootstrap.servers") is None:
        return None
    # A host where the plugin is installed but idle does not pay for these imports.
    from odradek_kafka.kafka_forwarder import KafkaForwarder
    from odradek_kafka.kafka_settings import read_settings

    return KafkaForwarder(read_settings(config))
