"""``odradek conformance``: reports how a client implements KIP-714, from a running host's telemetry topic.

The topic contains only accepted pushes, so rules about handshakes and refused pushes are reported as unseen.
To check those too, connect the client to ``odradek.testing.host`` and call ``host.telemetry.conformance``.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.replay import since_when_ms
from odradek.client.admin import AdminClient
from odradek.client.fetch import fetch
from odradek.client.leaders import Partition
from odradek.client.resources import LATEST
from odradek.testing.conformance import Observation, Pushed, conformance_report, from_record
from odradek.topic.telemetry_topic import CLIENT_ID, MalformedTelemetry, as_bytes, decode_record

FAILING = "Error while executing conformance command :"
TOPIC = "__client_telemetry"


@click.command()
@click.option("--client-id", required=True, metavar="ID", help="The client.id of the client.")
@click.option(
    "--since",
    default="1h",
    show_default=True,
    metavar="TIME",
    help="Start: a duration ago (90s, 30m, 2h, 7d) or a time (2026-05-17T10:00:00, UTC without an offset).",
)
@click.option(
    "--topic", default=TOPIC, show_default=True, metavar="NAME", help="The telemetry topic of the host."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@cluster_options
def conformance(
    client_id: str, since: str, topic: str, as_json: bool, bootstrap_server: str, command_config: Path | None
) -> None:
    """Report which standard metrics a client has pushed, and what is wrong with its pushes."""
    now_ms = int(time.time() * 1000)
    since_ms = since_when_ms(since, now_ms)
    with connected(FAILING, bootstrap_server, command_config) as admin:
        pushes = sorted(
            pushes_of(admin, topic, client_id, since_ms), key=lambda each: each.context.received_ms
        )
    if not pushes:
        raise CommandFailed(f"{FAILING} topic {topic} has no push of client {client_id} since {since}")
    report = conformance_report(client_id, Observation(exchanges=pushes, complete=False, until_ms=now_ms))
    click.echo(json.dumps(report.as_json()) if as_json else str(report))


def pushes_of(admin: AdminClient, topic: str, client_id: str, since_ms: int) -> Iterator[Pushed]:
    """Yield the accepted pushes of a client, one partition after the other."""
    (described,) = admin.describe_topics([topic])
    partitions: list[Partition] = [(topic, row.index) for row in described.partitions]
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST))
    starts = admin.list_offsets(dict.fromkeys(partitions, since_ms))
    wanted = CLIENT_ID, as_bytes(client_id)
    for partition in partitions:
        start = starts[partition].offset
        if start < 0:
            continue
        for record in fetch(admin.cluster, partition, start, ends[partition].offset):
            if wanted in record.headers:
                try:
                    yield from_record(decode_record(record.key, record.value, record.headers))
                except MalformedTelemetry:  # any client with access can write other records to the topic
                    continue
