"""Findings of what a host or a gateway sees, about clients of any library."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.findings.incidents import (
    FAILED_LOGINS,
    GROUP_ERRORS,
    GROUP_JOINS,
    LOST,
    STUCK,
    THROTTLED,
    TOPIC_ERRORS,
    TOPIC_REFUSALS,
    UNKNOWN_TOPICS,
)
from support.watched_clients import WatchedClients, total

AIOKAFKA = {"client_software_name": "aiokafka", "client_software_version": "0.12.0"}
EVERY_S = 10
"""Incidents are written so often at the most."""
END_S = 240


class Case(NamedTuple):
    """An incident that comes again and again, and how often a client has a finding."""

    metric: str
    labels: dict[str, str]
    often: float
    """An increase in ten seconds that makes it a finding."""
    seldom: float
    """One that does not."""


CASES = {
    "failed-logins": Case(
        FAILED_LOGINS, {"mechanism": "PLAIN", "user": "alice", "address": "10.1.2.3"}, often=1, seldom=0.3
    ),
    "stuck": Case(STUCK, {"group": "billing", "reason": ""}, often=5_000, seldom=0),
    "comes-and-goes": Case(GROUP_JOINS, {"group": "billing"}, often=3, seldom=0.1),
    "group-errors": Case(
        GROUP_ERRORS,
        {"api": "JoinGroup", "error": "INCONSISTENT_GROUP_PROTOCOL", "group": "billing"},
        often=1,
        seldom=0.1,
    ),
    "lost": Case(LOST, {"why": "group"}, often=1, seldom=0),
    "throttled": Case(
        THROTTLED,
        {"api": "Produce", "quota": "producer_byte_rate", "entity": "user alice", "limit": "1000"},
        often=5_000,
        seldom=500,
    ),
    "topic-refusals": Case(
        TOPIC_REFUSALS, {"api": "Produce", "error": "MESSAGE_TOO_LARGE", "topic": "orders"}, 1, seldom=0
    ),
    "unknown-topic": Case(UNKNOWN_TOPICS, {"api": "Metadata", "topic": "lost"}, often=5, seldom=0.5),
    "topic-errors": Case(
        TOPIC_ERRORS, {"api": "Produce", "error": "NOT_ENOUGH_REPLICAS", "topic": "orders"}, 5, seldom=0.5
    ),
}


def incident(case: Case, value: float, at: float) -> Metric:
    metric = total("", value, at, at - EVERY_S, **case.labels)
    metric.name = case.metric
    return metric


def watched(case: Case, value: float) -> WatchedClients:
    """A client with incidents for four minutes."""
    clients = WatchedClients()
    for at in range(EVERY_S, END_S + 1, EVERY_S):
        clients.push(at, incident(case, value, at), interval_s=30, **AIOKAFKA)
    return clients


@pytest.mark.parametrize("trouble", CASES)
def test_a_client_to_which_it_happens_often_has_the_finding(trouble: str) -> None:
    case = CASES[trouble]

    found = watched(case, case.often).findings(END_S)

    assert set(found) == {trouble}
    assert dict(found[trouble].labels) == case.labels


@pytest.mark.parametrize("trouble", CASES)
def test_a_client_to_which_it_happens_seldom_has_none(trouble: str) -> None:
    case = CASES[trouble]

    assert watched(case, case.seldom).findings(END_S) == {}
