"""``odradek configs``: the options and output of kafka-configs.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr. Only the brackets that enclose a whole value are removed; the tool removes them all. Users, clients,
IP addresses and broker loggers are not configured here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from odradek.cli.config_list import parse_config_list
from odradek.cli.config_report import lines, shown_configs
from odradek.cli.connect import cluster_options, connected
from odradek.cli.listing import json_option, show
from odradek.cli.usage import at_most_one, flag, is_given, one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.resources import ConfigChange, ConfigResource
from odradek.plugin.config import ConfigError
from odradek.settings.properties import properties
from odradek.wire.config_resource import ConfigOperation, ResourceType

FAILING = "Error while executing config command :"
ACTIONS = ("describe", "alter")
ALTERATIONS = ("add_config", "add_config_file", "delete_config")
GOES_WITH = {"all": ("describe",), "as_json": ("describe",), **dict.fromkeys(ALTERATIONS, ("alter",))}
ENTITY_TYPES = {
    "topics": ResourceType.TOPIC,
    "brokers": ResourceType.BROKER,
    "client-metrics": ResourceType.CLIENT_METRICS,
    "groups": ResourceType.GROUP,
}
SHORT = {
    "topic": "topics",
    "broker": "brokers",
    "broker_defaults": "brokers",
    "client_metrics": "client-metrics",
    "group": "groups",
}
"""Options that give type and name at once, and their type."""
DEFAULT_NAME = ""
"""The resource name of the defaults for all brokers."""


@dataclass(frozen=True, slots=True)
class Entity:
    """The entity that the command line names."""

    type: str
    """The type as written on the command line."""
    name: str | None
    """None for all entities of the type."""

    @property
    def resource_type(self) -> ResourceType:
        return ENTITY_TYPES[self.type]

    @property
    def singular(self) -> str:
        """The singular of the type, as the tool prints it."""
        return self.type.removesuffix("s")

    def resource(self, name: str) -> ConfigResource:
        """The config resource of an entity of this type."""
        return ConfigResource(self.resource_type, name)


@click.command("configs")
@cluster_options
@click.option("--describe", is_flag=True, help="Show configs.")
@click.option("--alter", is_flag=True, help="Change configs.")
@click.option("--entity-type", type=click.Choice(list(ENTITY_TYPES)), help="Type of the entity.")
@click.option("--entity-name", metavar="NAME", help="Name of the entity; --describe shows all by default.")
@click.option("--entity-default", is_flag=True, help="The defaults of all brokers.")
@click.option("--topic", metavar="NAME", help="Short for --entity-type topics --entity-name NAME.")
@click.option("--broker", metavar="ID", help="Short for --entity-type brokers --entity-name ID.")
@click.option("--broker-defaults", is_flag=True, help="Short for --entity-type brokers --entity-default.")
@click.option(
    "--client-metrics", metavar="NAME", help="Short for --entity-type client-metrics --entity-name NAME."
)
@click.option("--group", metavar="ID", help="Short for --entity-type groups --entity-name ID.")
@click.option("--all", is_flag=True, help="Show defaults and static configs too.")
@click.option(
    "--add-config", metavar="K1=V1,K2=[V2,V3]", help="Keys to set; put a value with commas in brackets."
)
@click.option(
    "--add-config-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Properties file with the keys to set.",
)
@click.option(
    "--delete-config",
    multiple=True,
    metavar="K1,K2",
    help="Keys to reset to their defaults; may be repeated.",
)
@json_option
def configs(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """Describe and alter the configuration of topics, brokers, client metrics and groups.

    Give exactly one of --describe and --alter.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    entity = entity_of(options)
    changes = changes_of(entity, options) if action == "alter" else []
    with connected(FAILING, bootstrap_server, command_config) as admin:
        if action == "alter":
            alter(admin, entity, changes)
        else:
            describe(admin, entity, options["all"], options["as_json"])


