"""Alerts about clients: the table of troubles as PromQL, and questions that need several metrics."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from contrib.grafana.promql import IDENTITY, duration, number, selector, window_s

from odradek.findings.client_metrics import client_metrics
from odradek.findings.incidents import OBSERVED
from odradek.findings.troubles import (
    BY_ID,
    CONSUMER,
    COORDINATOR,
    FETCH,
    JAVA,
    OURS,
    PRODUCER,
    TROUBLES,
    Trouble,
)

AGE: Final = "odradek_client_last_push_age_seconds"
TOLD_INTERVAL: Final = "odradek_client_push_interval_seconds"
TERMINATED: Final = "odradek_client_terminated"
GROUP: Final = "group_id"
SCRAPED: Final = ("instance", "job")
"""Labels of the scrape, not of the client."""
INCIDENTS_S: Final = 120
"""The window of incidents, which are written every ten seconds and not every push interval: two scrapes."""
BOOTSTRAP: Final = "$KAFKA_BOOTSTRAP"
"""Stands in commands for the address of the cluster and the options of a connection to it."""
MEMBERS: Final = (
    f"odradek groups --bootstrap-server {BOOTSTRAP} --describe --members --group {{{{ $labels.group_id }}}}"
)


@dataclass(frozen=True, slots=True)
class Shown:
    """The part of an alert that a dashboard draws."""

    value: str
    """The expression that is compared, for all clients."""
    unit: str
    """UCUM."""
    limit: float | None = None
    """The threshold, if the value is compared with a constant."""
    low: bool = False
    """Whether low values are the trouble."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert, with what a person on call needs."""

    id: str
    """Also the anchor in the runbook."""
    question: str
    summary: str
    """For people; ``{{ $labels.x }}`` are the labels of the series."""
    expr: str
    for_s: float
    shown: Shown
    labels: tuple[str, ...]
    """The labels of a firing alert, if the client has a group or transactions."""
    condition: str
    """The condition in words."""
    source: str
    """The origin of the threshold."""
    advice: str
    next_step: str
    """A command."""

    @property
    def name(self) -> str:
        return "KafkaClient" + "".join(word.capitalize() for word in self.id.split("-"))


def narrowed(prefix: str) -> str:
    """Ask one client instance for more metrics and more often for ten minutes, as KIP-714's reactive workflow
    does. An instance id may begin with a dash.
    """
    return (
        f"odradek watch --bootstrap-server {BOOTSTRAP} "
        f"--instance={{{{ $labels.client_instance_id }}}} --metrics {prefix}"
    )


def prefix_of(metric: str) -> str:
    """The start of the names of all metrics of a client's role."""
    return next((role for role in (PRODUCER, CONSUMER) if metric.startswith(role)), "org.apache.kafka.")


def identity(metric: str) -> tuple[str, ...]:
    """The labels of an instance that has a metric: consumers have a group, producers transactions."""
    more = {PRODUCER: ("transactional_id",), CONSUMER: (GROUP,)}.get(prefix_of(metric), (GROUP,))
    return (*IDENTITY, *more)


def of_instance(agg: str, expression: str, *dropped: str) -> str:
    """Aggregate the series of an instance, which several hosts or scrapers may report; keep its labels."""
    return f"{agg} without ({', '.join((*SCRAPED, *dropped))}) ({expression})"


def value_of(trouble: Trouble, metric: str, window: str) -> str:
    """The value that a trouble compares, with the labels of the client and those of the trouble."""
    agg = {"each": "max"}.get(trouble.agg, trouble.agg)
    found = selector(metric)
    if client_metrics()[metric].kind == "sum":
        begun = f"{found} unless last_over_time({found}[1d] offset {window})"
        found = f"increase({found}[{window}])"
        if metric.startswith(OBSERVED):
            # The first sample of such a series is its first incident, which increase() does not count.
            found = f"({begun}) or {found}"
    return of_instance(agg, found, *sorted(client_metrics()[metric].levels[0] - set(trouble.labels)))


