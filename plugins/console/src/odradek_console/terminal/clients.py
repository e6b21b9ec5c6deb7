"""``odradek clients``: list the clients of a topic, or show one in full."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import click

from odradek.client.errors import ClientError
from odradek.findings.client_metrics import PREFIX
from odradek_console.engine.findings import Finding
from odradek_console.reading.cluster_view import ClusterView, is_matched
from odradek_console.rows import ClientDetail, ClientRow
from odradek_console.terminal.options import connector, filter_option, opened_view, reading_options, show
from odradek_console.text import (
    Column,
    age,
    clipped,
    counted,
    label_text,
    short,
    sparkline,
    table_lines,
    wrapped,
)

SORTS: Final[dict[str, Callable[[ClientRow], object]]] = {
    "client": lambda row: (row.client_id, row.client_instance_id),
    "findings": lambda row: (-len(row.findings), -len(row.notes), row.client_id),
    "last": lambda row: -row.last_ms,
    "principal": lambda row: (row.principal, row.client_id),
    "pushes": lambda row: -row.pushes,
    "software": lambda row: (row.software, row.version, row.client_id),
    "state": lambda row: (str(row.state), row.client_id),
}
SPARK: Final = 20
LEAST_SPARK: Final = 8
FACT: Final = 13
"""Width of the name of a fact."""
LEAST_WIDTH: Final = 60


def columns(now_ms: int) -> list[Column[ClientRow]]:
    return [
        Column(heading="CLIENT", cell=name, least=18, most=40, rank=0),
        Column(heading="STATE", cell=lambda row: str(row.state), least=6, most=6, rank=1),
        Column(
            heading="LAST", cell=lambda row: age(now_ms - row.last_ms), least=4, most=5, rank=2, right=True
        ),
        Column(heading="FINDINGS", cell=lambda row: ", ".join(row.told), least=16, most=60, rank=3),
        Column(heading="SOFTWARE", cell=software, least=12, most=36, rank=4),
        Column(heading="PRINCIPAL", cell=lambda row: row.principal, least=10, most=24, rank=5),
        Column(heading="PUSHES", cell=lambda row: str(row.pushes), least=6, most=9, rank=6, right=True),
        Column(heading="GROUP", cell=lambda row: row.group_id, least=8, most=24, rank=7),
        Column(heading="OWNER", cell=lambda row: row.owner, least=8, most=20, rank=8),
        Column(heading="INSTANCE", cell=lambda row: row.client_instance_id, least=22, most=22, rank=9),
    ]


def name(row: ClientRow) -> str:
    """The client id; the instance id if it has none."""
    return row.client_id or row.client_instance_id


def software(row: ClientRow) -> str:
    """Library and version."""
    return f"{row.software} {row.version}"


def terminal_width() -> int:
    """The columns of the terminal, at least 60."""
    return max(LEAST_WIDTH, shutil.get_terminal_size((120, 24)).columns)


@click.command("clients", epilog="\b\nExample:\n  odradek clients --bootstrap-server localhost:9092 orders-1")
@reading_options
@click.argument("client", required=False)
@filter_option
@click.option(
    "--sort",
    type=click.Choice(list(SORTS)),
    default="client",
    show_default=True,
    help="The order of the clients.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per client.")
def clients(
    bootstrap_servers: str,
    command_config: Path | None,
    topic: str,
    history_ms: int,
    owners: Path | None,
    client: str | None,
    wanted: Callable[[ClientRow], bool],
    sort: str,
    as_json: bool,
) -> None:
    """List the clients that push telemetry, or show one in full.

    CLIENT is a client instance id or a client id.
    """
    connect = connector(bootstrap_servers, command_config)
    with opened_view(connect, topic, history_ms, owners) as view:
        if client is None:
            rows = sorted(view.clients(wanted), key=SORTS[sort])  # type: ignore[arg-type]
            lines = map(json.dumps, (row.to_json() for row in rows)) if as_json else listed(rows)
        else:
            detail = view.client(client)
            if detail is None:
                raise click.ClickException(
                    f"no client {client} has pushed to {topic} in the last {age(history_ms)}"
                )
            told = subscriptions_of(detail.row, ClusterView(connect, topic))
            if as_json:
                lines = iter([json.dumps(detail.to_json() | {"subscriptions": told})])
            else:
                lines = described(detail, told, terminal_width())
        show(lines)


def listed(rows: Sequence[ClientRow]) -> Iterator[str]:
    """The list as lines."""
    yield from table_lines(columns(time.time_ns() // 1_000_000), rows, terminal_width())
    yield counted(len(rows), "client")


def subscriptions_of(row: ClientRow, cluster: ClusterView) -> list[str]:
    """The names of the subscriptions that select a client; none if the cluster does not tell them."""
    try:
        return [each.name for each in cluster.subscriptions() if is_matched(each.match, row)]
    except ClientError:
        return []


def described(detail: ClientDetail, told: Sequence[str], width: int) -> Iterator[str]:
    """A client in full, as lines."""
    now_ms, row = time.time_ns() // 1_000_000, detail.row
    facts = {
        "client id": row.client_id or "none",
        "instance": row.client_instance_id,
        "state": f"{row.state}, last push {age(now_ms - row.last_ms)} ago",
        "first push": f"{age(now_ms - row.first_ms)} ago",
        "software": software(row),
        "principal": row.principal,
        "owner": row.owner,
        "group": row.group_id,
        "gateway": row.gateway,
        "pushes": f"{row.pushes}, one every {age(row.interval_ms)}, {row.payload_bytes} bytes, "
        f"largest {detail.largest_bytes}",
        "gaps": f"{row.gaps}, {age(detail.gap_ms)} together" if row.gaps else "",
        "refused": f"{row.refused}, last {row.last_error}" if row.refused else "",
        "subscribed": ", ".join(told),
    }
    for key, value in facts.items():
        yield from fact(key, value, width)
    for place in detail.connections:
        where = f"{place.address}:{place.port} to broker {place.node_id}"
        yield from fact("connected", f"{where}, {age(now_ms - place.since_ms)} ago", width)
    if detail.others:
        others = counted(len(detail.others), "other instance")
        yield from fact("before", f"{others} of this client id and principal", width)
    yield ""
    yield from finding_lines(detail.findings, width)
    for each in detail.ended:
        yield from wrapped(f"Ended after {age(each.ended_ms - each.since_ms)}: {each.id}", width, 0)
    yield from series_lines(detail, width)
    if detail.not_reported:
        yield ""
        yield "Not reported by this library:"
        yield from (clipped(f"  {each.removeprefix(PREFIX)}", width) for each in detail.not_reported)


def fact(key: str, value: str, width: int) -> Iterator[str]:
    """A fact of a client, on as many lines as it needs; none if it is empty."""
    for number, line in enumerate(wrapped(value, width, FACT)):
        yield line if number else f"{key:<{FACT}}{line[FACT:]}"


def finding_lines(findings: Sequence[Finding], width: int, indent: int = 0) -> Iterator[str]:
    """Findings with their evidence and advice."""
    if not findings:
        yield " " * indent + "No findings."
    for each in findings:
        labels = label_text(each.labels, " ")
        bars = sparkline([value for _, value in each.evidence], SPARK)
        value = " ".join(filter(None, (f"{short(each.value)} {each.unit}", labels, bars)))
        yield from wrapped(f"{each.id}: {each.question}", width, indent)
        for text in filter(None, (value, each.detail, each.advice)):
            yield from wrapped(text, width, indent + 2)


def series_lines(detail: ClientDetail, width: int) -> Iterator[str]:
    """The series: value, peers, the last values as bars."""
    if not detail.series:
        return
    yield ""
    spark = max(LEAST_SPARK, min(SPARK, width - LEAST_WIDTH))
    size = width - 8 - 8 - spark - 6
    yield f"{'METRIC':<{size}}  {'VALUE':>8}  {'PEERS':>8}  RECENT"
    for each in detail.series:
        labels = label_text(each.labels, ",")
        metric = each.metric.removeprefix(PREFIX) + (f"{{{labels}}}" if labels else "")
        bars = sparkline([value for _, value in each.points], spark)
        text = metric if len(metric) <= size else "…" + metric[len(metric) - size + 1 :]
        yield f"{text:<{size}}  {short(each.value):>8}  {short(each.peers):>8}  {bars}"