def entity_of(options: Mapping[str, Any]) -> Entity:
    """The entity that the options name.

    Raises:
        click.UsageError: They name none, or more than one.
    """
    short = at_most_one(options, tuple(SHORT))
    if short is not None:
        for other in ("entity_type", "entity_name", "entity_default"):
            at_most_one(options, (short, other))
        name = DEFAULT_NAME if short == "broker_defaults" else options[short]
        return checked(Entity(SHORT[short], name))
    if options["entity_type"] is None:
        raise click.UsageError("one of --entity-type, " + ", ".join(map(flag, SHORT)) + " must be specified")
    at_most_one(options, ("entity_name", "entity_default"))
    if options["entity_default"] and options["entity_type"] != "brokers":
        raise click.UsageError("option --entity-default needs --entity-type brokers")
    return checked(
        Entity(options["entity_type"], DEFAULT_NAME if options["entity_default"] else options["entity_name"])
    )


def checked(entity: Entity) -> Entity:
    """Return the entity if its name is valid.

    Raises:
        click.UsageError: The name is not valid for its type.
    """
    if entity.type == "brokers":
        if entity.name and not (entity.name.isascii() and entity.name.isdecimal()):
            raise click.UsageError(
                f"expected a broker id (a whole number) as the name, found {entity.name!r}"
            )
    elif entity.name == "":
        raise click.UsageError(f"the name of a {entity.singular} must not be empty")
    return entity


def changes_of(entity: Entity, options: Mapping[str, Any]) -> list[ConfigChange]:
    """The changes that ``--alter`` makes.

    Raises:
        click.UsageError: No change or no entity is given, or a key is both set and deleted.
        ConfigError: The file cannot be read.
    """
    if entity.name is None:
        raise click.UsageError(f"an entity name must be specified with --alter of {entity.type}")
    if not any(is_given(options[option]) for option in ALTERATIONS):
        raise click.UsageError(f"one of {', '.join(map(flag, ALTERATIONS))} must be specified with --alter")
    at_most_one(options, ("add_config", "add_config_file"))
    added = added_configs(options)
    deleted = [key.strip() for text in options["delete_config"] for key in text.split(",") if key.strip()]
    for key in deleted:
        if key in added:
            raise click.UsageError(f"{key!r} cannot be both set and deleted")
    return [
        *(ConfigChange(key, value) for key, value in added.items()),
        *(ConfigChange(key, None, ConfigOperation.DELETE) for key in dict.fromkeys(deleted)),
    ]


def added_configs(options: Mapping[str, Any]) -> Mapping[str, str]:
    """The values to set, by key."""
    file: Path | None = options["add_config_file"]
    if file is None:
        return {} if options["add_config"] is None else parse_config_list(options["add_config"])
    try:
        return properties(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--add-config-file {file}", f"cannot be read: {error}") from error


def alter(admin: AdminClient, entity: Entity, changes: list[ConfigChange]) -> None:
    name = entity.name or DEFAULT_NAME
    admin.incremental_alter_configs({entity.resource(name): changes})
    if name == DEFAULT_NAME:
        click.echo(f"Completed updating default config for {entity.type} in the cluster.")
    else:
        click.echo(f"Completed updating config for {entity.singular} {name}.")


def describe(admin: AdminClient, entity: Entity, everything: bool, as_json: bool) -> None:
    """Print the configs of one entity, or of all entities of its type."""
    known = names(admin, entity)
    if entity.name is not None and entity.type != "brokers" and entity.name not in known:
        missing = f"The {entity.singular} '{entity.name}' doesn't exist and doesn't have dynamic config."
        click.echo(missing, err=as_json)
        return
    for name in known if entity.name is None else [entity.name]:
        if name == DEFAULT_NAME:
            heading = f"Default configs for {entity.type} in the cluster are:"
        else:
            heading = f"{'All' if everything else 'Dynamic'} configs for {entity.singular} {name} are:"
        resource = entity.resource(name)
        entries = admin.describe_configs([resource], synonyms=True)[resource]
        show(
            as_json,
            shown_configs(entity.singular, resource, entries, everything),
            [heading, *lines(resource, entries, everything)],
        )


def names(admin: AdminClient, entity: Entity) -> list[str]:
    """The names of all entities of a type, sorted; for brokers, the defaults come last."""
    if entity.type == "topics":
        return sorted(row.name for row in admin.metadata().topics if row.name)
    if entity.type == "brokers":
        return [*(str(node.id) for node in admin.describe_cluster().nodes), DEFAULT_NAME]
    configured = {resource.name for resource in admin.list_config_resources({entity.resource_type})}
    if entity.type == "groups":
        configured |= {group.group_id for group in admin.list_groups()}
    return sorted(configured)
