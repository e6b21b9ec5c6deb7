"""``odradek spark query``: query the tables, without Java."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import click
import duckdb
import pyarrow as pa

from odradek_spark.cli.options import dataset_option
from odradek_spark.cli.printing import FORMATS, show, show_columns
from odradek_spark.cli.tables import (
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
from odradek_spark.query.behind import anomalies_page, metrics_behind
from odradek_spark.query.chart import Page
from odradek_spark.query.figures import draw
from odradek_spark.query.missing import missing_client, missing_metric
from odradek_spark.query.pages import (
    client_pages,
    clients_page,
    listed,
    metric_pages,
    throttle_page,
    top_page,
    versions_page,
)
from odradek_spark.query.questions import Who, Window
from odradek_spark.query.reader import Reader
from odradek_spark.tables.dataset import DatasetError

NEVER = datetime.fromtimestamp(0, UTC)
Command = TypeVar("Command", bound=Callable[..., Any])
PLOT = click.option(
    "--plot",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Also draw the result: FILE.png, .svg or .pdf.",
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


def plotted(pages: Callable[[], Sequence[Page]], path: Path | None) -> None:
    """Draw pages if a file is given, and report the files on stderr."""
    if path is None:
        return
    try:
        done = draw(pages(), path)
    except OSError as error:
        raise click.ClickException(f"{path}: {error.strerror}") from error
    for line in [*done.left_out, *(f"drawn: {file}" for file in done.files)]:
        click.echo(line, err=True)


@query.command()
@asking
@PLOT
def clients(
    dataset: str, since: datetime | None, until: datetime | None, form: str, plot: Path | None
) -> None:
    """List the clients that pushed, one row per client instance."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.clients(reader, window)
        found = rows.to_pylist()
        show(rows, form, "no client pushed", lambda: show_columns(clients_table(found)))
        plotted(lambda: [clients_page(found, questions.fleet(reader, window).to_pylist())], plot)


@query.command()
@asking
@click.option("--client-id", help="Clients with this client.id.")
@click.option("--client-instance-id", help="The client instance with this id, as Kafka prints it.")
@click.option("--principal", help="Clients of this principal: User:alice.")
@click.option("--client-address", help="Clients at this address.")
@click.option("--topic", help="Only series with this label.")
@click.option("--metric", help="Only this metric.")
@click.option("--all", "everything", is_flag=True, help="Also show the metrics that matter less.")
@PLOT
def client(
    dataset: str,
    since: datetime | None,
    until: datetime | None,
    form: str,
    everything: bool,
    plot: Path | None,
    **chosen: str | None,
) -> None:
    """Summarize the metrics of a client, one row per series.

    The table begins with the client and its troubles. The picture has a page for each concern.
    """
    if all(value is None for name, value in chosen.items() if name != "metric"):
        raise click.UsageError(
            "expected one of --client-id, --client-instance-id, --principal and --client-address"
        )
    with reading(dataset, since, until) as (reader, window):
        asked = AboutClient(reader, Who(**chosen), window)
        rows = questions.client(reader, asked.who, window)
        show(
            rows,
            form,
            lambda: missing_client(reader, asked.who),
            lambda: asked.show(rows.to_pylist(), everything=everything),
        )
        plotted(asked.pages, plot)


class AboutClient:
    """A question about a client, and what else is known of it."""

    def __init__(self, reader: Reader, who: Who, window: Window) -> None:
        self.reader, self.who, self.window = reader, who, window

    def show(self, rows: Sequence[Mapping[str, Any]], *, everything: bool) -> None:
        """Print a summary, and the series by concern."""
        instances = {row["client_instance_id"] for row in rows}
        clients = [each for each in self.clients() if each["client_instance_id"] in instances]
        click.echo("\n".join(client_summary(clients, rows, self.episodes(), self.latest())))
        tables = series_tables(rows, everything=everything or self.who.metric is not None)
        for title, table in tables:
            click.echo(f"\n{click.style(title, bold=True)}")
            show_columns(table, indent="  ")
        more = len(rows) - sum(len(table[0].texts) for _, table in tables)
        if more:
            click.echo(f"\n{more:,} more series: --all shows them, --metric NAME one metric")

    def pages(self) -> list[Page]:
        """The pages of the picture."""
        rows = questions.series(self.reader, self.who, self.window).to_pylist()
        clients = self.clients()
        title = self.who.said()
        subtitle = listed(sorted({each["software"] or "-" for each in clients}))
        if len(clients) == 1:
            subtitle = f"{subtitle}, instance {clients[0]['client_instance_id']}"
        elif clients:
            subtitle = f"{len(clients):,} instances, {subtitle}"
        if self.who.metric is not None:
            return metric_pages(rows, title, subtitle)
        return client_pages(rows, title, subtitle, self.episodes(), self.latest())

    def clients(self) -> list[dict[str, Any]]:
        """The client instances, as rows."""
        found: list[dict[str, Any]] = questions.clients(self.reader, self.window, self.who).to_pylist()
        return found

    def episodes(self) -> list[dict[str, Any]]:
        """Their anomalies, as rows."""
        found: list[dict[str, Any]] = questions.anomalies(self.reader, self.window, who=self.who).to_pylist()
        return found

    def latest(self) -> datetime:
        """The time of the last push of any client."""
        return questions.last_push(self.reader, self.window) or NEVER


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
        show(
            rows,
            form,
            lambda: missing_metric(reader, metric) or f"no points of {metric}",
            lambda: show_columns(top_table(rows, metric, by, aggregate)),
        )
        plotted(lambda: [top_page(rows, metric, by, aggregate)], plot)


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
        show(rows, form, "no client was throttled", lambda: show_columns(throttled_table(rows.to_pylist())))
        plotted(
            lambda: [
                throttle_page(questions.throttles(reader, window, at_least_ms).to_pylist(), at_least_ms)
            ],
            plot,
        )


@query.command()
@asking
@PLOT
def versions(
    dataset: str, since: datetime | None, until: datetime | None, form: str, plot: Path | None
) -> None:
    """List the client libraries in use."""
    with reading(dataset, since, until) as (reader, window):
        rows = questions.versions(reader, window)
        show(rows, form, "no client pushed", lambda: show_columns(versions_table(rows.to_pylist())))
        plotted(lambda: [versions_page(rows)], plot)


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
        found = rows.to_pylist()
        latest = questions.last_push(reader, window) or NEVER
        show(rows, form, "no anomalies", lambda: show_anomalies(found, latest))
        plotted(lambda: [page_of_anomalies(reader, window, found, latest)], plot)
    if exit_code and rows.num_rows:
        raise click.exceptions.Exit(1)


def show_anomalies(rows: Sequence[Mapping[str, Any]], latest: datetime) -> None:
    """Print anomalies, and what to do."""
    show_columns(anomalies_table(rows, latest))
    for paragraph in advice(rows):
        click.echo()
        click.echo(click.wrap_text(paragraph, shutil.get_terminal_size().columns - 1))


def page_of_anomalies(
    reader: Reader, window: Window, rows: Sequence[Mapping[str, Any]], latest: datetime
) -> Page:
    """The timeline of anomalies, with the metrics behind them."""
    instances = sorted({row["client_instance_id"] for row in rows})
    points = questions.series_of(reader, instances, metrics_behind(rows), window).to_pylist()
    pushes = questions.push_counts(reader, instances, window).to_pylist()
    return anomalies_page(rows, points, pushes, latest)


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
