"""``odradek produce``: reads records from standard input, with the options of kafka-console-producer.sh.

Input is read in pieces of ``--batch-size``, and what has arrived is sent at once; a record never waits for
others. Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one
line on stderr. ``--json`` reads the output of ``odradek consume --json``.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.offset_reset import warn
from odradek.cli.progress import Progress
from odradek.cli.record_json import parse_record
from odradek.cli.record_lines import LineReader
from odradek.client.leaders import Partition
from odradek.client.partitioner import partition_of
from odradek.client.producer import ALL, Producer
from odradek.wire.compression import Codec
from odradek.wire.record import Record

FAILING = "Error while executing produce command :"
CODECS = {codec.name.lower(): codec for codec in Codec}
ACKS = {"all": ALL, "-1": ALL, "1": 1}
PROMPT = ">"
EPILOG = """\b
Properties of --reader-property, with their defaults:
  parse.key=false              the line has a key
  parse.headers=false          the line has headers, before the key
  key.separator=TAB            between key and value
  headers.delimiter=TAB        after the headers
  headers.separator=,          between headers
  headers.key.separator=:      between the key and the value of a header
  null.marker=                 stands for a null key, value or header
  ignore.error=false           a line without a separator is a value

\b
Examples:
  echo 'k1:v1' |
      odradek produce --bootstrap-server localhost:9092 --topic orders \\
      --reader-property parse.key=true --reader-property key.separator=:
  echo '{"key": "k1", "value": "v1", "headers": [{"key": "h", "value": "x"}]}' |
      odradek produce --bootstrap-server localhost:9092 --topic orders --json
"""


@click.command("produce", epilog=EPILOG)
@cluster_options
@click.option("--topic", required=True, metavar="NAME", help="The topic, which the broker may create.")
@click.option(
    "--reader-property",
    "properties",
    multiple=True,
    metavar="KEY=VALUE",
    help="How to parse a line; see below.",
)
@click.option("--property", "old_properties", multiple=True, hidden=True)
@click.option(
    "--json", "as_json", is_flag=True, help="Read one JSON object per line, as consume --json prints."
)
@click.option(
    "--compression-codec",
    type=click.Choice(list(CODECS)),
    is_flag=False,
    flag_value="gzip",
    default="none",
    help="Compression of the batches; gzip without a value.",
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    default=16384,
    show_default=True,
    metavar="BYTES",
    help="Most bytes of input to send at once.",
)
@click.option("--sync", is_flag=True, help="Send one record at a time.")
@click.option(
    "--request-required-acks",
    "acks",
    type=click.Choice(list(ACKS)),
    default="all",
    show_default=True,
    help="Replicas that must have a record: all in-sync ones, or the leader.",
)
def produce(bootstrap_server: str, command_config: Path | None, topic: str, **options: Any) -> None:
    """Write a record for each line of standard input.

    Records with a key go to the partition that Kafka's Java producer chooses for the key. Records are
    sent at once: there are no options for waiting and buffers. Other readers, and producing without any
    acknowledgment, are not supported.
    """
    properties = (*options["properties"], *options["old_properties"])
    reader = LineReader.of(properties)
    if options["as_json"] and properties:
        raise click.UsageError("option --json can't be used with --reader-property")
    source = sys.stdin.buffer
    prompt = source.isatty()
    with connected(FAILING, bootstrap_server, command_config, progress=False) as admin:
        producer = Producer(
            admin,
            ACKS[options["acks"]],
            CODECS[options["compression_codec"]],
            lost=lambda error: warn(f"{error}: trying again for {admin.timeout_ms // 1000} s"),
        )
        router = Router(topic, producer.partitions(topic))
        number = 0
        with Progress("records", silent=prompt) as progress:
            for lines in pieces(source, options["batch_size"], prompt, one_by_one=options["sync"]):
                batches: dict[Partition, list[Record]] = {}
                now_ms = int(time.time() * 1000)
                for line in lines:
                    number += 1
                    if options["as_json"]:
                        partition, record = parse_record(line, number, now_ms)
                    else:
                        partition, record = None, reader.record(line, number, now_ms)
                    batches.setdefault(router.partition(record.key, partition), []).append(record)
                producer.send(batches)
                router.turn()
                progress.done = number


class Router:
    """Chooses partitions: by key, or the same one for all records of a piece that have no key.

    Args:
        topic: Name of the topic.
        count: The number of its partitions.
    """

    def __init__(self, topic: str, count: int) -> None:
        self.topic, self.count = topic, count
        self.keyless = random.randrange(count)

    def turn(self) -> None:
        """Choose another partition for records without a key."""
        self.keyless = (self.keyless + 1) % self.count

    def partition(self, key: bytes | None, wanted: int | None) -> Partition:
        """The partition of a record, which may name it itself."""
        if wanted is not None:
            return self.topic, wanted
        return self.topic, self.keyless if key is None else partition_of(key, self.count)


def pieces(source: BinaryIO, size: int, prompt: bool, one_by_one: bool) -> Iterator[list[bytes]]:
    """Yield the lines that have arrived, without their ends, as soon as there is at least one.

    Args:
        source: Standard input.
        size: The most bytes to read at once.
        prompt: Whether to ask for each line.
        one_by_one: Whether to yield each line alone.
    """
    rest = b""
    while True:
        if prompt:
            click.echo(PROMPT, nl=False)
        data = source.read1(size)  # type: ignore[attr-defined]
        *lines, rest = (rest + data).split(b"\n")
        if not data and rest:
            lines.append(rest)
        found = [line.removesuffix(b"\r") for line in lines]
        yield from ([line] for line in found) if one_by_one else [found] if found else []
        if not data:
            return
