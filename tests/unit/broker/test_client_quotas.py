"""Client quotas beyond Kafka's own tests: restarts, host names, many changes, recorded usage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import pytest

from odradek.broker.broker_settings import BrokerSettings
from odradek.broker.client_quotas import MAX_CHANGES, Alteration, QuotaFilter
from odradek.broker.host_lookups import HostLookups
from odradek.metadata.client_quota_store import ClientQuotaRow, ClientQuotaStore
from odradek.metadata.store import MetadataStore
from odradek.quota.host_names import HostNames
from odradek.waiting.deferred import Deferred
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from support.broker import BrokerClient, make_broker
from support.quota_requests import QuotaAdmin, entity, entry

PRODUCE, FETCH, RATE = "producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"
USER, OTHER = entity(user="u"), entity(user="v")
ALL = QuotaFilter({}, frozenset(), strict=False)
Found = Callable[[Sequence[str]], None]


class SlowLookup:
    """A resolver that the test completes."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, Found]] = []

    def __call__(self, host: str, found: Found) -> None:
        self.asked.append((host, found))

    def answer(self, *addresses: str) -> None:
        self.asked[-1][1](addresses)


@pytest.fixture
def admin() -> QuotaAdmin:
    return QuotaAdmin()


def test_quotas_survive_a_restart() -> None:
    metadata = MetadataStore(":memory:")
    before = QuotaAdmin(make_broker(metadata=metadata))
    before.alter(USER, producer_byte_rate=10, consumer_byte_rate=20)
    before.alter(entity(user=None, client_id="c"), request_percentage=0.5)
    before.alter(entity(ip="1.2.3.4"), connection_creation_rate=3)
    before.alter(USER, consumer_byte_rate=None)

    after = QuotaAdmin(make_broker(metadata=metadata))

    assert after.describe() == before.describe()
    assert after.broker.quotas.produce.limit("u", "c") == 10
    assert after.broker.quotas.request.limit("x", "c") == 0.5
    assert after.broker.connection_quotas.rates.rate_of("1.2.3.4") == 3
    assert after.broker.quotas.is_enabled


def test_quotas_of_a_newer_version_are_kept_shown_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    metadata = MetadataStore(":memory:")
    store = ClientQuotaStore(metadata)
    store.put_quota(ClientQuotaRow({"group": "g"}, PRODUCE, 1.0))
    store.put_quota(ClientQuotaRow(USER, "new_rate", 2.0))

    with caplog.at_level(logging.WARNING):
        admin = QuotaAdmin(make_broker(metadata=metadata))

    assert admin.describe() == {
        frozenset({("group", "g")}): {PRODUCE: 1},
        frozenset(USER.items()): {"new_rate": 2},
    }
    assert [record.message for record in caplog.records] == [
        "ignored the quotas of an unknown entity",
        "ignored an unknown quota",
    ]
    assert admin.alter(USER, new_rate=None) == (ErrorCode.NONE, None)
    assert admin.quotas_of(USER) == {}


def test_a_change_keeps_the_recorded_usage(admin: QuotaAdmin) -> None:
    admin.alter(USER, producer_byte_rate=100)
    manager, now_ms = admin.broker.quotas.produce, admin.broker.clock.monotonic_ms()
    before_ms = manager.record_and_throttle_ms("u", "c", 2_000, now_ms)

    throttles_ms = []
    for rate in (50, 100, None, 100):
        admin.alter(USER, producer_byte_rate=rate)
        throttles_ms.append(manager.record_and_throttle_ms("u", "c", 0, now_ms))

    assert before_ms == 10_000
    assert throttles_ms == [30_000, 10_000, 0, 10_000]


def test_one_bad_key_refuses_its_entity_and_no_other(admin: QuotaAdmin) -> None:
    answers = admin.send(entry(USER, (PRODUCE, 1.0), ("bad", 1.0)), entry(OTHER, (PRODUCE, 2.0)))

    assert answers[frozenset(USER.items())][0] == ErrorCode.INVALID_REQUEST
    assert answers[frozenset(OTHER.items())] == (ErrorCode.NONE, None)
    assert admin.describe() == {frozenset(OTHER.items()): {PRODUCE: 2}}


def test_the_number_of_entities_is_bounded() -> None:
    admin = QuotaAdmin(make_broker(settings=BrokerSettings(max_client_quotas=1)))
    admin.alter(USER, producer_byte_rate=1)

    other = admin.alter(OTHER, producer_byte_rate=1)
    same = admin.alter(USER, producer_byte_rate=2)
    admin.alter(USER, producer_byte_rate=None)
    after_one_went = admin.alter(OTHER, producer_byte_rate=1)

    assert other == (
        ErrorCode.POLICY_VIOLATION,
        "client.quotas.max allows 1 quota entities: the host has 1, the request adds 1.",
    )
    assert same == after_one_went == (ErrorCode.NONE, None)


def test_a_name_that_no_client_can_have_is_refused(admin: QuotaAdmin) -> None:
    longest, long = ({"client-id": "x" * size} for size in (1_024, 1_025))

    assert admin.alter(longest, producer_byte_rate=1) == (ErrorCode.NONE, None)
    assert admin.alter(long, producer_byte_rate=1) == (
        ErrorCode.POLICY_VIOLATION,
        "name.max.length allows 1024 characters: the client-id has 1025.",
    )


