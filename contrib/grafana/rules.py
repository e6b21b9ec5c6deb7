"""Alert rules and recording rules for Prometheus, as YAML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

import yaml
from contrib.grafana.alerts import BOOTSTRAP, CAUSE_WORDS, GROUP, MEMBERS, WHO, Alert, alerts, recorded
from contrib.grafana.causes import alert_labels, alertmanager
from contrib.grafana.panels import LOCAL_CONSOLE
from contrib.grafana.promql import by_series_name, duration, window_s

WRITTEN: Final = "# Written by `python -m contrib.grafana`; do not edit.\n"
WHO_AND_GROUP: Final = f"{WHO}{{{{ if $labels.group_id }}}} (group {{{{ $labels.group_id }}}}){{{{ end }}}}"
FIGURES: Final = {
    "ms": '{{ printf "%.0f" $value }} ms',
    "1": "{{ humanizePercentage $value }}",
    "By": "{{ humanize1024 $value }}B",
}
"""The value of an alert for people, by its UCUM unit; those in braces are counts of things."""
ADDRESS: Final = (
    "{{ range query (printf \"last_over_time(kafka_client_info{client_instance_id='%s'}[1h])\" "
    "$labels.client_instance_id) }}"
    "{{ .Labels.client_source_address }}:{{ .Labels.client_source_port }} {{ end }}"
)
"""The client's address and port are not labels of its series: they change."""
CONSOLE: Final = f'{{{{ or $externalLabels.console_base "{LOCAL_CONSOLE}" }}}}'
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


@dataclass(frozen=True, slots=True)
class Place:
    """Where the alerts are read, so that their commands and links work as written.

    By default both are external labels of the Prometheus that evaluates the rules.
    """

    bootstrap: str = f'{{{{ or $externalLabels.kafka_bootstrap "{BOOTSTRAP}" }}}}'
    """The address of the cluster, which other options of its commands may follow."""
    runbook: str = '{{ or $externalLabels.runbook_base "reference/runbook.md" }}'
    """The URL of the runbook's page."""
    console: str = ""
    """The URL of the console, without a slash at the end."""


def figure(alert: Alert) -> str:
    """The value that was found; empty for an alert without one, as that of a client which is silent."""
    unit = alert.shown.unit
    if alert.id == "silent":
        return ""
    if unit.startswith("{"):
        return f"{{{{ humanize $value }}}} {unit.strip('{}')}s"
    return FIGURES.get(unit, f"{{{{ humanize $value }}}} {unit}")


def summary(alert: Alert) -> str:
    """One line: who, with what cause, how much, and the condition."""
    who = alert.summary.replace(WHO, WHO_AND_GROUP) if GROUP in alert.labels else alert.summary
    found = figure(alert)
    return f"{who}: {found} ({alert.condition})" if found else f"{who} ({alert.condition})"


def rules_of(alert: Alert, place: Place = Place()) -> Iterator[dict[str, Any]]:
    """The rules of an alert: for clients, and for what several of them have in common."""
    if not alert.shared and alert.id != "slow-broker":
        yield alert_rule(alert, place)
        return
    found = recorded(alert.id)
    yield {"record": found, "expr": Text(alert.expr)}
    common = alert.shared and f"\nunless on ({alert.by})\n({alert.shared})"
    yield alert_rule(replace(alert, expr=found + common), place)
    if found in alert.shared:
        yield alert_rule(of_cause(alert), place) | {"alert": f"KafkaClients{alert.words}"}


def of_cause(alert: Alert) -> Alert:
    """The one alert about what several clients in the same trouble have in common."""
    who = f"{CAUSE_WORDS[alert.by]} {{{{ $labels.{alert.by} }}}}"
    step = f"odradek clients --bootstrap-server {BOOTSTRAP} --sort findings"
    return replace(
        alert,
        expr=alert.shared,
        labels=(alert.by,),
        summary=f"{{{{ $value }}}} clients, more than half of {who}: {alert.id}",
        next_step=MEMBERS if alert.by == GROUP else step,
    )


def alert_rule(alert: Alert, place: Place) -> dict[str, Any]:
    rule: dict[str, Any] = {"alert": alert.name, "expr": Text(alert.expr)}
    if alert.for_s:
        rule["for"] = duration(alert.for_s)
    annotations = {"summary": summary(alert), "description": alert.advice}
    if "client_instance_id" in alert.labels:
        annotations["address"] = ADDRESS
    annotations["next_step"] = alert.next_step.replace(BOOTSTRAP, place.bootstrap)
    annotations["runbook_url"] = f"{place.runbook}#{alert.id}"
    annotations["console_url"] = (place.console or CONSOLE) + page_of(alert)
    return rule | {"labels": alert_labels(alert), "annotations": annotations}


def page_of(alert: Alert) -> str:
    """The page of the console that shows who an alert is about."""
    if "client_instance_id" in alert.labels:
        return "/clients/{{ $labels.client_instance_id }}"
    for label in (GROUP, "group"):
        if label in alert.labels:
            return f"/groups/{{{{ $labels.{label} }}}}"
    return "/nodes/{{ $labels.node_id }}" if alert.by == "node_id" else "/"


def alert_manager_rules(interval_s: int) -> str:
    """``contrib/alertmanager/client-alerts.yml``: a route and the inhibition of consequences."""
    return written(alertmanager(alerts(interval_s)))


def alert_rules(interval_s: int, place: Place = Place()) -> str:
    """``client-alerts.yml``."""
    rules = [rule for alert in alerts(interval_s) for rule in rules_of(alert, place)]
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
