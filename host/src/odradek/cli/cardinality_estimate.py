"""``odradek cardinality estimate``: the series and bytes that a subscription would bring.

It reads the pushes of the last intervals from the telemetry topic of a host or a cluster, and the
subscriptions that are in force. It changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.cli.presets import given_properties, subscription_options
from odradek.cli.telemetry_topic import telemetry_topic
from odradek.client.admin import AdminClient
from odradek.client.errors import ClientError, RequestFailed
from odradek.client.fetch import Reader
from odradek.client.leaders import Partition
from odradek.client.resources import LATEST, ConfigResource
from odradek.client.subscriptions import subscription
from odradek.estimate.budgets import ALL_KEY, APP_KEY, CLIENT_KEY, PRINCIPAL_KEY, SubscriptionBudgets
from odradek.estimate.estimate import Estimate
from odradek.estimate.estimate import estimate as estimated
from odradek.estimate.figures import as_object, lines, number
from odradek.estimate.futures import live_clients
from odradek.estimate.recorded_clients import RecordedClients, live_ms, starts
from odradek.findings.presets import KEY
from odradek.telemetry.client_metrics_configs import KEY_NAMES, SubscriptionInfo, parse
from odradek.telemetry.subscriptions import SubscriptionPlans
from odradek.topic.telemetry_topic import MalformedTelemetry, decode_record
from odradek.waiting.steps import result_of
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ConfigSource

FAILING: Final = "Error while executing cardinality command :"
NEW: Final = "new"
"""The name of a subscription that is given none; a stored one of this name is changed."""
MAX_PUSHES: Final = 100_000
EPILOG = """\b
Examples:
  odradek cardinality estimate --bootstrap-server localhost:9092 \\
      --preset essential
  odradek cardinality estimate --bootstrap-server localhost:9092 \\
      --name all --interval 10000
"""


class Subscriptions(NamedTuple):
    """The subscriptions by name: in force, and after the change."""

    before: Mapping[str, SubscriptionInfo]
    after: Mapping[str, SubscriptionInfo]

    @property
    def added_to(self) -> list[str]:
        """The subscriptions that stay beside a new one; none if one is changed."""
        return sorted(self.before) if self.after.keys() > self.before.keys() else []

    def window_ms(self) -> int:
        """How long ago the last push of a live client may be."""
        return live_ms(max((each.interval_ms for each in self.before.values()), default=0))


@click.command("estimate", epilog=EPILOG)
@cluster_options
@click.option("--name", help="Subscription to create or change; by default a new one, or that of the preset.")
@subscription_options
@click.option("--topic", metavar="NAME", help="The topic with the clients' pushes; found by default.")
@click.option(
    "--max-pushes",
    type=click.IntRange(1),
    metavar="N",
    default=MAX_PUSHES,
    show_default=True,
    help="Read no more than the newest N pushes.",
)
@click.option("--exit-code", is_flag=True, help="Exit with status 1 if a budget would be exceeded.")
@json_option
def estimate(
    bootstrap_server: str,
    command_config: Path | None,
    name: str | None,
    topic: str | None,
    max_pushes: int,
    exit_code: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Say what a subscription would bring, before it is created or changed.

    The command counts series in the pushes of the last intervals, so it knows only clients that push now.
    Budgets are the host's subscription.budget.*; with a cluster of brokers, their defaults. The command
    changes nothing.
    """
    changes = given_properties(options)
    if not changes:
        raise click.UsageError("one of --preset, --metrics, --interval and --match must be specified")
    with connected(FAILING, bootstrap_server, command_config) as admin:
        subscriptions = changed(stored(admin), name or options[KEY] or NEW, changes)
        now_ms = int(time.time() * 1_000)  # wall time, as hosts write it into records
        pushed = Pushed(admin, topic or telemetry_topic(admin), max_pushes)
        pushed.read(now_ms - subscriptions.window_ms())
        budgets = budgets_of(admin)
    found = result_of(
        estimated(
            live_clients(pushed.clients, (), now_ms),
            pushed.clients.reader,
            SubscriptionPlans(subscriptions.before),
            SubscriptionPlans(subscriptions.after),
            budgets,
        )
    )
    tell(found, pushed, subscriptions, as_json)
    if exit_code and found.exceeded:
        raise click.exceptions.Exit(1)


def tell(found: Estimate, pushed: Pushed, subscriptions: Subscriptions, as_json: bool) -> None:
    """Print the figures, and notes on stderr about clients that are not in them."""
    if pushed.left_out:
        click.echo(
            f"note: the newest {number(pushed.count)} pushes were read; {number(pushed.left_out)} older ones "
            "were not, so clients may be missing (--max-pushes)",
            err=True,
        )
    if pushed.clients.unread:
        click.echo(
            f"note: {number(pushed.clients.unread)} records of {pushed.topic} were left out; the last one: "
            f"{pushed.clients.problem}",
            err=True,
        )
    if not found.live:
        seconds = subscriptions.window_ms() // 1_000
        click.echo(f"note: no client has pushed to {pushed.topic} in the last {seconds} s", err=True)
    if subscriptions.added_to:
        click.echo(
            f"note: this is added to {', '.join(subscriptions.added_to)}: a client gets the metrics of all "
            "subscriptions that match it. To replace one, name it with --name",
            err=True,
        )
    show(as_json, [{**as_object(found), "added_to": subscriptions.added_to}], lines(found))


