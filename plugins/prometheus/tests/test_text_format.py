"""The text formats: what other parsers read of them."""

from __future__ import annotations

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict_families
from prometheus_client.parser import text_string_to_metric_families as families

from odradek_prometheus import text_format
from odradek_prometheus.text_format import Format, Page
from support.delta_clients import A, B, counter, d, gauge, ms, nanos, point
from support.exposed_clients import Exposed

OPENMETRICS, TEXT = Format(openmetrics=True), Format(openmetrics=False)
Sample = tuple[str, float]


def page(exposed: Exposed, style: Format, at: float = 60) -> str:
    return b"".join(Page(exposed.exposition.clients(), ms(at), style).pieces()).decode()


def samples(text: str, style: Format, **labels: str) -> list[Sample]:
    """Name and value of each sample with these labels, as a strict parser reads them."""
    found = strict_families(text) if style.openmetrics else families(text)  # type: ignore[no-untyped-call]
    return [
        (sample.name, sample.value)
        for family in found
        for sample in family.samples
        if labels.items() <= sample.labels.items()
    ]


def histogram(second: float = 60) -> Metric:
    metric = Metric(name="latency", unit="ms")
    metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
    found = metric.histogram.data_points.add(
        start_time_unix_nano=nanos(0), time_unix_nano=nanos(second), count=6, sum=12.5
    )
    found.explicit_bounds.extend([1.0, 5.0])
    found.bucket_counts.extend([1, 2, 3])
    return metric


def exponential() -> Metric:
    metric = Metric(name="size", unit="By")
    metric.exponential_histogram.aggregation_temporality = 1  # type: ignore[assignment]
    found = metric.exponential_histogram.data_points.add(
        start_time_unix_nano=nanos(0), time_unix_nano=nanos(60), count=3, sum=9.0, scale=1
    )
    found.positive.bucket_counts.extend([1, 2])
    return metric


def test_the_page_of_one_client() -> None:
    exposed = Exposed(labels=("client_instance_id", "client_id"))
    exposed.push(d(5.0, 0, 60, topic='a"b\\c\nd'), gauge(0.25), at=60)

    found = page(exposed, OPENMETRICS, at=61).splitlines()

    client = 'client_id="orders",client_instance_id="QUFBQUFBQUFBQUFBQUFBQQ"'
    assert found[:6] == [
        "# HELP c c, as the client names it.",
        "# TYPE c counter",
        f'c_total{{{client},topic="a\\"b\\\\c\\nd"}} 5.0',
        "# HELP g g, as the client names it.",
        "# TYPE g gauge",
        f"g{{{client}}} 0.25",
    ]
    assert found[-1] == "# EOF"
    assert f"odradek_client_last_push_age_seconds{{{client}}} 1.0" in found
    assert f"odradek_client_push_interval_seconds{{{client}}} 60.0" in found
    assert f"odradek_client_terminated{{{client}}} 0.0" in found
    assert "# UNIT odradek_client_last_push_age_seconds seconds" in found
    assert [line for line in found if line.startswith("kafka_client_info")] == [
        f'kafka_client_info{{broker_node_id="1",{client},client_software_name="unknown",'
        'client_software_version="unknown",client_source_address="127.0.0.1",client_source_port="50000",'
        'principal="User:ANONYMOUS"} 1.0'
    ]


@pytest.mark.parametrize("style", [OPENMETRICS, TEXT], ids=["openmetrics", "text"])
def test_a_parser_reads_what_clients_have_pushed(style: Format) -> None:
    exposed = Exposed()
    for instance in (A, B):
        exposed.push(
            d(5.0, 0, 60, topic="t"), gauge(float("inf")), histogram(), exponential(), instance=instance
        )

    found = samples(page(exposed, style), style, client_instance_id="QkJCQkJCQkJCQkJCQkJCQg")

    assert [each for each in found if not each[0].startswith(("odradek_", "kafka_"))] == [
        ("c_total", 5.0),
        ("g", float("inf")),
        ("latency_milliseconds_bucket", 1.0),
        ("latency_milliseconds_bucket", 3.0),
        ("latency_milliseconds_bucket", 6.0),
        ("latency_milliseconds_count", 6.0),
        ("latency_milliseconds_sum", 12.5),
        ("size_bytes_bucket", 3.0),
        ("size_bytes_count", 3.0),
        ("size_bytes_sum", 9.0),
    ]


