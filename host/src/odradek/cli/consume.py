"""``odradek consume``: prints records, with the options and output of kafka-console-consumer.sh.

It reads all partitions itself and does not join the group of ``--group``: it starts at the group's committed
offsets and commits its own, which brokers accept as long as the group has no members.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr. A topic that does not exist is an error, and partitions that are added later are not read.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.consume_start import start_positions
from odradek.cli.errors import CommandFailed
from odradek.cli.offset_reset import warn
from odradek.cli.record_json import record_object
from odradek.cli.record_text import RecordText
from odradek.cli.usage import at_most_one
from odradek.client.admin import AdminClient
from odradek.client.errors import ConnectFailed, TimedOut
from odradek.client.fetch import MAX_WAIT_MS, Reader, Received
from odradek.client.group_offsets import CommittedOffset
from odradek.client.leaders import Partition, partition_text
from odradek.client.retries import FIRST_PAUSE_S, LONGEST_PAUSE_S
from odradek.topic.telemetry_topic import MalformedTelemetry

FAILING = "Error while executing consume command :"
COMMIT_S = 5.0
"""As ``auto.commit.interval.ms`` of Kafka's consumers."""
ISOLATION = ("read_uncommitted", "read_committed")
EPILOG = """\b
Properties of --formatter-property, with their defaults:
  print.timestamp=false   print.partition=false   print.offset=false
  print.epoch=false       print.headers=false     print.key=false
  print.value=true        key.separator=TAB       line.separator=NEWLINE
  headers.separator=,     null.literal=null

\b
Examples:
  odradek consume --bootstrap-server localhost:9092 --topic orders \\
      --from-beginning --formatter-property print.key=true
  odradek consume --bootstrap-server localhost:9092 \\
      --topic __client_telemetry --telemetry
"""