def stored(admin: AdminClient) -> dict[str, dict[str, str]]:
    """The properties of the subscriptions that are in force, by name."""
    resources = [subscription(name) for name in admin.list_client_metrics()]
    described = admin.describe_configs(resources) if resources else {}
    return {
        resource.name: {
            entry.name: entry.value
            for entry in entries
            if entry.name in KEY_NAMES and entry.value is not None and entry.source != ConfigSource.DEFAULT
        }
        for resource, entries in described.items()
    }


def changed(before: Mapping[str, Mapping[str, str]], name: str, changes: Mapping[str, str]) -> Subscriptions:
    """The subscriptions before and after a change. An empty value deletes its key.

    Raises:
        CommandFailed: The broker would refuse the change.
    """
    properties = {key: value for key, value in {**before.get(name, {}), **changes}.items() if value}
    try:
        parsed = {each: parse(each, its) for each, its in before.items()}
        return Subscriptions(parsed, parsed | {name: parse(name, properties)})
    except ApiError as error:
        raise CommandFailed(f"{FAILING} {error.message}") from error


def budgets_of(admin: AdminClient) -> SubscriptionBudgets:
    """The budgets of the host. The defaults if the broker has none, or, with a note, if it hides them."""
    node_id = admin.metadata([]).brokers[0].node_id
    broker = ConfigResource.broker(node_id)
    try:
        entries = admin.describe_configs([broker], keys=[ALL_KEY, PRINCIPAL_KEY, APP_KEY, CLIENT_KEY])[broker]
    except RequestFailed as error:
        click.echo(f"note: the budgets are the defaults, the broker does not show its own: {error}", err=True)
        return SubscriptionBudgets()
    values = {entry.name: int(entry.value) for entry in entries if entry.value is not None}
    usual = SubscriptionBudgets()
    return SubscriptionBudgets(
        series=values.get(ALL_KEY, usual.series),
        principal_series=values.get(PRINCIPAL_KEY, usual.principal_series),
        app_series=values.get(APP_KEY, usual.app_series),
        client_series=values.get(CLIENT_KEY, usual.client_series),
    )


class Pushed:
    """The pushes of the last intervals in the telemetry topic.

    Args:
        admin: The client.
        topic: The topic.
        most: How many pushes to read.
    """

    def __init__(self, admin: AdminClient, topic: str, most: int) -> None:
        self.admin, self.topic, self.most = admin, topic, most
        self.clients = RecordedClients()
        self.count = 0
        self.left_out = 0
        """Older pushes in the time that were not read."""

    def read(self, since_ms: int) -> None:
        """Read from a time to the ends that the partitions have now.

        Raises:
            CommandFailed: There is no such topic.
            ClientError: A partition cannot be read.
        """
        (found,) = self.admin.metadata([self.topic]).topics
        partitions = [(self.topic, each.partition_index) for each in found.partitions]
        if not partitions:
            raise CommandFailed(
                f"{FAILING} there is no topic {self.topic}: name the telemetry topic with --topic"
            )
        ends = {
            at: each.offset for at, each in self.admin.list_offsets(dict.fromkeys(partitions, LATEST)).items()
        }
        times = self.admin.list_offsets(dict.fromkeys(partitions, since_ms))
        begins = {at: each.offset if each.offset >= 0 else ends[at] for at, each in times.items()}
        positions = starts(begins, ends, self.most)
        self.left_out = sum(positions[at] - begins[at] for at in begins)
        self.follow(Reader(self.admin.cluster, positions), ends)

    def follow(self, reader: Reader, ends: Mapping[Partition, int]) -> None:
        """Add the records up to the ends.

        Raises:
            ClientError: A partition cannot be read to its end, or not within the time for retries.
        """
        pauses = self.admin.retries.pauses()
        while any(reader.positions[at] < end for at, end in ends.items()):
            before = dict(reader.positions)
            for received in reader.poll():
                self.count += 1
                record = received.record
                try:
                    self.clients.add(decode_record(record.key, record.value, record.headers))
                except MalformedTelemetry as error:
                    self.clients.pass_over(error)
            if reader.positions != before:
                pauses = self.admin.retries.pauses()
            elif not pauses.pause():  # the answers to a throttled client are empty, too
                raise reader.refusal or ClientError(f"{self.topic} cannot be read to its end")
