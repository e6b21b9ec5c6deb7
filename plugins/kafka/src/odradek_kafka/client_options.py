"""Options of librdkafka: those of the table, our defaults below them, and a client that tries them."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping

from confluent_kafka import KafkaException, Producer

from odradek.plugin import PluginConfig

log = logging.getLogger(__name__)

PREFIX = "client."
DEFAULTS: Mapping[str, str] = {
    "client.id": "odradek-kafka",
    "compression.type": "zstd",
    "enable.idempotence": "true",
    # The exporter's own metrics would come back to it as pushes when it exports to its own host.
    "enable.metrics.push": "false",
    # The host makes the batches, and a call waits for its reports: librdkafka's 5 ms cost three times the CPU
    # and twenty times the wait of a record that is alone.
    "linger.ms": "0",
    # What a push measures before compression; the broker judges the compressed batch.
    "message.max.bytes": "33554432",
    # The partition that a Java client chooses for the same key.
    "partitioner": "murmur2_random",
}
OURS = {
    "bootstrap.servers": "belongs to the table itself",
    "metadata.broker.list": "belongs to the table itself, as bootstrap.servers",
    "transactional.id": "the plugin uses no transactions",
    "delivery.report.only.error": "the plugin waits for every report",
}
CALLABLES = frozenset(
    {
        "default.topic.config",
        "dr_cb",
        "dr_msg_cb",
        "error_cb",
        "logger",
        "oauth_cb",
        "on_delivery",
        "stats_cb",
        "throttle_cb",
    }
)
"""What confluent-kafka takes beside librdkafka's options; a file cannot say them."""
ACKS = ("acks", "request.required.acks")
TIMEOUTS = ("delivery.timeout.ms", "message.timeout.ms")
"""Two names of one option."""
QUOTED = re.compile(r'configuration property:? "', re.IGNORECASE)
"""librdkafka means one option, not a combination."""


def read_client_options(config: PluginConfig, servers: str, deliver_timeout_ms: int) -> dict[str, str]:
    """What to make a producer of.

    Args:
        config: The plugin's table.
        servers: ``bootstrap.servers``.
        deliver_timeout_ms: The host cancels a call after that: librdkafka has to give up before.

    Raises:
        ConfigError: Names the option.
    """
    given = given_options(config)
    refuse_ours(config, given)
    options = {**DEFAULTS, **given, "bootstrap.servers": servers}
    timeout_key = next((key for key in TIMEOUTS if key in given), TIMEOUTS[0])
    table = PluginConfig(config.path + ".client", given)
    timeout_ms = table.integer(timeout_key, max(1, deliver_timeout_ms * 2 // 3), least=1)
    if timeout_ms >= deliver_timeout_ms and timeout_key in given:
        raise table.error(timeout_key, f"expected less than deliver.timeout.ms ({deliver_timeout_ms})")
    options[timeout_key] = str(timeout_ms)
    try_options(config, options)
    return options


def given_options(config: PluginConfig) -> dict[str, str]:
    """The keys below ``client.``, as text: TOML has numbers and booleans where librdkafka has text."""
    if config.value("client") is not None:
        raise config.error("client", "expected a table")
    options: dict[str, str] = {}
    for key in config.values:
        if key.startswith(PREFIX):
            options[key.removeprefix(PREFIX)] = option_text(config, key, config.value(key))
    return options


def option_text(config: PluginConfig, key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise config.error(key, "expected a string, a number or a boolean")


def refuse_ours(config: PluginConfig, given: Mapping[str, str]) -> None:
    """Options that would make the reports of librdkafka say something else."""
    for name in given:
        if name in CALLABLES:
            raise config.error(PREFIX + name, "cannot be set in a file")
        if name in OURS:
            raise config.error(PREFIX + name, f"cannot be set here: {OURS[name]}")
    for name in ACKS:
        if given.get(name) == "0":
            raise config.error(PREFIX + name, "expected all, -1 or a number above 0: nobody reports with 0")


def try_options(config: PluginConfig, options: Mapping[str, str]) -> None:
    """Make a producer that has no server to connect to, and let it go: it checks names and values, reads
    certificates and wants to know credentials.

    Raises:
        ConfigError: An option is unknown, its value is refused, or they do not go together.
    """
    problem = refusal({name: value for name, value in options.items() if name not in OURS})
    if problem is None:
        return
    for name in options.keys() - OURS.keys():
        if QUOTED.search(alone := refusal({name: options[name]}) or ""):
            raise config.error(PREFIX + name, alone)
    raise config.error("client", problem)


def refusal(options: Mapping[str, str]) -> str | None:
    """What librdkafka says against the options; None when it takes them."""
    try:
        # A logger, because librdkafka writes to standard error without one; nobody polls for its lines.
        Producer(dict(options), logger=log)
    except KafkaException as error:
        return str(error.args[0].str()).strip()
    return None
