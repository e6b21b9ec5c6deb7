"""Troubles of clients that their metrics show: one table for alarms, dashboards and people.

Each row is a question, the metric that answers it by client software, and the condition that makes it a
trouble. The thresholds have a source: a setting's default, KIP-714, or our own choice.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal, NamedTuple

from odradek.findings.incidents import incident_troubles

JAVA: Final = "apache-kafka-java"
LIBRDKAFKA: Final = "librdkafka"
SILENCE: Final = "odradek.client.silence"
"""A metric that no client sends: the push intervals since a client's last push."""
CLOCK_SKEW: Final = "odradek.client.clock.skew"
"""Made: seconds between the clock of a client and that of its host."""
OVERSIZE: Final = "odradek.client.oversize"
"""Made: the latest pushes of a client that were refused for their size, one after another."""
DEFECTS: Final = "odradek.library.defects"
"""Made: known defects of a client's library."""
UNSUPPORTED: Final = "odradek.library.unsupported"
"""Made: days since the support of a client's library has ended."""
UNEVEN: Final = "odradek.group.partitions.share"
"""Made: the partitions of a member, divided by the mean of its group."""
PRODUCER: Final = "org.apache.kafka.producer."
CONSUMER: Final = "org.apache.kafka.consumer."
COORDINATOR: Final = CONSUMER + "coordinator."
FETCH: Final = CONSUMER + "fetch.manager."
OURS: Final = "our choice"


class Condition(NamedTuple):
    """A condition on the latest value of a metric."""

    metric: str
    op: Literal[">", "<"]
    threshold: float


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
    also: tuple[Condition, ...] = ()
    """Further conditions that must hold now. A client without their metrics cannot answer the question."""


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
        threshold=1.0,
        unit="of the rebalances in 10 minutes",
        source="more than the first JoinGroup, which clients count: it is answered MEMBER_ID_REQUIRED",
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
        advice="Look whether the process still runs and reaches the host. If it does, restart it: "
        "after INVALID_RECORD a client never pushes again.",
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
    *incident_troubles(Trouble, everywhere),
)
"""Troubles of which an alarm tells."""
BY_ID: Final[Mapping[str, Trouble]] = {each.id: each for each in TROUBLES}

HINTS: Final[tuple[Trouble, ...]] = (
    Trouble(
        id="one-record-batches",
        question="Does a producer send each record alone?",
        metrics={JAVA: PRODUCER + "records.per.request.avg"},
        op="<",
        threshold=1.5,
        unit="records in a request",
        also=(Condition(PRODUCER + "record.send.rate", ">", 10.0),),
        source=f"1.5 records, at more than 10 records/s: {OURS}",
        advice="Do not flush after each record, and raise linger.ms (5 ms since Kafka 4.0, 0 before).",
    ),
    Trouble(
        id="small-batches",
        question="Are batches small because nothing waits for them?",
        metrics={JAVA: PRODUCER + "batch.size.avg"},
        op="<",
        threshold=1024.0,
        unit="By",
        also=(
            Condition(PRODUCER + "request.rate", ">", 50.0),
            Condition(PRODUCER + "record.queue.time.avg", "<", 1.0),
        ),
        source=f"1 KiB of batch.size (16 KiB), at more than 50 requests/s: {OURS}",
        advice="Set linger.ms to 5 or more: batches fill, and brokers get fewer requests.",
    ),
    Trouble(
        id="slow-poll",
        question="Does the application call poll() too seldom?",
        metrics={JAVA: CONSUMER + "time.between.poll.max"},
        threshold=240_000.0,
        unit="ms",
        for_s=0.0,
        source="80 % of max.poll.interval.ms (300 000 ms)",
        advice="Lower max.poll.records, shorten the work between two polls, or move it to other threads.",
    ),
    Trouble(
        id="busy-application",
        question="Does a consumer wait for its application instead of for records?",
        metrics=everywhere(CONSUMER + "poll.idle.ratio.avg"),
        op="<",
        threshold=0.1,
        clear=0.2,
        unit="share of the time in poll()",
        for_s=10.0,
        source=f"10 %: {OURS}",
        advice="The application is slower than its records: look at what it does with each, or add members.",
    ),
    Trouble(
        id="lag-without-fetches",
        question="Does the lag grow while nothing is fetched?",
        metrics={JAVA: FETCH + "records.lag.max"},
        threshold=1000.0,
        unit="records in 5 minutes",
        agg="max",
        over_s=300.0,
        for_s=0.0,
        also=(Condition(FETCH + "fetch.rate", "<", 0.1),),
        source=f"1 000 records at less than one fetch in 10 s: {OURS}",
        advice="Look whether partitions are paused, or whether the application still calls poll().",
    ),
    Trouble(
        id="uneven-partitions",
        question="Does a member have many more partitions than the others of its group?",
        metrics=everywhere(UNEVEN),
        threshold=2.0,
        unit="times the mean of the group",
        for_s=0.0,
        source=f"twice the mean: {OURS}",
        advice="Look at the assignor and at the topics that each member subscribes to.",
    ),
    Trouble(
        id="clock-skew",
        question="Is the clock of a client wrong?",
        metrics=everywhere(CLOCK_SKEW),
        threshold=30.0,
        unit="s",
        for_s=0.0,
        source=f"30 s: {OURS}; a client makes its push just before it sends it",
        advice="Synchronize the clock of the client's machine, or that of the host.",
    ),
    Trouble(
        id="payload-too-large",
        question="Are all pushes of a client too large?",
        metrics=everywhere(OVERSIZE),
        op=">=",
        threshold=3.0,
        unit="pushes in a row",
        for_s=0.0,
        source="3 pushes: Java clients do not make a push smaller after TELEMETRY_TOO_LARGE (KAFKA-21077)",
        advice="Raise telemetry.max.bytes, or subscribe this client to fewer metrics.",
    ),
    Trouble(
        id="known-defect",
        question="Does the client's library have a known defect?",
        metrics=everywhere(DEFECTS),
        threshold=0.0,
        unit="defects",
        for_s=0.0,
        source="release notes of the library",
        advice="Upgrade the library.",
    ),
    Trouble(
        id="past-support",
        question="Is the client's library past its support?",
        metrics=everywhere(UNSUPPORTED),
        threshold=0.0,
        unit="days",
        for_s=0.0,
        source="the support policy of the library",
        advice="Upgrade the library.",
    ),
)
"""Troubles without an alarm: a person who looks at a client sees them."""
FINDINGS: Final = (*TROUBLES, *HINTS)
