"""Quotas of the configuration file, beside those that were set over the network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.broker.client_quotas import Alteration, ClientQuotas
from odradek.broker.quota_table import read_quota_tables
from odradek.metadata.store import MetadataStore
from odradek.plugin.config import ConfigError
from odradek.programs.file_quotas import FileQuotas
from odradek.quota.host_names import HostNames, look_nowhere
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.settings.state_limit import NameLimit, Refusals
from odradek.testing.clock import MockClock

TABLES = read_quota_tables({
    "all": {"client-id": "<default>", "producer_byte_rate": 100, "consumer_byte_rate": 200},
    "alice": {"user": "alice", "request_percentage": 10},
})  # fmt: skip
EVERYONE, ALICE, BOB = (
    frozenset({("client-id", None)}), frozenset({("user", "alice")}), frozenset({("user", "bob")})
)  # fmt: skip


@pytest.fixture
def metadata(tmp_path: Path) -> Iterator[MetadataStore]:
    store = MetadataStore(tmp_path / "metadata.db")
    yield store
    store.close()


def file_quotas(metadata: MetadataStore, most: int = 100) -> FileQuotas:
    clock = MockClock()
    managers = QuotaManagers(QuotaConfigs(), clock)
    names = NameLimit(200, Refusals(clock))
    return FileQuotas(metadata, ClientQuotas(metadata, managers, HostNames(look_nowhere), names, most, clock))


def test_the_quotas_of_the_file_are_stored_and_enforced(metadata: MetadataStore) -> None:
    quotas = file_quotas(metadata)

    quotas.apply(TABLES)

    assert quotas.quotas.by_entity == {
        EVERYONE: {"producer_byte_rate": 100.0, "consumer_byte_rate": 200.0},
        ALICE: {"request_percentage": 10.0},
    }
    assert quotas.quotas.managers.produce.limit("x", "y") == 100
    assert quotas.quotas.managers.is_enabled
    assert file_quotas(metadata).quotas.by_entity == quotas.quotas.by_entity


def test_quotas_that_the_file_no_longer_has_are_deleted(metadata: MetadataStore) -> None:
    file_quotas(metadata).apply(TABLES)
    quotas = file_quotas(metadata)
    quotas.quotas.alter([Alteration({"user": "bob"}, [("producer_byte_rate", 5.0)])])

    quotas.apply(read_quota_tables({"all": {"client-id": "<default>", "producer_byte_rate": 300}}))

    assert quotas.quotas.by_entity == {
        EVERYONE: {"producer_byte_rate": 300.0},
        BOB: {"producer_byte_rate": 5.0},
    }
    quotas.apply({})
    assert quotas.quotas.by_entity == {BOB: {"producer_byte_rate": 5.0}}


def test_without_quotas_nothing_is_written(metadata: MetadataStore) -> None:
    quotas = file_quotas(metadata)

    quotas.apply({})

    assert metadata.value("quotas.from.config") is None
    assert not quotas.quotas.managers.is_enabled


def test_a_check_changes_nothing(metadata: MetadataStore) -> None:
    quotas = file_quotas(metadata)

    quotas.check(TABLES)

    assert quotas.quotas.by_entity == {}


def test_more_entities_than_the_limit_are_refused(metadata: MetadataStore) -> None:
    quotas = file_quotas(metadata, most=1)

    with pytest.raises(ConfigError, match=r"quotas\.alice"):
        quotas.check(TABLES)
