from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from odradek.cli.client_view import OWN, ClientRow, ClientView
from odradek.plugin.context import UNKNOWN, ClientTelemetryContext
from odradek.plugin.payload import ClientTelemetryPayload
from odradek.testing import request_context
from odradek.wire.uuid_text import uuid_text

INSTANCE = bytes(range(16))
VALUES = {
    "producer.request.latency.avg": 12.94,
    "producer.record.queue.time.avg": 0.03427,
    "producer.connection.creation.total": 2.0,
}


def view() -> ClientView:
    """One producer, with the longest names that librdkafka sends."""
    shown = ClientView()
    row = ClientRow(INSTANCE, "demo-producer", "confluent-kafka-python", "2.16.1-rdkafka-2.16.0")
    row.pushes, row.payload_bytes, row.data_points = 3600, 123_456, 36_000
    row.values = dict(VALUES)
    row.attributes = {"client_instance_id": uuid_text(INSTANCE)} | {f"label{n}": "" for n in range(10)}
    shown.rows[INSTANCE] = row
    return shown


@pytest.mark.parametrize("columns", [60, 80])
def test_no_cell_is_folded_on_a_narrow_terminal(columns: int) -> None:
    printed = io.StringIO()
    Console(file=printed, width=columns).print(view().table())

    lines = [line.split() for line in printed.getvalue().splitlines()]

    assert lines[0] == ["client", "instance", "pushed", "latest", "values"]
    assert lines[2:6] == [
        ["demo-producer", "3600", "pushes", "request", "time", "12.9", "ms"],
        ["confluent-kafka-python", "123456", "bytes", "queue", "time", "0.0343", "ms"],
        ["2.16.1-rdkafka-2.16.0", "3", "metrics", "connections", "2"],
        [uuid_text(INSTANCE), "11", "attributes"],
    ]


def test_a_group_is_no_client() -> None:
    """The lag of groups comes as records, too, from no address."""
    shown = ClientView()
    request = request_context()
    context = replace(request, connection=replace(request.connection, client_address=""))
    payload = ClientTelemetryPayload(INSTANCE, terminating=False, data=b"")

    shown.export_metrics(ClientTelemetryContext(300_000, context), payload)

    assert shown.rows == {}


def test_large_values_are_whole_numbers() -> None:
    shown = view()
    shown.rows[INSTANCE].values["producer.request.latency.avg"] = 1234.5

    assert "request time 1234 ms" in shown.lines()[0]


@pytest.mark.parametrize("columns", [65, 80])
def test_an_observed_client_has_its_gateway_and_what_it_produced(columns: int) -> None:
    shown, printed = view(), io.StringIO()
    row = shown.rows[INSTANCE]
    row.software_name = row.software_version = UNKNOWN
    row.attributes |= {"observed": "true", "gateway": "edge-2"}
    row.values = {
        "producer.node.request.latency.avg": 0.35,
        f"{OWN}produce.records": 23_540,
        f"{OWN}produce.bytes": 123_456_789,
    }

    Console(file=printed, width=columns).print(shown.table())

    lines = [line.split() for line in printed.getvalue().splitlines()]
    assert lines[2:6] == [
        ["demo-producer", "observed", "3600", "times", "request", "time", "0.35", "ms"],
        ["unknown", "software", "123456", "bytes", "sent", "23540", "records"],
        [uuid_text(INSTANCE), "3", "metrics", "sent", "123456789", "bytes"],
        ["at", "gateway", "edge-2", "13", "attributes"],
    ]
    assert shown.lines()[0].startswith("producer client_id=demo-producer")
    assert " observed=yes " in shown.lines()[0]
