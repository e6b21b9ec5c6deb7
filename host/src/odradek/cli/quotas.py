"""``odradek quotas``: the quota options and the output of kafka-configs.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr. ``--describe`` alone shows all quotas, and stderr says if there are none. Users are described without
their credentials, which ``odradek users`` shows. The broker, not the command, decides whether a key exists
and whether a host name resolves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import click

from odradek.cli.config_list import parse_config_list
from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.cli.usage import flag, is_given, one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.quotas import ANY, Match
from odradek.plugin.client_quota import ClientQuotaEntity

FAILING = "Error while executing quotas command :"
ACTIONS = ("describe", "alter")
ALTERATIONS = ("add_config", "delete_config")
GOES_WITH = {"as_json": ("describe",), **dict.fromkeys(ALTERATIONS, ("alter",))}
TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
"""Names of the entity types in the protocol."""
NOUNS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
"""Names of the entity types in the tool's output."""
DEFAULT_NAME = ""
EPILOG = """\b
Quotas of users and clients:
  producer_byte_rate        bytes per second
  consumer_byte_rate        bytes per second
  request_percentage        request processing time, in percent of a thread
  controller_mutation_rate  partitions created and deleted per second
Quotas of IP addresses:
  connection_creation_rate  connections per second

\b
Examples:
  odradek quotas --bootstrap-server localhost:9092 --describe
  odradek quotas --bootstrap-server localhost:9092 --alter --user alice \\
      --add-config producer_byte_rate=1000000,request_percentage=50
  odradek quotas --bootstrap-server localhost:9092 --alter --user alice \\
      --delete-config request_percentage
"""
Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Entity:
    """The entity that the command line names; "" is the default. There may be fewer names than types."""

    types: Sequence[str]
    names: Sequence[str]

    @property
    def matches(self) -> dict[str, Match]:
        """The filter that matches this entity; a type without a name matches every name."""
        names: list[Match] = [name or None for name in self.names]
        names += [ANY] * (len(self.types) - len(self.names))
        return {TYPES[kind]: name for kind, name in zip(self.types, names, strict=True)}

    @property
    def one(self) -> ClientQuotaEntity:
        """The entity itself; every type must have a name."""
        return ClientQuotaEntity.of(
            {TYPES[kind]: name or None for kind, name in zip(self.types, self.names, strict=True)}
        )

    @property
    def altered(self) -> str:
        """The tool's message after a change, which names only the first type."""
        if self.names[0] == DEFAULT_NAME:
            return f"Completed updating default config for {self.types[0]} in the cluster."
        return f"Completed updating config for {self.types[0].removesuffix('s')} {self.names[0]}."


def short_options(command: Command) -> Command:
    """Add the options that give type and name at once."""
    for kind in reversed(TYPES):
        singular = kind.removesuffix("s")
        command = click.option(
            f"--{singular}-defaults", is_flag=True, help=f"Short for --entity-type {kind} --entity-default."
        )(command)
        command = click.option(
            f"--{singular}", metavar="NAME", help=f"Short for --entity-type {kind} --entity-name NAME."
        )(command)
    return command


