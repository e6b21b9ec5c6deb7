"""The format that a scraper gets."""

from __future__ import annotations

import pytest

from odradek_prometheus.negotiation import chosen_format, takes_gzip
from odradek_prometheus.text_format import Format

PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
    "application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,"
    "text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)
PROTOBUF = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,"


@pytest.mark.parametrize(
    ("accept", "utf8", "expected"),
    [
        (PROMETHEUS_3, False, Format(openmetrics=True)),
        (PROMETHEUS_3, True, Format(openmetrics=True, utf8=True)),
        (PROTOBUF + PROMETHEUS_3, False, Format(openmetrics=True)),
        ("text/plain;version=0.0.4;q=0.5,*/*;q=0.1", True, Format(openmetrics=False)),
        ("", False, Format(openmetrics=False)),
        ("*/*", False, Format(openmetrics=False)),
        ("text/html", False, Format(openmetrics=False)),
        ("application/openmetrics-text;version=2.0.0", False, Format(openmetrics=False)),
        ("application/openmetrics-text;q=0", False, Format(openmetrics=False)),
        ("application/openmetrics-text;q=x, text/plain;q=0.1", False, Format(openmetrics=False)),
        ("text/plain;q=0.1, application/openmetrics-text; version=1.0.0; q=0.2", False, Format()),
    ],
)
def test_the_preferred_format_that_is_served(accept: str, utf8: bool, expected: Format) -> None:
    assert chosen_format(accept, utf8=utf8, created=False) == expected


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("gzip", True),
        ("gzip, deflate", True),
        ("deflate, GZIP;q=0.5", True),
        ("gzip;q=0", False),
        ("zstd", False),
        ("*", True),
        ("", False),
    ],
)
def test_gzip_on_request(header: str, expected: bool) -> None:
    assert takes_gzip(header) is expected
