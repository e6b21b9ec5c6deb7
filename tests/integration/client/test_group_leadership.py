"""One of several processes leads: at most one at any time, and another one soon after it has died."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from odradek.client.admin import AdminClient
from odradek.client.group_leadership import LAPSE_S, REFUSED_S, SESSION_MS, GroupLeadership
from odradek.testing import RunningHost, VirtualClock

GROUP = "odradek.lag.x"


@pytest.fixture
def host(odradek_hosts: Callable[..., RunningHost]) -> RunningHost:
    return odradek_hosts(
        clock=VirtualClock(), telemetry_lag="none", **{"group.initial.rebalance.delay.ms": 0}
    )


class Processes:
    """Processes that want to lead, which act when the test says so."""

    def __init__(self, host: RunningHost, pool: ThreadPoolExecutor, number: int) -> None:
        self.host = host
        self.pool = pool
        self.all = [self.one() for _ in range(number)]

    def one(self, *, alone: bool = False) -> GroupLeadership:
        return GroupLeadership(
            lambda: AdminClient(self.host.bootstrap, timeout_s=10),
            lambda _cluster_id: GROUP,
            "odradek-lag",
            alone=alone,
            now_s=lambda: self.host.clock.monotonic_ms() / 1_000,
        )

    def act(self, *those: GroupLeadership) -> None:
        """Let each of them act until none has to act again at once; a join waits for the others."""
        for done in [self.pool.submit(self.settle, each) for each in those]:
            done.result(30)

    @staticmethod
    def settle(process: GroupLeadership) -> None:
        while not process.step():
            pass

    def join(self, newcomer: GroupLeadership, member: GroupLeadership) -> None:
        """Let a process join, for which the member has to join again."""
        joining = self.pool.submit(self.settle, newcomer)
        while not joining.done():
            self.act(member)
        self.act(member)

    def leaders(self) -> list[int]:
        return [place for place, each in enumerate(self.all) if each.leads]


@pytest.fixture
def two(host: RunningHost) -> Iterator[Processes]:
    with ThreadPoolExecutor(4) as pool, ExitStack() as closing:
        made = Processes(host, pool, 2)
        for each in made.all:
            closing.callback(each.disconnect)
        yield made


def test_the_first_one_leads_and_keeps_leading(two: Processes) -> None:
    first, second = two.all
    two.act(first)
    assert two.leaders() == [0]

    two.join(second, first)

    assert two.leaders() == [0]


def test_one_that_dies_lapses_before_another_one_leads(two: Processes) -> None:
    first, second = two.all
    two.act(first)
    two.join(second, first)

    two.host.clock.advance(int(LAPSE_S * 1_000) + 1)
    two.act(second)
    assert two.leaders() == []

    two.host.clock.advance(SESSION_MS - int(LAPSE_S * 1_000))
    two.act(second)
    assert two.leaders() == [1]


def test_one_that_comes_back_too_late_does_not_lead(two: Processes) -> None:
    first, second = two.all
    two.act(first)
    two.join(second, first)
    two.host.clock.advance(SESSION_MS - 1_000)
    two.act(second)
    two.host.clock.advance(2_000)
    two.act(second)
    two.join(first, second)

    assert two.leaders() == [1]


def test_one_that_leaves_is_followed_at_once(two: Processes) -> None:
    first, second = two.all
    two.act(first)
    two.join(second, first)

    first.stopping.set()
    first.run()
    two.act(second)

    assert two.leaders() == [1]


@pytest.mark.parametrize("alone", [False, True])
def test_without_the_right_it_leads_only_if_it_is_alone(
    host: RunningHost, two: Processes, alone: bool, caplog: pytest.LogCaptureFixture
) -> None:
    host.fault("JoinGroup", error="GROUP_AUTHORIZATION_FAILED", times=2)
    made = two.one(alone=alone)

    assert made.step() == REFUSED_S
    assert made.leads is alone
    assert made.step() == REFUSED_S
    assert len(caplog.records) == 1
    made.disconnect()


def test_a_cluster_that_does_not_answer_is_asked_again(host: RunningHost, two: Processes) -> None:
    first = two.all[0]
    host.stop()
    assert first.step() > 0
    assert two.leaders() == []

    host.restart()
    two.act(first)
    assert two.leaders() == [0]