@click.command("quotas", epilog=EPILOG)
@cluster_options
@click.option("--describe", is_flag=True, help="Show quotas.")
@click.option("--alter", is_flag=True, help="Change quotas.")
@click.option(
    "--entity-type",
    "types",
    type=click.Choice(list(TYPES)),
    multiple=True,
    help="Type of the entity; users and clients may be combined. --describe shows all quotas by default.",
)
@click.option(
    "--entity-name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Name of the entity, in the order of the types; --describe shows all by default.",
)
@click.option(
    "--entity-default",
    "names",
    flag_value=DEFAULT_NAME,
    multiple=True,
    help="The default for entities without quotas of their own.",
)
@short_options
@click.option("--add-config", metavar="K1=V1,K2=V2", help="Quotas to set; others stay unchanged.")
@click.option("--delete-config", multiple=True, metavar="K1,K2", help="Quotas to remove; may be repeated.")
@json_option
def quotas(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """Describe and alter the quotas of users, clients, user and client pairs, or IP addresses.

    Give exactly one of --describe and --alter.
    """
    action = one_action(options, ACTIONS)
    only_with(options, action, GOES_WITH)
    entity = entity_of(options)
    if not entity.types and action == "alter":
        raise click.UsageError("one of --entity-type, --user, --client, --ip must be specified with --alter")
    values = changes_of(entity, options) if action == "alter" else {}
    with connected(FAILING, bootstrap_server, command_config) as admin:
        if action == "alter":
            alter(admin, entity, values)
        else:
            describe(admin, entity, options["as_json"])


def entity_of(options: Mapping[str, Any]) -> Entity:
    """The entity that the options name.

    Raises:
        click.UsageError: There is no such combination of types and names.
    """
    types, names = list(options["types"]), list(options["names"])
    if len(names) > len(types):
        raise click.UsageError("there are more entity names than entity types")
    for kind in TYPES:
        singular = kind.removesuffix("s")
        short = [options[singular]] if options[singular] is not None else []
        short += [DEFAULT_NAME] if options[f"{singular}_defaults"] else []
        if short and len(names) < len(types):
            raise click.UsageError(f"option --entity-type can't be used with {flag(singular)} without a name")
        types += [kind] * len(short)
        names += short
    if len(set(types)) < len(types):
        raise click.UsageError(f"an entity type is given twice: {', '.join(types)}")
    if "ips" in types and len(types) > 1:
        raise click.UsageError("only users and clients may be specified together")
    return Entity(types, names)


def changes_of(entity: Entity, options: Mapping[str, Any]) -> dict[str, float | None]:
    """The changes that ``--alter`` makes: values by key, None to remove the key.

    Raises:
        click.UsageError: No change or no entity is given, or a value is not valid.
    """
    if len(entity.names) < len(entity.types):
        raise click.UsageError("--entity-name or --entity-default must be specified with --alter")
    if not any(is_given(options[option]) for option in ALTERATIONS):
        raise click.UsageError(f"one of {', '.join(map(flag, ALTERATIONS))} must be specified with --alter")
    added = {} if options["add_config"] is None else parse_config_list(options["add_config"])
    deleted = [key.strip() for text in options["delete_config"] for key in text.split(",") if key.strip()]
    for key in deleted:
        if key in added:
            raise click.UsageError(f"{key!r} cannot be both set and deleted")
    values: dict[str, float | None] = {key: number(key, text) for key, text in added.items()}
    return values | dict.fromkeys(deleted)


def number(key: str, text: str) -> float:
    """Parse the value of a quota.

    Raises:
        click.UsageError: The text is not a number.
    """
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"option --add-config: expected a number for {key}, found {text!r}") from None


def alter(admin: AdminClient, entity: Entity, values: Mapping[str, float | None]) -> None:
    """Change one entity. Removing a quota that is not set is an error, as in the tool; brokers ignore it."""
    removed = [key for key, value in values.items() if value is None]
    if removed:
        present = admin.describe_client_quotas(entity.matches, strict=True).get(entity.one, {})
        unknown = [key for key in removed if key not in present]
        if unknown:
            whose = named(entity.one)
            raise CommandFailed(f"{FAILING} Invalid config(s): {','.join(unknown)} not set for {whose}")
    admin.alter_client_quotas({entity.one: values})
    click.echo(entity.altered)


def describe(admin: AdminClient, entity: Entity, as_json: bool) -> None:
    """Print a line per entity. A non-strict filter without types matches all entities."""
    found = admin.describe_client_quotas(entity.matches, strict=bool(entity.types))
    if not found:
        click.echo("no quotas", err=True)
    entities = sorted(found, key=named)
    show(
        as_json,
        ({"entity": dict(each.names()), "quotas": found[each]} for each in entities),
        (f"Quota configs for {named(each)} are {quotas_text(found[each])}" for each in entities),
    )


def quotas_text(values: Mapping[str, float]) -> str:
    """The quotas of an entity as the tool prints them."""
    return ", ".join(f"{key}={java_double(value)}" for key, value in sorted(values.items()))


def named(entity: ClientQuotaEntity) -> str:
    """The entity as the tool prints it."""
    return ", ".join(
        f"the default {NOUNS[kind]}" if name is None else f"{NOUNS[kind]} '{name}'"
        for kind, name in entity.names().items()
    )


def java_double(value: float) -> str:
    """The number as Java prints it: ``1000.0``, but ``1.0E7`` from ten million on."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits))
    fraction = text[1:].rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{fraction}E{int(exponent) + len(text) - 1}"
