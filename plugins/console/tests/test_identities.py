"""One row a client: what it pushes, and what gateways or hosts observe of it."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric

from odradek.client.admin import AdminClient
from odradek_console.rows import ClientRow
from odradek_console.view import View
from support.delta_clients import A, B, counter, point
from support.watched_clients import WatchedClients, level, ms, total

SEEN, OTHER = b"S" * 16, b"T" * 16
SENT = "producer.record.send.total"
LATENCY = "producer.node.request.latency.avg"
THROTTLE = "producer.produce.throttle.time.avg"


class Scene:
    """A view with clients that push and others that are observed."""

    def __init__(self) -> None:
        self.at_s = 60.0
        self.view = View(AdminClient, now_ms=lambda: ms(self.at_s))  # type: ignore[arg-type]
        self.clients = WatchedClients(self.view.fleet)

    def push(self, at_s: float, *metrics: Metric, instance: bytes = A, **facts: Any) -> None:
        self.at_s = at_s
        self.clients.push(at_s, *(metrics or (total(SENT, 60, at_s, at_s - 60),)), instance=instance, **facts)

    def see(self, at_s: float, *metrics: Metric, instance: bytes = SEEN, **facts: Any) -> None:
        told = metrics or (observed("produce.records", 600, at_s), observed("produce.bytes", 6e6, at_s))
        self.push(at_s, *told, instance=instance, observed=True, **facts)

    def rows(self) -> list[ClientRow]:
        return self.view.clients()


def observed(name: str, value: float, at: float, **labels: str) -> Metric:
    """What a gateway has counted in the last minute."""
    return counter(point(value, at - 60, at, labels), name=f"io.odradek.observed.client.{name}")


@pytest.fixture
def scene() -> Scene:
    return Scene()


def test_a_client_that_pushes_and_is_observed_has_one_row(scene: Scene) -> None:
    for at_s in (60, 120, 180):
        scene.push(at_s)
        scene.see(at_s)

    (row,) = scene.rows()
    detail = scene.view.client("orders-1")

    assert row.sources == ("pushed", "observed")
    assert (row.figures["records"].source, row.figures["records"].value) == ("pushed", 1)
    assert (row.figures["bytes"].source, row.figures["bytes"].value) == ("observed", 1e5)
    assert detail is not None
    assert [each.client_instance_id for each in detail.parts] == ["U1NTU1NTU1NTU1NTU1NTUw"]
    assert {each.source for each in detail.series} == {"pushed", "observed"}
    assert detail.others == ()


def test_the_id_of_what_was_observed_leads_to_the_client(scene: Scene) -> None:
    scene.push(60)
    scene.see(60)

    detail = scene.view.client("U1NTU1NTU1NTU1NTU1NTUw")

    assert detail is not None
    assert detail.row.client_instance_id == scene.rows()[0].client_instance_id


def test_a_group_counts_its_members_once(scene: Scene) -> None:
    for at_s in (60, 120, 180):
        scene.push(at_s, level("consumer.coordinator.assigned.partitions", 4, at_s), group_id="g")
        scene.see(at_s, level("consumer.coordinator.assigned.partitions", 4, at_s), group_id="g")

    group = scene.view.fleet.groups.at(ms(180))["g"]

    assert len(group.members) == len(group.partitions) == 1


@pytest.mark.parametrize(
    "facts", [{"client_id": "other"}, {"principal": "User:b"}, {"client_address": "10.9.9.9"}]
)
def test_another_client_has_a_row_of_its_own(scene: Scene, facts: dict[str, Any]) -> None:
    scene.push(60)
    scene.see(60, **facts)

    assert [each.sources for each in scene.rows()] == [("pushed",), ("observed",)]


def test_two_gateways_see_a_part_each(scene: Scene) -> None:
    for at_s in (60, 120):
        scene.see(at_s)
        scene.see(at_s, level(LATENCY, 7, at_s), observed("produce.records", 60, at_s), instance=OTHER)

    (row,) = scene.rows()

    assert row.sources == ("observed",)
    assert row.figures["records"].value == 11
    assert row.figures["latency"].value == 7


def test_what_is_of_several_instances_is_no_figure_of_one(scene: Scene) -> None:
    for at_s in (60, 120):
        scene.push(at_s)
        scene.push(at_s, instance=B)
        scene.see(at_s)

    rows = scene.rows()

    assert len(rows) == 2
    assert [set(each.figures) for each in rows] == [{"records"}, {"records"}]
    assert sum("observed" in each.sources for each in rows) == 1


def test_a_client_that_has_left_and_came_back_without_telemetry_is_observed(scene: Scene) -> None:
    scene.push(60, terminating=True)
    scene.see(60)
    together = len(scene.rows())
    scene.see(6_000)

    assert together == 1
    assert sorted((str(each.state), each.sources) for each in scene.rows()) == [
        ("gone", ("pushed",)),
        ("live", ("observed",)),
    ]


@pytest.mark.parametrize("terminating", [True, False])
def test_what_was_observed_goes_to_the_instance_after_a_restart(scene: Scene, *, terminating: bool) -> None:
    scene.push(60, terminating=terminating)
    scene.see(60)
    scene.push(300, instance=B)
    scene.see(300)

    before, after = scene.rows()

    assert (before.sources, after.sources) == (("pushed",), ("pushed", "observed"))
    assert "bytes" in after.figures


def test_a_finding_of_what_was_observed_is_one_of_the_client(scene: Scene) -> None:
    for at_s in range(60, 600, 60):
        scene.push(at_s)
        scene.see(at_s, level(THROTTLE, 5, at_s))

    (row,) = scene.rows()

    assert "throttled-produce" in row.findings
    assert row.figures["throttled"].source == "observed"


def test_a_gateway_that_ends_makes_no_client_silent(scene: Scene) -> None:
    scene.see(60)
    for at_s in range(60, 700, 60):
        scene.push(at_s)

    (row,) = scene.rows()

    assert (str(row.state), row.findings) == ("live", ())


def test_a_client_that_has_fallen_silent_has_no_figures(scene: Scene) -> None:
    for at_s in (60, 120):
        scene.push(at_s)
        scene.see(at_s)
    live = set(scene.rows()[0].figures)
    for at_s in range(120, 1_000, 60):
        scene.push(at_s, instance=B, client_id="other")
    silent = scene.rows()[0]

    assert live == {"records", "bytes"}
    assert (str(silent.state), silent.figures) == ("silent", {})


def test_a_row_is_made_again_after_either(scene: Scene) -> None:
    scene.push(60)
    scene.see(60)
    first = scene.rows()[0]
    scene.see(120)
    second = scene.rows()[0]

    assert scene.rows()[0] is second
    assert second is not first


def test_all_rows_are_made_ready(scene: Scene) -> None:
    for instance in (A, B):
        scene.push(60, instance=instance)
    scene.see(60)

    assert scene.view.rows.check(10, ms(60))
    assert scene.view.fleet.unchecked() == []


def test_a_forgotten_client_leaves_no_trace(scene: Scene) -> None:
    scene.push(60)
    scene.see(60)

    scene.view.fleet.expire(ms(100_000))

    assert scene.view.fleet.identities.found == {}


def test_the_slowest_hundredth_is_known_from_a_gateway(scene: Scene) -> None:
    for at_s, slow in ((60, 0), (120, 10)):
        metric = Metric(name="io.odradek.observed.client.latency")
        metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
        found = metric.histogram.data_points.add(
            start_time_unix_nano=ms(at_s - 60) * 10**6, time_unix_nano=ms(at_s) * 10**6, count=990 + slow
        )
        found.attributes.add(key="api").value.string_value = "Produce"
        found.explicit_bounds[:] = [10, 100, 1000]
        found.bucket_counts[:] = [990, 0, slow, 0]
        scene.push(at_s, level("producer.request.latency.max", 3, at_s))
        scene.see(at_s, metric)

    figure = scene.rows()[0].figures["latency"]

    assert (figure.what, figure.source) == ("p99", "observed")
    assert figure.value == pytest.approx(10)


def test_a_changed_subscription_is_no_refusal(scene: Scene) -> None:
    scene.push(60, refused=117)
    scene.push(70, refused=118)

    assert (scene.rows()[0].refused, scene.rows()[0].last_error) == (1, "TELEMETRY_TOO_LARGE")