def test_the_start_of_a_total_is_shown_on_request() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), histogram(), gauge(1.0))

    found = dict(samples(page(exposed, Format(created=True)), OPENMETRICS))

    assert found["c_created"] == found["latency_milliseconds_created"] == nanos(0) / 1e9
    assert "g_created" not in found
    assert "_created" not in page(exposed, Format(openmetrics=False, created=True))
    assert "_created" not in page(exposed, OPENMETRICS)


def test_a_label_that_collides_is_renamed_in_its_line_only() -> None:
    exposed = Exposed(labels=("client_instance_id", "client_id"))
    exposed.push(counter(point(1.0, 0, 60), point(2.0, 0, 60, {"client_id": "mine"})))

    lines = [line for line in page(exposed, TEXT).splitlines() if line.startswith("c_total")]

    instance = 'client_instance_id="QUFBQUFBQUFBQUFBQUFBQQ"'
    assert lines == [
        f'c_total{{client_id="orders",{instance}}} 1.0',
        f'c_total{{client_id="mine",{instance},host_client_id="orders"}} 2.0',
    ]


def test_names_may_be_those_of_the_client() -> None:
    exposed = Exposed(labels=("client_instance_id",))
    metric = d(5.0, 0, 60, topic="t")
    metric.name = "org.apache.kafka.producer.record.send.total"
    exposed.push(metric)

    lines = page(exposed, Format(utf8=True)).splitlines()

    assert lines[:3] == [
        '# HELP "org.apache.kafka.producer.record.send.total" Records sent; those of a batch that is sent '
        "again count again.",
        '# TYPE "org.apache.kafka.producer.record.send.total" counter',
        '{"org.apache.kafka.producer.record.send.total",'
        'client_instance_id="QUFBQUFBQUFBQUFBQUFBQQ",topic="t"} 5.0',
    ]


@pytest.mark.parametrize("style", [OPENMETRICS, TEXT], ids=["openmetrics", "text"])
def test_pieces_do_not_change_the_page(style: Format, monkeypatch: pytest.MonkeyPatch) -> None:
    exposed = Exposed()
    for number in range(7):
        metrics = [
            counter(*(point(1.0, 0, 60, {"n": n}) for n in range(number)), name=name) for name in "abc"
        ]
        exposed.push(*metrics, gauge(1.0), instance=bytes([number]) * 16)
    whole = page(exposed, style)
    monkeypatch.setattr(text_format, "PIECE_LINES", 5)

    pieces = list(Page(exposed.exposition.clients(), ms(60), style).pieces())

    assert b"".join(pieces).decode() == whole
    assert len(pieces) > 10
    assert all(pieces)
    headers = [line for line in whole.splitlines() if line.startswith("# TYPE")]
    assert len(headers) == len(set(headers))


@pytest.mark.parametrize(("style", "expected"), [(OPENMETRICS, "# EOF\n"), (TEXT, "")])
def test_a_page_without_clients(style: Format, expected: str) -> None:
    assert page(Exposed(), style) == expected


def test_a_family_whose_series_have_ended_has_no_header() -> None:
    exposed = Exposed()
    exposed.push(d(5.0, 0, 60), at=60)
    ended = [exposed.push(gauge(1.0, time=second), at=second).ended for second in range(120, 360, 60)]

    assert any(ended)
    assert "# TYPE c " not in page(exposed, OPENMETRICS)
    assert "# TYPE g " in page(exposed, OPENMETRICS)
