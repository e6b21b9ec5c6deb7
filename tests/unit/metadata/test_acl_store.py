"""ACLs in the metadata file."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.metadata.acl_store import AclStore
from odradek.metadata.store import MetadataStore

READ = (2, "orders", 3, "User:alice", "*", 3, 3)
WRITE = (2, "orders", 3, "User:alice", "*", 4, 3)


def test_acls_survive_a_restart(tmp_path: Path) -> None:
    first = MetadataStore(tmp_path / "metadata.db")
    AclStore(first).put_acls([WRITE, READ, READ])
    first.close()

    second = MetadataStore(tmp_path / "metadata.db")
    rows = AclStore(second).acls()
    second.close()

    assert rows == [READ, WRITE]


def test_one_acl_can_be_deleted() -> None:
    store = AclStore(MetadataStore(":memory:"))
    store.put_acls([READ, WRITE])

    store.delete_acls([READ])

    assert store.acls() == [WRITE]


def test_rolling_back_the_file_restores_acls() -> None:
    metadata = MetadataStore(":memory:")
    store = AclStore(metadata)

    def put_and_fail() -> None:
        with metadata.transaction():
            store.put_acls([READ])
            raise RuntimeError

    with pytest.raises(RuntimeError):
        put_and_fail()

    assert store.acls() == []
