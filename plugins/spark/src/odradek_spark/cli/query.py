"""``odradek spark query``: query the tables, without Java."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import wraps
from itertools import chain
from typing import Any

import click
import duckdb
import pyarrow as pa

from odradek.findings.client_metrics import PREFIX
from odradek_spark.cli.options import adding, dataset_option, moment
from odradek_spark.cli.printing import FORMATS, show, show_columns
from odradek_spark.cli.tables import (
    Row,
    advice,
    anomalies_table,
    client_summary,
    clients_table,
    series_tables,
    throttled_table,
    top_table,
    versions_table,
)
from odradek_tables.dataset import DatasetError
from odradek_tables.query import questions
from odradek_tables.query.questions import Who, Window
from odradek_tables.query.reader import Reader

NEAREST = 3
"""Limit of the names that a message proposes."""
NEVER = datetime.fromtimestamp(0, UTC)


@click.group()
def query() -> None:
    """Query the tables. Takes seconds and needs no Java."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question has found."""

    rows: pa.Table
    nothing: str | Callable[[], str]
    """Message instead of an empty table."""
    people: Callable[[], None] | None = None
    """Prints the rows for people; by default as they are."""
    status: int = 0
    """The exit status."""


def asking(question: Callable[..., Answer]) -> Callable[..., None]:
    """Make a command of a question to a reader within a time range: it has the options of all queries."""

    @wraps(question)
    def command(dataset: str, since: datetime | None, until: datetime | None, form: str, **own: Any) -> None:
        try:
            with closing(Reader(dataset, since, until)) as reader:
                answer = question(reader, Window(since=since, until=until), **own)
                show(answer.rows, form, answer.nothing, answer.people)
        except DatasetError as error:
            raise click.ClickException(str(error)) from error
        if answer.status:
            raise click.exceptions.Exit(answer.status)

    asked: Callable[..., None] = adding(
        dataset_option,
        moment("--since", "Only pushes since TIME: 90s, 30m, 2h, 7d ago, or YYYY-MM-DDThh:mm:ss."),
        moment("--until", "Only pushes before TIME."),
        click.option(
            "--format", "form", type=click.Choice(FORMATS), default="table", help="Format of the output."
        ),
    )(command)
    return asked


@query.command()
@asking
def clients(reader: Reader, window: Window) -> Answer:
    """List the clients that pushed, one row per client instance."""
    rows = questions.clients(reader, window)
    return Answer(rows, "no client pushed", lambda: show_columns(clients_table(rows.to_pylist())))


@query.command()
@asking
@click.option("--client-id", help="Clients with this client.id.")
@click.option("--client-instance-id", help="The client instance with this id, as Kafka prints it.")
@click.option("--principal", help="Clients of this principal: User:alice.")
@click.option("--client-address", help="Clients at this address.")
@click.option("--topic", help="Only series with this label.")
@click.option("--metric", help="Only this metric.")
@click.option("--all", "everything", is_flag=True, help="Also show the metrics that matter less.")
def client(reader: Reader, window: Window, everything: bool, **chosen: str | None) -> Answer:
    """Summarize the metrics of a client, one row per series.

    The table begins with the client and its troubles.
    """
    if all(value is None for name, value in chosen.items() if name != "metric"):
        raise click.UsageError(
            "expected one of --client-id, --client-instance-id, --principal and --client-address"
        )
    who = Who(**chosen)
    rows = questions.client(reader, who, window)
    return Answer(
        rows,
        lambda: missing_client(reader, who),
        lambda: show_client(reader, who, window, rows.to_pylist(), everything=everything),
    )


def show_client(reader: Reader, who: Who, window: Window, rows: Sequence[Row], *, everything: bool) -> None:
    instances = {row["client_instance_id"] for row in rows}
    clients = questions.clients(reader, window, who).to_pylist()
    known = [each for each in clients if each["client_instance_id"] in instances]
    episodes = questions.anomalies(reader, window, who=who).to_pylist()
    latest = questions.last_push(reader, window) or NEVER
    click.echo("\n".join(client_summary(known, episodes, latest)))
    tables = series_tables(rows, everything=everything or who.metric is not None)
    for title, table in tables:
        click.echo(f"\n{click.style(title, bold=True)}")
        show_columns(table, indent="  ")
    more = len(rows) - sum(len(table[0].texts) for _, table in tables)
    if more:
        click.echo(f"\n{more:,} more series: --all shows them, --metric NAME one metric")


