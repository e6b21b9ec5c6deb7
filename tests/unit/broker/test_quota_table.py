"""The tables ``[quotas.NAME]`` of the configuration file."""

from __future__ import annotations

import pytest

from odradek.broker.quota_table import read_quota_tables
from odradek.plugin.config import ConfigError


def test_a_table_names_an_entity_and_its_quotas() -> None:
    tables = read_quota_tables({
        "everybody": {"client-id": "<default>", "producer_byte_rate": 1_000},
        "batch": {"user": "alice", "client-id": "batch", "request_percentage": 12.5},
        "set": {"user": "bob", "controller_mutation_rate": "2"},
        "address": {"ip": "10.0.0.7", "connection_creation_rate": 5},
    })  # fmt: skip

    assert {name: (table.entity, table.values) for name, table in tables.items()} == {
        "everybody": ({"client-id": None}, {"producer_byte_rate": 1_000.0}),
        "batch": ({"user": "alice", "client-id": "batch"}, {"request_percentage": 12.5}),
        "set": ({"user": "bob"}, {"controller_mutation_rate": 2.0}),
        "address": ({"ip": "10.0.0.7"}, {"connection_creation_rate": 5.0}),
    }


@pytest.mark.parametrize(
    ("table", "path", "problem"),
    [
        ({"producer_byte_rate": 1}, "quotas.q.user", "one of client-id, user, ip"),
        ({"user": "", "producer_byte_rate": 1}, "quotas.q.user", "expected a name"),
        ({"user": "a"}, "quotas.q.producer_byte_rate", "no quota"),
        ({"user": "a", "ip": "1.2.3.4", "connection_creation_rate": 1}, "quotas.q.ip", "cannot be used"),
        ({"ip": "host.example", "connection_creation_rate": 1}, "quotas.q.ip", "an IP address"),
        ({"ip": "1.2.3.4", "producer_byte_rate": 1}, "quotas.q.producer_byte_rate", "connection_creation"),
        ({"user": "a", "connection_creation_rate": 1}, "quotas.q.connection_creation_rate", "producer"),
        ({"user": "a", "producer_byte_rate": 0}, "quotas.q.producer_byte_rate", "from 1"),
        ({"user": "a", "producer_byte_rate": 1.5}, "quotas.q.producer_byte_rate", "whole number"),
        ({"user": "a", "request_percentage": 0}, "quotas.q.request_percentage", "above 0"),
        ({"user": "a", "request_percentage": "nan"}, "quotas.q.request_percentage", "above 0"),
        ({"user": "a", "request_percentage": True}, "quotas.q.request_percentage", "above 0"),
        ({"user": "a", "byte_rate": 1, "producer_byte_rate": 1}, "quotas.q.byte_rate", "producer_byte_rate"),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, object], path: str, problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_quota_tables({"q": table})

    assert refused.value.path == path
    assert problem in refused.value.problem


def test_two_tables_cannot_have_one_entity() -> None:
    with pytest.raises(ConfigError, match=r"quotas\.b.*quotas\.a"):
        read_quota_tables({
            "a": {"user": "u", "producer_byte_rate": 1}, "b": {"user": "u", "consumer_byte_rate": 1},
        })  # fmt: skip