def of_trouble(trouble: Trouble, interval_s: int) -> Alert:
    """The alert of a trouble. A longer window compares with a proportionally larger increase."""
    metric = trouble.metrics[JAVA]
    labels = (*identity(metric), *trouble.labels)
    is_incident = metric.startswith(OBSERVED)
    span_s = max(INCIDENTS_S, trouble.over_s) if is_incident else window_s(interval_s, trouble.over_s)
    threshold = trouble.threshold
    left = value_of(trouble, metric, duration(span_s))
    if trouble.per:
        left += f"\n/ {value_of(trouble, trouble.per, duration(span_s))}"
    elif trouble.over_s:
        threshold *= span_s / trouble.over_s
    return Alert(
        id=trouble.id,
        question=trouble.question,
        summary=SUMMARIES[trouble.id],
        expr=f"{left}\n{trouble.op} {number(threshold)}",
        for_s=trouble.for_s,
        shown=Shown(left, unit_of(trouble, metric), threshold, low=trouble.op.startswith("<")),
        labels=labels,
        condition=said(trouble),
        source=trouble.source,
        advice=trouble.advice,
        next_step=NEXT_STEPS.get(trouble.id) or narrowed(prefix_of(metric)),
    )


def spaced(value: float) -> str:
    """A whole number for people: ``30 000``."""
    return f"{value:,.0f}".replace(",", " ")


def unit_of(trouble: Trouble, metric: str) -> str:
    return "1" if trouble.per else client_metrics()[metric].unit


def said(trouble: Trouble) -> str:
    """The condition of a trouble in words."""
    if trouble.op == ">" and not trouble.threshold:
        return f"any {trouble.unit}" if trouble.over_s else f"more than 0 {trouble.unit}"
    side = {">": "more than", "<": "less than", ">=": "at least", "<=": "at most"}[trouble.op]
    if trouble.unit.startswith("share of "):
        return f"{side} {trouble.threshold * 100:g} % of {trouble.unit.removeprefix('share of ')}"
    return f"{side} {spaced(trouble.threshold)} {trouble.unit}"


WHO: Final = "{{ $labels.client_id }}"
SUMMARIES: Final = {
    "slow-produce-requests": f"{WHO} waits long for broker {{{{ $labels.node_id }}}}",
    "slow-consume-requests": f"{WHO} waits long for broker {{{{ $labels.node_id }}}}",
    "retries": f"{WHO} sends many records again",
    "record-errors": f"{WHO} lost records",
    "buffer-exhausted": f"{WHO} found no memory for records",
    "buffer-nearly-full": f"The buffer of {WHO} is nearly full",
    "long-queue": f"Records wait long in {WHO}",
    "throttled-produce": f"{WHO} is throttled by a quota of {{{{ $labels.principal }}}} when it produces",
    "throttled-fetch": f"{WHO} is throttled by a quota of {{{{ $labels.principal }}}} when it fetches",
    "rebalance-storm": "The group {{ $labels.group_id }} rebalances again and again",
    "long-rebalances": f"{WHO} spends its time in rebalances",
    "failed-rebalances": f"Rebalances of {WHO} fail",
    "slow-commits": f"{WHO} commits offsets slowly",
    "silent": f"{WHO} stopped pushing without a goodbye",
    "producer-reconnects": f"{WHO} connects again and again",
    "consumer-reconnects": f"{WHO} connects again and again",
    "failed-logins": f"{WHO} at {{{{ $labels.address }}}} fails to log in as {{{{ $labels.user }}}}",
    "comes-and-goes": f"{WHO} joins the group {{{{ $labels.group }}}} again and again",
    "group-errors": f"{WHO} gets {{{{ $labels.error }}}} from the group {{{{ $labels.group }}}}",
    "lost": f"{WHO} has died ({{{{ $labels.why }}}})",
    "throttled": f"{WHO} is held back by {{{{ $labels.quota }}}} of {{{{ $labels.entity }}}}",
    "topic-refusals": f"{WHO} is refused on {{{{ $labels.topic }}}}: {{{{ $labels.error }}}}",
    "unknown-topic": f"{WHO} asks for {{{{ $labels.topic }}}}, which does not exist",
    "topic-errors": f"{WHO} gets {{{{ $labels.error }}}} on {{{{ $labels.topic }}}} again and again",
}
OF_GROUP: Final = (
    f"odradek groups --bootstrap-server {BOOTSTRAP} --describe --members --group {{{{ $labels.group }}}}"
)
TOPIC: Final = f"odradek topics --bootstrap-server {BOOTSTRAP} --describe --topic {{{{ $labels.topic }}}}"
NEXT_STEPS: Final = {
    "failed-logins": f"odradek users --bootstrap-server {BOOTSTRAP} --describe",
    "comes-and-goes": OF_GROUP,
    "group-errors": OF_GROUP,
    "lost": f"odradek groups --bootstrap-server {BOOTSTRAP} --list",
    "throttled": f"odradek quotas --bootstrap-server {BOOTSTRAP} --describe",
    "topic-refusals": TOPIC,
    "unknown-topic": f"odradek topics --bootstrap-server {BOOTSTRAP} --list",
    "topic-errors": TOPIC,
}
"""Commands about troubles that are not looked at by more metrics of the client."""
LAG_RECORDS: Final = 1_000
LAG_LABELS: Final = (*IDENTITY, GROUP, "topic")


