from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity, ClientQuotaType
from odradek.quota import client_quota_manager
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.guarded_callback import GuardedCallback
from odradek.quota.quota_config import UNBOUNDED, UNLIMITED, QuotaConfig
from odradek.quota.quota_entity import sanitize
from odradek.testing.clock import MockClock
from odradek.wire.limits import INT32_MAX
from support.tenant_quotas import TenantQuotas

PRODUCE = ClientQuotaType.PRODUCE
HOUR_MS = 3_600_000


def make(callback: Any = None) -> tuple[ClientQuotaManager, MockClock]:
    clock = MockClock()
    return ClientQuotaManager(PRODUCE, QuotaConfig(), clock, callback, clock.timer), clock


def rows(
    manager: ClientQuotaManager, clock: MockClock
) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    return {(row.name.name, row.name.tags): row.value for row in manager.measured(clock.monotonic_ms())}


def test_without_quotas_nothing_is_measured() -> None:
    manager, clock = make()

    throttle_ms = manager.record_and_throttle_ms("u", "c", 1e12, clock.monotonic_ms())
    manager.record_without_throttle("u", "c", 1e12, clock.monotonic_ms())

    assert (throttle_ms, manager.is_enabled, manager.metrics.sensors) == (0, False, {})
    assert manager.max_value_in_quota_window("u", "c") == UNBOUNDED


def test_unrecording_restores_the_usage_before() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="u"), 100)
    before = manager.record_and_throttle_ms("u", "c", 5000, clock.monotonic_ms())

    manager.unrecord("u", "c", 5000, clock.monotonic_ms())

    assert before == 40_000
    assert manager.record_and_throttle_ms("u", "c", 0, clock.monotonic_ms()) == 0


def test_a_client_without_an_id_shares_the_quota_of_the_empty_id() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="u"), 100)

    manager.record_without_throttle("u", None, 5000, clock.monotonic_ms())

    assert manager.record_and_throttle_ms("u", "", 0, clock.monotonic_ms()) == 40_000


def test_the_user_in_a_tag_is_url_encoded() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="a b"), 100)

    manager.record_without_throttle("a b", "c", 500, clock.monotonic_ms())

    assert rows(manager, clock)["byte-rate", (("user", "a%20b"), ("client-id", ""))] == 50
    assert manager.limit("a b", "c") == 100


@pytest.mark.parametrize(
    ("user", "written"),
    [("a*b+c~d", "a%2Ab%2Bc%7Ed"), ("CN=x,O=é", "CN%3Dx%2CO%3D%C3%A9"), ("A.z_0-9", "A.z_0-9")],
)
def test_sanitized_names_equal_javas(user: str, written: str) -> None:
    assert sanitize(user) == written


def test_an_hour_of_silence_forgets_the_usage() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user=DEFAULT), 100)
    manager.record_without_throttle("u", "c", 10, clock.monotonic_ms())
    clock.advance(HOUR_MS + 1000)

    expired = manager.expire(clock.monotonic_ms())

    assert (expired, manager.metrics.sensors) == (2, {})
    assert manager.record_and_throttle_ms("u", "c", 10, clock.monotonic_ms()) == 0
    assert list(manager.metrics.sensors) == ["Produce-u:", "ProduceThrottleTime-u:"]


def test_a_client_that_was_never_throttled_has_no_throttle_time() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="u"), 100)
    manager.record_without_throttle("u", "c", 10, clock.monotonic_ms())

    manager.throttled("u", "c", 0)

    found = rows(manager, clock)
    assert math.isnan(found["throttle-time", (("user", "u"), ("client-id", ""))])
    assert found["queue-size", ()] == 0


def test_throttles_without_a_channel_leave_the_queue() -> None:
    manager, clock = make()
    for throttle_ms in (100, 300, 200):
        manager.throttled("u", "c", throttle_ms)

    sizes = []
    for _ in range(4):
        sizes.append(manager.queue_size(clock.monotonic_ms()))
        clock.advance(100)

    assert sizes == [3, 2, 1, 0]


