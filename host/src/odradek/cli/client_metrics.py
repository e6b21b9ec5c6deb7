"""``odradek client-metrics``: the options and texts of kafka-client-metrics.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from odradek.cli.connect import cluster_options, connected
from odradek.cli.listing import json_option, show
from odradek.cli.usage import one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.subscriptions import alter_subscription, delete_subscription, subscription
from odradek.wire.limits import INT32_MAX
from odradek.wire.uuid_text import uuid_text

FAILING = "Error while executing client metrics command :"
ACTIONS = ("alter", "delete", "describe", "list_names")
SETTING = ("interval", "match", "metrics")
GOES_WITH = {
    "name": ("alter", "delete", "describe"),
    "as_json": ("describe", "list_names"),
    "generate_name": ("alter",),
    **dict.fromkeys(SETTING, ("alter",)),
}
"""As in ClientMetricsCommand.java."""


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
def client_metrics(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, describe, alter and delete subscriptions (CLIENT_METRICS resources) of any broker.

    Give exactly one of --alter, --delete, --describe and --list.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    if action == "alter" and (options["name"] is None) != options["generate_name"]:
        raise click.UsageError("one of --name or --generate-name must be specified with --alter")
    if action == "delete" and options["name"] is None:
        raise click.UsageError("a client metrics resource name must be specified with --delete")
    with connected(FAILING, bootstrap_server, command_config) as admin:
        ACTION[action](admin, options)


def alter(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Create or change a subscription."""
    name = generated_name() if options["name"] is None else options["name"]
    given = {"interval.ms": options["interval"], "metrics": options["metrics"], "match": options["match"]}
    properties = {key: value or None for key, value in given.items() if value is not None}
    alter_subscription(admin, name, properties)
    click.echo(f"Altered client metrics config for {name}.")


def delete(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Delete every key that the broker describes, including defaults, as the tool does."""
    delete_subscription(admin, options["name"])
    click.echo(f"Deleted client metrics config for {options['name']}.")


def describe(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Print the keys of one subscription, or of all."""
    known, wanted = admin.list_client_metrics(), options["name"]
    if wanted is not None and wanted not in known:
        missing = f"The client metric resource {wanted} doesn't exist and doesn't have dynamic config."
        click.echo(missing, err=options["as_json"])
        return
    for name in known if wanted is None else [wanted]:
        resource = subscription(name)
        configs = {entry.name: entry.value for entry in admin.describe_configs([resource])[resource]}
        lines = [f"Client metrics configs for {name} are:", *(f"  {key}={configs[key]}" for key in configs)]
        show(options["as_json"], [{"name": name, "configs": configs}], lines)


def list_names(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Print the names, or an empty line if there are none, as the tool does."""
    names = admin.list_client_metrics()
    show(options["as_json"], ({"name": name} for name in names), ["\n".join(names)])


ACTION = {"alter": alter, "delete": delete, "describe": describe, "list_names": list_names}


def generated_name() -> str:
    """A random type-4 UUID. It never starts with a dash, which would look like an option (as in Kafka)."""
    while True:
        name = uuid_text(uuid.uuid4().bytes)
        if not name.startswith("-"):
            return name
