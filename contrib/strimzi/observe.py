"""Print the alert rules as PrometheusRules, and the dashboards as ConfigMaps, for ``kubectl apply -f -``.

    python -m contrib.strimzi.observe

They are those of ``contrib/prometheus`` and ``contrib/grafana``, so there is nothing to keep in step.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

CONTRIB = Path(__file__).parents[1]
RULES = ("client-recording", "client-alerts", "alerts")
"""Files of `contrib/prometheus`."""
DASHBOARDS = CONTRIB / "grafana/dashboards"
LABEL = {"grafana_dashboard": "1"}
"""The label by which the sidecar of Grafana's chart finds dashboards."""


def objects() -> Iterator[dict[str, Any]]:
    """The objects, in the order of their names."""
    for name in RULES:
        rules = yaml.safe_load((CONTRIB / f"prometheus/{name}.yml").read_text(encoding="utf-8"))
        yield {
            "apiVersion": "monitoring.coreos.com/v1",
            "kind": "PrometheusRule",
            "metadata": {"name": f"odradek-{name}"},
            "spec": {"groups": rules["groups"]},
        }
    for path in sorted(DASHBOARDS.glob("*.json")):
        text = json.dumps(json.loads(path.read_text(encoding="utf-8")))
        yield {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"odradek-dashboard-{path.stem}", "labels": LABEL},
            "data": {path.name: text},
        }


def main() -> int:
    yaml.safe_dump_all(objects(), sys.stdout, sort_keys=False, width=110)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
