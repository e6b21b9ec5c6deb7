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
from odradek.cli.presets import given_properties, preset_lines, subscription_options
from odradek.cli.usage import one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.subscriptions import alter_subscription, delete_subscription, subscription
from odradek.findings.presets import PRESETS
from odradek.wire.uuid_text import uuid_text

FAILING = "Error while executing client metrics command :"
ACTIONS = ("alter", "delete", "describe", "list_names")
SETTING = ("preset", "interval", "match", "metrics")
GOES_WITH = {
    "name": ("alter", "delete", "describe"),
    "as_json": ("describe", "list_names"),
    "generate_name": ("alter",),
    **dict.fromkeys(SETTING, ("alter",)),
}
"""As in ClientMetricsCommand.java."""


@click.command("client-metrics")
@cluster_options
@click.option("--alter", is_flag=True, help="Create or change a subscription.")
@click.option("--delete", is_flag=True, help="Delete a subscription.")
@click.option("--describe", is_flag=True, help="Show one subscription, or all.")
@click.option("--list", "list_names", is_flag=True, help="List the names of the subscriptions.")
@click.option("--name", help="Name of the subscription.")
@click.option("--generate-name", is_flag=True, help="Use a random UUID as the name.")
@subscription_options
@json_option
def client_metrics(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, describe, alter and delete subscriptions (CLIENT_METRICS resources) of any broker.

    Give exactly one of --alter, --delete, --describe and --list. A --preset alone creates or changes the
    subscription of its name.
    """
    if options["preset"] and not any(options[each] for each in ACTIONS):
        options["alter"] = True
        if not options["generate_name"]:
            options["name"] = options["name"] or options["preset"]
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    if action == "alter" and (options["name"] is None) != options["generate_name"]:
        raise click.UsageError("one of --name or --generate-name must be specified with --alter")
    if action == "delete" and options["name"] is None:
        raise click.UsageError("a client metrics resource name must be specified with --delete")
    options["properties"] = given_properties(options)
    with connected(FAILING, bootstrap_server, command_config) as admin:
        ACTION[action](admin, options)


def alter(admin: AdminClient, options: Mapping[str, Any]) -> None:
    """Create or change a subscription."""
    name = generated_name() if options["name"] is None else options["name"]
    given = options["properties"]
    if options["preset"]:
        click.echo("\n".join(preset_lines(PRESETS[options["preset"]], name, given)))
    alter_subscription(admin, name, {key: value or None for key, value in given.items()})
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
