"""AlterClientQuotas and DescribeClientQuotas, after Kafka's ClientQuotasRequestTest."""

from __future__ import annotations

from typing import Any

import pytest

from odradek.broker.client_quotas import ClientQuotas
from odradek.wire.error_code import ErrorCode
from odradek.wire.limits import INT32_MAX
from odradek.wire.messages.describe_client_quotas import ComponentData
from support.quota_requests import ANY, DEFAULT, EXACT, QuotaAdmin, component, entity, entry

OK = (ErrorCode.NONE, None)
PRODUCE, FETCH, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"
BOTH = entity(user="user", client_id="client-id")
ADDRESS = "1.2.3.4"


@pytest.fixture(params=[0, 1], ids=["v0", "v1"])
def admin(request: pytest.FixtureRequest) -> QuotaAdmin:
    return QuotaAdmin(version=request.param)


def invalid(message: str) -> tuple[int, str]:
    return ErrorCode.INVALID_REQUEST, message


def test_quotas_are_set_changed_and_removed(admin: QuotaAdmin) -> None:
    steps: list[tuple[dict[str, float | None], dict[str, float]]] = [
        ({PRODUCE: 10_000, FETCH: 20_000}, {PRODUCE: 10_000, FETCH: 20_000}),
        ({PRODUCE: 15_000}, {PRODUCE: 15_000, FETCH: 20_000}),
        ({PRODUCE: None}, {FETCH: 20_000}),
        ({REQUEST: None}, {FETCH: 20_000}),
        ({PRODUCE: 5_000}, {PRODUCE: 5_000, FETCH: 20_000}),
        ({PRODUCE: 20_000, FETCH: None, REQUEST: 12.3}, {PRODUCE: 20_000, REQUEST: 12.3}),
    ]

    for ops, described in steps:
        assert admin.alter(BOTH, **ops) == OK
        assert admin.quotas_of(BOTH) == described


def test_validate_only_changes_nothing(admin: QuotaAdmin) -> None:
    before: dict[str, float] = {PRODUCE: 20_000, REQUEST: 23.45}
    admin.alter(BOTH, **before)

    for ops in ({FETCH: 20_000}, {PRODUCE: 10_000}, {PRODUCE: None}, {PRODUCE: 1, REQUEST: None, FETCH: 3}):
        assert admin.validate(BOTH, **ops) == OK

    assert admin.quotas_of(BOTH) == before
    assert admin.broker.quotas.produce.limit("user", "client-id") == 20_000


def test_addresses_have_connection_rates(admin: QuotaAdmin) -> None:
    rates = admin.broker.connection_quotas.rates
    own, default = entity(ip=ADDRESS), entity(ip=None)

    described = []
    for names, rate in ((own, 100), (own, 150), (default, 200)):
        assert admin.alter(names, connection_creation_rate=rate) == OK
        described.append(admin.quotas_of(names))
    both = admin.describe(strict=True, ip=ANY)
    in_force = rates.rate_of(ADDRESS), rates.rate_of("9.9.9.9")
    for names in (own, default):
        assert admin.alter(names, connection_creation_rate=None) == OK

    assert [values["connection_creation_rate"] for values in described] == [100, 150, 200]
    assert both.keys() == {frozenset(own.items()), frozenset(default.items())}
    assert in_force == (150, 200)
    assert admin.describe(ip=ANY) == {}
    assert {rates.rate_of(ADDRESS), rates.rate_of("9.9.9.9")} == {INT32_MAX}


@pytest.mark.parametrize(
    ("names", "key", "value", "message"),
    [
        ({"user": ""}, PRODUCE, 1.0, "Empty user not supported"),
        ({"client-id": ""}, PRODUCE, 1.0, "Empty client-id not supported"),
        ({"": "name"}, PRODUCE, 1.0, "Unhandled client quota entity type: "),
        ({}, PRODUCE, 1.0, "Invalid empty client quota entity"),
        (BOTH, "bad", 1.0, "Invalid configuration key bad"),
        (BOTH, PRODUCE, 10_000.5, "producer_byte_rate cannot be a fractional value."),
    ],
)
def test_an_invalid_alteration_is_refused(
    admin: QuotaAdmin, names: dict[str, str | None], key: str, value: float, message: str
) -> None:
    answer = admin.alter(names, **{key: value})

    assert answer == invalid(message)
    assert admin.describe() == {}


