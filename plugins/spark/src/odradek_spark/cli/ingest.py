"""``odradek spark ingest`` and ``run``: from the topic into the tables."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from odradek_spark.cli.maintenance import Maintenance, maintenance_options
from odradek_spark.cli.options import client_config_option, dataset_option, properties
from odradek_spark.cli.session import session, session_options
from odradek_spark.ingest.query import IngestSettings
from odradek_spark.ingest.status import batches_since, version
from odradek_spark.source.options import TELEMETRY_TOPIC

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Command = TypeVar("Command", bound=Callable[..., Any])


def source_options(command: Command) -> Command:
    """Add the options that say what is ingested and how."""
    options = (
        click.option("--bootstrap-server", required=True, metavar="HOST:PORT[,...]", help="The brokers."),
        client_config_option,
        dataset_option,
        click.option("--topic", default=TELEMETRY_TOPIC, show_default=True, help="The telemetry topic."),
        click.option("--checkpoint", default="", help="Spark's notes; by default in the dataset."),
        click.option(
            "--max-bytes-per-trigger",
            type=click.IntRange(1),
            default=IngestSettings.__dataclass_fields__["max_bytes_per_trigger"].default,
            help="About how much one batch reads.",
        ),
        click.option(
            "--starting-offsets",
            type=click.Choice(["earliest", "latest"]),
            default="earliest",
            show_default=True,
            help="Where a new dataset begins.",
        ),
        click.option(
            "--allow-data-loss",
            is_flag=True,
            help="Go on where retention deleted offsets that were not read yet.",
        ),
        click.option(
            "--trigger-interval-s",
            type=click.FloatRange(0.1),
            default=60.0,
            show_default=True,
            help="How often a batch is looked for.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def ingest_settings(options: dict[str, Any]) -> IngestSettings:
    """The options of a command line, as ingest wants them; they are taken out."""
    return IngestSettings(
        bootstrap_servers=options.pop("bootstrap_server"),
        client=properties(options.pop("command_config")),
        dataset=options.pop("dataset"),
        topic=options.pop("topic"),
        checkpoint=options.pop("checkpoint"),
        max_bytes_per_trigger=options.pop("max_bytes_per_trigger"),
        starting_offsets=options.pop("starting_offsets"),
        fail_on_data_loss=not options.pop("allow_data_loss"),
        trigger_s=options.pop("trigger_interval_s"),
    )


@click.command()
@source_options
@session_options
@click.option("--once", is_flag=True, help="Stop when everything is in that is in the topic now.")
def ingest(master: str, remote: str | None, conf: tuple[str, ...], once: bool, **options: Any) -> None:
    """Decode the telemetry topic into the tables, each push once."""
    settings = ingest_settings(options)
    before = version(settings.dataset)
    from odradek_spark.ingest.progress import IngestProgress

    with session(master, remote, conf) as spark, IngestProgress(settings, sys.stderr) as progress:
        ingesting(spark, settings, once=once, stop=stop_on_signals(), watch=progress)
    totals = batches_since(settings.dataset, before)
    click.echo(
        f"ingested {totals.pushes} pushes, {totals.points} points, {totals.dead_letters} dead letters "
        f"in {totals.batches} batches"
    )


@click.command()
@source_options
@session_options
@maintenance_options
@click.option("--until-stdin-ends", is_flag=True, help="Stop when whoever holds the other end is gone.")
def run(
    master: str,
    remote: str | None,
    conf: tuple[str, ...],
    until_stdin_ends: bool,
    **options: Any,
) -> None:
    """Ingest and keep the tables, in one session, until SIGTERM or SIGINT."""
    settings = ingest_settings(options)
    stop = stop_on_signals()
    if until_stdin_ends:
        threading.Thread(target=wait_for_end, args=(stop,), name="stdin", daemon=True).start()
    maintenance = Maintenance(settings.dataset, **options)
    with session(master, remote, conf) as spark:
        say(f"ingesting {settings.topic} of {settings.bootstrap_servers} into {settings.dataset}")
        ingesting(spark, settings, once=False, stop=stop, watch=lambda: maintenance.run_due(spark, say))


def ingesting(
    spark: SparkSession,
    settings: IngestSettings,
    *,
    once: bool,
    stop: threading.Event,
    watch: Callable[[], object] = lambda: None,
) -> None:
    """Ingest, with failures that are explained."""
    from odradek_spark.ingest.run import IngestFailed, run_ingest

    try:
        run_ingest(spark, settings, once=once, stop=stop, say=say, watch=watch)
    except IngestFailed as error:
        raise click.ClickException(str(error)) from error


def say(line: str) -> None:
    """A line for whoever watches."""
    click.echo(" ".join(line.split()), err=True)


def stop_on_signals() -> threading.Event:
    """An event that SIGTERM and SIGINT set."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    return stop


def wait_for_end(stop: threading.Event) -> None:
    """Stop with whoever started this: their end of the pipe closes however they go."""
    sys.stdin.buffer.read()
    stop.set()
