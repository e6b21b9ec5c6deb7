"""``explanation/quotas-and-throttling.md``: the managers compute its examples."""

from __future__ import annotations

from odradek.plugin.client_quota import DEFAULT, ClientQuotaEntity
from odradek.quota.client_quota_manager import ClientQuotaManager
from odradek.quota.quota_managers import QuotaConfigs, QuotaManagers
from odradek.testing.clock import MockClock
from odradek.wire.api_error import ApiError
from support.reference_page import page

PAGE = "explanation/quotas-and-throttling.md"
DEFAULT_USER = ClientQuotaEntity(user=DEFAULT)
CLIENT = ("alice", "app")
NS_PER_MS = 1_000_000


class QuotaExample:
    """Quota managers, and a clock that an example sets."""

    def __init__(self, **quota: float) -> None:
        self.clock = MockClock()
        self.begin_ms = self.clock.monotonic_ms()
        self.quotas = QuotaManagers(QuotaConfigs(), self.clock, timer=self.clock.timer)
        self.quotas.apply(DEFAULT_USER, quota)

    def at(self, at_ms: int) -> int:
        self.clock.advance(self.begin_ms + at_ms - self.clock.monotonic_ms())
        return self.clock.monotonic_ms()

    def measured(self, manager: ClientQuotaManager, name: str) -> float:
        (value,) = [row.value for row in manager.measured(self.clock.monotonic_ms()) if row.name.name == name]
        return value


def examples(head: str) -> list[list[str]]:
    """The rows of the table whose first columns have these headings."""
    table = page(PAGE).split(f"| {head} |")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_bytes_are_throttled_as_the_page_says() -> None:
    example, seen = QuotaExample(producer_byte_rate=1000), []
    written = examples("at ms | bytes")

    for at, size, _, _, why in written:
        throttle_ms = example.quotas.produce.record_and_throttle_ms(*CLIENT, int(size), example.at(int(at)))
        rate = example.measured(example.quotas.produce, "byte-rate")
        seen.append([at, size, f"{rate:.1f}", str(throttle_ms), why])

    assert len(written) == 6
    assert seen == written


def test_time_is_throttled_as_the_page_says() -> None:
    example, seen = QuotaExample(request_percentage=1), []
    written = examples("at ms | took ms")

    for at, took, _, _, why in written:
        spent_ns, now_ms = int(took) * NS_PER_MS, example.at(int(at))
        throttle_ms = example.quotas.request.record_ns_and_throttle_ms(*CLIENT, spent_ns, now_ms)
        rate = example.measured(example.quotas.request, "request-time")
        seen.append([at, took, f"{rate:.4g}", str(throttle_ms), why])

    assert len(written) == 3
    assert seen == written


def test_partitions_are_throttled_as_the_page_says() -> None:
    example, seen = QuotaExample(controller_mutation_rate=2), []
    written = examples("request")

    for number, at, partitions, *_, meaning in written:
        now_ms = example.at(int(at))
        quota = example.quotas.controller_mutation.quota_for(*CLIENT, strict="old client" not in meaning)
        refused = "accepted"
        try:
            quota.record(int(partitions))
        except ApiError as error:
            refused = f"refused with {error.code.name}"
        tokens = example.measured(example.quotas.controller_mutation, "tokens")
        assert refused in meaning
        seen.append([number, at, partitions, f"{tokens:.0f}", str(quota.throttle_ms(now_ms)), meaning])

    assert len(written) == 5
    assert seen == written
