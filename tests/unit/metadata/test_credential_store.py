"""Credentials in the metadata file."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.metadata.credential_store import CredentialRow, CredentialStore
from odradek.metadata.store import MetadataStore

ALICE = CredentialRow("alice", 1, b"salt", b"stored", b"server", 4096)
ALICE_512 = CredentialRow("alice", 2, b"salt", b"stored", b"server", 8192)


def test_credentials_survive_a_restart(tmp_path: Path) -> None:
    first = MetadataStore(tmp_path / "metadata.db")
    CredentialStore(first).put_credential(ALICE)
    CredentialStore(first).put_credential(ALICE_512)
    first.close()

    second = MetadataStore(tmp_path / "metadata.db")
    rows = CredentialStore(second).credentials()
    second.close()

    assert rows == [ALICE, ALICE_512]


def test_a_new_credential_replaces_the_old_one() -> None:
    store = CredentialStore(MetadataStore(":memory:"))
    store.put_credential(ALICE)
    new = CredentialRow("alice", 1, b"other", b"stored", b"server", 5000)

    store.put_credential(new)

    assert store.credentials() == [new]


def test_one_mechanism_of_a_user_can_be_deleted() -> None:
    store = CredentialStore(MetadataStore(":memory:"))
    store.put_credential(ALICE)
    store.put_credential(ALICE_512)

    store.delete_credential("alice", 1)

    assert store.credentials() == [ALICE_512]


def test_rolling_back_the_file_restores_credentials() -> None:
    metadata = MetadataStore(":memory:")
    store = CredentialStore(metadata)

    def put_and_fail() -> None:
        with metadata.transaction():
            store.put_credential(ALICE)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        put_and_fail()

    assert store.credentials() == []
