"""Troubles of clients that their metrics show: one table for alarms, dashboards and people.

Each row is a question, the metric that answers it by client software, and the condition that makes it a
trouble. The thresholds have a source: a setting's default, KIP-714, or our own choice. A row asks its
question only where the answer means something in the life of a client: a consumer that joins, catches up,
is throttled or closes is healthy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final, Literal, NamedTuple

from odradek.findings import incidents
from odradek.findings.incidents import OBSERVED, incident_troubles

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
SHARE: Final = CONSUMER + "share.fetch.manager."
OURS: Final = "our choice"
NOT_A_BROKER: Final = "(node-)?[-+].*|coordinator.*"
"""Connections before the first Metadata response, and a coordinator's, where a JoinGroup waits for others."""
EXPLAINED: Final = 4
"""Rebalances that a member explains which comes or goes: cooperative assignors need two, joins may fail."""
STEPS: Final = 5
"""Steps of the window of a trouble that comes again and again."""
STEP_S: Final = 60.0
"""The length of a step, if the push interval is not longer."""
WARM_UP_S: Final = 45.0
"""Nothing but a loss is asked before a client has lived this long (session.timeout.ms), or an interval."""
LEAST_LAG_S: Final = 10.0
"""A lag that is read in less than this time moves up and down, and says nothing."""
LOSS_ENDS_S: Final = 120.0
"""A loss is over after this time without a further one."""


class Kind(StrEnum):
    """What a row of the table is for the person who sees it."""

    LOSS = "loss"
    """Records are lost: told from the first push on."""
    FINDING = "finding"
    NOTE = "note"
    """Worth knowing, but no trouble, and never an alarm."""
    SHARED = "shared"
    """No trouble of one client, but of what many have in common."""