def test_the_end_of_a_throttle_is_called_even_if_the_channel_is_closed() -> None:
    manager, clock = make()
    events: list[str] = []
    manager.throttled(
        "u", "c", 100, on_start=lambda: events.append("start"), on_end=lambda: events.append("end")
    )

    clock.advance(100)

    assert events == ["start", "end"]
    assert manager.queue_size(clock.monotonic_ms()) == 0


def test_a_throttle_time_is_capped_at_the_largest_int32() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="u"), 1e-9)

    throttle_ms = manager.record_and_throttle_ms("u", "c", 1e18, clock.monotonic_ms())

    assert throttle_ms == INT32_MAX


def test_the_number_of_remembered_clients_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_quota_manager, "MAX_RESOLVED", 10)
    manager, clock = make()
    manager.metrics.max_sensors = 20
    manager.update_quota(ClientQuotaEntity(client_id=DEFAULT), 100)

    for number in range(200):
        manager.record_and_throttle_ms("u", f"c{number}", 1, clock.monotonic_ms())

    assert len(manager.resolved) <= 10
    assert len(manager.metrics.sensors) == 20


def test_clients_with_long_names_are_not_remembered() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(client_id=DEFAULT), 100)

    for number in range(600):
        manager.record_and_throttle_ms("u", f"{number:032000}", 1, clock.monotonic_ms())

    assert manager.resolved == {}
    assert manager.metrics.name_chars < 8_400_000


def test_a_change_of_another_level_resets_a_clients_budget() -> None:
    manager, clock = make()
    manager.update_quota(ClientQuotaEntity(user="u"), 100)
    manager.record_without_throttle("u", "c", 5000, clock.monotonic_ms())

    manager.update_quota(ClientQuotaEntity(user="u", client_id="c"), 100)

    assert manager.record_and_throttle_ms("u", "c", 0, clock.monotonic_ms()) == 0
    assert manager.record_and_throttle_ms("u", "other", 0, clock.monotonic_ms()) == 40_000


def test_a_callback_decides_which_clients_share_a_budget() -> None:
    manager, clock = make(TenantQuotas({"acme": 100}))
    manager.record_without_throttle("acme-1", "x", 3000, clock.monotonic_ms())

    throttles_ms = {
        user: manager.record_and_throttle_ms(user, "y", 1000, clock.monotonic_ms())
        for user in ("acme-2", "free-1")
    }

    assert throttles_ms == {"acme-2": 30_000, "free-1": 0}
    assert next(iter(manager.metrics.sensors)) == "Produce-acme"
    assert manager.limit("free-1", "y") == UNLIMITED
    assert manager.max_value_in_quota_window("acme-1", "x") == 1000


def test_a_callback_is_told_of_configured_quotas() -> None:
    callback = TenantQuotas({})
    manager, _ = make(callback)
    entity = ClientQuotaEntity(user="u")

    manager.update_quota(entity, 5)
    manager.update_quota(entity, None)

    assert callback.updates == [(PRODUCE, entity, 5), (PRODUCE, entity, None)]


def test_limits_changed_by_a_callback_take_effect_when_it_reports_them() -> None:
    callback = TenantQuotas({"acme": 1000})
    manager, clock = make(callback)
    manager.record_without_throttle("acme-1", "x", 5000, clock.monotonic_ms())
    callback.limits["acme"] = 100
    before_ms = manager.record_and_throttle_ms("acme-1", "x", 0, clock.monotonic_ms())

    callback.reset_required = True

    assert before_ms == 0
    assert manager.record_and_throttle_ms("acme-1", "x", 0, clock.monotonic_ms()) == 40_000


