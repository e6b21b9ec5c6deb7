"""Writes ``host/docs/reference/client-conformance.md`` from the recordings of ``odradek.testing.pushes``.

    python -m contrib.docs.client_conformance            # from the repository's root
    python -m contrib.docs.client_conformance --check    # exit status 1 if the page is out of date

``python -m contrib.capture.pushes`` records the clients again.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path

from odradek.findings.client_metrics import PREFIX
from odradek.testing.conformance import (
    RULES,
    ConformanceReport,
    MetricRow,
    State,
    Verdict,
    conformance_report,
)
from odradek.testing.conformance.standard_metrics import STANDARD_METRICS, StandardMetric
from odradek.testing.pushes import observation, recorded_clients

PAGE = Path(__file__).parents[2] / "host/docs/reference/client-conformance.md"
NOTHING = "-"
INTRODUCTION = """\
# Conformance of clients

<!-- Written by `python -m contrib.docs.client_conformance` from the recordings of odradek.testing.pushes. -->

How clients implement KIP-714: their behavior, and the standard metrics they push. Each client ran twice, with
a push interval of 2 s and a subscription to `org.apache.kafka.`. In the first run its pushes were refused
once with every recoverable error, and it was closed in an orderly way. In the second run a push was refused
with INVALID_RECORD. [Make such a report of your own
client](../howto/test-what-clients-push.md#a-conformance-report).
"""
VERDICTS = """\
An empty cell is *ok*. *unseen*: the situation did not occur or cannot be observed; an unseen terminating push
means that the client sent none. A push may be 0.1 s early or 0.3 s late. If a rule was checked several times,
the worst verdict is shown. *In the topic*: `odradek conformance` can check the rule with the [telemetry
topic](telemetry-topic.md), which has no handshakes and few refused pushes.
"""
METRICS_TEXT = """\
Names omit the prefix `org.apache.kafka.`. KIP-714 has standard metrics for producers and for consumers, but
none for admin clients. *sent*: with the type, temporality, unit and labels of the KIP. *missing*: requested
but not sent. franz-go omits a gauge that is zero.
"""


def reports() -> dict[str, ConformanceReport]:
    """The reports by recorded client."""
    return {client: conformance_report(client, observation(client)) for client in recorded_clients()}


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    cells = list(headings)
    yield f"| {' | '.join(cells)} |"
    yield "|" + "---|" * len(cells)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def clients(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """The table of recorded clients."""
    headings = ("client", "software", "role", "metrics", "standard metrics", "wrong", "recorded")
    rows = []
    for client, report in found.items():
        sent = sum(row.state in (State.SENT, State.WRONG) for row in report.metrics)
        standard = f"{sent} of {len(report.metrics)}" if report.metrics else NOTHING
        day = datetime.fromtimestamp((observation(client).until_ms or 0) / 1000, UTC).date().isoformat()
        roles = " and ".join(report.roles)
        wrong = str(len(report.wrong) or NOTHING)
        name = f"[{client}](#{client})" if any(details(client, report)) else client
        rows.append((name, report.software, roles, str(report.metrics_sent), standard, wrong, day))
    return table(headings, rows)


def rules(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """The table of rules: what they expect, and the verdict on each client if it is not ok."""
    rows = [
        (
            rule.name,
            rule.expected,
            "yes" if rule.in_topic else "no",
            *(verdict(report, number) for report in found.values()),
        )
        for number, rule in enumerate(RULES)
    ]
    return table(("rule", "a client", "in the topic", *found), rows)


def verdict(report: ConformanceReport, number: int) -> str:
    found = report.rules[number].verdict
    return "" if found is Verdict.OK else found.value


def standard_metrics(found: dict[str, ConformanceReport]) -> Iterator[str]:
    """The table of states, by metric and client that should have it."""
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
    """The section of a client: the finding of each rule that is not ok, and the problems of its metrics.

    Nothing if all is as in the KIP.
    """
    found = [
        f"* {row.rule}, {row.verdict}: {row.seen}" for row in report.rules if row.verdict is not Verdict.OK
    ]
    found += [f"* `{row.name}`: {'; '.join(row.problems)}" for row in report.metrics if row.problems]
    if found:
        yield from (f"### {client}", "", *found, "")


def page() -> str:
    """The text of the page."""
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
        "## Standard metrics",
        "",
        METRICS_TEXT,
        *standard_metrics(found),
        "",
        "## Client by client",
        "",
        "What was seen instead.",
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
