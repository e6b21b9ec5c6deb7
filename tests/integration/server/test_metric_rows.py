"""Every declared metric has rows, and every row a declared metric with these labels."""

from __future__ import annotations

from pathlib import Path

from support.certificates import Files
from support.hosts import running_host
from support.metric_rows import declared, rows_of_parts
from support.tokens import jwks


def test_all_declared_metrics_and_no_others_have_rows(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(jwks())
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        *Files(tmp_path).settings,
        "subscriptions.all.metrics=*",
        "telemetry.lag=all",
        "plugins.otlp.endpoint=http://127.0.0.1:1",
        "plugins.otlp.temporality=cumulative",
        f"plugins.otlp.totals.file={tmp_path / 'totals.db'}",
        "plugins.enrich.static.site=test",
        "sasl.enabled.mechanisms=OAUTHBEARER",
        f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}",
    )
    with running_host(tmp_path / "data", *settings) as host:
        rows = host.call(lambda: [*host.host.metric_rows()])

    found = {(row.name, frozenset(row.attributes)) for row in (*rows, *rows_of_parts())}

    assert found == {(name, frozenset(each.labels)) for name, each in declared().items()}
