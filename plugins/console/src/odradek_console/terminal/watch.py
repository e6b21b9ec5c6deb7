"""``odradek watch``: make a client push often for a while, look at it, and take the subscription back."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Final

import click

from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.lease import lease_end_s
from odradek.client.subscriptions import delete_subscription
from odradek.findings.client_metrics import PREFIX
from odradek.findings.presets import PRESETS, prefixes_of
from odradek_console.figures import marked
from odradek_console.reading.leases import MOST_INSTANCES, clear, exactly, grant, new_name
from odradek_console.rows import ClientDetail, ClientRow
from odradek_console.terminal.clients import finding_lines, name, software, terminal_width
from odradek_console.terminal.options import connector, opened_view, reading_options, show, time_option
from odradek_console.text import age, clipped, counted, sparkline
from odradek_console.view import View

SPARK: Final = 20
SLACK_S: Final = 60
"""The lease ends this much later than the command, which deletes it first."""
RETRIES: Final = 3
MATCH: Final = 60
"""Characters of ``match`` that are shown."""
FIGURE: Final = 44
"""Width of a figure."""
ENDINGS: Final = [
    getattr(signal, each) for each in ("SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, each)
]
"""Signals that end the command: asked to, its terminal closed."""


def metrics_option(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Prefixes with commas, also those of a preset."""
    return ",".join(prefixes_of(value))


def chosen(
    view: View, client_id: str | None, instance: str | None, principal: str | None, address: str | None
) -> tuple[str, Callable[[ClientRow], bool]]:
    """The ``match`` of the clients to watch, and the filter of their rows.

    Raises:
        click.UsageError: Not exactly one of them is given.
        click.ClickException: No client of the principal is known.
    """
    given = {
        "client_id": client_id,
        "client_instance_id": instance,
        "client_source_address": address,
        "principal": principal,
    }
    found = {key: value for key, value in given.items() if value is not None}
    if len(found) != 1:
        raise click.UsageError("give exactly one of --client-id, --instance, --principal and --address")
    ((key, value),) = found.items()
    field = "address" if key == "client_source_address" else key
    if key != "principal":
        return exactly(key, [value]), lambda row: getattr(row, field) == value
    # Kafka does not match principals: the known instances of the principal are named instead.
    rows = [row for row in view.clients() if row.principal == value and row.state != "gone"]
    if not rows:
        raise click.ClickException(f"no client of {value} has pushed: its instances are not known")
    if len(rows) > MOST_INSTANCES:
        raise click.ClickException(
            f"{value} has {len(rows)} clients; at most {MOST_INSTANCES} can be watched"
        )
    ids = [row.client_instance_id for row in rows]
    return exactly("client_instance_id", ids), lambda row: row.client_instance_id in ids


@click.command(
    "watch", epilog="\b\nExample:\n  odradek watch --bootstrap-server localhost:9092 --client-id orders"
)
@reading_options
@click.option("--client-id", help="Watch the clients of this client id.")
@click.option("--instance", help="Watch one client instance, by its id.")
@click.option("--principal", help="Watch the known clients of this principal.")
@click.option("--address", help="Watch the clients at this address.")
@click.option(
    "--metrics",
    default=PREFIX,
    show_default=True,
    callback=metrics_option,
    help=f"Prefixes of metric names, with commas, or a preset: {', '.join(PRESETS)}.",
)
@time_option("interval", 5_000, "The push interval of these clients.")
@time_option("for", 600_000, "How long to watch.")
def watch(
    bootstrap_servers: str,
    command_config: Path | None,
    topic: str,
    history_ms: int,
    owners: Path | None,
    client_id: str | None,
    instance: str | None,
    principal: str | None,
    address: str | None,
    metrics: str,
    interval_ms: int,
    for_ms: int,
) -> None:
    """Make a client push often for a while, and show it with its findings.

    The subscription is taken back at the end and at Ctrl-C. If the command is killed, a host or the next
    `odradek watch` deletes it a minute after its time.
    """
    connect = connector(bootstrap_servers, command_config)
    with opened_view(connect, topic, history_ms, owners) as view:
        match, wanted = chosen(view, client_id, instance, principal, address)
        end_s = time.time() + for_ms / 1000
        with leased(connect, metrics, interval_ms, match, int(end_s) + SLACK_S) as lease:
            what = clipped(match, MATCH)
            show([f"Subscription {lease}: {what}, every {age(interval_ms)}, for {age(for_ms)}"])
            deadline_s = time.monotonic() + for_ms / 1000
            while (left_s := deadline_s - time.monotonic()) > 0:
                time.sleep(min(interval_ms / 1000, left_s))
                show(watched(view, wanted))


@contextmanager
def leased(
    connect: Callable[[], AdminClient], metrics: str, interval_ms: int, match: str, end_s: int
) -> Iterator[str]:
    """Set a subscription for the time of the body. `ENDINGS` end the body like Ctrl-C."""
    lease, is_refused = new_name(end_s), False
    with connect() as admin:
        for name_of_lease in clear(admin, time.time()):
            click.echo(f"Deleted the subscription {name_of_lease}, which had ended", err=True)
    before = {each: signal.signal(each, interrupted) for each in ENDINGS}
    try:
        try:
            with connect() as admin:
                grant(admin, metrics, interval_ms, match, lease)
        except RequestFailed:
            is_refused = True
            raise
        yield lease
    finally:
        if not is_refused:
            take_back(connect, lease)
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupted(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def take_back(connect: Callable[[], AdminClient], lease: str) -> None:
    """Delete the subscription, by a new connection.

    Raises:
        click.ClickException: The cluster does not answer. The name of the subscription tells others when it
            ends.
    """
    for attempt in range(1, RETRIES + 1):
        try:
            with connect() as admin:
                delete_subscription(admin, lease)
        except ClientError as error:
            if attempt == RETRIES:
                ends = time.strftime("%H:%M:%S UTC", time.gmtime(lease_end_s(lease)))
                raise click.ClickException(
                    f"the subscription {lease} was not deleted: {error}. "
                    f"A host, or the next `odradek watch`, deletes it after {ends}"
                ) from error
            time.sleep(attempt)
        else:
            click.echo(f"Deleted the subscription {lease}")
            return


def watched(view: View, wanted: Callable[[ClientRow], bool]) -> Iterator[str]:
    """The clients as they are now, as lines."""
    now_ms, width = time.time_ns() // 1_000_000, terminal_width()
    rows = [each for each in view.clients(wanted) if each.state != "gone"]
    yield ""
    yield f"{time.strftime('%H:%M:%S')}  {counted(len(rows), 'client')}"
    problem = view.reading().problem
    if problem:
        yield clipped(problem, width)
    for each in sorted(rows, key=lambda each: (each.client_id, each.client_instance_id)):
        detail = view.client(each.client_instance_id)
        if detail is not None:
            yield from client_lines(detail, now_ms, width)


def client_lines(detail: ClientDetail, now_ms: int, width: int) -> Iterator[str]:
    """A client with its figures and findings."""
    row = detail.row
    pushed = f"  pushed {age(now_ms - row.last_ms)} ago  {software(row)}"
    yield clipped(clipped(name(row), width // 2) + pushed, width)
    points = {each.metric: [value for _, value in each.points] for each in detail.series}
    for key, figure in row.figures.items():
        value = f"  {key:<10}{marked(figure)}"
        bars = sparkline(points.get(figure.metric, ()), min(SPARK, width - FIGURE - 2))
        yield f"{value:<{FIGURE}}  {bars}".rstrip()
    yield from finding_lines(detail.findings, width, indent=2)
