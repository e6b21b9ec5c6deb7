"""Alert rules and recording rules for Prometheus, as YAML."""

from __future__ import annotations

from typing import Any, Final

import yaml
from contrib.grafana.alerts import Alert, alerts
from contrib.grafana.promql import by_series_name, duration, window_s

WRITTEN: Final = "# Written by `python -m contrib.grafana`; do not edit.\n"
RUNBOOK: Final = "reference/runbook.md"
ADDRESS: Final = (
    "{{ range query (printf \"last_over_time(kafka_client_info{client_instance_id='%s'}[1h])\" "
    "$labels.client_instance_id) }}"
    "{{ .Labels.client_source_address }}:{{ .Labels.client_source_port }} {{ end }}"
)
"""The client's address and port are not labels of its series: they change."""
UNSTABLE: Final = ("client_instance_id", "instance", "node_id", "partition")
"""Labels that grow without end: each start of a client has a new instance id."""


class Text(str):
    """A string that is written as a block if it has several lines."""


class Dumper(yaml.SafeDumper):  # type: ignore[misc]
    """Writes blocks of text readably."""


Dumper.add_representer(
    Text,
    lambda dumper, text: dumper.represent_scalar(
        "tag:yaml.org,2002:str", str(text), style="|" if "\n" in text else None
    ),
)


def written(content: dict[str, Any]) -> str:
    text: str = yaml.dump(content, Dumper=Dumper, sort_keys=False, width=10_000, allow_unicode=True)
    return WRITTEN + text


def alert_rule(alert: Alert) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": Text(alert.expr)}
    if alert.for_s:
        rule["for"] = duration(alert.for_s)
    annotations = {"summary": alert.summary, "description": alert.advice}
    if "client_instance_id" in alert.labels:
        annotations["address"] = ADDRESS
    annotations["next_step"] = alert.next_step
    annotations["runbook"] = f"{RUNBOOK}#{alert.id}"
    return rule | {"labels": {"severity": "warning"}, "annotations": annotations}


def alert_rules(interval_s: int) -> str:
    """``client-alerts.yml``."""
    rules = [alert_rule(alert) for alert in alerts(interval_s)]
    return written({"groups": [{"name": "kafka-clients", "rules": rules}]})


def recording_rules(interval_s: int) -> str:
    """``client-recording.yml``: series without the labels that grow without end, for long retention.

    A rate is taken first and summed then, so that a client that starts again is no step back.
    """
    window = duration(window_s(interval_s))
    dropped = ", ".join(UNSTABLE)
    rules = []
    for name, metric in sorted(by_series_name().items()):
        if metric.kind == "sum":
            rules.append(
                {
                    "record": f"app:{name}:rate{window}",
                    "expr": f"sum without ({dropped}) (rate({name}[{window}]))",
                }
            )
        elif metric.name.endswith(".max"):
            rules.append({"record": f"app:{name}", "expr": f"max without ({dropped}) ({name})"})
    return written({"groups": [{"name": "kafka-clients-by-app", "rules": rules}]})
