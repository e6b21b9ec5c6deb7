"""The output: one JSON line per push."""

from __future__ import annotations

import io
import json
import os
from dataclasses import replace

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, MetricsData, ResourceMetrics, ScopeMetrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from odradek.hosting.stdout_receiver import StdoutReceiver, odradek_client_telemetry, plain
from odradek.plugin import (
    ClientTelemetryContext,
    ClientTelemetryPayload,
    PluginConfig,
)
from odradek.testing import request_context


def context() -> ClientTelemetryContext:
    request = request_context(
        listener_name="EXTERNAL",
        client_address="10.1.2.3",
        client_port=40_000,
        node_id=7,
        client_software_name="librdkafka",
        client_software_version="2.16.1",
        client_id="orders",
        received_ms=1_700_000_000_000,
    )
    return ClientTelemetryContext(push_interval_ms=1_000, request=request)


def payload(*names: str, **labels: str) -> ClientTelemetryPayload:
    """One ResourceMetrics per metric, as the Java client sends it."""
    attributes = [KeyValue(key=key, value=AnyValue(string_value=value)) for key, value in labels.items()]
    data = MetricsData(
        resource_metrics=[
            ResourceMetrics(
                resource=Resource(attributes=attributes),
                scope_metrics=[ScopeMetrics(metrics=[Metric(name=name)])],
            )
            for name in names
        ]
    )
    return ClientTelemetryPayload(
        client_instance_id=bytes(range(16)), terminating=True, data=data.SerializeToString()
    )


def test_a_push_is_one_line_with_context_names_and_labels() -> None:
    stream = io.StringIO()
    receiver = StdoutReceiver(stream)

    receiver.export_metrics(context(), payload("b", "a", "b", team="payments"))

    assert stream.getvalue().count("\n") == 1
    assert json.loads(stream.getvalue()) == {
        "context": {
            "client_id": "orders",
            "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
            "client_software_name": "librdkafka",
            "client_software_version": "2.16.1",
            "client_source_address": "10.1.2.3",
            "client_source_port": 40000,
            "principal": "User:ANONYMOUS",
            "listener": "EXTERNAL",
            "broker_id": 7,
            "push_interval_ms": 1000,
            "received_ms": 1_700_000_000_000,
            "terminating": True,
        },
        "metrics": 3,
        "names": ["a", "b"],
        "labels": {"team": "payments"},
    }


def test_a_push_that_was_refused_and_kept_says_so() -> None:
    stream = io.StringIO()

    StdoutReceiver(stream).export_metrics(context(), replace(payload("a"), refused=117))

    assert json.loads(stream.getvalue())["context"]["refused"] == 117


def test_a_payload_without_resources_has_no_labels() -> None:
    stream = io.StringIO()
    receiver = StdoutReceiver(stream)

    receiver.export_metrics(context(), payload())

    row = json.loads(stream.getvalue())
    assert (row["metrics"], row["names"], row["labels"]) == (0, [], {})


def test_each_line_is_flushed() -> None:
    raw = io.BytesIO()
    receiver = StdoutReceiver(io.TextIOWrapper(io.BufferedWriter(raw)))

    receiver.export_metrics(context(), payload("a"))

    assert raw.getvalue().endswith(b"\n")


def test_it_writes_to_the_current_stdout(capsys: pytest.CaptureFixture[str]) -> None:
    receiver = odradek_client_telemetry(PluginConfig("plugins.stdout", {})).client_telemetry_exporter()

    receiver.export_metrics(context(), payload("a"))

    assert json.loads(capsys.readouterr().out)["names"] == ["a"]


def test_a_closed_pipe_fails_every_further_push() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    stream = os.fdopen(writing, "w")
    receiver = StdoutReceiver(stream)

    for _ in range(3):
        with pytest.raises(BrokenPipeError):
            receiver.export_metrics(context(), payload("a"))

    stream.close()  # and nothing is left that could fail when Python flushes it


def test_a_closed_stream_is_a_failure() -> None:
    stream = io.StringIO()
    stream.close()
    receiver = StdoutReceiver(stream)

    with pytest.raises(BrokenPipeError):
        receiver.export_metrics(context(), payload("a"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (AnyValue(string_value="x"), "x"),
        (AnyValue(bool_value=True), True),
        (AnyValue(int_value=2**53 + 1), 2**53 + 1),
        (AnyValue(double_value=1.5), 1.5),
        (AnyValue(double_value=float("nan")), "nan"),
        (AnyValue(double_value=float("-inf")), "-inf"),
        (AnyValue(bytes_value=b"\x01\xff"), "Af8="),
        (AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue()])), [1, None]),
        (
            AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="k", value=AnyValue(int_value=1))])),
            {"k": 1},
        ),
    ],
)
def test_every_kind_of_value_is_written_as_json(value: AnyValue, expected: object) -> None:
    found = plain(value)

    assert found == expected
    json.dumps(found, allow_nan=False)
