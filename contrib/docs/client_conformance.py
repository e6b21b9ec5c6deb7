"""Writes ``host/docs/reference/client-conformance.md`` from the recordings of ``odradek.testing.pushes``.

    python -m contrib.docs.client_conformance            # from the repository's root
    python -m contrib.docs.client_conformance --check    # exit status 1 when the page is out of date

``python -m contrib.capture.pushes`` records the clients anew.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from odradek.testing.conformance import (
    RULES,
    ConformanceReport,
    MetricRow,
    State,
    conformance_report,
)
from odradek.testing.conformance.standard_metrics import PREFIX, STANDARD_METRICS, StandardMetric
from odradek.testing.pushes import observation, recorded_clients

PAGE = Path(__file__).parents[2] / "host/docs/reference/client-conformance.md"
NOTHING = "-"
INTRODUCTION = """\
# Conformance of clients

<!-- Written by `python -m contrib.docs.client_conformance` from the recordings of odradek.testing.pushes. -->

What clients make of KIP-714: how they behave, and which of its standard metrics they push. Each lived twice,
with a push interval of 2 s and a subscription to `org.apache.kafka.`: once it had pushes refused with every
error that it can get over and was closed in order, once a push was refused with INVALID_RECORD. How to make
such a report of your own client:
[how to test a Kafka client](../howto/test-your-client.md#a-conformance-report).
"""
VERDICTS = """\
*ok*, *wrong*, or *unseen*: it did not happen, or cannot be told from what is at hand. Each client here was
closed in order once, so a terminating push that is unseen did not come. The share of the interval is how long
the client waited. Timing is told from intervals of 1 s on; the machine may make a push 0.1 s early or 0.3 s
late. One wrong case of several is what counts.
"""
RULES_TEXT = """\
The last column says whether the accepted pushes in the [telemetry topic](telemetry-topic.md), which
`odradek conformance` reads, tell something about the rule. Handshakes and refused pushes are seen by a host
of the kit only.
"""
METRICS_TEXT = """\
Names are below `org.apache.kafka.`; KIP-714 has standard metrics of producers and of consumers, and none of
admin clients. It prints a part of them bold as required; here all count alike. *sent*: with the type,
temporality, unit and labels of the KIP. *missing*: asked for and not sent. franz-go leaves out a gauge that
is zero, such as the throttle time of a client that was not throttled.
"""


def reports() -> dict[str, ConformanceReport]:
    """By recorded client."""
    return {client: conformance_report(client, observation(client)) for client in recorded_clients()}


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    cells = list(headings)
    yield f"| {' | '.join(cells)} |"
    yield "|" + "---|" * len(cells)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def clients(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """Who was recorded."""
    headings = ("client", "software", "is", "metrics", "standard metrics", "wrong", "recorded")
    rows = []
    for client, report in found.items():
        sent = sum(row.state in (State.SENT, State.WRONG) for row in report.metrics)
        standard = f"{sent} of {len(report.metrics)}" if report.metrics else NOTHING
        day = datetime.fromtimestamp((observation(client).until_ms or 0) / 1000, UTC).date().isoformat()
        roles = " and ".join(report.roles)
        wrong = str(len(report.wrong) or NOTHING)
        name = f"[{client}](#{client})"
        rows.append((name, report.software, roles, str(report.metrics_sent), standard, wrong, day))
    return table(headings, rows)


def rules(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """The verdict of each rule for each client."""
    rows = [
        (rule.name, *(report.rules[number].verdict.value for report in found.values()))
        for number, rule in enumerate(RULES)
    ]
    return table(("rule", *found), rows)


def expectations() -> Iterator[str]:
    """What each rule is about."""
    rows = [(rule.name, rule.expected, "yes" if rule.in_topic else "no") for rule in RULES]
    return table(("rule", "a client", "told by the topic"), rows)


def standard_metrics(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """The state of each metric for each client that should have it."""
    by_name = {client: {row.name: row for row in report.metrics} for client, report in found.items()}
    shown = [client for client, rows in by_name.items() if rows]
    rows = [
        (
            metric.name,
            described(metric),
            *(state(by_name[client].get(PREFIX + metric.name)) for client in shown),
        )
        for metric in STANDARD_METRICS
    ]
    return table(("metric", "type, unit, labels", *shown), rows)


def described(metric: StandardMetric) -> str:
    kind = "sum (delta)" if metric.kind == "sum" else metric.kind
    return ", ".join(filter(None, (kind, metric.unit, *sorted(metric.labels))))


def state(row: MetricRow | None) -> str:
    return "" if row is None else row.state.value


def details(client: str, report: ConformanceReport) -> Iterator[str]:
    """What was seen of each rule, and what is wrong with metrics."""
    yield f"### {client}"
    yield ""
    yield from table(("rule", "verdict", "seen"), ((row.rule, row.verdict, row.seen) for row in report.rules))
    problems = [row for row in report.metrics if row.problems]
    if problems:
        yield ""
        yield from (f"* `{row.name}`: {'; '.join(row.problems)}" for row in problems)
    yield ""


def page() -> str:
    """The whole text."""
    found = reports()
    lines = [
        INTRODUCTION,
        *clients(found),
        "",
        "## Behavior",
        "",
        VERDICTS,
        *rules(found),
        "",
        RULES_TEXT,
        *expectations(),
        "",
        "## Standard metrics",
        "",
        METRICS_TEXT,
        *standard_metrics(found),
        "",
        "## Client by client",
        "",
        *(line for client, report in found.items() for line in details(client, report)),
    ]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    text = page()
    if "--check" in sys.argv[1:]:
        return 0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text else 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
