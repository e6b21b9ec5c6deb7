"""Troubles of clients that their metrics show: one table for alarms, dashboards and people.

Each row is a question, the metric that answers it by client software, and the condition that makes it a
trouble. The thresholds have a source: a setting's default, KIP-714, or our own choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

JAVA: Final = "apache-kafka-java"
LIBRDKAFKA: Final = "librdkafka"
SILENCE: Final = "odradek.client.silence"
"""A metric that no client sends: the push intervals since a client's last push."""
PRODUCER: Final = "org.apache.kafka.producer."
CONSUMER: Final = "org.apache.kafka.consumer."
COORDINATOR: Final = CONSUMER + "coordinator."
FETCH: Final = CONSUMER + "fetch.manager."
OURS: Final = "our choice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One trouble of a client instance."""

    id: str
    question: str
    metrics: Mapping[str, str]
    """The full name of the metric, by client software; software without it cannot answer the question."""
    labels: tuple[str, ...] = ()
    """Labels by which the metric has several series in an instance."""
    op: Literal[">", ">=", "<", "<="] = ">"
    threshold: float
    clear: float | None = None
    """The trouble is over once a value is not beyond this one. None: the threshold."""
    unit: str
    agg: Literal["each", "sum", "min", "max", "avg"] = "each"
    """Aggregate of the series of an instance; ``each`` compares every series."""
    over_s: float = 0.0
    """Compare the increase over this many seconds; 0 compares the value."""
    per: str = ""
    """Divide by this metric, or by its increase."""
    for_s: float = 180.0
    """Seconds for which the condition must hold."""
    source: str
    """The origin of the threshold."""
    advice: str


def everywhere(metric: str) -> dict[str, str]:
    """A standard metric, which all client software calls by the same name."""
    return {JAVA: metric, LIBRDKAFKA: metric}


in_ten_minutes = partial(Trouble, agg="sum", over_s=600.0, for_s=0.0)
"""A trouble that compares the increase of a counter over ten minutes."""

