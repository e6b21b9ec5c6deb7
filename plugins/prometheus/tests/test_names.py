"""Names of metrics and the texts of labels (spec/temporality.md, 3.1 and 3.3)."""

from __future__ import annotations

import pytest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, KeyValue, KeyValueList

from odradek.temporality import Kind
from odradek_prometheus.families import Families, FamilyType
from odradek_prometheus.label_values import VALUE_MAX_BYTES, cut, joined, value_text
from odradek_prometheus.metric_names import escaped_name, unit_of

KAFKA = "org.apache.kafka."


@pytest.mark.parametrize(
    ("name", "unit", "kind", "expected"),
    [
        (
            f"{KAFKA}producer.record.send.total",
            "",
            Kind.COUNTER,
            "org_apache_kafka_producer_record_send_total",
        ),
        (
            f"{KAFKA}stream.failed.stream.threads",
            "",
            Kind.COUNTER,
            "org_apache_kafka_stream_failed_stream_threads_total",
        ),
        (
            f"{KAFKA}stream.thread.blocked.time.ns.total",
            "",
            Kind.GAUGE,
            "org_apache_kafka_stream_thread_blocked_time_ns_total",
        ),
        (
            f"{KAFKA}producer.buffer.total.bytes",
            "",
            Kind.GAUGE,
            "org_apache_kafka_producer_buffer_total_bytes",
        ),
        ("com.acme.total.requests", "1", Kind.COUNTER, "com_acme_requests_total"),
        ("a.b", "ms", Kind.GAUGE, "a_b_milliseconds"),
        ("a.milliseconds", "ms", Kind.GAUGE, "a_milliseconds"),
        ("a", "1", Kind.GAUGE, "a_ratio"),
        ("a", "1", Kind.SUM, "a_ratio"),
        ("a", "1", Kind.HISTOGRAM, "a"),
        ("a", "By/s", Kind.GAUGE, "a_bytes_per_second"),
        ("a", "{request}/s", Kind.GAUGE, "a_per_second"),
        ("a", "{request}", Kind.COUNTER, "a_total"),
        ("a", "foo(bar)", Kind.GAUGE, "a_foo_bar_"),
        ("a..b__c", "", Kind.GAUGE, "a_b_c"),
        ("9lives", "", Kind.GAUGE, "_9lives"),
        ("a:b", "", Kind.GAUGE, "a:b"),
        ("größe", "", Kind.GAUGE, "gr_e"),
        ("...", "", Kind.GAUGE, ""),
    ],
)
def test_a_name_is_that_of_the_collector(name: str, unit: str, kind: Kind, expected: str) -> None:
    assert escaped_name(name, unit, kind) == expected


def test_a_prefix_is_put_before_the_name() -> None:
    assert escaped_name("a.b", "", Kind.COUNTER, "clients_") == "clients_a_b_total"


@pytest.mark.parametrize(
    ("name", "unit", "expected"),
    [
        ("a_bytes_total", "By", "bytes"),
        ("a_bytes_per_second", "By/s", "bytes_per_second"),
        ("a_seconds_b", "s", ""),
        ("a", "", ""),
    ],
)
def test_a_unit_is_the_suffix_of_its_name(name: str, unit: str, expected: str) -> None:
    assert unit_of(name, unit) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (AnyValue(string_value="a"), "a"),
        (AnyValue(int_value=-1), "-1"),
        (AnyValue(bool_value=True), "true"),
        (AnyValue(double_value=0.5), "0.5"),
        (AnyValue(bytes_value=b"\xff"), "/w=="),
        (
            AnyValue(array_value=ArrayValue(values=[AnyValue(int_value=1), AnyValue(string_value="é")])),
            '[1,"é"]',
        ),
        (
            AnyValue(kvlist_value=KeyValueList(values=[KeyValue(key="a", value=AnyValue(int_value=1))])),
            '{"a":1}',
        ),
        (AnyValue(), ""),
    ],
)
def test_values_are_texts(value: AnyValue, expected: str) -> None:
    assert value_text(value) == expected


def test_values_of_the_same_label_are_joined() -> None:
    assert joined([("node_id", "1"), ("a", "b"), ("node_id", "2")]) == {"node_id": "1;2", "a": "b"}


@pytest.mark.parametrize(("text", "length"), [("a" * 2000, 1024), ("é" * 600, 1024), ("€" * 600, 1023)])
def test_a_long_value_is_cut_between_characters(text: str, length: int) -> None:
    assert len(cut(text).encode()) == length <= VALUE_MAX_BYTES
    assert text.startswith(cut(text))


class TestFamilies:
    def test_the_first_type_of_a_name_keeps_it(self, caplog: pytest.LogCaptureFixture) -> None:
        families = Families()

        first = families.family("a.b", "", Kind.GAUGE)
        other = families.family("a_b", "", Kind.GAUGE)
        refused = families.family("a.b", "", Kind.HISTOGRAM)

        assert first is not None
        assert (first.name, first.type) == ("a_b", FamilyType.GAUGE)
        assert other is first
        assert refused is None
        assert [record.message for record in caplog.records] == [
            "metric is not shown to Prometheus: another metric has its name with another type"
        ]

    @pytest.mark.parametrize(
        ("metric", "reason"),
        [
            ("...", "its name has no ASCII letter or digit"),
            ("kafka.client.info", "the plugin has a metric of this name"),
        ],
    )
    def test_the_log_tells_why_a_metric_is_not_shown(
        self, caplog: pytest.LogCaptureFixture, metric: str, reason: str
    ) -> None:
        assert Families().family(metric, "", Kind.GAUGE) is None

        assert [record.message for record in caplog.records] == [
            f"metric is not shown to Prometheus: {reason}"
        ]

    @pytest.mark.parametrize(
        ("metric", "kind"),
        [
            ("a", Kind.GAUGE),
            ("a.total", Kind.GAUGE),
            ("a.bucket", Kind.COUNTER),
            ("kafka.client.info", Kind.GAUGE),
        ],
    )
    def test_names_of_samples_and_of_our_own_are_taken_too(self, metric: str, kind: Kind) -> None:
        families = Families()
        families.family("a", "", Kind.COUNTER)

        found = families.family(metric, "", kind)

        assert (found is None) is (metric != "a.bucket")

    def test_help_comes_from_the_reference(self) -> None:
        families = Families()

        known = families.family(f"{KAFKA}producer.record.send.total", "", Kind.COUNTER)
        unknown = families.family("com.acme.orders", "", Kind.COUNTER)

        assert known is not None
        assert unknown is not None
        assert known.help == "Records sent; those of a batch that is sent again count again."
        assert unknown.help == "com.acme.orders, as the client names it."
