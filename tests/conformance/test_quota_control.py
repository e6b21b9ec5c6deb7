"""Validation and storage of client quotas, after Kafka's ClientQuotaControlManagerTest."""

from __future__ import annotations

from itertools import permutations

import pytest

from odradek.broker.client_quotas import CLIENT_KEYS, IP_KEYS, Alteration, ClientQuotas
from odradek.metadata.client_quota_store import ClientQuotaRow
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigType
from odradek.wire.error_code import ErrorCode
from support.quota_requests import Names, QuotaAdmin, entity

PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
USER = entity(user="user-1")


@pytest.fixture
def admin() -> QuotaAdmin:
    return QuotaAdmin()


@pytest.fixture
def quotas(admin: QuotaAdmin) -> ClientQuotas:
    return admin.broker.client_quotas


def stored(quotas: ClientQuotas) -> list[ClientQuotaRow]:
    return list(quotas.store.quotas())


def refusal(quotas: ClientQuotas, names: Names, **ops: float | None) -> str | None:
    """Alter a quota; return the reason for a refusal, or None. A refusal stores nothing."""
    (error,) = quotas.alter([Alteration(names, list(ops.items()))]).values()
    if error is None:
        return None
    assert error.code is ErrorCode.INVALID_REQUEST
    assert stored(quotas) == []
    return error.message


@pytest.mark.parametrize(
    "names",
    [
        {"foo": "bar"},
        {None: "bar"},
        {"user": "u", "foo": "bar"},
        {"foo": "bar", "ip": "1.2.3.4"},
        {"user": "u", "ip": "1.2.3.4"},
        {"client-id": "c", "ip": "1.2.3.4"},
        {},
    ],
)
def test_an_invalid_entity_is_not_stored(quotas: ClientQuotas, names: Names) -> None:
    assert refusal(quotas, names, request_percentage=0.5) is not None


@pytest.mark.parametrize(
    "ops",
    [*permutations([("not.a.quota.key", 0.0), (REQUEST, 99.9)]), [(None, 0.0)]],
)
def test_an_unknown_key_fails_its_entity(quotas: ClientQuotas, ops: list[tuple[str, float]]) -> None:
    (error,) = quotas.alter([Alteration(USER, ops)]).values()

    assert error is not None
    assert error.message == f"Invalid configuration key {ops[0][0] if len(ops) == 1 else 'not.a.quota.key'}"
    assert stored(quotas) == []


def test_keys_are_added_changed_and_removed(quotas: ClientQuotas) -> None:
    sizes = []
    for ops in (
        {PRODUCE: 10_000.0},
        {PRODUCE: 10_001.0, FETCH: 20_000.0},
        {PRODUCE: None},
        {REQUEST: None},
        {FETCH: None},
        {FETCH: None},
        {REQUEST: 99.0, "controller_mutation_rate": None, PRODUCE: 10_002.0, FETCH: 20_001.0},
    ):
        assert quotas.alter([Alteration(USER, list(ops.items()))]) == {frozenset(USER.items()): None}
        sizes.append(len(stored(quotas)))

    assert sizes == [1, 2, 1, 1, 0, 0, 3]
    assert quotas.by_entity[frozenset(USER.items())] == {REQUEST: 99, PRODUCE: 10_002, FETCH: 20_001}


def test_each_entity_is_stored_once(quotas: ClientQuotas) -> None:
    entities = [
        entity(user, client_id)
        for user in ("user-1", "user-2", None, "")
        for client_id in ("client-1", None, "")
        if (user, client_id) != ("", "")
    ]

    answers = quotas.alter(Alteration(names, [(REQUEST, 1.5)]) for names in entities)

    assert set(answers.values()) == {None}
    rows = stored(quotas)
    assert len(rows) == len(entities)
    assert all(dict(row.entity) in entities and (row.key, row.value) == (REQUEST, 1.5) for row in rows)


@pytest.mark.parametrize(
    ("host", "is_valid"), [(None, True), ("example.invalid", False), ("127.0.0.1", True), ("::1", True)]
)
def test_an_address_must_be_valid(admin: QuotaAdmin, host: str | None, is_valid: bool) -> None:
    code, _ = admin.alter(entity(ip=host), connection_creation_rate=1)

    assert (code == ErrorCode.NONE) is is_valid


@pytest.mark.parametrize(
    "names", [entity(user="u"), entity(client_id="c"), entity(user="u", client_id="c"), entity(user=None)]
)
def test_users_and_clients_have_four_keys(quotas: ClientQuotas, names: Names) -> None:
    keys = quotas.valid_keys(names)

    assert keys == CLIENT_KEYS
    assert set(keys) == {PRODUCE, FETCH, REQUEST, "controller_mutation_rate"}


def test_addresses_have_one_key(quotas: ClientQuotas) -> None:
    keys = quotas.valid_keys(entity(ip="1.2.3.4"))

    assert keys == IP_KEYS == {"connection_creation_rate": ConfigType.INT}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "Invalid empty client quota entity"),
        *(
            (
                {other: "x", "ip": "1.2.3.4"},
                "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId",
            )
            for other in ("user", "client-id")
        ),
        ({"ip": "example.invalid"}, "example.invalid is not a valid IP or resolvable host."),
    ],
)
def test_an_entity_without_valid_keys_gets_a_reason(quotas: ClientQuotas, names: Names, message: str) -> None:
    with pytest.raises(ApiError) as error:
        quotas.valid_keys(names)

    assert (error.value.code, error.value.message) == (ErrorCode.INVALID_REQUEST, message)


VALUES = [
    pytest.param("foobar", 1.0, "Invalid configuration key foobar", id="unknown-key"),
    pytest.param(PRODUCE, 0.0, "Quota producer_byte_rate must be greater than 0", id="zero"),
    pytest.param(FETCH, -2.0, "Quota consumer_byte_rate must be greater than 0", id="negative"),
    pytest.param(FETCH, 1234.0, None, id="whole"),
    pytest.param(FETCH, 1235.0000001, None, id="almost-whole"),
    pytest.param(
        FETCH,
        36893488147419103232.4,
        "Proposed value for consumer_byte_rate is too large for a LONG.",
        id="too-large",
    ),
    pytest.param(FETCH, 2.245, "consumer_byte_rate cannot be a fractional value.", id="fractional"),
    pytest.param(REQUEST, 56.62367, None, id="fractional-percentage"),
    pytest.param(REQUEST, float("nan"), "Quota request_percentage must be a finite number", id="NaN"),
    pytest.param(
        PRODUCE,
        float("inf"),
        "Quota producer_byte_rate must be a finite number",
        id="infinity",
    ),
]


@pytest.mark.parametrize(("key", "value", "message"), VALUES)
def test_a_value_must_fit_its_key(quotas: ClientQuotas, key: str, value: float, message: str | None) -> None:
    assert refusal(quotas, USER, **{key: value}) == message


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2147483647.0, None),
        (2147483648.0, "Proposed value for connection_creation_rate is too large for an INT."),
        (0.5, "connection_creation_rate cannot be a fractional value."),
    ],
)
def test_a_connection_rate_is_a_whole_number(quotas: ClientQuotas, value: float, message: str | None) -> None:
    assert refusal(quotas, entity(ip="1.2.3.4"), connection_creation_rate=value) == message