def test_a_key_can_occur_once_per_entity(admin: QuotaAdmin) -> None:
    answers = admin.send(entry(USER, (PRODUCE, 1.0), (PRODUCE, 2.0)))

    assert answers == {
        frozenset(USER.items()): (
            ErrorCode.INVALID_REQUEST,
            "Ignoring duplicate entity ClientQuotaEntity(entries={user=u})",
        )
    }
    assert admin.describe() == {}


def test_of_a_repeated_entity_type_the_last_name_counts(admin: QuotaAdmin) -> None:
    twice = entry(USER, (PRODUCE, 1.0))
    twice.entity += entry(OTHER).entity

    answers = admin.send(twice)

    assert answers == {frozenset(OTHER.items()): (ErrorCode.NONE, None)}


def test_an_entity_is_printed_as_in_java(admin: QuotaAdmin) -> None:
    default = entity(user=None, client_id="c")

    answers = admin.send(entry(default, (PRODUCE, 1.0)), entry(default))

    assert answers[frozenset(default.items())][1] == (
        "Ignoring duplicate entity ClientQuotaEntity(entries={client-id=c, user=null})"
    )


def test_an_empty_request_has_an_empty_answer(admin: QuotaAdmin) -> None:
    assert admin.send() == {}


def test_too_many_changes_are_refused_as_a_whole(admin: QuotaAdmin) -> None:
    alterations = [
        Alteration(entity(user=str(number)), [(PRODUCE, 1.0)]) for number in range(MAX_CHANGES + 1)
    ]

    with pytest.raises(ApiError) as refusal:
        admin.broker.client_quotas.alter(alterations)

    assert refusal.value.code is ErrorCode.POLICY_VIOLATION
    assert admin.describe() == {}


def test_other_requests_continue_during_a_host_lookup(admin: QuotaAdmin) -> None:
    slow = SlowLookup()
    admin.broker.connection_quotas.hosts.lookup = slow
    request = AlterClientQuotasRequest(entries=[entry(entity(ip="host.example"), (RATE, 5.0))])

    not_yet = BrokerClient(admin.broker).send(request)
    meanwhile = admin.alter(USER, producer_byte_rate=1)
    slow.answer("10.0.0.1", "10.0.0.2")

    assert (not_yet, meanwhile) == (None, (ErrorCode.NONE, None))
    assert [host for host, _ in slow.asked] == ["host.example"]
    assert admin.quotas_of(entity(ip="host.example")) == {RATE: 5}
    rates = admin.broker.connection_quotas.rates
    assert [rates.rate_of(f"10.0.0.{last}") for last in (1, 2)] == [5, 5]


def test_a_host_without_addresses_is_looked_up_again(admin: QuotaAdmin) -> None:
    names, hosts = entity(ip="later.example"), admin.broker.connection_quotas.hosts
    first = admin.alter(names, connection_creation_rate=5)
    hosts.lookup = lambda host, found: found(["10.0.0.1"])

    second = admin.alter(names, connection_creation_rate=5)

    assert (first[0], second[0]) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)


def test_hosts_of_invalid_entities_are_not_looked_up(admin: QuotaAdmin) -> None:
    slow = SlowLookup()
    admin.broker.connection_quotas.hosts.lookup = slow

    for names in (entity(user="u", ip="a.example"), entity(ip="1.2.3.4"), entity(ip=None), {"ip": ""}):
        admin.alter(names, connection_creation_rate=5)

    assert slow.asked == []


def test_many_hosts_are_looked_up_one_after_the_other() -> None:
    slow, deferred = SlowLookup(), Deferred[object]()
    hosts = HostNames(slow)
    HostLookups(hosts, ["a", "b", "c"], lambda: deferred.complete("done")).run()

    asked = []
    while not deferred.done:
        asked.append(len(slow.asked))
        slow.answer(*(["10.0.0.1"] if slow.asked[-1][0] == "b" else []))

    assert asked == [1, 2, 3]
    assert hosts.known == {"b": ("10.0.0.1",)}


def test_a_thousand_hosts_resolved_at_once_do_not_recurse() -> None:
    done: list[bool] = []
    hosts = HostNames(lambda host, found: found(["10.0.0.1"]))

    HostLookups(hosts, [f"h{number}" for number in range(5_000)], lambda: done.append(True)).run()

    assert done == [True]
    assert len(hosts.known) == 5_000


def test_no_host_is_looked_up_for_a_disconnected_client() -> None:
    slow, done = SlowLookup(), []
    lookups = HostLookups(HostNames(slow), ["a", "b"], lambda: done.append(True))
    lookups.run()

    lookups.stop()
    slow.answer("10.0.0.1")

    assert [host for host, _ in slow.asked] == ["b"]
    assert done == []


def test_a_failing_disk_changes_nothing(admin: QuotaAdmin, monkeypatch: pytest.MonkeyPatch) -> None:
    quotas = admin.broker.client_quotas
    admin.alter(USER, producer_byte_rate=1)

    def fail(row: ClientQuotaRow) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(quotas.store, "put_quota", fail)
    code, _ = admin.alter(USER, producer_byte_rate=2)

    assert code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert list(quotas.find(ALL)) == [(USER, {PRODUCE: 1})]
    assert admin.broker.quotas.produce.limit("u", "c") == 1
