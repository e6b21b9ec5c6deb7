"""``odradek client-metrics``: the options and texts of kafka-client-metrics.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.listing import json_option, show
from odradek.cli.usage import flag
from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange
from odradek.client.subscriptions import delete_subscription, deletion, subscription
from odradek.wire.limits import INT32_MAX
from odradek.wire.uuid_text import uuid_text

FAILING = "Error while executing client metrics command :"
ACTIONS = ("alter", "delete", "describe", "list_names")
MISPLACED = {
    "alter": ("as_json",),
    "delete": ("as_json", "generate_name", "interval", "match", "metrics"),
    "describe": ("generate_name", "interval", "match", "metrics"),
    "list_names": ("name", "generate_name", "interval", "match", "metrics"),
}
"""Options that cannot be combined with an action (ClientMetricsCommand.java)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line. None means that an option was not given; an empty string deletes the option's key."""

    alter: bool
    delete: bool
    describe: bool
    list_names: bool
    name: str | None
    generate_name: bool
    metrics: str | None
    interval: str | None
    match: str | None
    as_json: bool

    @property
    def action(self) -> str:
        """The action. Valid after `check` has passed."""
        return next(action for action in ACTIONS if getattr(self, action))

    def check(self) -> None:
        """Apply the rules of the tool.

        Raises:
            click.UsageError: The command line breaks one of them.
        """
        if sum(getattr(self, action) for action in ACTIONS) != 1:
            raise click.UsageError(
                "command must include exactly one action: --alter, --delete, --describe or --list"
            )
        for option in MISPLACED.get(self.action, ()):
            if getattr(self, option) not in (None, False):
                raise click.UsageError(f"option {flag(option)} can't be used with {flag(self.action)}")
        if self.alter and (self.name is None) != self.generate_name:
            raise click.UsageError("one of --name or --generate-name must be specified with --alter")
        if self.delete and self.name is None:
            raise click.UsageError("a client metrics resource name must be specified with --delete")

    def changes(self) -> list[ConfigChange]:
        """The changes that ``--alter`` makes. An empty value deletes its key."""
        values = {"interval.ms": self.interval, "metrics": self.metrics, "match": self.match}
        return [
            ConfigChange(key, value) if value else deletion(key)
            for key, value in values.items()
            if value is not None
        ]


def milliseconds(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Accept a 32-bit integer or an empty string. The broker decides which intervals are valid."""
    try:
        if value and abs(int(value)) > INT32_MAX:
            raise ValueError
    except ValueError:
        raise click.BadParameter(f"expected a whole number of milliseconds, found {value!r}") from None
    return value


@click.command("client-metrics")
@cluster_options
@click.option("--alter", is_flag=True, help="Create or change a subscription.")
@click.option("--delete", is_flag=True, help="Delete a subscription.")
@click.option("--describe", is_flag=True, help="Show one subscription, or all.")
@click.option("--list", "list_names", is_flag=True, help="List the names of the subscriptions.")
@click.option("--name", help="Name of the subscription.")
@click.option("--generate-name", is_flag=True, help="Use a random UUID as the name.")
@click.option("--metrics", metavar="M1,M2", help="Prefixes of metric names, * for all; empty to unset.")
@click.option("--interval", metavar="MS", callback=milliseconds, help="Push interval in ms; empty to unset.")
@click.option(
    "--match",
    metavar="K1=V1,K2=V2",
    help="Clients to select, by regular expressions for client_id, client_instance_id, client_software_name, "
    "client_software_version, client_source_address or client_source_port; empty to unset.",
)
@json_option
def client_metrics(bootstrap_server: str, command_config: Path | None, **options: bool | str | None) -> None:
    """List, describe, alter and delete subscriptions (CLIENT_METRICS resources) of any broker.

    Give exactly one of --alter, --delete, --describe and --list.
    """
    arguments = Arguments(**options)  # type: ignore[arg-type]
    arguments.check()
    with connected(FAILING, bootstrap_server, command_config) as admin:
        ACTION[arguments.action](admin, arguments)


def alter(admin: AdminClient, arguments: Arguments) -> None:
    """Create or change a subscription."""
    name = generated_name() if arguments.name is None else arguments.name
    admin.incremental_alter_configs({subscription(name): arguments.changes()})
    click.echo(f"Altered client metrics config for {name}.")


def delete(admin: AdminClient, arguments: Arguments) -> None:
    """Delete every key that the broker describes, including defaults, as the tool does."""
    name = arguments.name or ""
    delete_subscription(admin, name)
    click.echo(f"Deleted client metrics config for {name}.")


def describe(admin: AdminClient, arguments: Arguments) -> None:
    """Print the keys of one subscription, or of all."""
    known = admin.list_client_metrics()
    if arguments.name is not None and arguments.name not in known:
        missing = (
            f"The client metric resource {arguments.name} doesn't exist and doesn't have dynamic config."
        )
        click.echo(missing, err=arguments.as_json)
        return
    for name in known if arguments.name is None else [arguments.name]:
        resource = subscription(name)
        configs = {entry.name: entry.value for entry in admin.describe_configs([resource])[resource]}
        lines = [f"Client metrics configs for {name} are:", *(f"  {key}={configs[key]}" for key in configs)]
        show(arguments.as_json, [{"name": name, "configs": configs}], lines)


def list_names(admin: AdminClient, arguments: Arguments) -> None:
    """Print the names, or an empty line if there are none, as the tool does."""
    names = admin.list_client_metrics()
    show(arguments.as_json, ({"name": name} for name in names), ["\n".join(names)])


ACTION = {"alter": alter, "delete": delete, "describe": describe, "list_names": list_names}


def generated_name() -> str:
    """A random type-4 UUID. It never starts with a dash, which would look like an option (as in Kafka)."""
    while True:
        name = uuid_text(uuid.uuid4().bytes)
        if not name.startswith("-"):
            return name
