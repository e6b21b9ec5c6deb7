"""Records that no host has written do not stop the reading."""

from __future__ import annotations

import pytest

from odradek.client.admin import AdminClient
from odradek.client.fetch import Received
from odradek.topic import MalformedTelemetry, encode_headers, record_key
from odradek.wire.record import Record
from odradek.wire.record_batch import RecordBatchHeader
from odradek_console.reading.records import decoded
from odradek_console.view import View
from support.watched_clients import WatchedClients, total

HEADER = RecordBatchHeader(*[0] * 13)


def received(**changed: bytes) -> Received:
    """A push of which some headers are changed."""
    push = WatchedClients().record(60, total("x", 1, 60, 0))
    headers = tuple((name, changed.get(name, value)) for name, value in encode_headers(push))
    key = record_key(push.payload.client_instance_id)
    return Received(("t", 0), HEADER, Record(key, push.payload.data, headers=headers))


def nowhere() -> AdminClient:
    raise AssertionError("the cluster is not asked")


def test_a_push_is_decoded() -> None:
    assert decoded(received()).context.client_id == "orders-1"


@pytest.mark.parametrize(
    "changed",
    [
        {"received_ms": b"-1"},
        {"received_ms": b"253402300800000"},
        {"received_ms": b"9" * 400},
        {"received_ms": b"noon"},
        {"push_interval_ms": b"9" * 400},
        {"push_interval_ms": b"-5"},
        {"client_source_port": b"9" * 5_000},
        {"codec": b"rot13"},
    ],
)
def test_a_number_that_cannot_be_shown_is_refused_and_counted(changed: dict[str, bytes]) -> None:
    found, reader = received(**changed), View(nowhere).reader
    with pytest.raises(MalformedTelemetry):
        decoded(found)

    (kept,) = reader.decoded([found, received()])

    assert kept.context.client_id == "orders-1"
    assert reader.fleet.counts.malformed_records == 1


def test_a_group_is_no_client() -> None:
    """The lag of groups is in the topic, too."""
    of_group = received()
    of_group = of_group._replace(
        record=of_group.record._replace(headers=(*of_group.record.headers, ("source", b"lag")))
    )
    reader = View(nowhere).reader

    for each in reader.decoded([of_group, received()]):
        reader.add_one(each)

    assert len(reader.fleet.clients) == reader.fleet.counts.records == 1
    assert reader.fleet.counts.malformed_records == 0
