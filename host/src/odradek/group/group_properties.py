"""Settings of one group, which override the host's; after GroupConfig.java."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter
from typing import Any

from odradek.group.group_config import GroupConfig
from odradek.group.share_config import DEAD_LETTER_TOPIC_KEY
from odradek.plugin.config import ConfigError
from odradek.settings.setting import walk
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

HOST_KEYS = {each.own_key: (path, each) for path, each in walk(GroupConfig) if each.own_key}
"""By the key of a group: the path of the field of `GroupConfig`, and the declaration of the host's value."""
GROUP_KEYS = {name: (path, each.of_resource()) for name, (path, each) in HOST_KEYS.items()}
"""The same with the declaration of the group's key."""
SECTIONS = {"consumer": "consumer_", "share": "share.", "streams": "streams."}
"""Where the settings of a kind of groups are in `GroupConfig`, by the first word of their keys."""


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
    for name, value in parsed(properties).items():
        check_limits(name, value, config)
    if properties.get(DEAD_LETTER_TOPIC_KEY, "").strip().startswith("__"):
        raise refused(f"{DEAD_LETTER_TOPIC_KEY}: DLQ topic name must not start with '__'")
    effective = in_force(properties, config)
    for kind, section in SECTIONS.items():
        times = attrgetter(f"{section}session_timeout_ms", f"{section}heartbeat_interval_ms")
        session_ms, interval_ms = times(effective)
        if session_ms <= interval_ms:
            raise refused(f"{kind}.session.timeout.ms must be greater than {kind}.heartbeat.interval.ms")


def check_limits(name: str, value: Any, config: GroupConfig) -> None:
    """Check that a value is within the limits of the host, if it has any.

    Raises:
        ApiError: INVALID_CONFIG, with Kafka's message.
    """
    least, most = limits_of(name, config)
    kind, _, limited = name.replace(".num.", ".").partition(".")
    if least is not None and value < least:
        raise refused(f"{name} must be greater than or equal to group.{kind}.min.{limited}")
    if most is not None and value > most:
        raise refused(f"{name} must be less than or equal to group.{kind}.max.{limited}")


def parsed(properties: Mapping[str, str]) -> dict[str, Any]:
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


def limits_of(name: str, config: GroupConfig) -> tuple[int | None, int | None]:
    """The minimum and the maximum that the host allows for a property; None for no such limit."""
    kind, _, rest = name.replace(".num.", ".").partition(".")
    field, section = rest.replace(".", "_"), SECTIONS.get(kind, "")
    found = []
    for end in ("min", "max"):
        try:
            found.append(attrgetter(f"{section}{end}_{field}")(config))
        except AttributeError:
            found.append(None)
    return found[0], found[1]


def in_force(properties: Mapping[str, str], config: GroupConfig) -> GroupConfig:
    """Return the effective configuration of one group.

    Args:
        properties: Properties that were valid when they were set. The limits may have changed since: a value
            outside them is moved to the nearest limit.
        config: The host's.
    """
    changes: dict[str, dict[str, Any]] = {}
    for name, value in parsed(properties).items():
        least, most = limits_of(name, config)
        if least is not None:
            value = max(value, least)
        if most is not None:
            value = min(value, most)
        *section, field = GROUP_KEYS[name][0]
        changes.setdefault(".".join(section), {})[field] = value
    own = changes.pop("", {})
    sections = {name: replace(getattr(config, name), **values) for name, values in changes.items()}
    return replace(config, **own, **sections)


def refused(message: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_CONFIG, message)
