"""Series of clients: labels, collisions, and their ends (spec/temporality.md, 1.5, 1.6, 1.8 and 3.3)."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.temporality import TotalsSettings
from odradek_prometheus import exposition
from support.delta_clients import A, Attributes, B, counter, d, gauge, ms, point
from support.exposed_clients import Exposed, MemoryStore, NoDestination, names

INSTANCE = "QUFBQUFBQUFBQUFBQUFBQQ"
"""A, as Kafka prints it."""


def test_the_labels_that_a_series_has() -> None:
    exposed = Exposed()

    exposed.push(
        d(5.0, 0, 60, topic="orders"),
        labels={"group_id": "billing", "client_rack": "", "group_member_id": "m-1", "team": "blue"},
        context={"client_software_name": "apache-kafka-java", "client_software_version": "4.3.1"},
    )

    assert exposed.labels() == {
        "client_id": "orders",
        "client_instance_id": INSTANCE,
        "client_software_name": "apache-kafka-java",
        "client_software_version": "4.3.1",
        "group_id": "billing",
        "principal": "User:ANONYMOUS",
        "team": "blue",
        "topic": "orders",
    }
    client = exposed.exposition.client(A)
    assert client is not None
    assert dict(client.info) == {
        **{name: value for name, value in exposed.labels().items() if name != "topic"},
        "broker_node_id": "1",
        "client_source_address": "127.0.0.1",
        "client_source_port": "50000",
        "group_member_id": "m-1",
    }


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"node_id": "node-1"}, {"node_id": "1"}),
        ({"node.id": 1}, {"node_id": "1"}),
        ({"node.id": 1, "node_id": "node-2"}, {"node_id": "1;node-2"}),
        ({"client_id": "mine"}, {"client_id": "mine", "host_client_id": "orders"}),
        ({"group.id": "mine"}, {"group_id": "mine", "client_group_id": "billing"}),
        ({"le": "1"}, {"attribute_le": "1"}),
        ({"quantile": "0.5"}, {"attribute_quantile": "0.5"}),
        ({"__name__": "x"}, {"attribute___name__": "x"}),
        ({"empty": ""}, {}),
    ],
)
def test_the_data_point_keeps_its_labels(attributes: Attributes, expected: dict[str, str]) -> None:
    exposed = Exposed()

    exposed.push(counter(point(5.0, 0, 60, attributes)), labels={"group_id": "billing"})

    found = exposed.labels()
    assert {name: found[name] for name in expected} == expected
    assert found["client_instance_id"] == INSTANCE
    assert set(found) - set(expected) <= {
        "client_id",
        "client_instance_id",
        "client_software_name",
        "client_software_version",
        "group_id",
        "principal",
    }


def test_a_client_id_that_is_not_utf_8() -> None:
    exposed = Exposed()

    exposed.push(d(5.0, 0, 60), context={"client_id": b"a\xff".decode("utf-8", "surrogateescape")})

    assert exposed.labels()["client_id"] == "a?"


def test_the_text_of_a_node_can_stay() -> None:
    exposed = Exposed(normalise_node=False)

    exposed.push(d(5.0, 0, 60, node_id="node-1"))

    assert exposed.labels()["node_id"] == "node-1"


def test_two_streams_that_would_be_one_series() -> None:
    exposed = Exposed()

    exposed.push(counter(point(5.0, 0, 60, {"a": ""}), point(7.0, 0, 60)))

    assert [each.value for each in exposed.series()] == [5.0]
    (client,) = exposed.exposition.clients()
    assert client.mapped.hidden == {"series.collision": 1}


def test_a_renamed_label_is_counted_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    exposed = Exposed()

    for instance in (A, B):
        exposed.push(d(5.0, 0, 60, client_id="mine"), gauge(1.0), instance=instance)

    assert [client.renamed for client in exposed.exposition.clients()] == [1, 1]
    assert [record.message for record in caplog.records] == [
        "a label of clients has the name of a data point's label, and is renamed beside it"
    ]


def test_a_client_may_describe_its_metrics() -> None:
    exposed = Exposed()
    described, silent = d(5.0, 0, 60), gauge(1.0)
    described.description = "Orders placed."

    exposed.push(described, silent)

    assert [each.family.help for each in exposed.series()] == ["Orders placed.", "g, as the client names it."]


def test_a_counter_goes_on_and_a_gauge_is_replaced() -> None:
    exposed = Exposed()

    exposed.push(d(5.0, 0, 60), gauge(1.0), at=60)
    update = exposed.push(d(3.0, 60, 120), gauge(2.0, time=120), at=120)

    assert exposed.values() == {"c_total": 8.0, "g": 2.0}
    assert [len(list(client.touched())) for client in update.touched] == [2]
    assert not update.ended


def test_only_what_was_pushed_is_touched() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), gauge(1.0), at=60)

    update = exposed.push(d(3.0, 60, 120), at=120)

    assert [each.family.name for client in update.touched for each in client.touched()] == ["c_total"]
    assert exposed.values() == {"c_total": 8.0, "g": 1.0}


# rows of 1.8: i = 60


def test_27_what_is_not_pushed_ends_after_its_own_silence() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), gauge(1.0), at=60)
    for second in (120, 180):
        exposed.push(at=second)

    before, ended = exposed.expire(215), exposed.expire(216)

    assert not before
    assert names(ended) == ["c_total", "g"]
    assert [each.time_ms for each in ended] == [ms(216), ms(216)]
    assert len(exposed.exposition.clients()) == 1
    assert exposed.values() == {}


def test_28_a_silent_client_ends() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), gauge(1.0), at=60)

    before, ended = exposed.expire(215), exposed.expire(216)

    assert not before
    assert names(ended) == ["c_total", "g"]
    assert not exposed.exposition.clients()
    assert not exposed.expire(300)


def test_29_a_client_within_its_time_is_never_left_out() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)

    early = exposed.expire(214)
    exposed.push(d(1.0, 60, 214), at=214)

    assert not early
    assert not exposed.expire(369)
    assert exposed.values() == {"c_total": 6.0}


def test_30_a_client_that_returns_has_its_total_and_start() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)
    start = exposed.series()[0].start_ns
    assert names(exposed.expire(3_600)) == ["c_total"]

    exposed.push(d(7.0, 60, 3_660), at=3_660)

    assert exposed.values() == {"c_total": 12.0}
    assert exposed.series()[0].start_ns == start


@pytest.mark.parametrize("metrics", [(d(2.0, 60, 75),), ()])
def test_32_33_a_client_that_has_said_goodbye_lingers(metrics: tuple[Metric, ...]) -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)

    exposed.push(*metrics, at=75, terminating=True)

    assert exposed.values() == {"c_total": 7.0 if metrics else 5.0}
    assert not exposed.expire(375)
    assert names(exposed.expire(376)) == ["c_total"]
    assert not exposed.exposition.clients()


def test_32_without_lingering_a_goodbye_ends_the_series_in_the_same_update() -> None:
    exposed = Exposed(linger_ms=0)
    exposed.push(d(5.0, 0, 60), at=60)

    update = exposed.push(d(2.0, 60, 75), at=75, terminating=True)

    assert [each.value for client in update.touched for each in client.touched()] == [7.0]
    assert [(each.family.name, each.time_ms) for each in update.ended] == [("c_total", ms(75) + 1)]
    assert not exposed.exposition.clients()


def test_34_a_record_after_the_goodbye_opens_the_client_again() -> None:
    exposed = Exposed(linger_ms=0)
    exposed.push(d(5.0, 0, 60), at=60, terminating=True)

    exposed.push(d(2.0, 60, 75), at=75)

    assert exposed.values() == {"c_total": 7.0}


def test_37_38_39_a_member_id_a_port_and_a_broker_make_no_new_series() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), labels={"group_id": "g"}, at=60)

    joined = exposed.push(d(1.0, 60, 120), labels={"group_id": "g", "group_member_id": "m"}, at=120)
    moved = exposed.push(
        d(1.0, 120, 180), labels={"group_id": "g"}, context={"client_port": 1, "node_id": 2}, at=180
    )

    assert exposed.values() == {"c_total": 7.0}
    assert not [*joined.ended, *moved.ended]
    client = exposed.exposition.client(A)
    assert client is not None
    assert dict(client.info)["broker_node_id"] == "2"


def test_40_another_principal_is_another_series_with_the_same_total() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)
    start = exposed.series()[0].start_ns

    update = exposed.push(d(1.0, 60, 120), context={"principal": "User:alice"}, at=120)

    assert [(dict(each.labels)["principal"], each.time_ms) for each in update.ended] == [
        ("User:ANONYMOUS", ms(120))
    ]
    assert exposed.values() == {"c_total": 6.0}
    assert exposed.labels()["principal"] == "User:alice"
    assert exposed.series()[0].start_ns == start


def test_56_a_point_without_a_value_ends_its_series() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)
    nothing = point(0.0, 60, 120)
    nothing.flags = 1

    update = exposed.push(counter(nothing), at=120)
    exposed.push(d(1.0, 120, 180), at=180)

    assert names(update.ended) == ["c_total"]
    assert exposed.values() == {"c_total": 6.0}


def test_57_a_gauge_that_is_nan_has_no_series() -> None:
    exposed = Exposed()
    exposed.push(gauge(1.0), at=60)

    update = exposed.push(gauge(math.nan, time=120), at=120)
    during = exposed.values()
    exposed.push(gauge(4.0, time=180), at=180)

    assert names(update.ended) == ["g"]
    assert during == {}
    assert exposed.values() == {"g": 4.0}


def test_62_a_restart_shows_the_same_series_at_once() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60, topic="orders"), gauge(1.0), labels={"group_id": "g"}, at=60)
    before = exposed.series()

    exposed.restart(70)

    assert [each[1:] for each in exposed.series()] == [each[1:] for each in before]
    assert [each.family.name for each in exposed.series()] == ["c_total", "g"]


def test_a_restart_after_a_long_time_shows_only_living_clients() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)
    exposed.push(d(5.0, 0, 60), instance=B, at=3_600)

    exposed.restart(3_610)

    assert [client.instance_id for client in exposed.exposition.clients()] == [B]


def test_a_record_that_comes_again_is_shown_and_not_added() -> None:
    exposed = Exposed()
    record = exposed.record(d(5.0, 0, 60), at=60)

    exposed.deliver(record)
    update = exposed.deliver(record)

    assert [each.value for client in update.touched for each in client.touched()] == [5.0]


def test_clients_with_the_same_streams_share_them() -> None:
    exposed = Exposed()

    exposed.push(d(5.0, 0, 60), at=60)
    exposed.push(d(5.0, 0, 60), instance=B, at=60)

    first, second = exposed.exposition.clients()
    assert first.mapped is second.mapped


def test_shapes_and_names_without_clients_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exposition, "SWEEP_AT", 4)
    exposed = Exposed()

    for number in range(20):
        metrics = [counter(point(1.0, 0, 60), name=f"c{number}.{each}") for each in range(3)]
        exposed.push(*metrics, at=60, instance=bytes([number]) * 16)
        for engine in exposed.exposition.engines.values():
            engine.clients.forget(bytes([number]) * 16)

    assert len(exposed.exposition.shapes) <= 4
    assert len(exposed.exposition.mapping.families.owners) <= 4 * 3 * 2


def test_a_start_takes_no_part_of_a_shared_store() -> None:
    store = MemoryStore()
    loaded: list[int] = []
    store.load = lambda engine, part: loaded.append(part)  # type: ignore[method-assign]
    for settings in (TotalsSettings(topic="totals"), TotalsSettings(file=Path("unused"))):
        shown = exposition.Exposition(exposition.ExpositionSettings())
        shown.wrap(NoDestination(), settings).store_in(store)
        shown.load(0)

    assert loaded == [0]
