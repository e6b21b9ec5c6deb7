"""The subscriptions of the configuration file, beside those that were set over the network.

A gateway adds those of its cluster to those of the file.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from odradek.metadata.store import MetadataStore, StoreError
from odradek.plugin.config import ConfigError
from odradek.telemetry.client_metrics_manager import ClientMetricsManager
from odradek.telemetry.subscriptions import Subscriptions
from odradek.upkeep.storage import METADATA_FILE
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType

FROM_FILE = "subscriptions.from.config"
"""The key of the stored names that the file had at the last start or reload."""

Wanted = Mapping[str, Mapping[str, str]]
"""Properties by name of the subscription."""


def subscribed(data_dir: Path, wanted: Wanted) -> bool | None:
    """Whether a host with this data directory, and these subscriptions in its file, has any. The host may be
    running. None if its metadata file cannot be read.
    """
    file = data_dir / METADATA_FILE
    if wanted or not file.exists():
        return bool(wanted)
    try:
        metadata = MetadataStore(file, read_only=True)
        with closing(metadata):
            stored = metadata.resource_names(ResourceType.CLIENT_METRICS)
            return bool(set(stored) - names_from_file(metadata))
    except (StoreError, ApiError):
        return None


def names_from_file(metadata: MetadataStore) -> set[str]:
    """The stored names that the file had at the last start or reload."""
    return set(json.loads(metadata.value(FROM_FILE) or "[]"))


class FileSubscriptions:
    """Stores the subscriptions of the file. Removes those that an earlier file had and this one lacks; those
    that were set over the network stay.

    Args:
        metadata: The store.
        telemetry: Uses them.
        of_file: Those of the file; also of later ones.
        combined: Adds the subscriptions of another source to those of a file.
        is_alone: Those that were set over the network do not stay.
    """

    def __init__(
        self,
        metadata: MetadataStore,
        telemetry: ClientMetricsManager,
        of_file: Wanted,
        combined: Callable[[Wanted], Wanted] = lambda of_file: of_file,
        is_alone: bool = False,
    ) -> None:
        self.metadata = metadata
        self.telemetry = telemetry
        self.combined = combined
        self.is_alone = is_alone
        self.of_file = of_file

    def stored(self) -> dict[str, Mapping[str, str]]:
        """All stored subscriptions."""
        names = self.metadata.resource_names(ResourceType.CLIENT_METRICS)
        return {name: self.metadata.resource(ResourceType.CLIENT_METRICS, name) for name in names}

    def dropped(self, wanted: Wanted) -> set[str]:
        """The names that an earlier file had and this one lacks."""
        before = set(self.stored()) if self.is_alone else names_from_file(self.metadata)
        return before - wanted.keys()

    def start(self, wanted: Wanted) -> None:
        """Load the stored subscriptions, then apply the file.

        Raises:
            ConfigError: A subscription of the file is invalid.
            ApiError: The metadata file cannot be read or written.
        """
        dropped = self.dropped(self.combined(wanted))
        for name, properties in self.stored().items():
            if name not in dropped:
                self.telemetry.update_subscription(name, properties)
        self.check(wanted)
        self.apply(wanted)

    def check(self, wanted: Wanted) -> None:
        """Check the subscriptions of a file, within the limits; nothing changes.

        Raises:
            ConfigError: One is invalid, or they are too many.
        """
        check_subscriptions(self.combined(wanted), self.telemetry.subscriptions, self.stored())

    def apply(self, wanted: Wanted) -> list[str]:
        """Store and use the subscriptions of a file that `check` has accepted; return the changed names.

        Raises:
            ApiError: The metadata file cannot be written; nothing has changed.
        """
        combined = self.combined(wanted)
        stored = self.stored()
        changes = {
            name: properties for name, properties in combined.items() if stored.get(name) != properties
        }
        changes |= {name: {} for name in self.dropped(combined) if name in stored}
        names = json.dumps(sorted(combined))
        if changes or names != self.metadata.value(FROM_FILE):
            with self.metadata.transaction():
                for name, properties in changes.items():
                    self.metadata.put_resource(ResourceType.CLIENT_METRICS, name, properties)
                self.metadata.put_value(FROM_FILE, names)
        for name, properties in changes.items():
            self.telemetry.update_subscription(name, properties)
        self.of_file = wanted
        return sorted(changes)


def check_subscriptions(
    wanted: Wanted, subscriptions: Subscriptions, stored: Mapping[str, Mapping[str, str]]
) -> None:
    """Check subscriptions, within the limits.

    Raises:
        ConfigError: One is invalid, or they are too many.
    """
    try:
        for name, properties in wanted.items():
            try:
                subscriptions.check(name, properties, stored.get(name, {}))
                if name not in stored and properties:
                    subscriptions.number_limit.reserve()
            except ApiError as error:
                raise ConfigError(f"subscriptions.{name}", error.message or error.code.name) from error
    finally:
        for limit in subscriptions.limits:
            limit.reserved = 0
