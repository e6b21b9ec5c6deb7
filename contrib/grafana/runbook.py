"""The runbook: the written page ``runbook.md.in``, with a table of all alerts and the facts of each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contrib.grafana.alerts import CAUSE_WORDS, Alert, alerts
from contrib.grafana.promql import software_of
from contrib.grafana.rules import rules_of

from odradek.findings.troubles import JAVA, LIBRDKAFKA

WRITTEN: Final = Path(__file__).with_suffix(".md.in")
PAGE: Final = "host/docs/reference/runbook.md"
NOTE: Final = "<!-- Written by `python -m contrib.grafana`: edit contrib/grafana/runbook.md.in. -->"
TABLE: Final = "## All alerts"
LIBRARIES: Final = {JAVA: "Java", LIBRDKAFKA: "librdkafka"}


def software(alert: Alert) -> str:
    """The client libraries that can fire an alert."""
    found = software_of(alert.expr)
    return " and ".join(text for name, text in LIBRARIES.items() if name in found) if found else "all"


def held(seconds: float) -> str:
    return f"{seconds / 60:g} min" if seconds else "at once"


def table(found: list[Alert]) -> Iterator[str]:
    yield "| alert | condition | for | threshold from | sent by |"
    yield "|---|---|---|---|---|"
    for alert in found:
        link = f"[`{alert.name}`](#{alert.id})"
        yield f"| {link} | {alert.condition} | {held(alert.for_s)} | {alert.source} | {software(alert)} |"


def facts(alert: Alert) -> Iterator[str]:
    """Lines before the written text of an alert."""
    yield ""
    name, *of_many = [f"`{rule['alert']}`" for rule in rules_of(alert) if "alert" in rule]
    instead = [f" {each} if most of a {CAUSE_WORDS[alert.by]} have it." for each in of_many]
    yield f"**{alert.question}** {name}.{''.join(instead)}"


def steps(alert: Alert) -> Iterator[str]:
    """Lines after it: the next step, unless it is that of all clients."""
    if "--instance=" not in alert.next_step:
        yield from ("```sh", alert.next_step.replace("{{ $labels.", "$").replace(" }}", ""), "```", "")


def runbook(interval_s: int) -> str:
    """The text of the page. The heading of an alert's section is the anchor in its annotations."""
    found = {alert.id: alert for alert in alerts(interval_s)}
    lines: list[str] = []
    alert = None
    for line in WRITTEN.read_text(encoding="utf-8").splitlines():
        if line.startswith("#") and alert is not None:
            lines += steps(alert)
            alert = None
        lines.append(line)
        if line.startswith("# "):
            lines += ["", NOTE]
        elif line == TABLE:
            lines += ["", *table(list(found.values()))]
        elif line.startswith("### "):
            alert = found[line.removeprefix("### ")]
            lines += facts(alert)
    if alert is not None:
        lines += ["", *steps(alert)]
    return "\n".join(lines).rstrip("\n") + "\n"
