"""``odradek topology``: who writes to and reads from which topic."""

from __future__ import annotations

import json
import shutil
import ssl
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import click

from odradek.cli.errors import CommandFailed
from odradek.cli.lag_table import CUT, LEAST_WIDTH, duration
from odradek.cli.listing import json_option, show
from odradek.endpoints.http_exchange import NoAnswer, exchange
from odradek.endpoints.tls_context import default_context
from odradek.meters.metrics_outlets import TOPOLOGY_PAGE
from odradek.telemetry.topology import merged

TIMEOUT_S: Final = 30.0
MOST_BYTES: Final = 1 << 28
"""Half a million uses."""
HEADINGS: Final = ("TOPIC", "USE", "CLIENT", "ADDRESS", "LIBRARY", "LAST", "SINCE")
FIXED: Final = (5, 7, 7)
"""Widths of the columns USE, LAST and SINCE."""
SHARES: Final = {"TOPIC": 0.28, "CLIENT": 0.28, "ADDRESS": 0.2, "LIBRARY": 0.24}
"""Of what is left."""
Row = Mapping[str, Any]


@click.command()
@click.argument("urls", nargs=-1, required=True, metavar="URL...")
@click.option("--topic", "topics", multiple=True, metavar="TOPIC", help="Only this topic; may be repeated.")
@click.option(
    "--client-id", "client_ids", multiple=True, metavar="ID", help="Only this client id; may be repeated."
)
@click.option(
    "--token-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="File with the token of metrics.listener, if it has one.",
)
@click.option(
    "--ca-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="PEM file of the CAs to trust with https.",
)
@json_option
def topology(
    urls: tuple[str, ...],
    topics: tuple[str, ...],
    client_ids: tuple[str, ...],
    token_file: Path | None,
    ca_file: Path | None,
    as_json: bool,
) -> None:
    """Show who writes to and reads from which topic, the most recent use first.

    URL is the metrics.listener of a host or a gateway, such as http://127.0.0.1:9464. With several URLs, one
    for each of several gateways, the output is that of all of them.
    """
    token = None if token_file is None else token_file.read_text().strip()
    tls = None if ca_file is None else default_context(cafile=str(ca_file))
    rows = [
        row
        for row in merged(row for url in urls for row in read(url, token, tls))
        if (not topics or row["topic"] in topics) and (not client_ids or row["client_id"] in client_ids)
    ]
    lines = (
        table(rows, shutil.get_terminal_size().columns, time.time()) if rows else ["no client uses a topic"]
    )
    show(as_json, rows, lines)


def read(url: str, token: str | None, tls: ssl.SSLContext | None) -> Iterator[Row]:
    """The uses that a program knows.

    Raises:
        CommandFailed: It does not tell them.
    """
    if not url.startswith(("http://", "https://")):
        raise CommandFailed(f"Error: {url} is no http:// or https:// URL")
    place = url.rstrip("/") + TOPOLOGY_PAGE
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        answer = exchange(place, timeout_s=TIMEOUT_S, max_bytes=MOST_BYTES, headers=headers, tls=tls)
    except NoAnswer as error:
        raise CommandFailed(f"Error: {url}: {error}") from error
    if not answer.is_success or answer.content_type != "application/x-ndjson":
        problem = f"status {answer.status}" if not answer.is_success else "it has no topology"
        raise CommandFailed(f"Error: {url}: {problem}")
    yield from map(json.loads, answer.body.splitlines())


def table(rows: Sequence[Row], width: int, now_s: float) -> Iterator[str]:
    """The uses as lines.

    Args:
        rows: The uses.
        width: Of a line, at least `LEAST_WIDTH`.
        now_s: Epoch seconds.
    """
    left = max(width, LEAST_WIDTH) - sum(FIXED) - len(HEADINGS) + 1
    topic, client, address, library = (int(left * share) for share in SHARES.values())
    use, last, since = FIXED
    widths = (topic, use, client, address, library, last, since)
    yield line(HEADINGS, widths)
    for row in rows:
        ages = (duration(max(round(now_s * 1_000) - row[key], 0)) for key in ("last_ms", "first_ms"))
        name = f"{row['library']} {row['library_version']}"
        cells = (row["topic"], row["direction"], row["client_id"], row["address"], name, *ages)
        yield line(cells, widths)


def line(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Cells in columns."""
    cut = [
        cell if len(cell) <= width else cell[: width - 1] + CUT
        for cell, width in zip(cells, widths, strict=True)
    ]
    return " ".join(cell.ljust(width) for cell, width in zip(cut, widths, strict=True)).rstrip()