@query.command()
@asking
@click.option("--metric", required=True, help="Name of the metric.")
@click.option(
    "--by", type=click.Choice(questions.DIMENSIONS), default="client_id", show_default=True, help="Grouping."
)
@click.option(
    "--aggregate",
    type=click.Choice(list(questions.AGGREGATES)),
    default="max",
    show_default=True,
    help="Aggregate of the values of a group.",
)
@click.option(
    "--limit", type=click.IntRange(1, 1_000_000), default=10, show_default=True, help="Limit of rows."
)
def top(reader: Reader, window: Window, metric: str, by: str, aggregate: str, limit: int) -> Answer:
    """Rank clients by a metric."""
    rows = questions.top(reader, metric, window, by, aggregate, limit)
    return Answer(
        rows,
        lambda: missing_metric(reader, metric) or f"no points of {metric}",
        lambda: show_columns(top_table(rows, metric, by, aggregate)),
    )


@query.command()
@asking
@click.option("--at-least-ms", type=float, default=1.0, show_default=True, help="Ignore shorter throttles.")
def throttled(reader: Reader, window: Window, at_least_ms: float) -> Answer:
    """List the minutes in which clients were throttled by a quota."""
    rows = questions.throttled(reader, window, at_least_ms)
    return Answer(rows, "no client was throttled", lambda: show_columns(throttled_table(rows.to_pylist())))


@query.command()
@asking
def versions(reader: Reader, window: Window) -> Answer:
    """List the client libraries in use."""
    rows = questions.versions(reader, window)
    return Answer(rows, "no client pushed", lambda: show_columns(versions_table(rows.to_pylist())))


@query.command()
@asking
@click.option("--open", "only_open", is_flag=True, help="Only anomalies that have not ended.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if an anomaly is listed.")
def anomalies(reader: Reader, window: Window, only_open: bool, exit_code: bool) -> Answer:
    """List the anomalies that `odradek spark run` found."""
    rows = questions.anomalies(reader, window, only_open=only_open)
    latest = questions.last_push(reader, window) or NEVER
    status = int(exit_code and rows.num_rows > 0)
    return Answer(rows, "no anomalies", lambda: show_anomalies(rows.to_pylist(), latest), status)


def show_anomalies(rows: Sequence[Row], latest: datetime) -> None:
    show_columns(anomalies_table(rows, latest))
    for paragraph in advice(rows):
        click.echo()
        click.echo(click.wrap_text(paragraph, shutil.get_terminal_size().columns - 1))


@query.command()
@asking
@click.argument("statement")
def sql(reader: Reader, window: Window, statement: str) -> Answer:
    """Run a DuckDB SQL statement on the tables and views.

    The views are v_points, v_clients, v_rollup, v_lag and v_totals.
    """
    try:
        return Answer(reader.ask(statement), "no rows")
    except duckdb.Error as error:
        raise click.UsageError(str(error).replace("\n", " ")) from error


def missing_client(reader: Reader, who: Who) -> str:
    """Why no points match: the first of the given values that no push or point has."""
    for name in questions.IDENTITY:
        value = getattr(who, name)
        known = [] if value is None else reader.names("pushes", name)
        if value is not None and value not in known:
            option = "--" + name.replace("_", "-")
            return f"no client pushed with {option} {value}{during(reader)}{nearest(value, known)}"
    if who.topic is not None and who.topic not in (known := reader.names("points", "topic")):
        return f"no points of the topic {who.topic}{during(reader)}{nearest(who.topic, known)}"
    if who.metric is not None:
        found = missing_metric(reader, who.metric)
        if found is not None:
            return found
    return f"no points match all options{during(reader)}"


def missing_metric(reader: Reader, metric: str) -> str | None:
    """Why a metric has no points; None if it has."""
    known = reader.names("points", "name")
    if not set(known).isdisjoint(questions.spellings(metric)):
        return None
    short = [each.removeprefix(PREFIX) for each in known]
    return f"no points of {metric}{during(reader)}{nearest(metric.removeprefix(PREFIX), short)}"


def during(reader: Reader) -> str:
    bounds = (("since", reader.since), ("until", reader.until))
    return "".join(
        f" {word} {at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC" for word, at in bounds if at is not None
    )


def nearest(value: str, known: list[str]) -> str:
    """The known names that are like a value."""
    whole = get_close_matches(value, known, NEAREST)
    parts = (each for each in known if value and value in each)
    found = list(dict.fromkeys(chain(whole, parts)))[:NEAREST]
    return f"; did you mean {' or '.join(found)}?" if found else ""
