"""Headers of records that were copied from the log of another host."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.plugin import ClientTelemetryPayload, Origin, TelemetryRecord
from odradek.testing import request_context
from odradek.topic import encode_headers, record_key
from odradek_tables.decoder.record import ORIGIN_HEADERS, PushReader
from odradek_tables.decoder.topic_record import TopicRecord

TOPIC_ID = "x4Vb1KtGQ5a9IYmNqeLhWg"
RECORD = TelemetryRecord(
    request_context(client_id="orders", received_ms=5), 1_000, ClientTelemetryPayload(bytes(16), False, b"")
)


def copied(offset: int, **way: Any) -> TopicRecord:
    """The copy of a record of another host's log."""
    record = replace(RECORD, origin=Origin(TOPIC_ID, 1, offset), **way)
    return TopicRecord(0, offset, 5, record_key(bytes(16)), b"", encode_headers(record))


def test_the_origin_is_at_the_end_of_the_headers() -> None:
    assert tuple(name for name, _ in copied(7).headers[-3:]) == ORIGIN_HEADERS


@pytest.mark.parametrize(
    "way", [{}, {"source": "otlp"}, {"observed": True}], ids=["push", "source", "observed"]
)
def test_copies_of_a_clients_records_share_one_identity(way: dict[str, Any]) -> None:
    reader = PushReader()
    original = TopicRecord(0, 0, 5, record_key(bytes(16)), b"", encode_headers(replace(RECORD, **way)))

    records = [original, *(copied(offset, **way) for offset in range(3))]
    found = [push for record in records for push in reader.read(record)]

    assert len({id(push.identity) for push in found}) == 1
    assert [push.recv_ms for push in found] == [5] * 4
    assert [push.origin for push in found] == [None, *(f"{TOPIC_ID}-1@{offset}" for offset in range(3))]
    assert (found[0].identity.source, found[0].identity.observed) == (
        way.get("source"),
        way.get("observed", False),
    )
    assert len(reader.identities) == 1
