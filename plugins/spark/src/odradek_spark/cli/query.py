"""``odradek spark query``: query the tables, without Java."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import duckdb
import pyarrow as pa

from odradek_spark.cli.options import dataset_option
from odradek_spark.cli.printing import FORMATS, show
from odradek_spark.cli.times import Moment
from odradek_spark.query import questions
from odradek_spark.query.chart import Bars, Panel, bars, draw, series_panels, throttle_panels, unit_of
from odradek_spark.query.questions import Who, Window
from odradek_spark.query.reader import Reader
from odradek_spark.tables.dataset import DatasetError

Command = TypeVar("Command", bound=Callable[..., Any])
PLOT = click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also draw the result as a PNG file.",
)


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


def plotted(chart: Sequence[Panel] | Bars, path: Path | None) -> None:
    """Draw the chart if a file is given, and report it on stderr."""
    if path is None:
        return
    try:
        left_out = draw(chart, path)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error
    for line in [*left_out, f"drawn: {path}"]:
        click.echo(line, err=True)


@query.command()
@asking
def clients(dataset: str, since: datetime | None, until: datetime | None, form: str) -> None:
    """List the clients that pushed, one row per client instance."""
    with reading(dataset, since, until) as (reader, window):
        show(questions.clients(reader, window), form, "no client pushed")


@query.command()
@asking
@click.option("--client-id", help="Clients with this client.id.")
@click.option("--client-instance-id", help="The client instance with this id, as Kafka prints it.")
@click.option("--principal", help="Clients of this principal: User:alice.")
@click.option("--client-address", help="Clients at this address.")
@click.option("--topic", help="Only series with this label.")
@click.option("--metric", help="Only this metric.")
@PLOT
def client(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    plot: Path | None,
    **chosen: str | None,
) -> None:
    """Summarize the metrics of a client, one row per series."""
    if all(value is None for name, value in chosen.items() if name != "metric"):
        raise click.UsageError(
            "expected one of --client-id, --client-instance-id, --principal and --client-address"
        )
    who = Who(**chosen)
    with reading(dataset, since, until) as (reader, window):
        show(questions.client(reader, who, window), form, "no points of a client like that")
        if plot is not None:
            plotted(series_panels(questions.series(reader, who, window)), plot)


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
@PLOT
def top(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    metric: str,
    by: str,
    aggregate: str,
    limit: int,
    plot: Path | None,
) -> None:
    """Rank clients by a metric."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.top(reader, metric, window, by, aggregate, limit)
        show(rows, form, f"no points of {metric}")
        unit = unit_of(metric, rows["unit"][0].as_py() if rows.num_rows else None)
        plotted(bars(rows, [by], "value", f"{aggregate} of {metric} by {by}", unit), plot)


@query.command()
@asking
@click.option("--at-least-ms", type=float, default=1.0, show_default=True, help="Ignore shorter throttles.")
@PLOT
def throttled(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    at_least_ms: float,
    plot: Path | None,
) -> None:
    """List the minutes in which clients were throttled by a quota."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.throttled(reader, window, at_least_ms)
        show(rows, form, "no client was throttled")
        plotted(throttle_panels(rows), plot)


@query.command()
@asking
@PLOT
def versions(
    dataset: str, since: datetime | None, until: datetime | None, form: str, plot: Path | None
) -> None:
    """List the client libraries in use."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.versions(reader, window)
        show(rows, form, "no client pushed")
        names = ["software_name", "software_version"]
        plotted(bars(rows, names, "instances", "client libraries", "client instances"), plot)


@query.command()
@asking
@click.option("--open", "only_open", is_flag=True, help="Only anomalies that have not ended.")
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if an anomaly is listed.")
@PLOT
def anomalies(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    only_open: bool,
    exit_code: bool,
    plot: Path | None,
) -> None:
    """List the anomalies that `odradek spark detect` found."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.anomalies(reader, window, only_open=only_open)
        show(rows, form, "no anomalies")
        names = ["rule", "client_id", "started_ts"]
        plotted(bars(rows, names, "held_s", "how long values were beyond the threshold", "seconds"), plot)
    if exit_code and rows.num_rows:
        raise click.exceptions.Exit(1)


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
