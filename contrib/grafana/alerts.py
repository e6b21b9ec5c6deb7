"""Alerts about clients: the table of troubles as PromQL, and questions that need several metrics."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from contrib.grafana.conditions import (
    OF_CLIENT,
    TERMINATED,
    condition,
    lag_condition,
    lag_value,
    of_instance,
    silent,
    span_s,
    unless_of_group,
    value_of,
)
from contrib.grafana.promql import IDENTITY, duration, selector

from odradek.findings.client_metrics import client_metrics
from odradek.findings.troubles import (
    BY_ID,
    CONSUMER,
    EXPLAINED,
    JAVA,
    NOT_A_BROKER,
    OURS,
    PRODUCER,
    STEPS,
    THROTTLED,
    TROUBLES,
    Trouble,
)
from odradek.lag.movement import Progress

AGE: Final = "odradek_client_last_push_age_seconds"
TOLD_INTERVAL: Final = "odradek_client_push_interval_seconds"
GROUP: Final = "group_id"
BOOTSTRAP: Final = "$KAFKA_BOOTSTRAP"
"""Stands in commands for the address of the cluster and the options of a connection to it."""
MEMBERS_OF_GROUP: Final = "odradek_group_members"
CAUSES: Final = {
    "behind": GROUP,
    "stalled": GROUP,
    "throttled-produce": "principal",
    "throttled-fetch": "principal",
    "producer-failed-authentication": "principal",
    "consumer-failed-authentication": "principal",
    "failed-logins": "user",
    "throttled": "entity",
    "stuck": "group",
    "comes-and-goes": "group",
    "group-errors": "group",
    "topic-refusals": "topic",
    "unknown-topic": "topic",
    "topic-errors": "topic",
}
"""The label by which clients have a cause in common, by trouble."""
MEMBERS: Final = (
    f"odradek groups --bootstrap-server {BOOTSTRAP} --describe --members --group {{{{ $labels.group_id }}}}"
)


MANY: Final = 3
"""Clients in the same trouble whose cause is what they have in common, if they are more than half."""
CAUSE_WORDS: Final = {
    "node_id": "broker",
    GROUP: "group",
    "principal": "principal",
    "user": "user",
    "entity": "quota",
    "group": "group",
    "topic": "topic",
    "client_instance_id": "client",
}
"""What a cause is, by the label that names it."""


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
    shared: str = ""
    """The expression of those whose clients have the cause in common: they have one alert instead."""
    by: str = "client_instance_id"
    """The label that names the cause, as far as this alert knows it."""

    @property
    def name(self) -> str:
        return f"KafkaClient{self.words}"

    @property
    def words(self) -> str:
        return "".join(word.capitalize() for word in self.id.split("-"))


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


def of_trouble(trouble: Trouble, interval_s: int) -> Alert:
    """The alert of a trouble. A longer window compares with a proportionally larger increase."""
    metric = trouble.metrics[JAVA]
    if trouble.moves is None:
        value = value_of(trouble, metric, interval_s)
        if trouble.per:
            value += f"\n/ {value_of(trouble, trouble.per, interval_s)}"
        expr, labels = condition(trouble, value, interval_s), (*identity(metric), *trouble.labels)
    else:
        value, expr = lag_value(trouble), lag_condition(trouble, interval_s)
        labels = (*IDENTITY, GROUP, "topic")
    scale = span_s(trouble, interval_s) / trouble.over_s if trouble.over_s and not trouble.per else 1
    return Alert(
        id=trouble.id,
        question=trouble.question,
        summary=SUMMARIES[trouble.id],
        expr=expr,
        for_s=0 if trouble.keeps else max(trouble.for_s, interval_s),
        shown=Shown(
            value, unit_of(trouble, metric), trouble.threshold * scale, low=trouble.op.startswith("<")
        ),
        labels=labels,
        condition=said(trouble),
        source=trouble.source,
        advice=trouble.advice,
        next_step=NEXT_STEPS.get(trouble.id) or narrowed(prefix_of(metric)),
        by="node_id" if trouble.skip else CAUSES.get(trouble.id, "client_instance_id"),
        shared=shared(trouble, metric),
    )


def recorded(alert_id: str) -> str:
    """The name of the series that an alert and the alert about its cause have in common."""
    return f"kafka_client:{alert_id.replace('-', '_')}"


def shared(trouble: Trouble, metric: str) -> str:
    """What several clients have in common that are in the same trouble; empty if nothing is asked."""
    if trouble.skip:
        return recorded("slow-broker")
    by = CAUSES.get(trouble.id)
    if by is None:
        return ""
    found, everyone = recorded(trouble.id), selector(metric, deepest=trouble.moves is not None)
    clients, all_clients = (
        f"count by ({by}) (group by ({by}, client_instance_id) ({each}))" for each in (found, everyone)
    )
    return f"{clients} >= {MANY} and {clients} > 0.5 * {all_clients}"


def spaced(value: float) -> str:
    """A whole number for people: ``30 000``."""
    return f"{value:,.0f}".replace(",", " ")


def unit_of(trouble: Trouble, metric: str) -> str:
    return "1" if trouble.per else client_metrics()[metric].unit


def said(trouble: Trouble) -> str:
    """The condition of a trouble in words."""
    if trouble.moves is not None:
        moves = "grows and shrinks at no push" if trouble.moves else "stays, and nothing is read,"
        return f"the lag of a partition {moves} for the whole window"
    words = compared(trouble)
    if trouble.steps:
        words += f", in {trouble.steps} of {STEPS} minutes"
    return words + ("; not while it is throttled" if THROTTLED[0] in trouble.unless else "")


def compared(trouble: Trouble) -> str:
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
    "rebalance-storm": "The group {{ $labels.group_id }} rebalances again and again, and its members stay",
    "long-rebalances": f"{WHO} spends its time in rebalances",
    "failed-rebalances": f"Rebalances of {WHO} fail",
    "slow-commits": f"{WHO} commits offsets slowly",
    "silent": f"{WHO} stopped pushing without a goodbye",
    "producer-reconnects": f"{WHO} connects again and again",
    "consumer-reconnects": f"{WHO} connects again and again",
    "failed-logins": f"{WHO} at {{{{ $labels.address }}}} fails to log in as {{{{ $labels.user }}}}",
    "stuck": f"{WHO} hangs, and has left the group {{{{ $labels.group }}}}",
    "comes-and-goes": f"{WHO} joins the group {{{{ $labels.group }}}} again and again",
    "group-errors": f"{WHO} gets {{{{ $labels.error }}}} from the group {{{{ $labels.group }}}}",
    "lost": f"{WHO} has died ({{{{ $labels.why }}}})",
    "throttled": f"{WHO} is held back by {{{{ $labels.quota }}}} of {{{{ $labels.entity }}}}",
    "topic-refusals": f"{WHO} is refused on {{{{ $labels.topic }}}}: {{{{ $labels.error }}}}",
    "unknown-topic": f"{WHO} asks for {{{{ $labels.topic }}}}, which does not exist",
    "topic-errors": f"{WHO} gets {{{{ $labels.error }}}} on {{{{ $labels.topic }}}} again and again",
    "producer-failed-authentication": f"Connections of {WHO} fail to authenticate",
    "consumer-failed-authentication": f"Connections of {WHO} fail to authenticate",
    "behind": f"{WHO} reads {{{{ $labels.topic }}}} slower than it is written",
    "stalled": f"{WHO} has stopped reading {{{{ $labels.topic }}}}",
}
OF_GROUP: Final = (
    f"odradek groups --bootstrap-server {BOOTSTRAP} --describe --members --group {{{{ $labels.group }}}}"
)
TOPIC: Final = f"odradek topics --bootstrap-server {BOOTSTRAP} --describe --topic {{{{ $labels.topic }}}}"
NEXT_STEPS: Final = {
    "failed-logins": f"odradek users --bootstrap-server {BOOTSTRAP} --describe",
    "stuck": OF_GROUP,
    "comes-and-goes": OF_GROUP,
    "group-errors": OF_GROUP,
    "lost": f"odradek groups --bootstrap-server {BOOTSTRAP} --list",
    "throttled": f"odradek quotas --bootstrap-server {BOOTSTRAP} --describe",
    "topic-refusals": TOPIC,
    "unknown-topic": f"odradek topics --bootstrap-server {BOOTSTRAP} --list",
    "topic-errors": TOPIC,
}
"""Commands about troubles that are not looked at by more metrics of the client."""


def broker_slow() -> Alert:
    """More than half of the clients of a broker, of at least three, wait long for it."""
    brokers = f'node_id!~"{NOT_A_BROKER}"'
    latency = " or ".join(
        selector(f"{role}node.request.latency.avg", brokers) for role in (PRODUCER, CONSUMER)
    )
    share = f"avg by (node_id) (({latency}) > bool 1000)"
    return Alert(
        id="slow-broker",
        question="Is the broker slow, or a client?",
        summary="Broker {{ $labels.node_id }} is slow for most of its clients",
        expr=f"{share}\n> 0.5\nand count by (node_id) ({latency}) >= {MANY}",
        for_s=180,
        shown=Shown(share, "1", 0.5),
        labels=("node_id",),
        by="node_id",
        condition=f"more than half of a broker's clients, of at least {MANY}, wait for 1 000 ms on average",
        source=f"the majority of its clients; 1 000 ms and {MANY} clients: {OURS}",
        advice="Look at the broker: disk, garbage collection, replication. The clients are not the cause.",
        next_step=f"odradek top --bootstrap-server {BOOTSTRAP} --sort latency --once",
    )


def of_group(
    interval_s: int, alert_id: str, progress: Progress, for_s: float, question: str, summary: str, advice: str
) -> Alert:
    """A group whose lag a host or a gateway measures, whatever its clients are."""
    found, topics = f'odradek_group_progress{{progress="{progress}"}}', "(cluster_name, group, topic)"
    lag = f"max by {topics} (odradek_group_topic_lag_sum)"
    return Alert(
        id=alert_id,
        question=question,
        summary=f"The group {{{{ $labels.group }}}} {summary}",
        expr=f"{lag}\nand on {topics} max by {topics} ({found}) == 1\n"
        f"and on (cluster_name, group) max by (cluster_name, group) ({MEMBERS_OF_GROUP}) > 0"
        f"{unless_of_group(BY_ID['stalled'], interval_s)}",
        for_s=for_s,
        shown=Shown(lag, "{record}"),
        labels=("group", "topic"),
        by="group",
        condition=f"the group has members, and the last minute says: {progress}",
        source="as Burrow: the movement of offsets and lag over a minute, never a number of records",
        advice=advice,
        next_step=OF_GROUP,
    )


GROUPS: Final = (
    (
        "group-stalled",
        Progress.STALLED,
        60,
        "Has a group stopped reading, although there are records?",
        "has stopped reading {{ $labels.topic }}",
        "Look at the member of the partition: its application hangs, or fails on one record again and again.",
    ),
    (
        "group-behind",
        Progress.FALLING_BEHIND,
        600,
        "Does a group read slower than its topic is written?",
        "reads {{ $labels.topic }} slower than it is written",
        "Look whether its applications or its fetches are slow; else add members, one a partition at most.",
    ),
)


def rebalance_storm(trouble: Trouble, interval_s: int) -> Alert:
    """The trouble of an instance, asked of its group: one alert instead of one for each member.

    Members that come or go explain some rebalances. Those that come and go between two pushes explain none.
    """
    span = duration(span_s(trouble, interval_s))
    asked = of_trouble(trouble, interval_s)
    members = f'{TERMINATED}{{group_id!=""}} == 0'
    before = f'{TERMINATED}{{group_id!=""}} offset {span} == 0'
    changed = f"({members} unless {OF_CLIENT} {before}) or ({before} unless {OF_CLIENT} {members})"
    explained = f"{EXPLAINED} * (count by (group_id) ({changed}) or 0 * group by (group_id) ({members}))"
    rebalances = f"max by (group_id) ({asked.expr.replace(chr(10), ' ')})"
    return replace(
        asked,
        expr=f"{rebalances}\n> {explained}",
        shown=Shown(f"max by (group_id) ({asked.shown.value})", "{rebalance}", 0),
        labels=(GROUP,),
        by=GROUP,
        condition=f"{said(trouble)}, and more than {EXPLAINED} for each member that came or went",
        next_step=MEMBERS,
    )


def lost(trouble: Trouble, interval_s: int) -> Alert:
    """A client whose series have ended, and that has not said goodbye."""
    age, told = (of_instance("max", name) for name in (AGE, TOLD_INTERVAL))
    return Alert(
        id=trouble.id,
        question=trouble.question,
        summary=SUMMARIES[trouble.id],
        expr=silent(interval_s),
        for_s=max(trouble.for_s, 2 * interval_s),
        shown=Shown(f"{age} / {told}", "{interval}", trouble.threshold),
        labels=(*IDENTITY, GROUP),
        condition="no push for 2.5 push intervals and 5 s, at least 60 s, while others of its host are "
        "heard; no goodbye, and it was not throttled",
        source=trouble.source,
        advice=trouble.advice,
        next_step=f"odradek clients --bootstrap-server {BOOTSTRAP} "
        "--filter client_instance_id={{ $labels.client_instance_id }}",
    )


def alerts(interval_s: int) -> list[Alert]:
    """All alerts, causes before what they explain."""
    special = {
        "rebalance-storm": rebalance_storm(BY_ID["rebalance-storm"], interval_s),
        "silent": lost(BY_ID["silent"], interval_s),
    }
    return [
        broker_slow(),
        *[of_group(interval_s, *each) for each in GROUPS],
        *(special.get(each.id) or of_trouble(each, interval_s) for each in TROUBLES),
    ]