def lag_grows(interval_s: int) -> str:
    lag = selector(FETCH + "records.lag", deepest=True)
    window = duration(window_s(interval_s, 900))
    return of_instance("max", f"{lag} > {LAG_RECORDS} and deriv({lag}[{window}]) > 0", "partition")


def lag_alerts(interval_s: int) -> Iterator[Alert]:
    """Lag that grows, and its two causes in the consumer."""
    grows = lag_grows(interval_s)
    lag = of_instance("max", selector(FETCH + "records.lag", deepest=True), "partition")
    condition = f"the lag of a partition exceeds {spaced(LAG_RECORDS)} records and grows"
    yield Alert(
        id="lag-grows",
        question="Does the lag of a consumer grow?",
        summary=f"{WHO} reads {{{{ $labels.topic }}}} slower than it is written",
        expr=grows,
        for_s=900,
        shown=Shown(lag, "{record}"),
        labels=LAG_LABELS,
        condition=condition,
        source=f"the trend, not the size; {spaced(LAG_RECORDS)} records: {OURS}",
        advice="See whether polling or fetching is slow (the next two alerts); if neither is, add consumers.",
        next_step=narrowed(CONSUMER),
    )
    idle = selector(CONSUMER + "poll.idle.ratio.avg")
    between = selector(CONSUMER + "time.between.poll.max")
    yield Alert(
        id="lag-slow-polling",
        question="Does the lag grow because the application is slow?",
        summary=f"{WHO} falls behind on {{{{ $labels.topic }}}} because its application is slow",
        expr=f"{grows}\nand on (client_instance_id) ({idle} < 0.1 or {between} > 150000)",
        for_s=900,
        shown=Shown(of_instance("min", idle), "1", 0.1, low=True),
        labels=LAG_LABELS,
        condition=f"{condition}, and the consumer spends less than 10 % of the time in poll(), or more than "
        "150 s pass between two calls of poll()",
        source="half of max.poll.interval.ms (300 000 ms); "
        f"10 %: {OURS}. The share is of the time *in* poll(): a low one means a busy application",
        advice="Look at what the application does with each record, or add consumers.",
        next_step=narrowed(CONSUMER),
    )
    latency = selector(FETCH + "fetch.latency.avg")
    yield Alert(
        id="lag-slow-fetching",
        question="Does the lag grow because fetching is slow?",
        summary=f"{WHO} falls behind on {{{{ $labels.topic }}}} because its fetches are slow",
        expr=f"{grows}\nand on (client_instance_id) {latency} > 1000",
        for_s=900,
        shown=Shown(of_instance("max", latency), "ms", 1_000),
        labels=LAG_LABELS,
        condition=f"{condition}, and a fetch request takes more than 1 000 ms on average",
        source="twice fetch.max.wait.ms (500 ms)",
        advice="Look at the brokers' disks and network, at throttling, and at the client's network.",
        next_step=narrowed(CONSUMER),
    )


def broker_slow() -> Alert:
    brokers = 'node_id!~"(node-)?-.*|coordinator.*"'
    latency = selector(PRODUCER + "node.request.latency.avg", brokers)
    share = f"avg by (node_id) ({latency} > bool 1000)"
    return Alert(
        id="slow-broker",
        question="Is the broker slow, or a client?",
        summary="Broker {{ $labels.node_id }} is slow for most of its producers",
        expr=f"{share}\n> 0.5\nand count by (node_id) ({latency}) >= 3",
        for_s=300,
        shown=Shown(share, "1", 0.5),
        labels=("node_id",),
        condition="more than half of a broker's producers, of at least 3, wait more than 1 000 ms on average",
        source=f"the majority of its clients; 1 000 ms and 3 clients: {OURS}",
        advice="Look at the broker: disk, garbage collection, replication. The clients are not the cause.",
        next_step=f"odradek top --bootstrap-server {BOOTSTRAP} --sort latency --once",
    )


