"""The client quotas of the configuration file, beside those that were set over the network."""

from __future__ import annotations

import json
from collections.abc import Mapping

from odradek.broker.client_quotas import Alteration, ClientQuotas
from odradek.broker.quota_table import QuotaTable
from odradek.metadata.store import MetadataStore
from odradek.plugin.config import ConfigError

FROM_FILE = "quotas.from.config"
"""The key of the stored entities and quotas that the file had at the last start or reload."""

Wanted = Mapping[str, QuotaTable]
"""Tables by name."""
Entity = frozenset[tuple[str, str | None]]


class FileQuotas:
    """Stores the quotas of the file. Removes those that an earlier file had and this one lacks; those that
    were set over the network stay.
    """

    def __init__(self, metadata: MetadataStore, quotas: ClientQuotas) -> None:
        self.metadata = metadata
        self.quotas = quotas

    def alterations(self, wanted: Wanted) -> list[Alteration]:
        """The changes that a file makes."""
        changes: dict[Entity, dict[str, float | None]] = {}
        for entity, keys in json.loads(self.metadata.value(FROM_FILE) or "[]"):
            changes[frozenset(entity.items())] = dict.fromkeys(keys)
        for table in wanted.values():
            changes.setdefault(frozenset(table.entity.items()), {}).update(table.values)
        return [Alteration(dict(entity), list(values.items())) for entity, values in changes.items()]

    def check(self, wanted: Wanted) -> None:
        """Check the quotas of a file, within the limits; nothing changes.

        Raises:
            ConfigError: They are too many, or a name is too long.
        """
        self.alter(wanted, validate_only=True)

    def apply(self, wanted: Wanted) -> None:
        """Store and enforce the quotas of a file.

        Raises:
            ConfigError: They are too many, or a name is too long.
            ApiError: The metadata file cannot be written.
        """
        self.alter(wanted, validate_only=False)
        text = json.dumps([[each.entity, sorted(each.values)] for each in wanted.values()], sort_keys=True)
        if text != (self.metadata.value(FROM_FILE) or "[]"):
            self.metadata.put_value(FROM_FILE, text)

    def alter(self, wanted: Wanted, validate_only: bool) -> None:
        """Change the quotas, or only check that they can be changed."""
        names = {frozenset(table.entity.items()): name for name, table in wanted.items()}
        for entity, error in self.quotas.alter(self.alterations(wanted), validate_only).items():
            if error is not None:
                name = names.get(entity, "")
                raise ConfigError(f"quotas.{name}", error.message or error.code.name) from error
