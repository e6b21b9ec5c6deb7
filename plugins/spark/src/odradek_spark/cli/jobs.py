"""Commands by hand: replay, erase, rewrite and verify. `odradek spark run` runs the jobs that are due."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from odradek.topic import TopicFormat
from odradek_spark.cli.options import data_loss_option, dataset_option, moment, properties, setting_option
from odradek_spark.cli.session import explained, session, session_options
from odradek_spark.source.offsets import OffsetRange
from odradek_spark.source.options import ReadOptions
from odradek_tables.dataset import Dataset
from odradek_tables.decoder.decode import Counts, DecoderSettings
from odradek_tables.schemas import PUSHES

OFFSET_RANGE = re.compile(r"(\d+):(\d+)-(\d+)")


@click.command()
@setting_option("bootstrap.servers", required=True)
@setting_option("command.config")
@dataset_option
@setting_option("topic")
@setting_option("topic.format")
@setting_option("topic.interval.ms")
@setting_option("max.payload.bytes")
@data_loss_option
@click.option(
    "--range",
    "found",
    multiple=True,
    metavar="PARTITION:START-END",
    help="Offsets to replay, END excluded. May be repeated. Default: the offsets of dead letters.",
)
@moment("--since", "Replay everything received since TIME: 90s, 30m, 2h, 7d ago, or YYYY-MM-DDThh:mm:ss.")
@session_options
def replay(
    bootstrap_servers: str,
    command_config: Path | None,
    dataset: str,
    topic: str,
    topic_format: TopicFormat,
    topic_interval_ms: int,
    found: tuple[str, ...],
    since: datetime | None,
    max_payload_bytes: int,
    allow_data_loss: bool,
    **where: Any,
) -> None:
    """Decode records of the topic again and add the rows that are missing.

    Existing rows are not written twice, so an interrupted replay can simply be repeated.
    """
    from odradek_spark.jobs.replay import check_replay, ranges_since, run_replay

    if found and since is not None:
        raise click.UsageError("options --range and --since: expected only one of them")
    client = {"bootstrap.servers": bootstrap_servers} | properties(command_config)
    options = ReadOptions(client=client, topic=topic, fail_on_data_loss=not allow_data_loss)
    decoding = DecoderSettings(
        max_payload_bytes=max_payload_bytes, topic_format=topic_format, interval_ms=topic_interval_ms
    )
    wanted = [offset_range(each) for each in found] or None
    with explained():
        check_replay(dataset, options)
        if since is not None:
            wanted = ranges_since(dataset, options, since)
    with session(**where) as spark:
        done = run_replay(spark, dataset, options, wanted, told, decoding)
    click.echo(f"replay: {done.decoded.records} records, added {listed(done.added) or 'nothing'}")


def listed(rows: Mapping[str, int]) -> str:
    return ", ".join(f"{count} rows of {table}" for table, count in rows.items() if count)


def told(done: Counts, waiting: int) -> None:
    click.echo(f"{done.pushes:,} pushes, {done.points:,} points, {waiting:,} waiting", err=True)


def offset_range(text: str) -> OffsetRange:
    match = OFFSET_RANGE.fullmatch(text)
    if match is None or int(match[2]) >= int(match[3]):
        raise click.UsageError(f"option --range: expected PARTITION:START-END, found {text!r}")
    return OffsetRange(int(match[1]), int(match[2]), int(match[3]))


@click.command()
@dataset_option
@click.option("--client-id", metavar="ID", help="Erase this client id.")
@click.option("--principal", metavar="PRINCIPAL", help="Erase this principal: User:alice.")
def erase(dataset: str, client_id: str | None, principal: str | None) -> None:
    """Erase a client or a principal from all tables, their files and their history. Needs no Java.

    All dead letters are erased too, because they do not name their client. The topic is not changed.
    """
    from odradek_spark.jobs.erase import CLIENT_ID, PRINCIPAL, run_erase

    chosen = [(name, value) for name, value in ((CLIENT_ID, client_id), (PRINCIPAL, principal)) if value]
    if len(chosen) != 1:
        raise click.UsageError("expected one of --client-id and --principal")
    with explained():
        done = run_erase(dataset, *chosen[0], datetime.now(UTC))
    click.echo(f"erase: {listed(done) or 'no rows'}")


@click.command()
@dataset_option
def rewrite(dataset: str) -> None:
    """Rewrite files of earlier versions, whose encoding some readers do not know. Needs no Java."""
    from odradek_spark.jobs.compact import run_rewrite

    with explained():
        done = run_rewrite(dataset)
    click.echo(f"rewrite: {done} files")


@click.command()
@dataset_option
@moment(
    "--since", "Only batches with pushes received since TIME: 90s, 30m, 2h, 7d ago, or YYYY-MM-DDThh:mm:ss."
)
@moment("--until", "Only batches with pushes received before TIME.")
@session_options
def verify(dataset: str, since: datetime | None, until: datetime | None, **where: Any) -> None:
    """Check on the data that every push is in the tables exactly once. Exit status 1 if one is not."""
    from odradek_spark.jobs.verify import run_verify

    with explained():
        Dataset(dataset).existing(PUSHES)
    with session(**where) as spark:
        report = run_verify(spark, dataset, since, until)
    click.echo(report.text())
    if report.exit_code:
        raise click.exceptions.Exit(report.exit_code)
