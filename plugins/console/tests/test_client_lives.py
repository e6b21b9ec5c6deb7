"""Whole lives of clients in the console: asked every ten seconds, until long after their end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.findings.node_names import node_name
from odradek_console.causes import Causes, told
from odradek_console.engine.client_entry import State
from odradek_console.pictures import client_row
from support.client_lives import HEALTHY, SICK, Actor, ClientLife
from support.watched_clients import WatchedClients, level, ms, total

EVERY_S = 10
LIVES = [life.of_interval(interval_s) for life in HEALTHY for interval_s in (10, 60)]
TOLD = [life.of_interval(interval_s) for life in SICK for interval_s in (10, 60)]


def instance_of(actor: Actor) -> bytes:
    return actor.name.encode().ljust(16, b"-")


def metrics(actor: Actor, at: float, before: float) -> Iterator[Metric]:
    """A push: totals as deltas since the push before."""
    for (name, labels), value in actor.values.items():
        if name.endswith(".total"):
            known = value(before) if before else 0.0
            yield total(name, value(at) - known, at, before or actor.start, **dict(labels))
        else:
            yield level(name, value(at), at, **dict(labels))


def pushes(life: ClientLife) -> list[tuple[float, float, Actor]]:
    """All pushes by time, each with the time of the one before."""
    found = []
    for actor in life.actors:
        before = 0.0
        for at in actor.pushes(life.interval_s, life.until_s, life.away):
            found.append((at, before, actor))
            before = at
    return sorted(found, key=lambda each: each[0])


def lived(life: ClientLife) -> Iterator[tuple[float, set[tuple[str, str]]]]:
    """The scenario: by second what a person is told, and of whom."""
    clients, waiting, known_causes = WatchedClients(), pushes(life), Causes()
    for at in range(EVERY_S, int(life.until_s) + 100, EVERY_S):
        while waiting and waiting[0][0] <= at:
            when, before, actor = waiting.pop(0)
            clients.push(
                when,
                *metrics(actor, when, before),
                instance=instance_of(actor),
                client_id=actor.name,
                group_id=actor.group or None,
                interval_s=life.interval_s,
                terminating=when == actor.end and not actor.is_killed,
                principal=f"User:{actor.name}",
                client_address=f"host-of-{actor.name}",
            )
        known = clients.fleet.clients.values()
        rows = [client_row(clients.fleet, each, ms(at)) for each in known]
        causes = known_causes.at(rows, ms(at))
        yield (
            at,
            {(each.value, each.id) for each in causes}
            | {
                (row.client_id, each)
                for row in told(rows, causes)
                for each in row.findings
                if at <= life.until_s or row.state is State.GONE
            },
        )


@pytest.mark.parametrize("life", LIVES, ids=lambda life: life.name)
def test_a_healthy_life_has_no_findings(life: ClientLife) -> None:
    assert {(at, *each) for at, found in lived(life) for each in found} == set()


@pytest.mark.parametrize("life", TOLD, ids=lambda life: life.name)
def test_a_sick_life_has_one_finding(life: ClientLife) -> None:
    sick = life.told
    assert sick is not None

    by_time = {at: found for at, found in lived(life) if at <= life.until_s}

    assert set.union(*by_time.values()) == {(node_name(sick.many_of or sick.of), sick.id)}
    seen = [at for at, each in by_time.items() if each]
    assert sick.begins_s <= seen[0] <= sick.by_s
    assert all(by_time[at] for at in by_time if seen[0] <= at <= (sick.over_s or life.until_s) - 450)
    assert not any(by_time[at] for at in by_time if sick.over_s and at >= sick.over_s)
