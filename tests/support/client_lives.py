"""Lives of clients, from the start to the end, as series by time: healthy ones, and sick ones.

One table for everything that judges clients. A healthy life makes no finding and no alert at any second; a
sick one exactly the ones that are named here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import cycle
from typing import Final

JITTER: Final = (1.0, 1.3, 0.7)
"""Push intervals between two pushes."""
At = Callable[[float], float]
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, kw_only=True)
class Actor:
    """One client instance."""

    name: str
    """Its client id, and its instance id."""
    values: Mapping[tuple[str, Labels], At]
    """By metric and labels: the value, or the total of a counter, at a second of the scenario."""
    start: float = 0
    end: float | None = None
    """When it ends; it goes on without an end."""
    is_killed: bool = False
    group: str = ""

    def pushes(self, interval_s: float, until_s: float, away: Mapping[float, float]) -> Iterator[float]:
        """The seconds of its pushes. While nothing answers it waits, and pushes soon afterwards.

        Args:
            interval_s: Its push interval.
            until_s: The end of the scenario.
            away: By second: for how long nothing answers.
        """
        at = self.start + 0.8 * interval_s
        for jitter in cycle(JITTER):
            at = next((begin + long + 1 for begin, long in away.items() if begin <= at < begin + long), at)
            if at > min(until_s, self.end if self.end is not None else until_s):
                break
            yield at
            at += jitter * interval_s
        if self.end is not None and not self.is_killed:
            yield self.end


@dataclass(frozen=True, kw_only=True)
class Told:
    """What must be told of a sick client."""

    id: str
    by_s: float
    """A person sees it from this second on."""
    alert_by_s: float | None = None
    """The alert fires from this second on; None: there is none."""
    over_s: float | None = None
    """Nothing is told from this second on."""
    of: str = ""
    """The client that is sick."""
    many_of: str = ""
    """What several sick clients have in common; empty if only one is sick."""
    begins_s: float = 300
    """It is well until this second."""


@dataclass(frozen=True, kw_only=True)
class ClientLife:
    """A scenario."""

    name: str
    actors: tuple[Actor, ...]
    until_s: float = 900
    interval_s: float = 60
    away: Mapping[float, float] = field(default_factory=dict)
    told: Told | None = None

    def of_interval(self, interval_s: float) -> ClientLife:
        return replace(self, name=f"{self.name}-{interval_s:g}s", interval_s=interval_s)


def flat(value: float) -> At:
    return lambda _: value


def since(begin: float, rate: float, end: float = float("inf")) -> At:
    """A total that grows from a second on."""
    return lambda at: max(0.0, min(at, end) - begin) * rate


def between(begin: float, end: float, value: float, else_value: float = 0.0) -> At:
    return lambda at: value if begin <= at < end else else_value


def events(*times: float) -> At:
    """A total of events."""
    return lambda at: float(sum(time <= at for time in times))


def consumer(name: str, group: str = "billing", **more: object) -> Actor:
    """A Java consumer of the classic protocol, whose first JoinGroup is counted as failed."""
    start = float(more.get("start", 0))  # type: ignore[arg-type]
    place = (("partition", "0"), ("topic", "orders"))
    values: dict[tuple[str, Labels], At] = {
        ("consumer.coordinator.failed.rebalance.total", ()): events(start),
        ("consumer.coordinator.rebalance.total", ()): events(start + 3),
        ("consumer.coordinator.rebalance.latency.total", ()): lambda at: 3_000.0 * (at >= start + 3),
        ("consumer.coordinator.assigned.partitions", ()): flat(3),
        ("consumer.coordinator.commit.latency.max", ()): flat(20),
        ("consumer.connection.creation.total", ()): flat(3),
        ("consumer.node.request.latency.max", (("node_id", "node-1"),)): flat(510),
        ("consumer.node.request.latency.avg", (("node_id", "node-1"),)): flat(300),
        ("consumer.node.request.latency.max", (("node_id", "coordinator-1"),)): between(
            start, start + 60, 6_000
        ),
        ("consumer.fetch.manager.fetch.throttle.time.avg", ()): flat(0),
        ("consumer.fetch.manager.fetch.latency.avg", ()): flat(400),
        ("consumer.poll.idle.ratio.avg", ()): flat(0.9),
        ("consumer.time.between.poll.max", ()): flat(900),
        ("consumer.fetch.manager.records.lag", place): flat(0),
        ("consumer.fetch.manager.records.consumed.total", (("topic", "orders"),)): since(start, 10),
    }
    return Actor(name=name, group=group, values=values, start=start, **rest(more))  # type: ignore[arg-type]


def producer(name: str, **more: object) -> Actor:
    start = float(more.get("start", 0))  # type: ignore[arg-type]
    values: dict[tuple[str, Labels], At] = {
        ("producer.record.send.total", ()): since(start, 100),
        ("producer.record.retry.total", ()): flat(0),
        ("producer.record.error.total", ()): flat(0),
        ("producer.buffer.exhausted.total", ()): flat(0),
        ("producer.buffer.available.bytes", ()): flat(30e6),
        ("producer.buffer.total.bytes", ()): flat(33e6),
        ("producer.record.queue.time.max", ()): flat(20),
        ("producer.produce.throttle.time.avg", ()): flat(0),
        ("producer.connection.creation.total", ()): flat(3),
        ("producer.failed.authentication.total", ()): flat(0),
        ("producer.node.request.latency.max", (("node_id", "node-1"),)): flat(30),
        ("producer.node.request.latency.avg", (("node_id", "node-1"),)): flat(10),
    }
    return Actor(name=name, values=values, start=start, **rest(more))  # type: ignore[arg-type]


def rest(more: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in more.items() if name != "start"}


def but(actor: Actor, values: Mapping[str, At], **labels: str) -> Actor:
    """An actor with other values of some metrics."""
    pairs = tuple(sorted(labels.items()))
    known = dict(actor.values)
    for name, value in values.items():
        keys = [key for key in known if key[0] == name and (not pairs or key[1] == pairs)]
        known |= dict.fromkeys(keys or [(name, pairs)], value)
    return replace(actor, values=known)


def rebalancing(actor: Actor, changes: tuple[float, ...]) -> Actor:
    """A member whose group rebalances at these seconds while it lives. Some of its joins fail."""
    seen = tuple(at for at in changes if actor.start <= at and (actor.end is None or at < actor.end))
    return but(
        actor,
        {
            "consumer.coordinator.rebalance.total": events(actor.start, *seen),
            "consumer.coordinator.failed.rebalance.total": events(actor.start, *seen[::2]),
        },
    )


def group_of(*members: Actor) -> tuple[Actor, ...]:
    """A group that rebalances whenever a member comes or goes."""
    changes = tuple(sorted({at for each in members for at in (each.start, each.end) if at}))
    return tuple(rebalancing(each, changes) for each in members)


OTHERS: Final = (producer("shop-1"), consumer("search-1", "search"))
"""Healthy clients beside."""
HALF: Final = between(300, 1_800, 1.0)


def lag(name: str, value: At, read: At, **more: At) -> Actor:
    values = {
        "consumer.fetch.manager.records.lag": value,
        "consumer.fetch.manager.records.consumed.total": read,
    }
    return but(consumer(name), values | {key.replace("_", "."): each for key, each in more.items()})


HEALTHY: Final = (
    ClientLife(name="start-alone-quiet-topic", actors=(consumer("a"),)),
    ClientLife(
        name="rolling-deploy-of-3",
        actors=group_of(
            *(consumer(f"old-{number}", end=300.0 + 8 * number) for number in range(3)),
            *(consumer(f"new-{number}", start=304.0 + 8 * number) for number in range(3)),
        ),
    ),
    ClientLife(
        name="rolling-deploy-of-12-in-6-minutes",
        actors=group_of(
            *(consumer(f"old-{number:02}", end=300.0 + 30 * number) for number in range(12)),
            *(consumer(f"new-{number:02}", start=315.0 + 30 * number) for number in range(12)),
        ),
        until_s=1_200,
    ),
    ClientLife(
        name="scale-1-3-1",
        actors=group_of(
            consumer("a"), consumer("b", start=200.0, end=500.0), consumer("c", start=205.0, end=505.0)
        ),
    ),
    ClientLife(
        name="close",
        actors=(*OTHERS, producer("p", end=200.0), consumer("c", end=250.0)),
    ),
    ClientLife(name="job-of-5-seconds", actors=(*OTHERS, producer("job", start=100.0, end=105.0))),
    ClientLife(
        name="catching-up",
        actors=(lag("a", lambda at: max(0, 250_000 - 400 * at), since(0, 700)),),
    ),
    ClientLife(
        name="steady-load",
        actors=(lag("a", lambda at: 40 + 37 * (at // 10 % 3), since(0, 50_000)),),
    ),
    ClientLife(name="host-restart-of-15-seconds", actors=OTHERS, away={300.0: 15.0}),
    ClientLife(name="host-away-for-6-minutes", actors=OTHERS, away={300.0: 360.0}, until_s=1_200),
    ClientLife(
        name="broker-restart",
        actors=(
            but(
                producer("p"),
                {
                    "producer.record.retry.total": since(300, 50, 315),
                    "producer.connection.creation.total": since(300, 2, 315),
                    "producer.node.request.latency.max": between(300, 375, 15_000, 30),
                },
            ),
            rebalancing(
                but(
                    consumer("c"),
                    {
                        "consumer.connection.creation.total": since(300, 2, 315),
                        "consumer.node.request.latency.max": between(300, 375, 15_000, 510),
                    },
                ),
                (302.0, 318.0, 321.0),
            ),
        ),
    ),
    ClientLife(
        name="one-throttled-second",
        actors=(*OTHERS, but(producer("p"), {"producer.produce.throttle.time.avg": between(300, 340, 5)})),
    ),
    ClientLife(
        name="idle-producer", actors=(but(producer("p"), {"producer.record.send.total": since(0, 0.04)}),)
    ),
    ClientLife(
        name="one-login-fails",
        actors=(but(producer("p"), {"producer.failed.authentication.total": events(300)}),),
    ),
)
SICK: Final = (
    ClientLife(
        name="slow-application",
        actors=(
            *OTHERS,
            lag("a", since(300, 384, 1_800), since(0, 16), consumer_poll_idle_ratio_avg=flat(0.02)),
        ),
        told=Told(id="behind", of="a", by_s=300 + 210, alert_by_s=300 + 1_400, over_s=None),
        until_s=1_790,
    ),
    ClientLife(
        name="a-group-behind",
        actors=(
            *OTHERS,
            consumer("well"),
            *(lag(f"slow-{number}", since(300, 384, 1_800), since(0, 16)) for number in range(5)),
        ),
        told=Told(id="behind", of="slow", many_of="billing", by_s=300 + 210, alert_by_s=300 + 1_400),
        until_s=1_790,
    ),
    ClientLife(
        name="a-slow-broker",
        actors=(
            consumer("search-1", "search"),
            *(
                but(
                    producer(f"slow-{number}"),
                    {
                        "producer.node.request.latency.avg": between(300, 900, 2_000),
                        "producer.node.request.latency.max": between(300, 900, 9_000),
                    },
                    node_id="node-1",
                )
                for number in range(5)
            ),
        ),
        told=Told(
            id="slow-broker",
            of="slow",
            many_of="node-1",
            by_s=300 + 160,
            alert_by_s=300 + 300,
            over_s=900 + 160,
        ),
        until_s=1_300,
    ),
    ClientLife(
        name="stuck",
        actors=(*OTHERS, lag("a", since(300, 400), since(0, 400, 300))),
        told=Told(id="stalled", of="a", by_s=300 + 210, alert_by_s=300 + 780),
        until_s=1_200,
    ),
    ClientLife(
        name="killed",
        actors=(*OTHERS, consumer("a", end=300.0, is_killed=True)),
        told=Told(id="silent", of="a", by_s=300 + 160, alert_by_s=300 + 300),
    ),
    ClientLife(
        name="throttled-with-pauses",
        actors=(
            *OTHERS,
            but(
                producer("p"),
                {
                    "producer.produce.throttle.time.avg": lambda at: (
                        80.0 * (300 <= at < 900 and at % 240 > 40)
                    ),
                    "producer.record.queue.time.max": between(300, 900, 60_000),
                    "producer.node.request.latency.max": between(300, 900, 9_000),
                },
            ),
        ),
        told=Told(id="throttled-produce", of="p", by_s=300 + 210, alert_by_s=300 + 330, over_s=900 + 330),
        until_s=1_500,
    ),
    ClientLife(
        name="throttled-and-muted",
        actors=(
            *OTHERS,
            but(
                producer("p", end=380.0, is_killed=True),
                {"producer.produce.throttle.time.avg": between(300, 900, 900)},
            ),
        ),
        told=Told(id="throttled-produce", of="p", by_s=300 + 240, alert_by_s=300 + 330),
        until_s=900,
    ),
    ClientLife(
        name="storm",
        actors=(
            *OTHERS,
            but(
                consumer("a"),
                {
                    "consumer.coordinator.rebalance.total": since(300, 1 / 3),
                    "consumer.coordinator.failed.rebalance.total": since(300, 1 / 9),
                },
            ),
        ),
        told=Told(id="rebalance-storm", of="a", by_s=300 + 260, alert_by_s=300 + 550),
        until_s=1_000,
    ),
    ClientLife(
        name="joins-in-vain",
        actors=(
            *OTHERS,
            but(consumer("a"), {"consumer.coordinator.failed.rebalance.total": since(300, 1 / 5)}),
        ),
        told=Told(id="failed-rebalances", of="a", by_s=300 + 310, alert_by_s=300 + 430),
        until_s=1_200,
    ),
    ClientLife(
        name="records-lost",
        actors=(*OTHERS, but(producer("p"), {"producer.record.error.total": since(300, 1, 420)})),
        told=Told(id="record-errors", of="p", by_s=300 + 100, alert_by_s=300 + 170, over_s=420 + 330),
    ),
    ClientLife(
        name="lost-from-the-first-push-on",
        actors=(*OTHERS, but(producer("p", start=200.0), {"producer.record.error.total": flat(7)})),
        told=Told(id="record-errors", of="p", by_s=270, over_s=530, begins_s=200),
    ),
    ClientLife(
        name="connects-again-and-again",
        actors=(*OTHERS, but(producer("p"), {"producer.connection.creation.total": since(300, 0.5)})),
        told=Told(id="producer-reconnects", of="p", by_s=300 + 250, alert_by_s=300 + 550),
        until_s=1_000,
    ),
    ClientLife(
        name="logins-fail",
        actors=(*OTHERS, but(producer("p"), {"producer.failed.authentication.total": since(300, 0.1)})),
        told=Told(id="producer-failed-authentication", of="p", by_s=300 + 150, alert_by_s=300 + 260),
        until_s=1_000,
    ),
    ClientLife(
        name="waits-for-a-broker",
        actors=(*OTHERS, but(producer("p"), {"producer.node.request.latency.max": between(300, 900, 9_000)})),
        told=Told(id="slow-produce-requests", of="p", by_s=300 + 280, alert_by_s=300 + 290, over_s=900 + 100),
        until_s=1_300,
    ),
)
"""They are well, or sick from second 300 on."""
