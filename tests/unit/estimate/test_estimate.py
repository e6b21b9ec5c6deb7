"""Estimates of subscriptions, with recorded pushes of real clients."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.estimate.budgets import (
    ALL_KEY,
    APP_KEY,
    CLIENT_KEY,
    PRINCIPAL_KEY,
    SubscriptionBudgets,
)
from odradek.estimate.estimate import Estimate, estimate
from odradek.estimate.figures import as_object, excesses, lines, sentence
from odradek.estimate.futures import Basis, live_clients
from odradek.estimate.pushed_streams import Labels, StreamReader, labels_of, points_of
from odradek.estimate.recorded_clients import RecordedClients, starts
from odradek.plugin import ClientTelemetryPayload, RequestContext, TelemetryRecord
from odradek.telemetry.client_metrics_configs import parse
from odradek.telemetry.instance_match import ClientMetricsInstanceMetadata, metadata_of
from odradek.telemetry.narrowed_clients import narrower_plans
from odradek.telemetry.subscription_id import subscription_id
from odradek.telemetry.subscriptions import SubscriptionPlan, SubscriptionPlans
from odradek.testing.pushes import recorded
from odradek.waiting.steps import result_of

PREFIX = "org.apache.kafka."
SERIES = {
    "java-producer": 104,
    "java-consumer": 127,
    "java-admin": 60,
    "librdkafka-producer": 10,
    "librdkafka-consumer": 15,
}
"""Of the first recorded pushes with all metrics, without gauges that are no number."""
RECEIVED_MS = 1_795_000_000_000
NO_BUDGETS = SubscriptionBudgets(series=0, principal_series=0, app_series=0, client_series=0)


def plans(*subscriptions: Mapping[str, str]) -> SubscriptionPlans:
    parsed = [parse(str(number), properties) for number, properties in enumerate(subscriptions)]
    return SubscriptionPlans({each.name: each for each in parsed})


def subscription(metrics: str, interval_ms: int = 2_000, **match: str) -> dict[str, str]:
    selectors = ",".join(f"{key}={pattern}" for key, pattern in match.items())
    found = {"metrics": metrics, "interval.ms": str(interval_ms)}
    return found | {"match": selectors} if selectors else found


def push(client: str, metrics: str = PREFIX, plan: SubscriptionPlan | None = None) -> TelemetryRecord:
    """The first push of a recorded client, with the metrics of a subscription."""
    record = recorded(client)[0].record
    data = MetricsData.FromString(record.payload.data)
    for entry in data.resource_metrics:
        for scope in entry.scope_metrics:
            kept = [each for each in scope.metrics if each.name.startswith(tuple(metrics.split(",")))]
            del scope.metrics[:]
            scope.metrics.extend(kept)
    instance = record.payload.client_instance_id
    checksum = (plan or plans(subscription(metrics)).merged(("0",))).checksum
    payload = ClientTelemetryPayload(instance, False, data.SerializeToString())
    return replace(
        record,
        context=replace(record.context, received_ms=RECEIVED_MS),
        payload=payload,
        subscription_id=subscription_id(checksum, instance),
    )


def estimated(
    records: Iterable[TelemetryRecord],
    before: SubscriptionPlans,
    after: SubscriptionPlans,
    budgets: SubscriptionBudgets = NO_BUDGETS,
    known: Iterable[ClientMetricsInstanceMetadata] = (),
    after_ms: int = 0,
) -> Estimate:
    clients = RecordedClients()
    now_ms = 0
    for record in records:
        clients.add(record)
        now_ms = max(now_ms, record.context.received_ms)
    live = live_clients(clients, known, now_ms + after_ms)
    return result_of(estimate(live, clients.reader, before, after, budgets))


def shares(found: Estimate) -> dict[str, tuple[int, int]]:
    return {basis: (share.clients, share.series) for basis, share in found.bases.items() if share.clients}


@pytest.mark.parametrize("client", SERIES)
def test_series_that_are_pushed_already_are_counted(client: str) -> None:
    before = plans(subscription(PREFIX))

    faster = estimated([push(client)], before, plans(subscription(PREFIX, 1_000)))
    role = client.split("-")[1].replace("admin", "admin.client")
    fewer = estimated([push(client)], before, plans(subscription(f"{PREFIX}{role}.connection.")))

    assert shares(faster) == {Basis.SEEN: (1, SERIES[client])}
    assert (faster.now.series, faster.after.series) == (SERIES[client], SERIES[client])
    assert faster.after.samples_per_s == 2 * faster.now.samples_per_s == SERIES[client]
    connections = {"java": 5, "librdkafka": 2}
    assert shares(fewer) == {Basis.SEEN: (1, connections[client.split("-")[0]])}


@pytest.mark.parametrize(
    ("client", "metrics"),
    [
        ("java-producer", "producer.node.,producer.topic."),
        ("java-producer", "producer.node.request.latency.,producer.topic."),
        ("java-consumer", "consumer.node.,consumer.fetch.manager."),
        ("java-consumer", "consumer.node.request.latency.,consumer.fetch.manager."),
        ("java-admin", "admin.client.node."),
        ("librdkafka-producer", "producer.node."),
        ("librdkafka-consumer", "consumer.node."),
    ],
)
def test_series_of_more_metrics_follow_from_the_clients_nodes_topics_and_partitions(
    client: str, metrics: str
) -> None:
    pushed = ",".join(PREFIX + each for each in metrics.split(","))

    found = estimated([push(client, pushed)], plans(subscription(pushed)), plans(subscription("*")))

    (modelled,) = shares(found)
    assert modelled == Basis.MODELLED
    assert found.after.series == pytest.approx(SERIES[client], rel=0.1)
    assert found.now.series < found.after.series


def test_unknown_topics_are_guessed_from_clients_of_the_same_software() -> None:
    nodes = f"{PREFIX}producer.node."
    before = plans(subscription(nodes, client_id="java-producer"), subscription(PREFIX, client_id=".*other"))
    twin = push("java-producer", plan=before.merged(("1",)))
    other = ClientMetricsInstanceMetadata(b"o" * 16, "other", "apache-kafka-java", "4.3.1", "", 1)
    twin = replace(
        twin,
        context=replace(twin.context, client_id="other"),
        payload=replace(twin.payload, client_instance_id=other.client_instance_id),
        subscription_id=subscription_id(before.merged(("1",)).checksum, other.client_instance_id),
    )

    alone = estimated(
        [push("java-producer", nodes, before.merged(("0",)))], before, plans(subscription(PREFIX))
    )
    both = estimated(
        [push("java-producer", nodes, before.merged(("0",))), twin], before, plans(subscription(PREFIX))
    )

    assert shares(alone) == {Basis.GUESSED: (1, 73 + 22 + 9)}
    assert shares(both) == {Basis.GUESSED: (1, 104)}
    assert (both.live, both.changed, both.after.series) == (2, 1, 208)


def test_clients_that_push_nothing_yet_are_guessed() -> None:
    silent = ClientMetricsInstanceMetadata(b"s" * 16, "consumer-g-1", "apache-kafka-java", "4.3.1", "", 1)
    unknown = ClientMetricsInstanceMetadata(b"u" * 16, "x", "other-client", "1", "", 1)

    found = estimated([], plans(), plans(subscription("*")), known=[silent, unknown])

    assert shares(found) == {Basis.GUESSED: (2, (82 + 22 + 7 + 7) + (73 + 22 + 9))}
    assert found.principals["(unknown)"].clients == 2


def test_client_that_was_narrowed_is_not_taken_as_seen() -> None:
    before = plans(subscription("*"))
    _, narrower = narrower_plans(before.merged(("0",)))[0]

    found = estimated(
        [push("java-producer", ",".join(narrower.metrics), narrower)], before, plans(subscription("*", 1_000))
    )

    assert Basis.SEEN not in shares(found)


def test_deleted_subscription_brings_nothing() -> None:
    found = estimated([push("java-producer")], plans(subscription(PREFIX)), plans())

    assert (found.after.series, found.after.clients, found.after.pushes_per_s) == (0, 0, 0)
    assert shares(found) == {Basis.SEEN: (1, 0)}


def test_other_subscriptions_of_a_client_still_apply() -> None:
    before = plans(subscription(f"{PREFIX}producer.", 2_000))
    both = plans(subscription(f"{PREFIX}producer.", 2_000), subscription(f"{PREFIX}consumer.", 5_000))

    found = estimated([push("java-producer", f"{PREFIX}producer.")], before, both)

    assert (found.changed, found.after.series, found.after.pushes_per_s) == (1, found.now.series, 0.5)


def test_only_live_clients_count() -> None:
    live = push("java-producer")
    terminated = push("java-consumer")
    terminated = replace(terminated, payload=replace(terminated.payload, terminating=True))
    lag = replace(push("java-admin"), source="odradek-lag")

    soon = estimated([live, terminated, lag], plans(), plans(subscription("*")), after_ms=60_000)
    later = estimated([live], plans(), plans(subscription("*")), after_ms=200_000)
    known = [metadata_of(each.payload.client_instance_id, each.context) for each in (live, terminated)]
    refused = estimated([live, terminated], plans(), plans(subscription("*")), known=known, after_ms=200_000)

    assert (soon.live, later.live) == (1, 0)
    assert refused.live == 1  # the host still hears of it


def test_refused_pushes_are_not_counted() -> None:
    refused = push("java-producer")
    refused = replace(refused, payload=replace(refused.payload, refused=117))

    assert estimated([refused], plans(), plans(subscription("*"))).live == 0


@pytest.mark.parametrize(
    ("budgets", "keys"),
    [
        (SubscriptionBudgets(), []),
        (SubscriptionBudgets(series=230), [ALL_KEY]),
        (SubscriptionBudgets(series=231), []),
        (SubscriptionBudgets(principal_series=230), [PRINCIPAL_KEY]),
        (SubscriptionBudgets(app_series=126), [APP_KEY]),
        (SubscriptionBudgets(app_series=127), []),
        (SubscriptionBudgets(client_series=100), [CLIENT_KEY]),
        (
            SubscriptionBudgets(series=1, principal_series=1, client_series=1),
            [ALL_KEY, PRINCIPAL_KEY, CLIENT_KEY],
        ),
        (SubscriptionBudgets(series=0, principal_series=0, client_series=0), []),
    ],
)
def test_budgets_that_would_be_exceeded(budgets: SubscriptionBudgets, keys: list[str]) -> None:
    pushed = [
        push(client, f"{PREFIX}producer.,{PREFIX}consumer.") for client in ("java-producer", "java-consumer")
    ]
    before = plans(subscription(f"{PREFIX}producer.,{PREFIX}consumer."))

    found = estimated(pushed, before, plans(subscription("*")), budgets)

    assert found.after.series == 231
    assert [each.budget for each in found.exceeded] == keys
    if CLIENT_KEY in keys:
        assert (found.exceeded[-1].series, found.exceeded[-1].scopes) == (127, 2)


def test_fewer_series_never_exceed_a_budget() -> None:
    budgets = SubscriptionBudgets(series=1, principal_series=1, client_series=1)

    found = estimated(
        [push("java-producer")], plans(subscription("*")), plans(subscription(f"{PREFIX}producer.")), budgets
    )

    assert found.after.series > 1
    assert found.exceeded == []


def test_thousand_equal_clients_share_their_streams() -> None:
    reader = StreamReader()
    data = push("java-consumer").payload.data

    first, second = (reader.read(points_of(each).points) for each in (data, bytes(data)))

    assert first is second
    assert len(first) == 127


def test_labels_are_text_or_whole_numbers() -> None:
    attributes = [
        KeyValue(key="topic", value=AnyValue(bool_value=True)),
        KeyValue(key="partition", value=AnyValue(int_value=3)),
        KeyValue(key="node.id", value=AnyValue(string_value="1")),
    ]

    found = labels_of([each.SerializeToString() for each in attributes] + [b"\xff"])

    assert found == Labels(node="1", partition="3")


def test_figures_fit_eighty_columns_and_say_all() -> None:
    pushed = [push(client, f"{PREFIX}producer.connection.") for client in SERIES]
    pushed.append(replace(push("java-application"), context=other_principal("User:" + "x" * 100)))
    budgets = SubscriptionBudgets(series=100, principal_series=100, client_series=100)

    before = plans(subscription(f"{PREFIX}producer.connection."))
    found = estimated(pushed, before, plans(subscription("*")), budgets)

    text = list(lines(found))
    assert max(len(line) for line in text) <= 80
    assert "live clients: 6; with another subscription: 6" in text
    assert text[text.index("over budget") + 1 :] == [
        f"  {ALL_KEY} = 100: 466 series",
        f"  {PRINCIPAL_KEY} = 100: 336 series",
        "    of principal User:ANONYMOUS",
        f"  {CLIENT_KEY} = 100: 104 series",
        "    of client instance 0YZNhC_DT8mGS2VaYEgJPg and 2 more",
    ]
    said = excesses(found)
    assert "6 of 6 live clients change; series 137 -> 466" in sentence(found)
    assert all(key in said for key in (ALL_KEY, PRINCIPAL_KEY, CLIENT_KEY))
    objects = as_object(found)
    assert (objects["clients"], objects["after"]["series"]) == (6, found.after.series)
    assert [each["budget"] for each in objects["exceeded"]] == [ALL_KEY, PRINCIPAL_KEY, CLIENT_KEY]


def other_principal(principal: str) -> RequestContext:
    context = push("java-application").context
    return replace(context, connection=replace(context.connection, principal=principal))


@pytest.mark.parametrize(
    ("most", "positions"),
    [
        (100, {0: 0, 1: 10, 2: 7}),
        (16, {0: 0, 1: 10, 2: 7}),
        (10, {0: 1, 1: 15, 2: 7}),
        (3, {0: 4, 1: 19, 2: 7}),
        (1, {0: 5, 1: 19, 2: 8}),
    ],
)
def test_the_newest_records_are_read(most: int, positions: dict[int, int]) -> None:
    begins, ends = {0: 0, 1: 10, 2: 7}, {0: 5, 1: 20, 2: 8}

    found = starts(begins, ends, most)

    assert found == positions
