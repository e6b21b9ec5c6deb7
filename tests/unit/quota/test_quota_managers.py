from __future__ import annotations

import logging

import pytest

from odradek.plugin.client_quota import (
    ABSENT,
    DEFAULT,
    ClientQuotaEntity,
    ClientQuotaType,
    ConfigEntityType,
)
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from support.tenant_quotas import TenantQuotas

USER = ClientQuotaEntity(user="u")


def test_each_key_has_its_manager() -> None:
    managers = QuotaManagers(QuotaConfigs(), MockClock())

    managers.apply(
        USER,
        {
            "producer_byte_rate": 1,
            "consumer_byte_rate": 2,
            "request_percentage": 3,
            "controller_mutation_rate": 4,
        },
    )

    assert [manager.limit("u", "c") for manager in managers.clients] == [1, 2, 3, 4]


def test_setting_none_removes_a_key() -> None:
    managers = QuotaManagers(QuotaConfigs(), MockClock())
    managers.apply(USER, {"producer_byte_rate": 1, "consumer_byte_rate": 2})

    managers.apply(USER, {"producer_byte_rate": None})

    assert [manager.is_enabled for manager in managers.clients] == [False, True, False, False]


def test_connection_rates_of_addresses_go_to_the_connection_quotas() -> None:
    managers, taken = QuotaManagers(QuotaConfigs(), MockClock()), []
    managers.update_ip_rate = lambda ip, rate: taken.append((ip, rate))

    managers.apply(ClientQuotaEntity(ip="1.2.3.4"), {"connection_creation_rate": 10})
    managers.apply(ClientQuotaEntity(ip=DEFAULT), {"connection_creation_rate": None})

    assert taken == [("1.2.3.4", 10), (None, None)]


@pytest.mark.parametrize(
    ("entity", "key"),
    [
        (USER, "not.a.key"),
        (USER, "connection_creation_rate"),
        (ClientQuotaEntity(ip=None), "producer_byte_rate"),
    ],
)
def test_keys_that_an_entity_cannot_have_are_ignored(
    entity: ClientQuotaEntity, key: str, caplog: pytest.LogCaptureFixture
) -> None:
    managers, taken = QuotaManagers(QuotaConfigs(), MockClock()), []
    managers.update_ip_rate = lambda ip, rate: taken.append((ip, rate))

    with caplog.at_level(logging.WARNING):
        managers.apply(entity, {key: 1})

    assert [record.__dict__["key"] for record in caplog.records] == [key]
    assert not any(manager.is_enabled for manager in managers.clients)
    assert taken == []


def test_one_callback_serves_all_types() -> None:
    callback = TenantQuotas({})
    managers = QuotaManagers(QuotaConfigs(), clock := MockClock(), callback)

    for manager in managers.clients:
        manager.record_and_throttle_ms("acme-1", "c", 1, clock.monotonic_ms())

    assert {quota_type for quota_type, _ in callback.lookups} == set(ClientQuotaType)


def test_metrics_of_all_managers_have_kafkas_names() -> None:
    managers = QuotaManagers(QuotaConfigs(), clock := MockClock())
    keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
    managers.apply(USER, dict.fromkeys(keys, 100))
    for manager in managers.clients:
        manager.record_and_throttle_ms("u", "c", 1, clock.monotonic_ms())
    for replication in managers.replications:
        replication.record(1)

    names = {(row.name.group, row.name.name) for row in managers.measured(clock.monotonic_ms())}

    clients = {(kind.value, name) for kind in ClientQuotaType for name in ("queue-size", "throttle-time")}
    assert names == clients | {
        ("Produce", "byte-rate"),
        ("Fetch", "byte-rate"),
        ("Request", "request-time"),
        ("ControllerMutation", "mutation-rate"),
        ("ControllerMutation", "tokens"),
        ("LeaderReplication", "byte-rate"),
        ("FollowerReplication", "byte-rate"),
        ("AlterLogDirsReplication", "byte-rate"),
    }
    sensors = 2 * len(list(managers.clients)) + len(list(managers.replications))
    assert managers.expire(clock.monotonic_ms() + 3_600_001) == sensors
    assert {row.name.name for row in managers.measured(clock.monotonic_ms())} == {"queue-size"}


@pytest.mark.parametrize(
    ("names", "entity", "parts"),
    [
        ({"user": "u"}, USER, [(ConfigEntityType.USER, "u")]),
        (
            {"user": None, "client-id": "c"},
            ClientQuotaEntity(user=DEFAULT, client_id="c"),
            [(ConfigEntityType.DEFAULT_USER, ""), (ConfigEntityType.CLIENT_ID, "c")],
        ),
        (
            {"client-id": None},
            ClientQuotaEntity(client_id=DEFAULT),
            [(ConfigEntityType.DEFAULT_CLIENT_ID, "")],
        ),
        ({"ip": "1.2.3.4"}, ClientQuotaEntity(ip="1.2.3.4"), []),
    ],
)
def test_an_entity_is_read_from_its_wire_form(
    names: dict[str, str | None], entity: ClientQuotaEntity, parts: list[tuple[ConfigEntityType, str]]
) -> None:
    found = ClientQuotaEntity.of(names)

    assert found == entity
    assert found.names() == names
    assert list(found.config_entities()) == parts


def test_the_name_default_is_not_the_default_entity() -> None:
    named, default = ClientQuotaEntity(client_id="<default>"), ClientQuotaEntity(client_id=DEFAULT)

    assert named != default
    assert named.user is ABSENT
