"""Options of librdkafka: the table's, the plugin's defaults, and a check of both with a real client."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaException, Producer

from odradek.endpoints import TokenError, token_path
from odradek.plugin import PluginConfig
from odradek_kafka.command_config import KEY, from_command_config

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ClientKind:
    """The options of one kind of librdkafka's clients."""

    prefix: str
    """Start of the table's keys of these options."""
    defaults: Mapping[str, str]
    ours: Mapping[str, str]
    """Options that the table must not set, and why."""
    make: Callable[..., Any]
    """Creates a client without connecting it."""


DEFAULTS: Mapping[str, str] = {
    "client.id": "odradek-kafka",
    "compression.type": "zstd",
    "enable.idempotence": "true",
    # An exporter to its own host would receive its own metrics as pushes.
    "enable.metrics.push": "false",
    # The host makes the batches, and each call waits for its delivery reports: librdkafka's default of 5 ms
    # costs three times the CPU, and makes a single record wait twenty times as long.
    "linger.ms": "0",
    # With five requests of an idempotent producer in flight, its default, and more to send, librdkafka 2.16
    # uses a whole core until the cluster answers.
    "max.in.flight": "4",
    # Limit of a push before compression; the broker checks the compressed batch.
    "message.max.bytes": "33554432",
    # The same partition as a Java client chooses for the key.
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
"""Options of confluent-kafka whose values are Python functions; a file cannot hold them."""
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"  # noqa: S105  a key
ACKS = ("acks", "request.required.acks")
TIMEOUTS = ("delivery.timeout.ms", "message.timeout.ms")
"""Two names of one option."""
QUOTED = re.compile(r'configuration property:? "', re.IGNORECASE)
"""Matches errors of librdkafka about one option, not about a combination."""
PRODUCER = ClientKind("client.", DEFAULTS, OURS, Producer)


def read_client_options(config: PluginConfig, servers: str, deliver_timeout_ms: int) -> dict[str, str]:
    """The complete options of the producer.

    Args:
        config: The plugin's table.
        servers: ``bootstrap.servers``.
        deliver_timeout_ms: The host cancels a call after this time, so librdkafka must give up earlier.

    Raises:
        ConfigError: An option is invalid; names it.
    """
    given = given_options(config, PRODUCER)
    for name in ACKS:
        if given.get(name) == "0":
            raise config.error(
                PRODUCER.prefix + name,
                "expected all, -1 or a number above 0: with 0 no broker acknowledges a record",
            )
    options = {**DEFAULTS, **given, "bootstrap.servers": servers}
    timeout_key = next((key for key in TIMEOUTS if key in given), TIMEOUTS[0])
    table = PluginConfig(config.path + ".client", given)
    timeout_ms = table.integer(timeout_key, max(1, deliver_timeout_ms * 2 // 3), least=1)
    if timeout_ms >= deliver_timeout_ms and timeout_key in given:
        raise table.error(timeout_key, f"expected less than deliver.timeout.ms ({deliver_timeout_ms})")
    options[timeout_key] = str(timeout_ms)
    try_options(config, PRODUCER, without_token_file(table, options))
    return options


def without_token_file(table: PluginConfig, options: Mapping[str, str]) -> Mapping[str, str]:
    """The options without the file of a token, for which librdkafka has no option.

    Raises:
        ConfigError: The address is not that of a file.
    """
    try:
        if token_path(options.get(TOKEN_URL, "")) is None:
            return options
    except TokenError as error:
        raise table.error(TOKEN_URL, str(error)) from None
    return {key: value for key, value in options.items() if key != TOKEN_URL}


def given_options(config: PluginConfig, kind: ClientKind) -> dict[str, str]:
    """The table's options, and below them those of its properties file. Numbers and booleans of TOML become
    text, which librdkafka expects.

    Raises:
        ConfigError: The plugin depends on one of them, or the file is not usable.
    """
    table = kind.prefix.removesuffix(".")
    if config.value(table) is not None:
        raise config.error(table, "expected a table")
    options: dict[str, str] = {}
    for key in config.values:
        if key.startswith(kind.prefix):
            options[key.removeprefix(kind.prefix)] = option_text(config, key, config.value(key))
    refuse_ours(config, kind, options)
    return from_command_config(config, f"{table.removesuffix('client')}{KEY}") | options


def option_text(config: PluginConfig, key: str, value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise config.error(key, "expected a string, a number or a boolean")


def refuse_ours(config: PluginConfig, kind: ClientKind, given: Mapping[str, str]) -> None:
    """Refuse options that the plugin depends on."""
    for name in given:
        if name in CALLABLES:
            raise config.error(kind.prefix + name, "cannot be set in a file: its value is a function")
        if name in kind.ours:
            raise config.error(kind.prefix + name, f"cannot be set here: {kind.ours[name]}")


def try_options(config: PluginConfig, kind: ClientKind, options: Mapping[str, str]) -> None:
    """Create a client without a server to connect to, and discard it.

    librdkafka then checks names and values, reads certificates and requires credentials.

    Raises:
        ConfigError: An option is unknown, its value is refused, or options contradict each other.
    """
    problem = refusal(kind, {name: value for name, value in options.items() if name not in kind.ours})
    if problem is None:
        return
    for name in options.keys() - kind.ours.keys():
        if QUOTED.search(alone := refusal(kind, {name: options[name]}) or ""):
            raise config.error(kind.prefix + name, alone)
    raise config.error(kind.prefix.removesuffix("."), problem)


def refusal(kind: ClientKind, options: Mapping[str, str]) -> str | None:
    """librdkafka's error about the options; None if it accepts them."""
    try:
        # Without a logger librdkafka writes to standard error. Its lines are never polled, so they vanish.
        kind.make(dict(options), logger=log)
    except KafkaException as error:
        return str(error.args[0].str()).strip()
    return None