@click.command("consume", epilog=EPILOG)
@cluster_options
@click.option("--topic", metavar="NAME", help="The topic to read.")
@click.option("--include", metavar="REGEX", help="The topics to read, without internal ones.")
@click.option("--partition", type=click.IntRange(0), metavar="N", help="Read only this partition of --topic.")
@click.option(
    "--offset",
    metavar="OFFSET",
    help="With --partition: start at an offset, earliest or latest (the default).",
)
@click.option(
    "--group",
    metavar="GROUP",
    help="Start at the committed offsets of this group and commit; the group must have no members.",
)
@click.option(
    "--from-beginning",
    is_flag=True,
    help="Start at the first record where the group has no committed offset.",
)
@click.option("--max-messages", type=click.IntRange(0), metavar="N", help="Exit after N records.")
@click.option(
    "--timeout-ms", type=click.IntRange(0), metavar="MS", help="Exit if no record arrives for so long."
)
@click.option(
    "--isolation-level",
    type=click.Choice(ISOLATION),
    default=ISOLATION[0],
    show_default=True,
    help="Whether to leave out records of open and aborted transactions.",
)
@click.option(
    "--formatter-property", "properties", multiple=True, metavar="KEY=VALUE", help="What to print; see below."
)
@click.option("--property", "old_properties", multiple=True, hidden=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line, with all fields.")
@click.option(
    "--telemetry", is_flag=True, help="Decode pushes of the telemetry topic; one JSON object per line."
)
@click.option(
    "--skip-message-on-error", is_flag=True, help="With --telemetry: skip records that are not pushes."
)
def consume(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """Print the records of topics as they arrive.

    The command reads all partitions itself: it does not join the group of --group, and does not notice
    partitions and topics that are added later. Deserializers and other formatters are not supported.
    """
    options["properties"] += options.pop("old_properties")
    check(options)
    show = shower(options)
    with connected(FAILING, bootstrap_server, command_config, progress=False) as admin:
        reader = Reader(
            admin.cluster,
            start_positions(admin, options),
            committed_only=options["isolation_level"] == "read_committed",
        )
        session = Session(admin, reader, options["group"])
        try:
            session.run(show, options["max_messages"], options["timeout_ms"])
        finally:
            click.echo(f"Processed a total of {session.count} messages", err=True)


def check(options: Mapping[str, Any]) -> None:
    """Apply the rules of the tool.

    Raises:
        click.UsageError: The command line breaks one of them.
    """
    if (options["topic"] is None) == (options["include"] is None):
        raise click.UsageError("exactly one of --topic and --include must be specified")
    if options["partition"] is not None and options["topic"] is None:
        raise click.UsageError("--topic must be specified with --partition")
    if options["offset"] is not None and options["partition"] is None:
        raise click.UsageError("--partition must be specified with --offset")
    at_most_one(options, ("group", "partition"))
    at_most_one(options, ("from_beginning", "offset"))
    at_most_one(options, ("properties", "as_json", "telemetry"))


def shower(options: Mapping[str, Any]) -> Callable[[Received], bytes | None]:
    """The function that formats a record; None skips it."""
    if options["telemetry"]:
        return lambda received: push_line(received, options["skip_message_on_error"])
    if options["as_json"]:
        return lambda received: json_line(record_object(received))
    return RecordText.of(options["properties"]).line


def push_line(received: Received, skip: bool) -> bytes | None:
    """A decoded push.

    Raises:
        CommandFailed: The record is not a push.
    """
    from odradek.cli.push_json import push_object  # protobuf, which only this option needs

    try:
        return json_line(push_object(received))
    except MalformedTelemetry as error:
        if skip:
            return None
        where = f"{partition_text(received.partition)}, offset {received.record.offset}"
        raise CommandFailed(f"{FAILING} {where}: not a push: {error}") from error


def json_line(row: Mapping[str, Any]) -> bytes:
    """A JSON object and the end of the line. Bytes in labels are hexadecimal digits."""
    return json.dumps(row, default=bytes.hex).encode() + b"\n"


class Session:
    """One run of the command.

    Args:
        admin: The client.
        reader: The partitions.
        group: The group to commit for; None for none.
    """

    def __init__(self, admin: AdminClient, reader: Reader, group: str | None) -> None:
        self.admin, self.reader, self.group = admin, reader, group
        self.count = 0
        self.is_lost = False
        """Whether no broker answered the latest request."""
        self.committed: dict[Partition, int] = {}
        self.output = sys.stdout.buffer

    def run(self, show: Callable[[Received], bytes | None], most: int | None, timeout_ms: int | None) -> None:
        """Print records until there are ``most``, or none for ``timeout_ms``, and commit the positions.

        If the records cannot be printed, their positions are not committed.

        Raises:
            ClientError: A partition cannot be read, or the offsets cannot be committed.
        """
        try:
            self.loop(show, most, timeout_ms)
        except KeyboardInterrupt:
            self.output.flush()
            self.commit()
            raise
        self.commit()

    def loop(
        self, show: Callable[[Received], bytes | None], most: int | None, timeout_ms: int | None
    ) -> None:
        arrived_s = committed_s = time.monotonic()
        wait_ms = MAX_WAIT_MS if timeout_ms is None else min(MAX_WAIT_MS, timeout_ms)
        while most is None or self.count < most:
            before = self.count
            for received in self.polled(wait_ms):
                self.output.write(show(received) or b"")
                self.count += 1
                if self.count == most:
                    break
            self.output.flush()
            if self.reader.refusal is not None:
                time.sleep(FIRST_PAUSE_S)
            now_s = time.monotonic()
            if self.count > before:
                arrived_s = now_s
            elif timeout_ms is not None and now_s - arrived_s >= timeout_ms / 1000:
                return
            if now_s - committed_s >= COMMIT_S:
                with suppress(ConnectFailed, TimedOut):  # the next commit includes this one
                    self.commit()
                committed_s = now_s

    def polled(self, wait_ms: int) -> Iterator[Received]:
        """Yield the records of one poll. While no broker answers, wait a little and warn once."""
        try:
            yield from self.reader.poll(wait_ms)
            self.is_lost = False
        except (ConnectFailed, TimedOut) as error:
            if not self.is_lost:
                warn(f"{error}: trying again until a broker answers")
            self.is_lost = True
            time.sleep(LONGEST_PAUSE_S)

    def commit(self) -> None:
        """Commit the positions that changed since the last commit."""
        if self.group is None:
            return
        new = {at: offset for at, offset in self.reader.positions.items() if self.committed.get(at) != offset}
        if new:
            self.admin.offset_commit(self.group, {at: CommittedOffset(offset) for at, offset in new.items()})
            self.committed |= new
