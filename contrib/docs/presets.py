"""Writes ``host/docs/reference/presets.md``: what each preset asks for, feeds and costs.

    python -m contrib.docs.presets            # from the repository's root
    python -m contrib.docs.presets --check    # exit status 1 if the page is out of date

The presets are those of ``odradek.findings.presets``, the alerts those of ``contrib.grafana``, and the prices
come from the recordings of ``odradek.testing.pushes``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from contrib.grafana.alerts import Alert, alerts
from contrib.grafana.promql import INTERVAL_S, metrics_in

from odradek.estimate.figures import size
from odradek.estimate.pushed_streams import StreamReader, points_of
from odradek.estimate.series_model import made_series
from odradek.findings.client_metrics import PREFIX
from odradek.findings.concerns import CONCERNS
from odradek.findings.presets import ESSENTIAL, EVERYTHING, PRESETS, Preset, Question, selects
from odradek.findings.troubles import BY_ID
from odradek.otlp.labeled_payload import PayloadLimits
from odradek.otlp.labels import encode_labels
from odradek.telemetry.payload import label
from odradek.testing.pushes import RecordedPush, recorded
from odradek_otlp.metrics_bytes import filtered

PAGE: Final = Path(__file__).parents[2] / "host/docs/reference/presets.md"
CLIENTS: Final[Mapping[str, str]] = {
    "java-producer": "Java producer",
    "java-consumer": "Java consumer",
    "java-share": "Java share consumer",
    "java-admin": "Java admin client",
    "java-streams": "consumer of a Kafka Streams thread",
    "librdkafka-producer": "librdkafka producer",
    "librdkafka-consumer": "librdkafka consumer",
    "franz-go": "franz-go",
}
"""The recorded clients with a price: one topic of one partition, on one broker."""
FRANZ_GO: Final = "franz-go"
LABELS: Final = {
    "client_instance_id": "AAECAwQFBgcICQoLDA0ODw",
    "client_id": "orders-producer-7",
    "client_software_name": "apache-kafka-java",
    "client_software_version": "4.4.0",
    "client_source_address": "10.20.30.40",
    "client_source_port": "53211",
    "principal": "User:orders",
    "broker_node_id": "1",
}
"""Labels of a usual length, as the host adds them."""
MINUTE_MS: Final = 60_000
INTRODUCTION: Final = """\
# Presets

<!-- Written by `python -m contrib.docs.presets` from the presets, the alerts and the recorded pushes. -->

A preset is a subscription that has a name: the metrics to ask clients for, and the push interval. You can use
it wherever you write a subscription:

```sh
odradek cardinality estimate --bootstrap-server localhost:9092 --preset essential
odradek client-metrics --bootstrap-server localhost:9092 --preset essential
```

```toml
[subscriptions.essential]
preset = "essential"        # "interval.ms" and match may stand beside it
```

`--preset` without `--name` sets the subscription of its own name, and prints it first. Where the console and
`odradek watch` take metrics, they take the name of a preset, too. A cluster knows no presets: it stores the
prefixes. Several subscriptions add up: `essential` for all clients, and `consumer` with `--match` for a group
that matters to you.

## Prices

The price of one client: its series in Prometheus, and its bytes a minute in the telemetry topic, of which it
sends a third to a tenth. They are measured from recorded pushes of clients of one topic with one partition on
one broker; `-` is a client that has none of the metrics. A Java consumer has more series for each further
partition: 4 with `essential`, 7 with `consumer`. The thread of Kafka Streams has one task with one store;
each further store is some 25 series more. [How to estimate a
subscription](../howto/estimate-a-subscription.md) says what a preset costs with the clients that you have.
"""
AFTER_PRICES: Final = """\
franz-go (1.22) does not know `*`: it pushes nothing for `all`, and its standard metrics for `debug`. It
leaves out gauges that are 0, so this is the price of its fullest push.

