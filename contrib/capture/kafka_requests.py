"""Requests encoded by hand according to Kafka's message JSON files.

This module uses no code of the host, so that golden bytes do not depend on the code that they test.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field

CLIENT_ID = "capture"
CLIENT_METRICS = 16
SET, DELETE, APPEND, SUBTRACT = range(4)

NAMES = {
    18: "api_versions",
    32: "describe_configs",
    33: "alter_configs",
    44: "incremental_alter_configs",
    71: "get_telemetry_subscriptions",
    72: "push_telemetry",
    74: "list_config_resources",
}
FLEXIBLE_SINCE = {18: 3, 32: 4, 33: 2, 44: 1, 71: 0, 72: 0, 74: 0}


@dataclass(frozen=True, slots=True)
class Request:
    """One request without its header."""

    api_key: int
    version: int
    body: bytes

    def frame(self, correlation_id: int, client_id: str = CLIENT_ID) -> bytes:
        """Header v1, or v2 for flexible versions, and body, without the length."""
        name = client_id.encode()
        header = struct.pack(">hhih", self.api_key, self.version, correlation_id, len(name)) + name
        tags = b"\0" if self.version >= FLEXIBLE_SINCE[self.api_key] else b""
        return header + tags + self.body


def uvarint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


@dataclass(slots=True)
class Body:
    """Appends fields in either of Kafka's two encodings."""

    flexible: bool
    data: bytearray = field(default_factory=bytearray)

    def int8(self, value: int) -> None:
        self.data += struct.pack(">b", value)

    def int32(self, value: int) -> None:
        self.data += struct.pack(">i", value)

    def boolean(self, value: bool) -> None:
        self.data.append(value)

    def string(self, text: str | None) -> None:
        raw = b"" if text is None else text.encode()
        if self.flexible:
            self.data += uvarint(0 if text is None else len(raw) + 1) + raw
        else:
            self.data += struct.pack(">h", -1 if text is None else len(raw)) + raw

    def count(self, items: Sequence[object] | None) -> None:
        if self.flexible:
            self.data += uvarint(0 if items is None else len(items) + 1)
        else:
            self.data += struct.pack(">i", -1 if items is None else len(items))

    def tags(self) -> None:
        if self.flexible:
            self.data.append(0)


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a configuration request.

    ``changes`` are (key, operation, value); describing uses ``keys`` (None is all).
    """

    name: str | None
    changes: tuple[tuple[str, int, str | None], ...] = ()
    keys: tuple[str, ...] | None = None
    kind: int = CLIENT_METRICS


def api_versions(
    version: int,
    name: str = "capture",
    software_version: str = "1.0",
    cluster_id: str | None = None,
    node_id: int = -1,
) -> Request:
    if version < 3:
        return Request(18, version, b"")
    body = Body(True)
    body.string(name)
    body.string(software_version)
    if version >= 5:
        body.string(cluster_id)
        body.int32(node_id)
    body.tags()
    return Request(18, version, bytes(body.data))


def get_subscriptions(client_instance_id: bytes) -> Request:
    return Request(71, 0, client_instance_id + b"\0")


def push(
    client_instance_id: bytes,
    subscription_id: int,
    metrics: bytes = b"",
    codec: int = 0,
    terminating: bool = False,
) -> Request:
    fixed = client_instance_id + struct.pack(">i?b", subscription_id, terminating, codec)
    return Request(72, 0, fixed + uvarint(len(metrics) + 1) + metrics + b"\0")


def list_resources(version: int, kinds: Sequence[int] = ()) -> Request:
    if version == 0:
        return Request(74, 0, b"\0")
    return Request(74, version, uvarint(len(kinds) + 1) + bytes(kinds) + b"\0")


def describe(
    version: int, *resources: Resource, synonyms: bool = False, documentation: bool = False
) -> Request:
    body = Body(version >= FLEXIBLE_SINCE[32])
    body.count(resources)
    for resource in resources:
        body.int8(resource.kind)
        body.string(resource.name)
        body.count(resource.keys)
        for key in resource.keys or ():
            body.string(key)
        body.tags()
    body.boolean(synonyms)
    if version >= 3:
        body.boolean(documentation)
    body.tags()
    return Request(32, version, bytes(body.data))


def alter(version: int, *resources: Resource, validate_only: bool = False) -> Request:
    """IncrementalAlterConfigs."""
    return configs_request(44, version, resources, validate_only)


def replace(version: int, *resources: Resource, validate_only: bool = False) -> Request:
    """AlterConfigs, which deletes keys that it does not name and has no operations."""
    return configs_request(33, version, resources, validate_only)


def configs_request(
    api_key: int, version: int, resources: Sequence[Resource], validate_only: bool
) -> Request:
    body = Body(version >= FLEXIBLE_SINCE[api_key])
    body.count(resources)
    for resource in resources:
        body.int8(resource.kind)
        body.string(resource.name)
        body.count(resource.changes)
        for key, operation, value in resource.changes:
            body.string(key)
            if api_key == 44:
                body.int8(operation)
            body.string(value)
            body.tags()
        body.tags()
    body.boolean(validate_only)
    body.tags()
    return Request(api_key, version, bytes(body.data))


def setting(name: str | None, **changes: str) -> Resource:
    """SET each key; ``interval_ms`` stands for interval.ms."""
    return Resource(name, tuple((key.replace("_", "."), SET, value) for key, value in changes.items()))
