"""Incidents of clients: counted by client, bounded, and written as records of the client they are about."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from conformance.telemetry_broker import DEFAULT_PROPERTIES, TelemetryBroker
from odradek.findings.incidents import FAILED_LOGINS, GROUP_JOINS, LOST, THROTTLED, UNKNOWN_TOPICS
from odradek.plugin import RequestContext, TelemetryRecord
from odradek.telemetry.client_key import ClientKey, key_of_request
from odradek.telemetry.incidents import (
    CHECK_MS,
    MOST_OF_CLIENT,
    OTHER,
    QUIET_MS,
    REPEAT_MS,
    WRITTEN_AT_ONCE,
    Incidents,
    Known,
)
from odradek.telemetry.record_source import RecordSource
from odradek.testing.data_points import data_points

INTERVAL_MS = 30_000
STRANGER = ClientKey("User:ANONYMOUS", "billing", "10.1.2.3", "aiokafka", "0.12")
QUOTA = {"quota": "producer_byte_rate", "entity": "user alice"}
ALICE = {"mechanism": "PLAIN", "user": "alice"}


class Scene:
    """Incidents at a broker."""

    def __init__(self, most: int = 1_000) -> None:
        self.broker = broker = TelemetryBroker()
        broker.update("all", {**DEFAULT_PROPERTIES, "interval.ms": str(INTERVAL_MS)})
        self.clock = broker.clock
        self.records: list[TelemetryRecord] = []
        self.source = RecordSource("incidents", broker.manager, self.keep)
        self.incidents = Incidents(
            self.source, broker.manager.goodbyes, broker.clock, broker.clock.timer, "here", most
        )

    def keep(self, record: TelemetryRecord) -> bool:
        self.records.append(record)
        return True

    def happens(self, *, key: ClientKey = STRANGER, labels: Mapping[str, str] = ALICE) -> None:
        self.incidents.add(key, FAILED_LOGINS, labels)

    def taken(self) -> list[TelemetryRecord]:
        found, self.records = self.records, []
        return found

    def pushing(self, connection_id: str) -> bytes:
        """A client that pushes the metrics of a group; its id."""
        data = MetricsData()
        entry = data.resource_metrics.add()
        entry.resource.attributes.add(key="group_id").value.string_value = "billing"
        entry.scope_metrics.add().metrics.add(name="m").gauge.data_points.add(as_int=7)
        told = self.broker.get(connection_id=connection_id)
        self.clock.advance(INTERVAL_MS)
        assert self.broker.push(told, data.SerializeToString(), connection_id=connection_id) == 0
        return told.client_instance_id

    def rows(self) -> dict[str, float]:
        return {row.name: row.value for row in self.incidents.metric_rows()}


@pytest.fixture
def scene() -> Scene:
    return Scene()


def values(record: TelemetryRecord) -> dict[tuple[str, ...], float]:
    return {tuple(each.attributes.values()): each.value for each in data_points(record.payload.data)}


def test_a_client_that_is_about_to_push_is_waited_for(scene: Scene) -> None:
    told = scene.broker.get(connection_id="a")
    (seen,) = scene.broker.manager.goodbyes.open.values()
    key = key_of_request(seen.context)
    scene.happens(key=key)
    scene.clock.advance(INTERVAL_MS - 1)
    assert scene.taken() == []

    scene.clock.advance(1)
    assert scene.broker.push(told, b"", connection_id="a") == 0
    scene.clock.advance(CHECK_MS)

    (record,) = scene.taken()
    assert record.payload.client_instance_id == told.client_instance_id


def test_a_client_that_does_not_push_after_all_is_told(scene: Scene) -> None:
    scene.broker.get(connection_id="a")
    (seen,) = scene.broker.manager.goodbyes.open.values()
    scene.happens(key=key_of_request(seen.context))

    scene.clock.advance(2 * INTERVAL_MS + QUIET_MS + 2 * CHECK_MS)

    assert [each.payload.terminating for each in scene.taken()] == [False, True]


def test_a_topic_that_is_created_at_its_first_use_is_no_incident(scene: Scene) -> None:
    topic = {"api": "Metadata", "topic": "orders"}
    for _ in range(2):
        scene.incidents.add(STRANGER, UNKNOWN_TOPICS, topic)
        scene.clock.advance(REPEAT_MS)
    assert scene.taken() == []

    scene.incidents.add(STRANGER, UNKNOWN_TOPICS, topic)
    scene.clock.advance(REPEAT_MS)

    (record,) = scene.taken()
    assert list(values(record).values()) == [3]


def test_an_incident_is_written_within_a_second(scene: Scene) -> None:
    scene.happens()
    scene.happens()
    scene.clock.advance(CHECK_MS)

    (record,) = scene.records
    (point,) = data_points(record.payload.data)
    assert (point.metric, point.value, point.kind, point.delta) == (FAILED_LOGINS, 2, "sum", True)
    assert point.attributes == ALICE
    assert point.resource["observed"] == "true"
    assert record.payload.client_instance_id == STRANGER.instance_id("here")
    assert record.observed
    assert not record.payload.terminating
    connection = record.context.connection
    assert (record.context.client_id, connection.client_address) == ("billing", "10.1.2.3")
    assert (connection.client_software_name, connection.client_software_version) == ("aiokafka", "0.12")


def test_later_incidents_of_a_client_are_written_together(scene: Scene) -> None:
    scene.happens()
    scene.clock.advance(CHECK_MS)
    scene.taken()
    for _ in range(3):
        scene.happens()
        scene.clock.advance(CHECK_MS)
    assert scene.records == []

    scene.clock.advance(REPEAT_MS)

    (record,) = scene.taken()
    assert list(values(record).values()) == [3]


def test_a_client_to_which_nothing_more_happens_says_goodbye(scene: Scene) -> None:
    scene.happens()
    scene.clock.advance(CHECK_MS)
    scene.taken()

    scene.clock.advance(QUIET_MS + CHECK_MS)

    (goodbye,) = scene.taken()
    assert goodbye.payload.terminating
    assert not goodbye.payload.data
    assert goodbye.payload.client_instance_id == STRANGER.instance_id("here")
    assert scene.rows() == {
        "odradek.incidents.clients": 0,
        "odradek.incidents.series": 0,
        "odradek.incidents.left.out": 0,
    }
    assert len(scene.clock.timer) == len(TelemetryBroker().clock.timer)


def told_by(context: RequestContext, scene: Scene) -> None:
    connection_id = context.connection.connection_id
    scene.incidents.add(key_of_request(context), FAILED_LOGINS, ALICE, connection_id=connection_id)


def test_an_incident_of_a_client_that_pushes_is_a_record_of_its_own(scene: Scene) -> None:
    instance_id = scene.pushing("a")
    told_by(scene.broker.context("a"), scene)
    scene.clock.advance(CHECK_MS)

    (record,) = scene.taken()
    (point,) = data_points(record.payload.data)
    assert record.payload.client_instance_id == instance_id
    assert point.resource["group_id"] == "billing"
    assert not record.observed
    assert record.source is None
    assert record.push_interval_ms == INTERVAL_MS

    scene.clock.advance(QUIET_MS + CHECK_MS)
    assert scene.records == []  # its life is its own


def test_the_client_is_found_by_its_names_if_it_pushes_on_another_connection(scene: Scene) -> None:
    instance_id = scene.pushing("a")

    scene.happens(key=key_of_request(scene.broker.context("b")))
    scene.clock.advance(CHECK_MS)

    assert [each.payload.client_instance_id for each in scene.records] == [instance_id]


def test_of_two_clients_with_the_same_names_none_is_meant(scene: Scene) -> None:
    scene.pushing("a")
    scene.pushing("b")
    key = key_of_request(scene.broker.context("c"))

    scene.happens(key=key)
    scene.clock.advance(CHECK_MS)

    (record,) = scene.records
    assert record.observed
    assert record.payload.client_instance_id == key.instance_id("here")


def test_a_client_that_has_said_goodbye_does_not_come_back(scene: Scene) -> None:
    instance_id = scene.pushing("a")
    told_by(scene.broker.context("a"), scene)
    scene.broker.manager.connection_closed("a", in_order=True)

    scene.clock.advance(CHECK_MS)

    assert [each.payload.client_instance_id == instance_id for each in scene.records] == [False]


def test_an_observed_client_whose_end_others_have_told_does_not_come_back(scene: Scene) -> None:
    connection = scene.incidents.connection(STRANGER, bytes(16))
    scene.incidents.known = lambda key: Known(connection, (("observed", "true"),))
    scene.happens()
    scene.clock.advance(CHECK_MS)
    assert len(scene.taken()) == 1

    scene.incidents.known = lambda key: None
    scene.happens()
    scene.clock.advance(REPEAT_MS)
    scene.clock.advance(QUIET_MS + CHECK_MS)

    assert scene.taken() == []


def test_an_observed_client_that_is_reported_keeps_its_labels_and_its_life(scene: Scene) -> None:
    scene.happens()
    connection = scene.incidents.connection(STRANGER, bytes(16))
    scene.incidents.known = lambda key: Known(connection, (("observed", "true"), ("group_id", "billing")))
    scene.clock.advance(CHECK_MS)

    (record,) = scene.taken()
    (point,) = data_points(record.payload.data)
    assert point.resource["group_id"] == "billing"
    scene.clock.advance(QUIET_MS + CHECK_MS)
    assert scene.records == []


def test_the_series_of_a_client_are_bounded(scene: Scene) -> None:
    for number in range(MOST_OF_CLIENT + 5):
        scene.happens(labels={"mechanism": "PLAIN", "user": f"user-{number}"})
    scene.clock.advance(CHECK_MS)

    (record,) = scene.records
    found = values(record)
    assert len(found) == MOST_OF_CLIENT + 1
    assert found[OTHER, OTHER] == 5


def test_the_series_of_all_clients_are_bounded() -> None:
    scene = Scene(most=3)
    for number in range(5):
        scene.happens(key=STRANGER._replace(client_id=f"client-{number}"))
        scene.happens(key=STRANGER._replace(client_id=f"client-{number}"))

    assert scene.rows() == {
        "odradek.incidents.clients": 3,
        "odradek.incidents.series": 3,
        "odradek.incidents.left.out": 4,
    }


def test_a_label_is_cut(scene: Scene) -> None:
    scene.happens(labels={"mechanism": "PLAIN", "user": "u" * 10_000})
    scene.clock.advance(CHECK_MS)

    (record,) = scene.records
    assert max(len(text) for labels in values(record) for text in labels) == 249


def test_what_lasts_is_told_as_long_as_it_lasts(scene: Scene) -> None:
    scene.incidents.lasts(STRANGER, THROTTLED, QUOTA, 25_000)

    for passed_ms in (1_000, 10_000, 10_000, 4_000):
        scene.clock.advance(CHECK_MS if passed_ms == CHECK_MS else REPEAT_MS)
        (record,) = scene.taken()
        assert list(values(record).values()) == [passed_ms]

    scene.clock.advance(QUIET_MS + CHECK_MS)
    assert [each.payload.terminating for each in scene.taken()] == [True]


def test_time_that_passes_for_two_reasons_counts_once(scene: Scene) -> None:
    scene.incidents.lasts(STRANGER, THROTTLED, QUOTA, 400)
    scene.clock.advance(200)
    scene.incidents.lasts(STRANGER, THROTTLED, QUOTA, 300)
    scene.clock.advance(400)
    scene.incidents.lasts(STRANGER, THROTTLED, QUOTA, 100)
    scene.clock.advance(400)

    (record,) = scene.taken()
    assert list(values(record).values()) == [500 + 100]


def test_a_throttled_client_that_closes_is_told_of_no_longer(scene: Scene) -> None:
    scene.pushing("a")
    key = key_of_request(scene.broker.context("a"))
    scene.incidents.lasts(key, THROTTLED, QUOTA, 60_000, "a")
    scene.clock.advance(CHECK_MS)
    assert [each.observed for each in scene.taken()] == [False]

    scene.broker.manager.connection_closed("a", in_order=True)
    scene.clock.advance(3 * REPEAT_MS)

    assert scene.taken() == []


def test_a_lost_client_is_told_with_its_labels() -> None:
    scene = Scene()
    instance_id = scene.pushing("a")
    goodbyes = scene.broker.manager.goodbyes
    goodbyes.tell = scene.incidents.lost
    scene.broker.manager.connection_closed("a", in_order=False)

    scene.clock.advance(2 * INTERVAL_MS)

    (record,) = scene.taken()
    (point,) = data_points(record.payload.data)
    assert (point.metric, point.value, point.attributes) == (LOST, 1, {"why": "connection"})
    assert point.resource["group_id"] == "billing"
    assert record.payload.client_instance_id == instance_id
    assert not record.payload.terminating


def test_many_clients_are_written_in_several_passes(scene: Scene) -> None:
    for number in range(2 * WRITTEN_AT_ONCE):
        scene.happens(key=STRANGER._replace(client_id=f"client-{number}"))

    scene.incidents.turn()
    assert len(scene.records) == WRITTEN_AT_ONCE

    scene.clock.advance(1)
    assert len(scene.records) == 2 * WRITTEN_AT_ONCE


def test_a_program_that_stops_writes_what_is_left(scene: Scene) -> None:
    scene.happens()

    scene.incidents.stop()
    scene.happens()

    assert [list(values(each).values()) for each in scene.records] == [[1]]


def test_a_client_with_a_few_incidents_now_and_then_ends_before_it_counts_as_silent(scene: Scene) -> None:
    joins = {"group": "billing"}
    for _ in range(3):
        scene.incidents.add(STRANGER, GROUP_JOINS, joins)
    scene.clock.advance(CHECK_MS)
    assert [each.payload.terminating for each in scene.taken()] == [False]

    for _ in range(2):
        scene.clock.advance(QUIET_MS // 2)
        scene.incidents.add(STRANGER, GROUP_JOINS, joins)
    scene.clock.advance(2 * CHECK_MS)

    assert [each.payload.terminating for each in scene.taken()] == [True]