class Condition(NamedTuple):
    """A condition on the latest value of a metric."""

    metric: str
    op: Literal[">", "<"]
    threshold: float
    over_s: float = 0.0
    """Compare the increase over this many seconds; 0 compares the value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    """One trouble of a client instance."""

    id: str
    question: str
    kind: Kind = Kind.FINDING
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
    """Seconds for which the condition must hold before an alarm."""
    found_s: float | None = None
    """Seconds after which a person sees it. None: those of the alarm."""
    keeps: bool = False
    """Whether a value that is not beyond the threshold for a minute, or two push intervals, ends nothing."""
    steps: int = 0
    """The increase must go on in this many of the `STEPS` steps of its window: it comes again and again."""
    moves: bool | None = None
    """Only for a lag, which is judged by its movement: it grows, and shrinks at no push of its window, while
    the position moves (True) or stands still (False). None: the value is compared."""
    position: str = ""
    """Of a lag: the metric of what is read."""
    skip: str = ""
    """Not the series whose first label matches this regular expression."""
    source: str
    """The origin of the threshold."""
    advice: str
    also: tuple[Condition, ...] = ()
    """Further conditions that must hold now. A client without their metrics cannot answer the question."""
    unless: tuple[Condition, ...] = ()
    """Conditions that explain it: the trouble is theirs. They hold for a minute, or two push intervals."""

    @property
    def seen_s(self) -> float:
        """Seconds after which a person sees it."""
        return self.for_s if self.found_s is None else self.found_s

    @property
    def begins_at_first(self) -> bool:
        """Whether the first value of its counter is an increase: of a loss, or seen by hosts and gateways."""
        return self.kind == Kind.LOSS or self.metrics[JAVA].startswith(OBSERVED)


def seen(*metrics: str) -> tuple[Condition, ...]:
    """What a host or a gateway tells of a client itself."""
    return tuple(Condition(each, ">", 0.0) for each in metrics)


def everywhere(metric: str) -> dict[str, str]:
    """A standard metric, which all client software calls by the same name."""
    return {JAVA: metric, LIBRDKAFKA: metric}


loss = partial(Trouble, kind=Kind.LOSS, agg="sum", over_s=LOSS_ENDS_S, for_s=60.0, found_s=0.0, threshold=0.0)
"""Records were lost: told at once, and over when no more are."""
again_and_again = partial(Trouble, agg="sum", over_s=STEPS * STEP_S, steps=3, for_s=180.0, found_s=0.0)
"""A trouble that comes in three of the last five minutes. What happens once, such as a restart, does not."""
TOLD: Final = seen(incidents.THROTTLED)
THROTTLED: Final = (
    Condition(PRODUCER + "produce.throttle.time.avg", ">", 0.0),
    Condition(FETCH + "fetch.throttle.time.avg", ">", 0.0),
    *TOLD,
)
"""A client that its quota holds back is slow, and its records wait: that is no further trouble."""


def failed_authentication(role: str, prefix: str) -> Trouble:
    """Logins that fail again and again. One failure may be a token that is renewed."""
    return Trouble(
        id=f"{role}-failed-authentication",
        question=f"Does authentication of a {role} fail?",
        metrics={JAVA: prefix + "failed.authentication.total"},
        agg="sum",
        over_s=300.0,
        for_s=60.0,
        found_s=0.0,
        op=">=",
        threshold=3.0,
        unit="connections in 5 minutes",
        source=f"3 in 5 minutes: {OURS}",
        advice="Look whether its credentials have changed or expired; the broker's log has the reason.",
    )


lag = partial(
    Trouble,
    metrics={JAVA: FETCH + "records.lag"},
    labels=("partition", "topic"),
    position=FETCH + "records.consumed.total",
    unless=(*THROTTLED, *seen(incidents.STUCK)),
    threshold=0.0,
    unit="records",
    found_s=0.0,
)
"""A trouble of a lag. It looks at the last minute, or one and a half push intervals."""

TROUBLES: Final[tuple[Trouble, ...]] = (
    Trouble(
        id="slow-produce-requests",
        unless=THROTTLED,
        skip=NOT_A_BROKER,
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
        unless=THROTTLED,
        skip=NOT_A_BROKER,
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
        unless=THROTTLED,
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
    loss(
        id="record-errors",
        question="Are records lost to errors?",
        metrics={JAVA: PRODUCER + "record.error.total"},
        unless=seen(incidents.TOPIC_REFUSALS, incidents.UNKNOWN_TOPICS),
        unit="records in 2 minutes",
        source="any: delivery.timeout.ms (120 000 ms) is over, or the error is permanent",
        advice="The application's log names the error of each record.",
    ),
    loss(
        id="buffer-exhausted",
        question="Is the producer's buffer exhausted?",
        metrics={JAVA: PRODUCER + "buffer.exhausted.total"},
        unit="records in 2 minutes",
        source="any: a send waited max.block.ms (60 000 ms) for memory",
        advice="Find out why brokers answer slowly; if they do not, raise buffer.memory or send less.",
    ),
    Trouble(
        id="buffer-nearly-full",
        unless=THROTTLED,
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
        unless=THROTTLED,
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
        unless=TOLD,
        found_s=60.0,
        keeps=True,
        question="Is a producer throttled?",
        metrics=everywhere(PRODUCER + "produce.throttle.time.avg"),
        threshold=0.0,
        unit="ms",
        source="any, for longer than KIP-714's 180 s; a quota has 11 windows of 1 s",
        advice="Raise the quota of the client or its user, or send less.",
    ),
    Trouble(
        id="throttled-fetch",
        unless=TOLD,
        found_s=60.0,
        keeps=True,
        question="Is a consumer throttled?",
        metrics={JAVA: FETCH + "fetch.throttle.time.avg"},
        threshold=0.0,
        unit="ms",
        source="any, for longer than KIP-714's 180 s; a quota has 11 windows of 1 s",
        advice="Raise the quota of the client or its user, or read less.",
    ),
    again_and_again(
        id="rebalance-storm",
        question="Does a group rebalance again and again, although its members stay?",
        metrics={JAVA: COORDINATOR + "rebalance.total"},
        threshold=0.0,
        unit="rebalances in 5 minutes",
        source=f"in 3 of the last 5 minutes, more than {EXPLAINED} for each member that came or went: {OURS}",
        advice="Look for members that restart, or that exceed max.poll.interval.ms or session.timeout.ms.",
    ),
    Trouble(
        id="long-rebalances",
        agg="sum",
        over_s=600.0,
        for_s=60.0,
        question="Does a group spend its time in rebalances?",
        metrics=everywhere(COORDINATOR + "rebalance.latency.total"),
        threshold=60_000.0,
        unit="ms in 10 minutes",
        source=f"10 % of the time: {OURS}",
        advice="Look for members that restart, or that exceed max.poll.interval.ms or session.timeout.ms.",
    ),
    Trouble(
        id="failed-rebalances",
        question="Does a member try to join its group in vain?",
        metrics={JAVA: COORDINATOR + "failed.rebalance.total"},
        agg="sum",
        over_s=300.0,
        for_s=60.0,
        op=">=",
        threshold=2.0,
        unit="failures in 5 minutes, and no rebalance that ended well",
        also=(Condition(COORDINATOR + "rebalance.total", "<", 1.0, over_s=300.0),),
        source="a join may fail once: the member has no id yet, or another one comes",
        advice="The consumer's log names the error.",
    ),
    Trouble(
        id="slow-commits",
        unless=THROTTLED,
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
        threshold=2.0,
        unit="push intervals",
        for_s=60.0,
        found_s=0.0,
        source="KIP-714: a client pushes in 0.5 to 1.5 intervals, in 2.5 after a change of its subscription",
        advice="Look whether the process still runs and reaches the host. If it does, restart it: "
        "after INVALID_RECORD a client never pushes again.",
    ),
    again_and_again(
        id="producer-reconnects",
        question="Does a producer connect again and again?",
        metrics=everywhere(PRODUCER + "connection.creation.total"),
        threshold=15.0,
        unit="connections in 5 minutes",
        source=f"3 a minute, in 3 of the last 5 minutes: {OURS}; a restart of a broker takes less",
        advice="Look for refused connections, failed authentication and idle timeouts of load balancers.",
    ),
    again_and_again(
        id="consumer-reconnects",
        unless=seen(incidents.GROUP_JOINS),
        question="Does a consumer connect again and again?",
        metrics=everywhere(CONSUMER + "connection.creation.total"),
        threshold=15.0,
        unit="connections in 5 minutes",
        source=f"3 a minute, in 3 of the last 5 minutes: {OURS}; a restart of a broker takes less",
        advice="Look for refused connections, failed authentication and idle timeouts of load balancers.",
    ),
    *incident_troubles(Trouble, loss, everywhere),
    failed_authentication("producer", PRODUCER),
    failed_authentication("consumer", CONSUMER),
    lag(
        id="behind",
        question="Does a consumer read slower than its topic is written?",
        for_s=900.0,
        moves=True,
        source="as Burrow: the lag grows and never shrinks, and is more than is read in 10 s",
        advice="Look whether its application or its fetches are slow; if not, add members: as many as there "
        "are partitions.",
    ),
    lag(
        id="stalled",
        question="Has a consumer stopped reading, although there are records?",
        for_s=300.0,
        moves=False,
        source="as Burrow: there is a lag, and the position stands still; max.poll.interval.ms (300 000 ms)",
        advice="Look whether the application hangs, whether it has paused partitions, and whether it polls.",
    ),
)
"""Troubles of which an alarm tells."""
BY_ID: Final[Mapping[str, Trouble]] = {each.id: each for each in TROUBLES}
