"""A running host exports every metric that has an instrument."""

from __future__ import annotations

from pathlib import Path

from odradek.meters.cardinality_metrics import CARDINALITY_INSTRUMENTS
from odradek.meters.cluster_metrics import CLUSTER_INSTRUMENTS
from odradek.meters.forward_metrics import FORWARD_INSTRUMENTS
from odradek.meters.gateway_path_metrics import GATEWAY_PATH_INSTRUMENTS
from odradek.meters.gateway_telemetry_metrics import GATEWAY_TELEMETRY_INSTRUMENTS
from odradek.meters.gateway_worker_metrics import GATEWAY_WORKER_INSTRUMENTS
from odradek.meters.loop_lag import LOOP_LAG_INSTRUMENTS
from odradek.meters.metrics import INSTRUMENTS
from odradek.meters.quota_metrics import QUOTA_INSTRUMENTS
from support.certificates import Files
from support.hosts import running_host
from support.tokens import jwks

WITH_USE = frozenset(
    {
        "forwarder-dropped",
        "forwarder-refused-points",
        "forwarder-rejected",
        "plugin-error-count",
        "plugin-error-rate",
        "plugin-export-count",
        "plugin-export-rate",
        "plugin-export-time-avg",
        "plugin-export-time-max",
        "push-kept",
        "push-lost",
        "push-narrowed",
        "push-rejected",
        "source-appended",
        "source-empty",
        "source-lag",
        "source-received",
        "source-rejected",
        "source-repeated",
        "source-requests",
        "source-waiting",
        "spool-refused",
        "temporality-rejected",
        "throttle-count",
        "throttle-rate",
    }
)
"""Metrics by client instance, error, reason or source; budgets of quotas have no rows before use either."""


def test_a_host_without_clients_exports_all_metrics_but_those_of_clients(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_bytes(jwks())
    settings = (
        "listeners=PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0",
        *Files(tmp_path).settings,
        "subscriptions.all.metrics=*",
        "plugins.otlp.endpoint=http://127.0.0.1:1",
        "plugins.otlp.temporality=cumulative",
        f"plugins.otlp.totals.file={tmp_path / 'totals.db'}",
        "plugins.enrich.static.site=test",
        "sasl.enabled.mechanisms=OAUTHBEARER",
        f"sasl.oauthbearer.jwks.endpoint.url={keys.as_uri()}",
    )
    with running_host(tmp_path / "data", *settings) as host:
        exported = host.call(lambda: {row.name for row in host.host.metric_rows()})

    assert exported <= INSTRUMENTS.keys()
    of_gateways = {
        *GATEWAY_TELEMETRY_INSTRUMENTS,
        *GATEWAY_PATH_INSTRUMENTS,
        *GATEWAY_WORKER_INSTRUMENTS,
        *LOOP_LAG_INSTRUMENTS,
    }
    of_clusters = CLUSTER_INSTRUMENTS.keys() | FORWARD_INSTRUMENTS.keys()
    of_budgets = QUOTA_INSTRUMENTS.keys() | CARDINALITY_INSTRUMENTS.keys()
    elsewhere = of_budgets | of_gateways | of_clusters
    assert INSTRUMENTS.keys() - exported - elsewhere == WITH_USE
