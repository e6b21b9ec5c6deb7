from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from odradek.quota import host_names
from odradek.quota.host_names import HostNames


class Resolver:
    """A resolver that the test completes, one name at a time."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.found: Callable[[Sequence[str]], None]

    def __call__(self, host: str, found: Callable[[Sequence[str]], None]) -> None:
        self.asked.append(host)
        self.found = found


def test_names_are_looked_up_one_after_the_other_and_each_once() -> None:
    resolver, told = Resolver(), list[str]()
    hosts = HostNames(resolver)
    tell = told.append

    for _ in range(3):
        for name in ("a", "b", "c"):
            hosts.addresses(name, tell)
    at_first = list(resolver.asked)
    for _ in range(3):
        resolver.found(["10.0.0.1"])

    assert at_first == ["a"]
    assert resolver.asked == ["a", "b", "c"]
    assert told == ["a", "b", "c"]


def test_a_name_without_addresses_delays_no_other_and_is_looked_up_again_when_used() -> None:
    resolver, told = Resolver(), list[str]()
    hosts = HostNames(resolver)
    tell = told.append

    hosts.want("a", tell)
    hosts.want("b", tell)
    resolver.found([])
    resolver.found(["not an address"])
    hosts.want("a", tell)

    assert told == ["a", "b"]
    assert resolver.asked == ["a", "b", "a"]
    assert hosts.known == {}


def test_cancelled_lookups_are_not_answered_and_unused_names_are_skipped() -> None:
    resolver, told = Resolver(), list[str]()
    hosts = HostNames(resolver)
    tell = told.append
    for name in ("a", "b", "c"):
        hosts.want(name, tell)

    hosts.forget("a", tell)
    hosts.forget("b", tell)
    resolver.found(["10.0.0.1"])

    assert resolver.asked == ["a", "c"]
    assert told == []


def test_the_number_of_remembered_and_queued_names_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_names, "MAX_KNOWN", 2)
    monkeypatch.setattr(host_names, "MAX_WANTED", 3)
    resolver, told = Resolver(), list[str]()
    hosts = HostNames(resolver)
    tell = told.append

    for name in ("a", "b", "c", "d"):
        hosts.want(name, tell)
    at_once = list(told)
    for _ in range(3):
        resolver.found(["10.0.0.1"])

    assert at_once == ["d"]
    assert hosts.known.keys() == {"b", "c"}
    assert hosts.wanted == {}


def test_a_resolver_that_answers_at_once_does_not_recurse() -> None:
    told: list[str] = []
    hosts = HostNames(lambda _, found: found(["10.0.0.1"]))

    def tell(name: str) -> None:
        told.append(name)
        if len(told) < 5_000:
            hosts.want(str(len(told)), tell)

    hosts.want("0", tell)

    assert len(hosts.known) == 5_000