def failed_authentication(interval_s: int, role: str, prefix: str) -> Alert:
    failed = selector(prefix + "failed.authentication.total")
    total = of_instance("sum", f"increase({failed}[{duration(window_s(interval_s, 600))}])")
    return Alert(
        id=f"{role}-failed-authentication",
        question=f"Does authentication of a {role} fail?",
        summary=f"Connections of {WHO} fail to authenticate",
        expr=f"{total}\n> 0",
        for_s=0,
        shown=Shown(total, "{connection}", 0),
        labels=identity(prefix),
        condition="any connection in 10 minutes whose authentication failed",
        source="any",
        advice="Look whether its credentials have changed or expired; the broker's log has the reason.",
        next_step=narrowed(prefix),
    )


def uneven_partitions() -> Alert:
    assigned = selector(COORDINATOR + "assigned.partitions")
    spread = f"max by (group_id) ({assigned}) - min by (group_id) ({assigned})"
    return Alert(
        id="uneven-partitions",
        question="Are the partitions of a group uneven?",
        summary="A member of the group {{ $labels.group_id }} has nothing to read, others have a lot",
        expr=f"{spread} > 1\nand min by (group_id) ({assigned}) == 0",
        for_s=900,
        shown=Shown(spread, "{partition}", 1),
        labels=(GROUP,),
        condition="one member of a group has no partition and another has at least two",
        source="assignors differ by at most one partition of each topic",
        advice="Look for members with other subscriptions or assignors, and for members without partitions.",
        next_step=MEMBERS,
    )


def rebalance_storm(trouble: Trouble, interval_s: int) -> Alert:
    """The trouble of an instance, asked of its group: one alert instead of one for each member."""
    span_s = window_s(interval_s, trouble.over_s)
    total = selector(trouble.metrics[JAVA])
    members = selector(COORDINATOR + "assigned.partitions")
    rebalances = f"sum by (group_id) (increase({total}[{duration(span_s)}]))"
    limit = trouble.threshold * span_s / trouble.over_s
    return Alert(
        id=trouble.id,
        question=trouble.question,
        summary=SUMMARIES[trouble.id],
        expr=f"{rebalances}\n> {number(limit)} * count by (group_id) ({members})",
        for_s=trouble.for_s,
        shown=Shown(f"{rebalances} / count by (group_id) ({members})", "{rebalance}", limit),
        labels=(GROUP,),
        condition=f"{said(trouble)} for each member",
        source=trouble.source,
        advice=trouble.advice,
        next_step=MEMBERS,
    )


def silent(trouble: Trouble) -> Alert:
    """A client's series end when it is silent for too long, and also while its host cannot be scraped."""
    age, told, ended = (of_instance("max", name) for name in (AGE, TOLD_INTERVAL, TERMINATED))
    seen = of_instance("max", f"last_over_time({TERMINATED}[1h]) unless on (job, instance) up == 0")
    return Alert(
        id=trouble.id,
        question=trouble.question,
        summary=SUMMARIES[trouble.id],
        expr=f"{seen} == 0\nunless on (client_instance_id) {ended}",
        for_s=0,
        shown=Shown(f"{age} / {told}", "{interval}", trouble.threshold),
        labels=(*IDENTITY, GROUP),
        condition=f"no push for {number(trouble.threshold)} push intervals and {number(trouble.for_s)} s, "
        "at least 90 s, and no goodbye",
        source=trouble.source,
        advice=trouble.advice,
        next_step=f"odradek clients --bootstrap-server {BOOTSTRAP} "
        "--filter client_instance_id={{ $labels.client_instance_id }}",
    )


def alerts(interval_s: int) -> list[Alert]:
    """All alerts, those of the table of troubles first."""
    special = {
        "rebalance-storm": rebalance_storm(BY_ID["rebalance-storm"], interval_s),
        "silent": silent(BY_ID["silent"]),
    }
    return [
        *(special.get(each.id) or of_trouble(each, interval_s) for each in TROUBLES),
        broker_slow(),
        *lag_alerts(interval_s),
        failed_authentication(interval_s, "producer", PRODUCER),
        failed_authentication(interval_s, "consumer", CONSUMER),
        uneven_partitions(),
    ]
