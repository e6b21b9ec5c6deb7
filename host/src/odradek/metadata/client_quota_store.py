"""Client quotas in the metadata file: entity, key and value.

An entity is stored as JSON, entity type to name with null for the default. So types of a newer version
survive, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from odradek.metadata.store import MetadataStore

SCHEMA = """
create table if not exists client_quotas (
    entity text not null, key text not null, value real not null, primary key (entity, key)
) without rowid
"""


@dataclass(frozen=True, slots=True)
class ClientQuotaRow:
    """One stored quota."""

    entity: Mapping[str, str | None]
    key: str
    value: float


class ClientQuotaStore:
    """The table of client quotas. Changes join an open transaction of the metadata file."""

    def __init__(self, metadata: MetadataStore) -> None:
        self.metadata = metadata
        self.connection = metadata.connection
        self.connection.execute(SCHEMA)

    def quotas(self) -> Iterator[ClientQuotaRow]:
        rows = self.metadata.read("select entity, key, value from client_quotas order by entity, key")
        for entity, key, value in rows:
            yield ClientQuotaRow(json.loads(entity), key, value)

    def put_quota(self, row: ClientQuotaRow) -> None:
        """Set a quota."""
        self.connection.execute(
            "insert or replace into client_quotas values (?, ?, ?)",
            (entity_text(row.entity), row.key, row.value),
        )

    def delete_quota(self, entity: Mapping[str, str | None], key: str) -> None:
        self.connection.execute(
            "delete from client_quotas where entity = ? and key = ?", (entity_text(entity), key)
        )


def entity_text(entity: Mapping[str, str | None]) -> str:
    """An entity in its canonical form."""
    return json.dumps(entity, sort_keys=True)
