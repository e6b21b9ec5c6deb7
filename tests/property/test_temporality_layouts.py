"""Damaged pushes: an engine that has learned layouts does with them what one without layouts does."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given, settings
from hypothesis import strategies as st
from opentelemetry.proto.metrics.v1.metrics_pb2 import MetricsData

from odradek.otlp import NotOtlp
from odradek.otlp.labeled_payload import labeler
from odradek.plugin import ClientTelemetryPayload, TelemetryRecord
from odradek.temporality import Engine, Limits
from odradek.testing.pushes import recorded
from support.examples import examples

CLIENTS = ("java-producer", "librdkafka-consumer", "franz-go")
LABEL = labeler({"client_id": "orders", "principal": "User:orders"})
PUSHES = {client: recorded(client)[1:3] for client in CLIENTS}


def record(client: str, data: bytes) -> TelemetryRecord:
    found = PUSHES[client][0].record
    return replace(found, payload=ClientTelemetryPayload(b"A" * 16, False, data))


def converted(engine: Engine, pushed: TelemetryRecord) -> bytes | None:
    """The push with totals, in one order of fields; None if it is not OTLP."""
    try:
        return MetricsData.FromString(engine.convert(pushed)).SerializeToString(deterministic=True)
    except NotOtlp:
        return None


@settings(max_examples=examples(150), deadline=None)
@given(
    st.sampled_from(CLIENTS),
    st.booleans(),
    st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    st.booleans(),
)
@example("java-producer", False, [], True)
@example("franz-go", True, [(0.349609375, 8)], True)
def test_a_damaged_push_is_the_same_with_and_without_layouts(
    client: str, keep_gauges: bool, damage: list[tuple[float, int]], again: bool
) -> None:
    quick = Engine(keep_gauges=keep_gauges)
    slow = Engine(Limits(max_layouts=0), keep_gauges=keep_gauges)
    good = [LABEL(push.data) for push in PUSHES[client]]
    bad = bytearray(good[1])
    for place, byte in damage:
        bad[int(place * len(bad))] = byte

    for data in (good[0], good[1], bytes(bad), *([bytes(bad)] if again else []), good[1]):
        pushed = record(client, data)
        assert converted(quick, pushed) == converted(slow, pushed)

    assert quick.layouts.by_number
    assert quick.counts == slow.counts
    assert [str(each) for each in quick.series(b"A" * 16)] == [str(each) for each in slow.series(b"A" * 16)]
