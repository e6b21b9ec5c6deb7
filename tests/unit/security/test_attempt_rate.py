from __future__ import annotations

import pytest

from odradek.security.attempt_rate import AttemptRate
from odradek.testing.clock import MockClock


@pytest.fixture
def clock() -> MockClock:
    return MockClock()


def test_attempts_beyond_the_rate_wait_one_after_the_other(clock: MockClock) -> None:
    rate = AttemptRate(4, clock)

    delays_ms = [rate.delay_ms("10.0.0.1") for _ in range(7)]

    assert delays_ms == [0, 0, 0, 0, 250, 500, 750]
    assert rate.delayed == 3


def test_another_address_does_not_wait(clock: MockClock) -> None:
    rate = AttemptRate(4, clock)
    for _ in range(100):
        rate.delay_ms("10.0.0.1")

    assert rate.delay_ms("10.0.0.2") == 0


def test_the_addresses_of_an_ipv6_network_count_as_one(clock: MockClock) -> None:
    rate = AttemptRate(4, clock)

    delays_ms = [rate.delay_ms(f"2001:db8:0:1:0:0:0:{number:x}") for number in range(5)]
    elsewhere_ms = rate.delay_ms("2001:db8:0:2:0:0:0:1")

    assert delays_ms == [0, 0, 0, 0, 250]
    assert elsewhere_ms == 0


def test_attempts_at_the_rate_never_wait(clock: MockClock) -> None:
    rate = AttemptRate(4, clock)
    delays_ms = []
    for _ in range(40):
        delays_ms.append(rate.delay_ms("10.0.0.1"))
        clock.advance(250)

    assert set(delays_ms) == {0}


def test_quiet_addresses_are_forgotten(clock: MockClock) -> None:
    rate = AttemptRate(10, clock)
    for number in range(1_000):
        rate.delay_ms(f"10.0.{number // 256}.{number % 256}")
    for _ in range(1_000):
        rate.delay_ms("busy")
    clock.advance(2_000)

    for number in range(1_200):
        rate.delay_ms("busy" if number % 2 else f"10.1.{number // 256}.{number % 256}")

    assert len(rate.busy_until_ms) <= 602
    assert rate.delay_ms("busy") > 0
