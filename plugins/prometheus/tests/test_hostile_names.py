"""Names, labels and texts that no client should send: they cost no other series of the page or request."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import pytest
from opentelemetry.proto.metrics.v1.metrics_pb2 import Metric, NumberDataPoint
from prometheus_client.openmetrics.parser import text_string_to_metric_families as strict_families
from prometheus_client.parser import text_string_to_metric_families as families

from odradek_prometheus.remote_write.outbox import Outbox
from odradek_prometheus.remote_write.request_v1 import request_v1
from odradek_prometheus.remote_write.request_v2 import request_v2
from odradek_prometheus.remote_write.sample import Sample
from odradek_prometheus.remote_write.series_samples import External
from odradek_prometheus.text_format import Format, Page
from support.delta_clients import A, B, attribute, counter, d, gauge, ms, nanos, point
from support.exposed_clients import Exposed
from support.remote_write_messages import series_of_v1, series_of_v2

STYLES = [
    Format(openmetrics=openmetrics, utf8=utf8, created=created)
    for openmetrics in (True, False)
    for utf8 in (True, False)
    for created in (True, False)
]
NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
QUOTED = r'"(?:\\[^\n]|[^\0\n\\"])*"'
LABEL = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:\\[^\n]|[^\n\\"])*"'
LINE = re.compile(
    rf"# (?:HELP|TYPE|UNIT) (?:{NAME}|{QUOTED}) .*|# EOF"
    rf'|(?:{NAME}\{{(?:{LABEL}(?:,{LABEL})*)?\}}|\{{(?!""){QUOTED}(?:,{LABEL})*\}}) [^\0 \n]+'
)
"""A line that Prometheus reads (its promlex.l and openmetricslex.l): it has a name, and no NUL in it. For one
other line it drops the whole page."""
HOSTILE = (
    "",
    ".",
    "a\0b",
    'a"b',
    "a\\",
    "a\nb",
    "a\rb",
    "é",
    "{a}",
    "9",
    "__name__",
    "le",
    "quantile",
    "total",
)


def named(metric: Metric, name: str, unit: str = "", text: str = "") -> Metric:
    metric.name, metric.unit, metric.description = name, unit, text
    return metric


def labeled(name: str, *attributes: tuple[str, str]) -> Metric:
    found = NumberDataPoint(time_unix_nano=nanos(60), start_time_unix_nano=nanos(0), as_double=1.0)
    found.attributes.extend(attribute(*each) for each in attributes)
    return counter(found, name=name)


def histogram(name: str, bounds: Sequence[float], **labels: str) -> Metric:
    metric = Metric(name=name)
    metric.histogram.aggregation_temporality = 1  # type: ignore[assignment]
    found = metric.histogram.data_points.add(
        start_time_unix_nano=nanos(0), time_unix_nano=nanos(60), count=6, sum=1.0
    )
    found.attributes.extend(attribute(*each) for each in labels.items())
    found.explicit_bounds.extend(bounds)
    found.bucket_counts.extend([1] * (len(bounds) + 1))
    return metric


def hostile_metrics() -> list[Metric]:
    """All of it, beside a good counter and a good gauge."""
    found = [d(5.0, 0, 60), gauge(0.5)]
    for text in HOSTILE:
        found.append(named(gauge(1.0), text, text=text))
        found.append(named(d(1.0, 0, 60), text, unit=text))
        found.append(named(gauge(1.0), "unit", unit=text, text="a\n# EOF\n\0"))
        found.append(labeled(f"labeled.{len(text)}", (text, text)))
        found.append(histogram(f"h.{text}", [0.5, 1.0], le=text, quantile="1"))
    found.append(labeled("same", ("a.b", "1"), ("a_b", "2"), ("a-b", "3")))
    found.append(counter(point(1, 0, 60, {"a.b": 1}), point(2, 0, 60, {"a_b": 1}), name="twice"))
    found += [named(d(1.0, 0, 60), "type"), named(gauge(1.0), "type"), histogram("type", [1.0])]
    found += [named(gauge(1.0), "units", unit="s"), named(gauge(1.0), "units", unit="ms")]
    found += [named(gauge(value), f"number.{value}") for value in (float("inf"), -float("inf"), float("nan"))]
    found += [histogram("bounds", bounds) for bounds in ([1.0, 1.0], [2.0, 1.0], [float("inf")])]
    return found


def hostile_clients() -> Exposed:
    exposed = Exposed()
    labels = {each: each for each in HOSTILE} | {"client_id": "orders", "client.id": "\0"}
    exposed.push(*hostile_metrics(), labels=labels, context={"client_id": "a\0b\n", "principal": "User:\0"})
    exposed.push(d(7.0, 0, 60), gauge(0.5), instance=B)
    return exposed


def lines_of(exposed: Exposed, style: Format) -> list[str]:
    page = b"".join(Page(exposed.exposition.clients(), ms(60), style).pieces()).decode()
    return page.removesuffix("\n").split("\n")


@pytest.mark.parametrize("style", STYLES, ids=str)
def test_prometheus_reads_each_line_of_a_page_with_hostile_texts(style: Format) -> None:
    lines = lines_of(hostile_clients(), style)

    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert sum(line.endswith(" 7.0") for line in lines) == 1
    series = Counter(line.rpartition(" ")[0] for line in lines if line[0] != "#")
    assert [line for line, times in series.items() if times > 1] == []
    types = Counter(line for line in lines if line.startswith("# TYPE"))
    assert [line for line, times in types.items() if times > 1] == []


@pytest.mark.parametrize("style", [each for each in STYLES if not (each.openmetrics and each.utf8)], ids=str)
def test_the_parsers_of_the_python_client_read_a_page_with_hostile_texts(style: Format) -> None:
    """The strict one wants counters to end in ``_total``, which names of clients do not."""
    page = "\n".join([*lines_of(hostile_clients(), style), ""])

    found = strict_families(page) if style.openmetrics else families(page)  # type: ignore[no-untyped-call]

    samples = [sample for family in found for sample in family.samples]
    assert [sample.value for sample in samples if sample.name == "c_total"] == [5.0, 7.0]


@pytest.mark.parametrize("name", ["", "."])
def test_a_metric_without_a_name_is_left_out_counted_and_told_once(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    exposed = Exposed()
    for second in (60, 120):
        exposed.push(
            named(d(1.0, second - 60, second), name),
            named(gauge(1.0, time=second), name, unit="s"),
            d(5.0, second - 60, second),
            at=second,
        )

    lines = lines_of(exposed, Format(utf8=True))

    assert [line for line in lines if line.startswith('{"c"')] != []
    assert not any('{""' in line or '{"."' in line for line in lines)
    assert 'odradek_exposition_hidden_series{reason="name.collision"} 2' in lines
    assert len([record for record in caplog.records if "no ASCII letter" in record.message]) == 1


@pytest.mark.parametrize(
    ("name", "labels"),
    [
        ("c", {f"k{number}": "v" * 1_000 for number in range(100)}),
        ("c", {"k" * 100_000: "v"}),
        ("c" * 100_000, {}),
    ],
    ids=["values", "label", "name"],
)
def test_a_page_does_not_repeat_long_texts_for_each_series(
    name: str, labels: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    exposed = Exposed()
    points = [point(1.0, 0, 60, {"n": number}) for number in range(100)]
    exposed.push(counter(*points, name=name), labels={"group_id": "g", **labels, "transactional_id": "t"})

    lines = lines_of(exposed, Format())

    assert sum(map(len, lines)) < 20_000
    assert 'odradek_exposition_hidden_series{reason="labels.too.long"} 100' in lines
    (info,) = [line for line in lines if line.startswith("kafka_client_info{")]
    assert 'group_id="g"' in info
    assert 'transactional_id="t"' in info
    (told,) = [record for record in caplog.records if "8192 bytes" in record.message]
    assert len(str(told.__dict__)) < 20_000


@pytest.mark.parametrize("version", [1, 2])
def test_each_series_of_a_request_with_hostile_texts_is_valid_and_there_once(version: int) -> None:
    exposed = hostile_clients()
    outbox = Outbox(1, External((("job", "kafka-clients"),)))
    for client in exposed.exposition.clients():
        outbox.add(client)
    samples: list[Sample] = list(outbox.shards[0])

    found = series_of_v1(request_v1(samples)) if version == 1 else series_of_v2(request_v2(samples))

    for each in found:
        assert re.fullmatch(NAME, each.labels["__name__"])
        assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in each.labels)
    assert max(Counter(frozenset(each.labels.items()) for each in found).values()) == 1
    assert {each.labels["client_instance_id"] for each in found} >= {"QkJCQkJCQkJCQkJCQkJCQg"}


def test_a_histogram_whose_bounds_do_not_rise_is_rejected_and_counted() -> None:
    exposed = Exposed()

    exposed.push(
        *[histogram("h", bounds) for bounds in ([1.0, 1.0], [2.0, 1.0], [float("inf")], [float("nan")])],
        d(5.0, 0, 60),
    )

    assert exposed.values(A) == {"c_total": 5.0}
    assert exposed.forwarder.figures.counts.rejected_points == {"buckets": 4}