def test_a_limit_is_asked_for_once_per_budget() -> None:
    callback = TenantQuotas({"acme": 1000})
    manager, clock = make(callback)

    for number in range(10):
        manager.record_and_throttle_ms(f"acme-{number}", "x", 1, clock.monotonic_ms())

    assert callback.lookups == [(PRODUCE, "acme")]


class Broken(TenantQuotas):
    """A callback that raises or returns nonsense."""

    def __init__(self, answer: Any) -> None:
        super().__init__({})
        self.answer = answer

    def quota_metric_tags(self, quota_type: ClientQuotaType, user: str, client_id: str) -> Any:
        return self.say()

    def quota_limit(self, quota_type: ClientQuotaType, metric_tags: Any) -> Any:
        return self.say()

    def update_quota(self, quota_type: ClientQuotaType, entity: ClientQuotaEntity, value: float) -> None:
        self.say()

    def quota_reset_required(self, quota_type: ClientQuotaType) -> bool:
        return bool(self.say())

    def say(self) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize("answer", [RuntimeError("no"), {1: 2}, "text", math.nan, -1.0])
def test_a_failing_callback_limits_no_client_and_is_named(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    clock = MockClock()
    guarded = GuardedCallback("tenants", Broken(answer), clock)
    manager = ClientQuotaManager(PRODUCE, QuotaConfig(), clock, guarded)

    manager.update_quota(ClientQuotaEntity(user="u"), 1)
    throttle_ms = manager.record_and_throttle_ms("u", "c", 1e9, clock.monotonic_ms())

    assert throttle_ms == 0
    assert guarded.stats.failed >= 2
    assert [record.__dict__["plugin"] for record in caplog.records] == ["tenants"]


def place(function: Callable[..., object]) -> str:
    """The place of a definition in this file, as messages have it."""
    return f"({__file__}:{function.__code__.co_firstlineno})"


@pytest.mark.parametrize(
    ("answer", "tags", "limit"),
    [
        (None, "quota_metric_tags returned None, expected a mapping of strings", ""),
        (
            {1: 2},
            "quota_metric_tags returned {1: 2}, expected a mapping of strings",
            "quota_limit returned {1: 2}",
        ),
        (
            "1000",
            "quota_metric_tags returned '1000'",
            "quota_limit returned '1000', expected a finite number",
        ),
        (
            -1.0,
            "quota_metric_tags returned -1.0",
            "quota_limit returned -1.0, expected a finite number of at least 0",
        ),
    ],
)
def test_a_wrong_answer_is_told_with_its_method(
    answer: Any, tags: str, limit: str, caplog: pytest.LogCaptureFixture
) -> None:
    arguments: dict[str, tuple[Any, ...]] = {"quota_metric_tags": ("u", "c"), "quota_limit": ({},)}
    for name, told in (("quota_metric_tags", tags), ("quota_limit", limit)):
        caplog.clear()
        getattr(GuardedCallback("tenants", Broken(answer), MockClock()), name)(PRODUCE, *arguments[name])

        messages = [record.getMessage() for record in caplog.records]
        assert len(messages) == bool(told)
        assert all(told in each and place(getattr(Broken, name)) in each for each in messages)


class Blocking(Broken):
    """A callback that takes its time."""

    def __init__(self, clock: MockClock) -> None:
        super().__init__(1.0)
        self.clock = clock

    def say(self) -> Any:
        self.clock.advance(6)
        return self.answer


def test_a_slow_callback_is_counted_and_named(caplog: pytest.LogCaptureFixture) -> None:
    clock = MockClock()
    guarded = GuardedCallback("tenants", Blocking(clock), clock, slow_ms=5)

    limit = guarded.quota_limit(PRODUCE, {})

    assert limit == 1.0
    assert (guarded.stats.exported, guarded.stats.slow) == (1, 1)
    told = f"blocked the event loop for 6 ms in odradek_quota_callback {place(Broken.quota_limit)}; no client"
    assert told in caplog.text
