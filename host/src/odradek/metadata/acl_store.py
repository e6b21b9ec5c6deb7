"""ACLs in the metadata file, with the codes of the ACL APIs."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.metadata.store import MetadataStore

SCHEMA = """
create table if not exists acls (
    resource_type integer not null, name text not null, pattern_type integer not null,
    principal text not null, host text not null, operation integer not null, permission integer not null,
    primary key (resource_type, name, pattern_type, principal, host, operation, permission)
) without rowid
"""
AclRow = tuple[int, str, int, str, str, int, int]
"""Resource type, name, pattern type, principal, host, operation, permission."""


class AclStore:
    """The table of ACLs. Changes join an open transaction of the metadata file."""

    def __init__(self, metadata: MetadataStore) -> None:
        self.metadata = metadata
        self.connection = metadata.connection
        self.connection.execute(SCHEMA)

    def acls(self) -> list[AclRow]:
        """All ACLs, ordered by resource and caller."""
        columns = "resource_type, name, pattern_type, principal, host, operation, permission"
        return self.metadata.read(f"select {columns} from acls")  # noqa: S608

    def put_acls(self, rows: Iterable[AclRow]) -> None:
        """Add ACLs; nothing happens to those that are there."""
        self.connection.executemany("insert or ignore into acls values (?, ?, ?, ?, ?, ?, ?)", rows)

    def delete_acls(self, rows: Iterable[AclRow]) -> None:
        self.connection.executemany(
            "delete from acls where resource_type = ? and name = ? and pattern_type = ? and principal = ? "
            "and host = ? and operation = ? and permission = ?",
            rows,
        )
