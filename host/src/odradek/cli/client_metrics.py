"""``odradek client-metrics``: the options and the texts of kafka-client-metrics.sh, against any broker.

Differs from the tool: a command line that cannot be used is exit status 2 (1 there), and errors are one line
on stderr.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.usage import flag
from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.wire.config_resource import ConfigOperation, ResourceType
from odradek.wire.uuid_text import uuid_text

FAILING = "Error while executing client metrics command :"
ACTIONS = ("alter", "delete", "describe", "list_names")
MISPLACED = {
    "delete": ("generate_name", "interval", "match", "metrics"),
    "describe": ("generate_name", "interval", "match", "metrics"),
    "list_names": ("name", "generate_name", "interval", "match", "metrics"),
}
"""Options that make no sense with an action (ClientMetricsCommand.java)."""
INT32_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Arguments:
    """The command line. None is an option that was not given, an empty text one that deletes its key."""

    alter: bool
    delete: bool
    describe: bool
    list_names: bool
    name: str | None
    generate_name: bool
    metrics: str | None
    interval: str | None
    match: str | None

    @property
    def action(self) -> str:
        """The action, after `check`."""
        return next(action for action in ACTIONS if getattr(self, action))

    def check(self) -> None:
        """The rules of the tool.

        Raises:
            click.UsageError: One of them is broken.
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
        """What ``--alter`` does: an empty value deletes its key."""
        values = {"interval.ms": self.interval, "metrics": self.metrics, "match": self.match}
        return [
            ConfigChange(key, value) if value else deletion(key)
            for key, value in values.items()
            if value is not None
        ]


def milliseconds(context: click.Context, parameter: click.Parameter, value: str | None) -> str | None:
    """Let through a 32-bit number, or an empty text. Which numbers are good is the broker's decision."""
    try:
        if value and abs(int(value)) > INT32_MAX:
            raise ValueError
    except ValueError:
        raise click.BadParameter(f"expected a number of milliseconds, found {value!r}") from None
    return value


@click.command("client-metrics", context_settings={"help_option_names": ["--help"]})
@cluster_options
@click.option("--alter", is_flag=True, help="Create or change a subscription.")
@click.option("--delete", is_flag=True, help="Delete a subscription.")
@click.option("--describe", is_flag=True, help="Show one subscription, or all.")
@click.option("--list", "list_names", is_flag=True, help="List the names of the subscriptions.")
@click.option("--name", help="Name of the subscription.")
@click.option("--generate-name", is_flag=True, help="Make up a name: a random UUID.")
@click.option("--metrics", metavar="M1,M2", help="Prefixes of metric names; * for all, empty to unset.")
@click.option("--interval", metavar="MS", callback=milliseconds, help="The push interval; empty to unset.")
@click.option(
    "--match",
    metavar="K1=V1,K2=V2",
    help="Which clients: regular expressions for client_id, client_instance_id, client_software_name, "
    "client_software_version, client_source_address, client_source_port; empty to unset.",
)
def client_metrics(bootstrap_server: str, command_config: Path | None, **options: bool | str | None) -> None:
    """List, describe, alter and delete subscriptions (CLIENT_METRICS resources) of any broker.

    Exactly one of --alter, --delete, --describe and --list.
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
    """Delete every key that the broker tells of, defaults included, as the tool does."""
    resource = subscription(arguments.name or "")
    entries = admin.describe_configs([resource])[resource]
    admin.incremental_alter_configs({resource: [deletion(entry.name) for entry in entries]})
    click.echo(f"Deleted client metrics config for {resource.name}.")


def describe(admin: AdminClient, arguments: Arguments) -> None:
    """Print the keys of one subscription, or of all."""
    names = admin.list_client_metrics() if arguments.name is None else [arguments.name]
    for name in names:
        resource = subscription(name)
        entries = admin.describe_configs([resource])[resource]
        click.echo(f"Client metrics configs for {name} are:")
        for entry in entries:
            click.echo(f"  {entry.name}={entry.value}")


def list_names(admin: AdminClient, arguments: Arguments) -> None:
    """Print the names; an empty line if there are none, as the tool does."""
    click.echo("\n".join(admin.list_client_metrics()))


ACTION = {"alter": alter, "delete": delete, "describe": describe, "list_names": list_names}


def subscription(name: str) -> ConfigResource:
    """The resource behind a subscription."""
    return ConfigResource(ResourceType.CLIENT_METRICS, name)


def deletion(key: str) -> ConfigChange:
    """Back to the default."""
    return ConfigChange(key, None, ConfigOperation.DELETE)


def generated_name() -> str:
    """The text of a random type-4 UUID. Kafka avoids a dash in front, which would look like an option."""
    while True:
        name = uuid_text(uuid.uuid4().bytes)
        if not name.startswith("-"):
            return name