@pytest.mark.parametrize("other", ["user", "client-id"])
def test_an_address_cannot_be_combined_with_another_entity(admin: QuotaAdmin, other: str) -> None:
    answer = admin.alter({other: "x", "ip": ADDRESS}, connection_creation_rate=1)

    assert answer == invalid(
        "Invalid quota entity combination, IP entity shouldnot be combined with User or ClientId"
    )


@pytest.mark.parametrize("host", ["not a valid host because it has spaces", "RFC2606.invalid"])
def test_a_host_name_must_resolve(admin: QuotaAdmin, host: str) -> None:
    answer = admin.alter(entity(ip=host), connection_creation_rate=1)

    assert answer == invalid(f"{host} is not a valid IP or resolvable host.")


@pytest.mark.parametrize("other", ["user", "client-id"])
def test_a_filter_cannot_combine_addresses_with_other_entities(admin: QuotaAdmin, other: str) -> None:
    response = admin.answer(component("ip", None), component(other, "x"))

    assert (response.error_code, response.error_message) == invalid(
        "Invalid entity filter component combination. IP filter component should not be used with user or "
        "clientId filter component."
    )
    assert response.entries is None


def test_a_filter_with_an_unknown_entity_type_is_refused(admin: QuotaAdmin) -> None:
    response = admin.answer(component("other", "x"))

    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert response.error_message == "Unsupported entity type other"
    assert response.entries is None


def test_a_name_is_stored_unchanged(admin: QuotaAdmin) -> None:
    names = entity(user="user with spaces")

    admin.alter(names, **{PRODUCE: 10_000})

    assert admin.describe(user="user with spaces") == {frozenset(names.items()): {PRODUCE: 10_000}}


def test_a_client_may_be_named_default(admin: QuotaAdmin) -> None:
    names = entity(client_id="<default>")

    admin.alter(names, **{PRODUCE: 10_000})

    assert admin.quotas_of(names) == {PRODUCE: 10_000}
    assert admin.describe(client_id=None) == {}
    assert admin.broker.quotas.produce.limit("user", "other") != 10_000


