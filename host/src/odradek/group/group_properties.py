"""Settings of one group of the consumer protocol; after GroupConfig.java (KIP-848)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from odradek.group.group_config import GroupConfig
from odradek.plugin.config import ConfigError
from odradek.settings.reading import by_key
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

SESSION_TIMEOUT_MS = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL_MS = "consumer.heartbeat.interval.ms"
GROUP_KEYS = by_key(GroupConfig, own=True)
"""By name: the field of `GroupConfig` with the host's value, and the declaration."""


def validate(properties: Mapping[str, str], config: GroupConfig) -> None:
    """Check in Kafka's order that a group may have these properties.

    Args:
        properties: All properties that are set on the group.
        config: The host's.

    Raises:
        ApiError: INVALID_CONFIG, with Kafka's message.
    """
    for name in properties:
        if name not in GROUP_KEYS:
            raise refused(f"Unknown group config name: {name}")
    for name, value_ms in parsed(properties).items():
        least_ms, most_ms = limits_ms(name, config)
        limited = name.removeprefix("consumer.")
        if value_ms < least_ms:
            raise refused(f"{name} must be greater than or equal to group.consumer.min.{limited}")
        if value_ms > most_ms:
            raise refused(f"{name} must be less than or equal to group.consumer.max.{limited}")
    effective = in_force(properties, config)
    if effective.consumer_session_timeout_ms <= effective.consumer_heartbeat_interval_ms:
        raise refused(f"{SESSION_TIMEOUT_MS} must be greater than {HEARTBEAT_INTERVAL_MS}")


def parsed(properties: Mapping[str, str]) -> dict[str, int]:
    """Return the parsed values of a group's properties, in the order of the declarations.

    Raises:
        ApiError: INVALID_CONFIG, with Kafka's message.
    """
    try:
        return {
            name: declaration.parse(properties[name])
            for name, (_, declaration) in GROUP_KEYS.items()
            if name in properties
        }
    except ConfigError as error:
        raise refused(error.problem) from None


def limits_ms(name: str, config: GroupConfig) -> tuple[int, int]:
    """The minimum and the maximum that the host allows for a property."""
    return config.limits_ms(GROUP_KEYS[name][0].removeprefix("consumer_"))


def in_force(properties: Mapping[str, str], config: GroupConfig) -> GroupConfig:
    """Return the effective configuration of one group.

    Args:
        properties: Properties that were valid when they were set. The limits may have changed since: a value
            outside them is moved to the nearest limit.
        config: The host's.
    """
    values_ms = {}
    for name, value_ms in parsed(properties).items():
        least_ms, most_ms = limits_ms(name, config)
        values_ms[GROUP_KEYS[name][0]] = min(max(value_ms, least_ms), most_ms)
    return replace(config, **values_ms)  # type: ignore[arg-type]  # fields of numbers only


def refused(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, message)