Counters of clients are what clients say:
[which counter to bill by](../explanation/temporality.md#which-counter-to-bill-by).

The names of metrics below omit `org.apache.kafka.`. An alert or a chart is beside each question that it needs
an answer to.
"""


class Price(NamedTuple):
    """What a client costs with a preset."""

    series: int
    """In Prometheus: those that the client sends, and those that are made for each client."""
    bytes_per_minute: float
    """In the telemetry topic: decompressed, with labels."""


def fullest(client: str) -> RecordedPush:
    """The recorded push with most series."""
    return max(recorded(client), key=lambda push: len(points_of(push.data).points))


def price(preset: Preset, client: str) -> Price:
    """The price of a recorded client with a preset."""
    metrics = preset.metrics
    if client == FRANZ_GO and EVERYTHING in metrics:
        return Price(0, 0.0)
    prefixes = ("",) if EVERYTHING in metrics else metrics
    data = filtered(fullest(client).data, tuple(each.encode() for each in prefixes))
    series = len(StreamReader().read(points_of(data).points))
    stored = label(data, encode_labels(LABELS), PayloadLimits()) if series else b""
    return Price(series + made_series() if series else 0, len(stored) * MINUTE_MS / preset.interval_ms)


def fed(preset: Preset) -> Iterator[Alert]:
    """The alerts whose metrics a preset asks for. Those made for each client need no metrics."""
    for alert in alerts(INTERVAL_S):
        names = [metric.name for metric in metrics_in(alert.expr) if metric.name.startswith("org.")]
        if all(selects(preset.metrics, name) for name in names):
            yield alert


def compared(alert: Alert) -> Iterator[str]:
    """The metrics that an alert is about, without those that explain it otherwise."""
    trouble = BY_ID.get(alert.id)
    if trouble is None:
        yield from (metric.name for metric in metrics_in(alert.expr))
    else:
        yield from {*trouble.metrics.values(), trouble.per, trouble.position} - {""}


def alert_links(preset: Preset, question: Question) -> str:
    """The alerts of a preset that are about metrics of a question."""
    return ", ".join(
        f"[{alert.id}](runbook.md#{alert.id})"
        for alert in fed(preset)
        if any(selects(question.prefixes, name) for name in compared(alert))
    )


def panels(question: Question) -> str:
    """The charts of a client that metrics of a question fill."""
    charts = (chart for concern in CONCERNS for chart in concern.charts)
    return ", ".join(
        chart.title for chart in charts if any(selects(question.prefixes, name) for name in chart.names)
    )


def prices() -> Iterator[str]:
    """The table of all prices."""
    yield f"| client | {' | '.join(PRESETS)} |"
    yield "|---" * (len(PRESETS) + 1) + "|"
    for client, title in CLIENTS.items():
        found = (price(preset, client) for preset in PRESETS.values())
        cells = (f"{each.series}, {size(each.bytes_per_minute)}" if each.series else "-" for each in found)
        yield f"| {title} | {' | '.join(cells)} |"


def described(preset: Preset) -> Iterator[str]:
    """The section of a preset."""
    yield f"## {preset.id}"
    yield ""
    every_s = preset.interval_ms // 1_000
    count = len(preset.metrics)
    named = "1 prefix" if count == 1 else f"{count} prefixes"
    yield f"{preset.use} {named}, every {every_s} s, {len(list(fed(preset)))} alerts."
    yield ""
    base = set(ESSENTIAL) if preset.id != "essential" and {*ESSENTIAL} <= {*preset.questions} else set()
    if base:
        yield from ("All of [essential](#essential), and:", "")
    yield "| question | metrics | alerts | charts of a client |"
    yield "|---|---|---|---|"
    for question in (each for each in preset.questions if each not in base):
        metrics = ", ".join(f"`{each.removeprefix(PREFIX) or each}`" for each in question.prefixes)
        if question.prefixes in ((PREFIX,), (EVERYTHING,)):
            alerting = charts = "all"
        else:
            alerting, charts = alert_links(preset, question), panels(question)
        yield f"| {question.text} | {metrics} | {alerting or '-'} | {charts or '-'} |"


def page() -> str:
    """The text of the page."""
    lines = [INTRODUCTION, *prices(), "", AFTER_PRICES]
    for preset in PRESETS.values():
        lines += [*described(preset), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def main(arguments: list[str]) -> int:
    text = page()
    if arguments == ["--check"]:
        is_current = PAGE.exists() and PAGE.read_text(encoding="utf-8") == text
        if not is_current:
            print(f"{PAGE.name} is out of date: run python -m contrib.docs.presets", file=sys.stderr)
        return int(not is_current)
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