def test_setting_the_same_value_again_changes_nothing(
    admin: QuotaAdmin, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin.alter(BOTH, **{PRODUCE: 10_000})
    changes: list[Any] = []
    monkeypatch.setattr(ClientQuotas, "write", lambda self, entity, values: changes.extend(values))

    answer = admin.alter(BOTH, **{PRODUCE: 10_000, FETCH: None})

    assert answer == OK
    assert changes == []


def test_of_two_entries_for_an_entity_the_first_counts(admin: QuotaAdmin) -> None:
    answers = admin.send(entry(BOTH, (PRODUCE, 1.0)), entry(BOTH, (PRODUCE, 2.0)))

    assert answers == {
        frozenset(BOTH.items()): invalid(
            "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=client-id, user=user})"
        )
    }
    assert admin.quotas_of(BOTH) == {PRODUCE: 1}


def test_a_host_name_stands_for_its_addresses(admin: QuotaAdmin) -> None:
    answer = admin.alter(entity(ip="localhost"), connection_creation_rate=7)

    assert answer == OK
    assert admin.broker.connection_quotas.rates.rate_of("127.0.0.1") == 7
    assert admin.quotas_of(entity(ip="localhost")) == {"connection_creation_rate": 7}


USERS = {
    ("user-1", "client-id-1"): 50.50,
    ("user-2", "client-id-1"): 51.51,
    ("user-3", "client-id-2"): 52.52,
    (None, "client-id-1"): 53.53,
    ("user-1", None): 54.54,
    ("user-3", None): 55.55,
    ("user-1", ""): 56.56,
    ("user-2", ""): 57.57,
    ("user-3", ""): 58.58,
    (None, ""): 59.59,
    ("", "client-id-2"): 60.60,
}
"""Percentage by user and client id; "" is an absent part."""


@pytest.fixture(scope="module")
def filled() -> QuotaAdmin:
    admin = QuotaAdmin()
    for (user, client_id), percentage in USERS.items():
        assert admin.alter(entity(user, client_id), request_percentage=percentage) == OK
    for ip, rate in ((ADDRESS, 10), ("2.3.4.5", 20)):
        assert admin.alter(entity(ip=ip), connection_creation_rate=rate) == OK
    return admin


@pytest.mark.parametrize("names", USERS)
def test_an_exact_filter_finds_its_entity(filled: QuotaAdmin, names: tuple[str | None, str | None]) -> None:
    assert filled.quotas_of(entity(*names)) == {REQUEST: USERS[names]}


@pytest.mark.parametrize(
    "names",
    [
        ("user-1", "client-id-2"),
        ("user-3", "client-id-1"),
        ("user-2", None),
        ("user-4", ""),
        (None, "client-id-2"),
        ("", "client-id-1"),
        ("", "client-id-3"),
    ],
)
def test_an_exact_filter_finds_no_other_entity(
    filled: QuotaAdmin, names: tuple[str | None, str | None]
) -> None:
    assert filled.quotas_of(entity(*names)) == {}


@pytest.mark.parametrize(
    ("matches", "strict", "count"),
    [
        pytest.param({"user": "user-1"}, False, 3, id="user"),
        pytest.param({"user": "unknown"}, False, 0, id="unknown-user"),
        pytest.param({"client_id": "client-id-2"}, False, 2, id="client"),
        pytest.param({"user": None}, False, 2, id="default-user"),
        pytest.param({"user": "user-2"}, True, 1, id="user-strict"),
        pytest.param({"client_id": "client-id-1"}, True, 0, id="client-strict"),
        pytest.param({"user": ANY}, True, 4, id="any-user-strict"),
        pytest.param({"user": ANY}, False, 10, id="any-user"),
        pytest.param({"client_id": ANY}, True, 1, id="any-client-strict"),
        pytest.param({"client_id": ANY}, False, 7, id="any-client"),
        pytest.param({"ip": ANY}, False, 2, id="any-address"),
        pytest.param({}, False, 13, id="everything"),
        pytest.param({}, True, 0, id="nothing"),
    ],
)
def test_a_filter_finds_all_matching_entities(
    filled: QuotaAdmin, matches: dict[str, str | int | None], strict: bool, count: int
) -> None:
    assert len(filled.describe(strict=strict, **matches)) == count


@pytest.mark.parametrize(
    ("components", "message"),
    [
        ([ComponentData(entity_type="")], "Invalid empty entity type."),
        (
            [component("user", "a"), component("user", ANY)],
            "Entity type user cannot appear more than once in the filter.",
        ),
        (
            [ComponentData(entity_type="user", match_type=EXACT, match=None)],
            "Request specified MATCH_TYPE_EXACT, but set match string to null.",
        ),
        (
            [ComponentData(entity_type="user", match_type=DEFAULT, match="a")],
            "Request specified MATCH_TYPE_DEFAULT, but also specified a match string.",
        ),
        (
            [ComponentData(entity_type="user", match_type=ANY, match="")],
            "Request specified MATCH_TYPE_SPECIFIED, but also specified a match string.",
        ),
        ([ComponentData(entity_type="user", match_type=3, match="a")], "Unknown match type 3"),
    ],
)
def test_a_malformed_filter_is_refused(
    admin: QuotaAdmin, components: list[ComponentData], message: str
) -> None:
    response = admin.answer(*components)

    assert (response.error_code, response.error_message) == invalid(message)
    assert response.entries is None
