"""Telemetry subscriptions, which are CLIENT_METRICS resources: set and delete them at any broker."""

from __future__ import annotations

from collections.abc import Mapping

from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.wire.config_resource import ConfigOperation, ResourceType


def subscription(name: str) -> ConfigResource:
    return ConfigResource(ResourceType.CLIENT_METRICS, name)


def deletion(key: str) -> ConfigChange:
    """A change that resets a key to its default."""
    return ConfigChange(key, None, ConfigOperation.DELETE)


def alter_subscription(
    admin: AdminClient, name: str, properties: Mapping[str, str | None], *, validate_only: bool = False
) -> None:
    """Create or change a subscription. A property without a value is reset to its default."""
    changes = [
        deletion(key) if value is None else ConfigChange(key, value) for key, value in properties.items()
    ]
    admin.incremental_alter_configs({subscription(name): changes}, validate_only=validate_only)


def delete_subscription(admin: AdminClient, name: str) -> None:
    """Delete a subscription: reset every key that the broker describes, as Kafka's tool does."""
    resource = subscription(name)
    entries = admin.describe_configs([resource])[resource]
    admin.incremental_alter_configs({resource: [deletion(entry.name) for entry in entries]})