TROUBLES: Final[tuple[Trouble, ...]] = (
    Trouble(
        id="slow-produce-requests",
        question="Which producer waits long for a broker?",
        metrics=everywhere(PRODUCER + "node.request.latency.max"),
        labels=("node_id",),
        threshold=5000.0,
        clear=4000.0,
        unit="ms",
        source="KIP-714, proactive monitoring: 5 000 ms for 180 s",
        advice="If many clients of the node are slow, look at the broker; otherwise at the client's network.",
    ),
    Trouble(
        id="slow-consume-requests",
        question="Which consumer waits long for a broker?",
        metrics=everywhere(CONSUMER + "node.request.latency.max"),
        labels=("node_id",),
        threshold=5000.0,
        clear=4000.0,
        unit="ms",
        source="KIP-714, proactive monitoring: 5 000 ms for 180 s",
        advice="If many clients of the node are slow, look at the broker; otherwise at the client's network.",
    ),
    Trouble(
        id="retries",
        question="Are sends retried?",
        metrics={JAVA: PRODUCER + "record.retry.total"},
        threshold=0.01,
        clear=0.005,
        unit="share of the records sent",
        agg="sum",
        over_s=300.0,
        per=PRODUCER + "record.send.total",
        for_s=600.0,
        source=f"1 %: {OURS}",
        advice="Look for leader changes, full disks and throttling on the brokers of the topic.",
    ),
    in_ten_minutes(
        id="record-errors",
        question="Are records lost to errors?",
        metrics={JAVA: PRODUCER + "record.error.total"},
        threshold=0.0,
        unit="records in 10 minutes",
        source="any: delivery.timeout.ms (120 000 ms) is over, or the error is permanent",
        advice="The application's log names the error of each record.",
    ),
    in_ten_minutes(
        id="buffer-exhausted",
        question="Is the producer's buffer exhausted?",
        metrics={JAVA: PRODUCER + "buffer.exhausted.total"},
        threshold=0.0,
        unit="records in 10 minutes",
        source="any: a send waited max.block.ms (60 000 ms) for memory",
        advice="Find out why brokers answer slowly; if they do not, raise buffer.memory or send less.",
    ),
    Trouble(
        id="buffer-nearly-full",
        question="Is the producer's buffer nearly full?",
        metrics={JAVA: PRODUCER + "buffer.available.bytes"},
        op="<",
        threshold=0.1,
        clear=0.2,
        unit="share of buffer.memory",
        agg="min",
        per=PRODUCER + "buffer.total.bytes",
        for_s=300.0,
        source=f"10 % of buffer.memory: {OURS}",
        advice="Find out why brokers answer slowly; if they do not, raise buffer.memory or send less.",
    ),
    Trouble(
        id="long-queue",
        question="Do records wait long in the producer?",
        metrics=everywhere(PRODUCER + "record.queue.time.max"),
        threshold=30_000.0,
        clear=20_000.0,
        unit="ms",
        for_s=300.0,
        source="a quarter of delivery.timeout.ms (120 000 ms)",
        advice="The producer sends more than its brokers accept: look for throttling and slow requests.",
    ),
    Trouble(
        id="throttled-produce",
        question="Is a producer throttled?",
        metrics=everywhere(PRODUCER + "produce.throttle.time.avg"),
        threshold=0.0,
        unit="ms",
        source="any, for longer than KIP-714's 180 s; a quota has 11 windows of 1 s",
        advice="Raise the quota of the client or its user, or send less.",
    ),
    Trouble(
        id="throttled-fetch",
        question="Is a consumer throttled?",
        metrics={JAVA: FETCH + "fetch.throttle.time.avg"},
        threshold=0.0,
        unit="ms",
        source="any, for longer than KIP-714's 180 s; a quota has 11 windows of 1 s",
        advice="Raise the quota of the client or its user, or read less.",
    ),
    in_ten_minutes(
        id="rebalance-storm",
        question="Does a group rebalance again and again?",
        metrics={JAVA: COORDINATOR + "rebalance.total"},
        threshold=3.0,
        unit="rebalances in 10 minutes",
        source=f"3 for each member in 10 minutes: {OURS}",
        advice="Look for members that restart, or that exceed max.poll.interval.ms or session.timeout.ms.",
    ),
    in_ten_minutes(
        id="long-rebalances",
        question="Does a group spend its time in rebalances?",
        metrics=everywhere(COORDINATOR + "rebalance.latency.total"),
        threshold=60_000.0,
        unit="ms in 10 minutes",
        source=f"10 % of the time: {OURS}",
        advice="Look for members that restart, or that exceed max.poll.interval.ms or session.timeout.ms.",
    ),
    in_ten_minutes(
        id="failed-rebalances",
        question="Do rebalances fail?",
        metrics={JAVA: COORDINATOR + "failed.rebalance.total"},
        threshold=0.0,
        unit="rebalances in 10 minutes",
        source="any",
        advice="The consumer's log names the error.",
    ),
    Trouble(
        id="slow-commits",
        question="Do commits of offsets take long?",
        metrics=everywhere(COORDINATOR + "commit.latency.max"),
        threshold=5000.0,
        clear=4000.0,
        unit="ms",
        source="KIP-714, proactive monitoring: 5 000 ms for 180 s",
        advice="Look at the broker that coordinates the group.",
    ),
    Trouble(
        id="silent",
        question="Which client is subscribed but stopped pushing without a goodbye?",
        metrics=everywhere(SILENCE),
        threshold=3.0,
        unit="push intervals",
        for_s=30.0,
        source="KIP-714: a client pushes once in 0.5 to 1.5 intervals; two pushes may be lost",
        advice="Look whether the process still runs and reaches the host.",
    ),
    in_ten_minutes(
        id="producer-reconnects",
        question="Does a producer connect again and again?",
        metrics=everywhere(PRODUCER + "connection.creation.total"),
        threshold=20.0,
        unit="connections in 10 minutes",
        source=f"20 in 10 minutes: {OURS}; a healthy client opens one to a broker each 9 minutes",
        advice="Look for refused connections, failed authentication and idle timeouts of load balancers.",
    ),
    in_ten_minutes(
        id="consumer-reconnects",
        question="Does a consumer connect again and again?",
        metrics=everywhere(CONSUMER + "connection.creation.total"),
        threshold=20.0,
        unit="connections in 10 minutes",
        source=f"20 in 10 minutes: {OURS}; a healthy client opens one to a broker each 9 minutes",
        advice="Look for refused connections, failed authentication and idle timeouts of load balancers.",
    ),
)
BY_ID: Final[Mapping[str, Trouble]] = {each.id: each for each in TROUBLES}
