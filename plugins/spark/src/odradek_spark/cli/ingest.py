"""``odradek spark ingest`` and ``run``: from the topic into the tables."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import click

from odradek.endpoints import Address
from odradek.settings.options import options_of, settings_of
from odradek_spark.cli.maintenance import Maintenance
from odradek_spark.cli.options import (
    Decorator,
    adding,
    data_loss_option,
    kept_days,
    listener,
    properties,
    retention_option,
)
from odradek_spark.cli.session import conf_option, explained, session
from odradek_spark.conditions import without_condition
from odradek_spark.ingest.progress import Progress, served
from odradek_spark.ingest.query import check_ingest
from odradek_spark.ingest.settings import IngestSettings
from odradek_spark.pipeline_settings import PipelineSettings
from odradek_spark.source.topic import Unreachable

T = TypeVar("T", bound=IngestSettings)


def options_for(kind: type[IngestSettings]) -> Decorator:
    """Adds the options of a command that ingests."""
    return adding(
        options_of(kind, required=["bootstrap.servers", "dataset"]),
        data_loss_option,
        click.option(
            "--starting-offsets",
            type=click.Choice(["earliest", "latest"]),
            default="earliest",
            show_default=True,
            help="Position in the topic at which a new dataset begins.",
        ),
        conf_option,
        click.option(
            "--once",
            is_flag=True,
            help="Stop once everything that is in the topic now is in the tables, for cron. Each start of "
            "Spark costs about 20 seconds of processor time, whatever there is to read.",
        ),
    )


def settings_from(kind: Callable[..., T], options: dict[str, Any]) -> T:
    """The settings of a command that ingests; removes their options from ``options``."""
    found = settings_of(kind, options)
    return replace(
        found,
        client=properties(found.command_config),
        fail_on_data_loss=not options.pop("allow_data_loss"),
        starting_offsets=options.pop("starting_offsets"),
    )


@click.command()
@options_for(IngestSettings)
def ingest(conf: tuple[str, ...], once: bool, **options: Any) -> None:
    """Decode the telemetry topic into the tables, each push exactly once.

    It is a query from format("odradek") to format("odradek"), as a program of your own has it.
    """
    from odradek_spark.ingest.run import run_ingest

    with explained():
        settings, stop = settings_from(IngestSettings, options), threading.Event()
        look_at(settings, once=once)
        with session(settings.master, conf) as spark:
            stop_on_signals(stop)
            progress = Progress(settings.dataset, say)
            run_ingest(spark, settings, once=once, stop=stop, say=say, watch=progress)
        total = progress.total
        click.echo(
            f"ingested {total.pushes} pushes, {total.points} points, {total.dead_letters} dead letters "
            f"in {total.batches} batches"
        )


@click.command()
@options_for(PipelineSettings)
@retention_option
@click.option(
    "--metrics-listener",
    metavar="URL",
    callback=listener,
    help="Serve metrics for Prometheus here: http://HOST:PORT.",
)
@click.option("--until-stdin-ends", is_flag=True, help="Stop at the end of standard input.")
def run(
    conf: tuple[str, ...],
    once: bool,
    retention_days: Sequence[str],
    metrics_listener: Address | None,
    until_stdin_ends: bool,
    **options: Any,
) -> None:
    """Ingest, and run all jobs when they are due, in one session.

    Stop it with SIGTERM or SIGINT; the next run completes the unfinished work. With --once, all jobs run once
    after the ingest.
    """
    from odradek_spark.ingest.run import run_ingest

    with explained():
        settings, stop = settings_from(PipelineSettings, options), threading.Event()
        if until_stdin_ends:
            threading.Thread(target=wait_for_end, args=(stop,), name="stdin", daemon=True).start()
        maintenance = Maintenance(settings, kept_days(retention_days))
        look_at(settings, once=once)
        progress = Progress(settings.dataset, say)
        with (
            served(progress, metrics_listener) if metrics_listener else nullcontext(),
            session(settings.master, conf) as spark,
            nullcontext() if once else maintenance.beside(spark, say, stop),
        ):
            stop_on_signals(stop)
            say(f"ingesting {settings.topic} of {settings.bootstrap_servers} into {settings.dataset}")
            run_ingest(spark, settings, once=once, stop=stop, say=say, watch=progress)
            if once:
                maintenance.run_all(spark, say, stop)


def look_at(settings: IngestSettings, *, once: bool) -> None:
    """Check topic and dataset before Spark starts, which takes several seconds.

    Raises:
        DatasetError: The dataset is unusable.
        TopicError: The topic is unreadable. Brokers that do not answer are an error only with ``once``;
            otherwise ingest waits for them.
    """
    try:
        check_ingest(settings)
    except Unreachable as error:
        if once:
            raise
        say(f"{without_condition(str(error))}; waiting")


def say(line: str) -> None:
    click.echo(" ".join(line.split()), err=True)


def stop_on_signals(stop: threading.Event) -> None:
    """Make SIGTERM and SIGINT set an event. Call it after the session started: Spark sets a handler too."""

    def handle(*_: object) -> None:
        stop.set()
        say("stopping; waiting for the running batch and job, and for Spark")

    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, handle)


def wait_for_end(stop: threading.Event) -> None:
    """Stop at the end of standard input: a pipe ends with the parent process, even if that is killed."""
    sys.stdin.buffer.read()
    stop.set()
