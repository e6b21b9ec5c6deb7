"""Openings and closings of anomalies reach each destination once, whatever fails in between."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from odradek.endpoints.http_answer import HttpAnswer
from odradek_spark.jobs import destinations
from odradek_spark.jobs.deliver import Delivered, run_deliver
from odradek_spark.jobs.destinations import Alertmanager, Destination, Event, NotDelivered, Webhook, post
from odradek_spark.jobs.rewriting import rewritten, rows_of
from odradek_tables.dataset import LOG_PROPERTIES, Dataset
from odradek_tables.files import write_files
from odradek_tables.log import live
from odradek_tables.query.reader import Reader
from odradek_tables.schemas import ANOMALIES

NOW = datetime(2026, 9, 22, 12, tzinfo=UTC)
HOOK = Webhook("http://hook.test/secret")
Values = dict[str, Any]


def episode(client_id: str = "orders", **values: Any) -> Values:
    row: Values = dict.fromkeys(ANOMALIES.schema.names)
    began = NOW - timedelta(minutes=5)
    row |= {"rule": "throttled-produce", "client_instance_id": "i1", "client_id": client_id, "name": "m"}
    row |= {"started_ts": began, "fired_ts": NOW, "last_ts": NOW, "last_recv_ts": NOW, "date": "2026-09-22"}
    row |= {"state": "open", "op": ">", "threshold": 0.0, "last": 7.0, "worst": 9.0, "delivered": ""}
    return row | {"principal": "User:o", "client_rack": "r1", "attrs": '{"node.id":"2"}'} | values


def ended(**values: Any) -> Values:
    row: Values = {"state": "closed", "closed_ts": NOW, "reason": "recovered"}
    return episode() | row | values


class Sent:
    """Requests that were accepted; fails for each number in ``fails``."""

    def __init__(self, *fails: int) -> None:
        self.fails, self.requests = fails, 0
        self.events: list[tuple[str, str]] = []

    def __call__(self, destination: Destination, events: Sequence[Event], _: datetime) -> None:
        self.requests += 1
        if self.requests in self.fails:
            raise NotDelivered("hook.test answered 503")
        self.events += [(str(each.row["client_id"]), each.event) for each in events]


@pytest.fixture
def dataset(tmp_path: Path) -> Dataset:
    made = Dataset(str(tmp_path))
    made.create([ANOMALIES])
    return made


def store(dataset: Dataset, *rows: Values) -> None:
    table = pa.Table.from_pylist(list(rows), schema=ANOMALIES.schema)
    dataset.exchange(ANOMALIES, [], write_files(dataset.root, ANOMALIES, table), data_change=True)


def deliver(
    dataset: Dataset, sent: Sent, to: Destination = HOOK, after: timedelta = timedelta()
) -> Delivered:
    done = run_deliver(dataset.root, [to], NOW + after, sent)
    assert done is not None
    return done


def test_an_opening_and_a_closing_are_delivered_once(dataset: Dataset) -> None:
    sent = Sent()
    store(dataset, episode())
    for _ in range(2):
        deliver(dataset, sent)
    files = live(dataset.existing(ANOMALIES))
    (row,) = rows_of(dataset, files)
    row |= {"state": "closed", "closed_ts": NOW}
    rewritten(dataset, [row], files, {})
    for _ in range(2):
        deliver(dataset, sent)

    assert sent.events == [("orders", "opened"), ("orders", "closed")]
    assert sent.requests == 2


def test_what_was_not_accepted_is_delivered_by_the_next_run(dataset: Dataset) -> None:
    sent = Sent(1)
    store(dataset, ended())

    first = deliver(dataset, sent)
    second = deliver(dataset, sent)

    assert first.line() == "deliver: webhook: hook.test answered 503; the next run tries again"
    assert second.line() == "deliver: 1 openings, 1 closings"
    assert sent.events == [("orders", "opened"), ("orders", "closed")]


@pytest.mark.parametrize(
    "row",
    [
        episode(delivered=None),
        ended(closed_ts=NOW - timedelta(days=2)),
        ended(delivered="webhook=closed"),
    ],
    ids=["older than destinations", "long over", "delivered"],
)
def test_what_is_over_or_delivered_stays_quiet(dataset: Dataset, row: Values) -> None:
    sent = Sent()
    store(dataset, row)

    assert deliver(dataset, sent).line() is None
    assert sent.requests == 0


def test_a_new_destination_gets_what_is_open(dataset: Dataset) -> None:
    sent = Sent()
    store(dataset, episode(delivered="webhook=opened"))

    run_deliver(dataset.root, [HOOK, Alertmanager("http://am.test")], NOW, sent)

    (row,) = rows_of(dataset, live(dataset.existing(ANOMALIES)))
    assert row["delivered"] == "alertmanager=opened webhook=opened"


def test_alertmanager_is_told_again_while_an_alert_is_open(dataset: Dataset) -> None:
    sent = Sent()
    store(dataset, episode())

    lines = [deliver(dataset, sent, Alertmanager("http://am.test")).line() for _ in range(2)]

    assert lines == ["deliver: 1 openings, 0 closings", None]
    assert sent.requests == 2


def test_the_body_of_alertmanager_has_the_labels_of_the_client() -> None:
    body: Any = Alertmanager("http://am.test/").body(
        [Event(episode(), "opened"), Event(ended(), "closed")], NOW
    )

    assert body[0]["labels"] == {
        "alertname": "throttled-produce",
        "metric": "m",
        "job": "odradek",
        "client_id": "orders",
        "client_instance_id": "i1",
        "principal": "User:o",
        "client_rack": "r1",
        "node_id": "2",
    }
    assert body[0]["annotations"]["question"] == "Is a producer throttled?"
    assert [each["endsAt"] for each in body] == ["2026-09-22T12:15:00+00:00", "2026-09-22T12:00:00+00:00"]
    assert Alertmanager("http://am.test/").url == "http://am.test/api/v2/alerts"


def test_the_body_of_a_webhook_is_json_with_an_id() -> None:
    body: Any = HOOK.body([Event(episode(worst=float("inf")), "opened")], NOW)

    (told,) = body["anomalies"]
    assert (told["event"], told["client_id"], told["worst"]) == ("opened", "orders", "inf")
    assert told["id"] == 'throttled-produce/i1/m{"node.id":"2"}/2026-09-22T11:55:00+00:00/opened'
    assert "delivered" not in told


@pytest.mark.parametrize(
    ("code", "pauses", "advice"),
    [
        (503, [1.0, 3.0], ""),
        (429, [1.0, 3.0], ""),
        (400, [], ""),
        (302, [], ": it has moved; correct the URL"),
    ],
)
def test_only_passing_refusals_are_retried(
    monkeypatch: pytest.MonkeyPatch, code: int, pauses: list[float], advice: str
) -> None:
    monkeypatch.setattr(destinations, "exchange", lambda url, **_: HttpAnswer(code, {}, "text/plain", b""))
    slept: list[float] = []

    with pytest.raises(NotDelivered, match=f"^hook.test answered {code}{advice}$"):
        post(HOOK, [Event(episode(), "opened")], NOW, slept.append)

    assert slept == pauses


def test_a_table_of_an_older_version_is_read_and_upgraded(tmp_path: Path) -> None:
    dataset = Dataset(str(tmp_path))
    dataset.create()
    old = pa.schema([each for each in ANOMALIES.schema if each.name not in ANOMALIES.added])
    DeltaTable.create(dataset.uri(ANOMALIES), old, partition_by=["date"], configuration=dict(LOG_PROPERTIES))
    row = pa.Table.from_pylist([ended()], schema=ANOMALIES.schema).select(old.names)
    write_deltalake(dataset.uri(ANOMALIES), row, mode="append")
    reader = Reader(dataset.root)
    before = reader.ask("SELECT client_id, principal, throttle_ms FROM anomalies").to_pylist()
    reader.close()

    store(dataset, episode("pay"))

    reader = Reader(dataset.root)
    after = reader.ask("SELECT client_id, principal FROM anomalies ORDER BY 1").to_pylist()
    reader.close()
    assert before == [{"client_id": "orders", "principal": None, "throttle_ms": None}]
    assert [tuple(each.values()) for each in after] == [("orders", None), ("pay", "User:o")]
    found = dataset.existing(ANOMALIES)
    assert [each.name for each in found.schema().fields if each.name == "delivered"] == ["delivered"]
