"""Credentials of users in the metadata file: salted, as SCRAM needs them; never a password."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.metadata.store import MetadataStore

SCHEMA = """
create table if not exists credentials (
    user text not null, mechanism integer not null, salt blob not null, stored_key blob not null,
    server_key blob not null, iterations integer not null, primary key (user, mechanism)
) without rowid
"""


@dataclass(frozen=True, slots=True, repr=False)
class CredentialRow:
    """One stored credential."""

    user: str
    mechanism: int
    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class CredentialStore:
    """The table of credentials. Changes join an open transaction of the metadata file."""

    def __init__(self, metadata: MetadataStore) -> None:
        self.metadata = metadata
        self.connection = metadata.connection
        self.connection.execute(SCHEMA)

    def credentials(self) -> list[CredentialRow]:
        """All credentials, ordered by user."""
        columns = "user, mechanism, salt, stored_key, server_key, iterations"
        rows = self.metadata.read(f"select {columns} from credentials order by user, mechanism")  # noqa: S608
        return [CredentialRow(*row) for row in rows]

    def put_credential(self, row: CredentialRow) -> None:
        """Set the credential of a user for one mechanism."""
        self.connection.execute(
            "insert or replace into credentials values (?, ?, ?, ?, ?, ?)",
            (row.user, row.mechanism, row.salt, row.stored_key, row.server_key, row.iterations),
        )

    def delete_credential(self, user: str, mechanism: int) -> None:
        self.connection.execute("delete from credentials where user = ? and mechanism = ?", (user, mechanism))
