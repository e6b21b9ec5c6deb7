"""``odradek spark query``: query the tables, without Java."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, TypeVar

import click
import duckdb
import pyarrow as pa

from odradek_spark.cli.options import dataset_option
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
from odradek_spark.cli.times import Moment
from odradek_spark.query import questions
from odradek_spark.query.missing import missing_client, missing_metric
from odradek_spark.query.questions import Who, Window
from odradek_spark.query.reader import Reader
from odradek_spark.tables.dataset import DatasetError

NEVER = datetime.fromtimestamp(0, UTC)
Command = TypeVar("Command", bound=Callable[..., Any])


@click.group()
def query() -> None:
    """Query the tables. Takes seconds and needs no Java."""


def asking(command: Command) -> Command:
    """Add the options that all queries have."""
    options = (
        dataset_option,
        click.option(
            "--since",
            type=Moment(),
            metavar="TIME",
            help="Only pushes since TIME: 90s, 30m, 2h, 7d ago, or YYYY-MM-DDThh:mm:ss.",
        ),
        click.option("--until", type=Moment(), metavar="TIME", help="Only pushes before TIME."),
        click.option(
            "--format", "form", type=click.Choice(FORMATS), default="table", help="Format of the output."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


@contextmanager
def reading(dataset: str, since: datetime | None, until: datetime | None) -> Iterator[tuple[Reader, Window]]:
    """Open the tables for one query."""
    try:
        reader = Reader(dataset, since, until)
        try:
            yield reader, Window(since=since, until=until)
        finally:
            reader.close()
    except DatasetError as error:
        raise click.ClickException(str(error)) from error


@query.command()
@asking
def clients(dataset: str, since: datetime | None, until: datetime | None, form: str) -> None:
    """List the clients that pushed, one row per client instance."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.clients(reader, window)
        show(rows, form, "no client pushed", lambda: show_columns(clients_table(rows.to_pylist())))


@query.command()
@asking
@click.option("--client-id", help="Clients with this client.id.")
@click.option("--client-instance-id", help="The client instance with this id, as Kafka prints it.")
@click.option("--principal", help="Clients of this principal: User:alice.")
@click.option("--client-address", help="Clients at this address.")
@click.option("--topic", help="Only series with this label.")
@click.option("--metric", help="Only this metric.")
@click.option("--all", "everything", is_flag=True, help="Also show the metrics that matter less.")
def client(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    everything: bool,
    **chosen: str | None,
) -> None:
    """Summarize the metrics of a client, one row per series.

    The table begins with the client and its troubles.
    """
    if all(value is None for name, value in chosen.items() if name != "metric"):
        raise click.UsageError(
            "expected one of --client-id, --client-instance-id, --principal and --client-address"
        )
    with reading(dataset, since, until) as (reader, window):
        who = Who(**chosen)
        rows = questions.client(reader, who, window)
        show(
            rows,
            form,
            lambda: missing_client(reader, who),
            lambda: show_client(reader, who, window, rows.to_pylist(), everything=everything),
        )


def show_client(reader: Reader, who: Who, window: Window, rows: Sequence[Row], *, everything: bool) -> None:
    """Print a summary of a client, and its series by concern."""
    instances = {row["client_instance_id"] for row in rows}
    clients = questions.clients(reader, window, who).to_pylist()
    known = [each for each in clients if each["client_instance_id"] in instances]
    episodes = questions.anomalies(reader, window, who=who).to_pylist()
    latest = questions.last_push(reader, window) or NEVER
    click.echo("\n".join(client_summary(known, rows, episodes, latest)))
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
def top(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    metric: str,
    by: str,
    aggregate: str,
    limit: int,
) -> None:
    """Rank clients by a metric."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.top(reader, metric, window, by, aggregate, limit)
        show(
            rows,
            form,
            lambda: missing_metric(reader, metric) or f"no points of {metric}",
            lambda: show_columns(top_table(rows, metric, by, aggregate)),
        )


@query.command()
@asking
@click.option("--at-least-ms", type=float, default=1.0, show_default=True, help="Ignore shorter throttles.")
def throttled(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    at_least_ms: float,
) -> None:
    """List the minutes in which clients were throttled by a quota."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.throttled(reader, window, at_least_ms)
        show(rows, form, "no client was throttled", lambda: show_columns(throttled_table(rows.to_pylist())))


@query.command()
@asking
def versions(dataset: str, since: datetime | None, until: datetime | None, form: str) -> None:
    """List the client libraries in use."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.versions(reader, window)
        show(rows, form, "no client pushed", lambda: show_columns(versions_table(rows.to_pylist())))


@query.command()
@asking
@click.option("--open", "only_open", is_flag=True, help="Only anomalies that have not ended.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if an anomaly is listed.")
def anomalies(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    only_open: bool,
    exit_code: bool,
) -> None:
    """List the anomalies that `odradek spark run` found."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.anomalies(reader, window, only_open=only_open)
        found = rows.to_pylist()
        latest = questions.last_push(reader, window) or NEVER
        show(rows, form, "no anomalies", lambda: show_anomalies(found, latest))
    if exit_code and rows.num_rows:
        raise click.exceptions.Exit(1)


def show_anomalies(rows: Sequence[Row], latest: datetime) -> None:
    """Print anomalies, and what to do."""
    show_columns(anomalies_table(rows, latest))
    for paragraph in advice(rows):
        click.echo()
        click.echo(click.wrap_text(paragraph, shutil.get_terminal_size().columns - 1))


@query.command()
@asking
@click.argument("statement")
def sql(dataset: str, since: datetime | None, until: datetime | None, form: str, statement: str) -> None:
    """Run a DuckDB SQL statement on the tables and views.

    The views are v_points, v_clients, v_rollup and v_totals.
    """
    with reading(dataset, since, until) as (reader, _):
        try:
            rows: pa.Table = reader.ask(statement)
        except duckdb.Error as error:
            raise click.UsageError(str(error).replace("\n", " ")) from error
        show(rows, form, "no rows")
