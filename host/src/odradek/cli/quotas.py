"""``odradek quotas``: the options of kafka-configs.sh about quotas, and its output, against any broker.

Differs from the tool: a command line that cannot be used is exit status 2 (1 there), errors are one line on
stderr. ``--describe`` alone shows all quotas; where there are none, stderr says so. Users are described
without their credentials, which ``odradek users`` shows; which keys there are, and whether a host has an
address, is decided by the broker.
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
from odradek.cli.usage import flag, is_given, one_action, only_with
from odradek.client.admin import AdminClient
from odradek.client.quotas import ANY, Match
from odradek.plugin.client_quota import ClientQuotaEntity

FAILING = "Error while executing quotas command :"
ACTIONS = ("describe", "alter")
ALTERATIONS = ("add_config", "delete_config")
GOES_WITH = dict.fromkeys(ALTERATIONS, ("alter",))
TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
"""As the protocol calls them."""
NOUNS = {"user": "user-principal", "client-id": "client-id", "ip": "ip"}
"""As the tool calls them when it describes."""
DEFAULT_NAME = ""
EPILOG = """\b
Quotas of users and clients:
  producer_byte_rate        bytes per second
  consumer_byte_rate        bytes per second
  request_percentage        time of requests, in percent of a thread
  controller_mutation_rate  partitions made and removed per second
Of IP addresses:
  connection_creation_rate  connections per second

\b
For example:
  odradek quotas --bootstrap-server localhost:9092 --describe
  odradek quotas --bootstrap-server localhost:9092 --alter --user alice \\
      --add-config producer_byte_rate=1000000,request_percentage=50
  odradek quotas --bootstrap-server localhost:9092 --alter --user alice \\
      --delete-config request_percentage
"""
Command = Callable[..., None]


@dataclass(frozen=True, slots=True)
class Entity:
    """What the command line is about: types and, as far as they were given, names; "" is the default."""

    types: Sequence[str]
    names: Sequence[str]

    @property
    def matches(self) -> dict[str, Match]:
        """The filter that finds it, or all of its types."""
        names: list[Match] = [name or None for name in self.names]
        names += [ANY] * (len(self.types) - len(self.names))
        return {TYPES[kind]: name for kind, name in zip(self.types, names, strict=True)}

    @property
    def one(self) -> ClientQuotaEntity:
        """The one entity; all names were given."""
        return ClientQuotaEntity.of(
            {TYPES[kind]: name or None for kind, name in zip(self.types, self.names, strict=True)}
        )

    @property
    def altered(self) -> str:
        """What the tool prints after a change: it names the first type only."""
        if self.names[0] == DEFAULT_NAME:
            return f"Completed updating default config for {self.types[0]} in the cluster."
        return f"Completed updating config for {self.types[0].removesuffix('s')} {self.names[0]}."


def short_options(command: Command) -> Command:
    """Add the options that say type and name at once."""
    for kind in reversed(TYPES):
        singular = kind.removesuffix("s")
        command = click.option(
            f"--{singular}-defaults",
            is_flag=True,
            help=f"Short for --entity-type {kind} --entity-default.",
        )(command)
        command = click.option(
            f"--{singular}", metavar="NAME", help=f"Short for --entity-type {kind} --entity-name NAME."
        )(command)
    return command


@click.command("quotas", epilog=EPILOG, context_settings={"help_option_names": ["--help"]})
@cluster_options
@click.option("--describe", is_flag=True, help="Show quotas.")
@click.option("--alter", is_flag=True, help="Change quotas.")
@click.option(
    "--entity-type",
    "types",
    type=click.Choice(list(TYPES)),
    multiple=True,
    help="Whose quotas; users and clients go together. With --describe of everybody, if there is none.",
)
@click.option(
    "--entity-name",
    "names",
    metavar="NAME",
    multiple=True,
    help="Which one, in the order of the types; with --describe all by default.",
)
@click.option(
    "--entity-default",
    "names",
    flag_value=DEFAULT_NAME,
    multiple=True,
    help="All that have no quotas of their own.",
)
@short_options
@click.option("--add-config", metavar="K1=V1,K2=V2", help="What to set; other quotas stay.")
@click.option("--delete-config", multiple=True, metavar="K1,K2", help="What to remove.")
def quotas(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """Describe and alter the quotas of users, clients, both together, or IP addresses.

    Exactly one of --describe and --alter.
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
            describe(admin, entity)


def entity_of(options: Mapping[str, Any]) -> Entity:
    """What the options are about.

    Raises:
        click.UsageError: It cannot be.
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
        raise click.UsageError(f"an entity type is there twice: {', '.join(types)}")
    if "ips" in types and len(types) > 1:
        raise click.UsageError("only users and clients may be specified together")
    return Entity(types, names)


def changes_of(entity: Entity, options: Mapping[str, Any]) -> dict[str, float | None]:
    """What ``--alter`` does: values by key, None for what is removed.

    Raises:
        click.UsageError: Nothing, or it does not say to whom.
    """
    if len(entity.names) < len(entity.types):
        raise click.UsageError("--entity-name or --entity-default must be specified with --alter")
    if not any(is_given(options[option]) for option in ALTERATIONS):
        raise click.UsageError(f"one of {', '.join(map(flag, ALTERATIONS))} must be specified with --alter")
    added = {} if options["add_config"] is None else parse_config_list(options["add_config"])
    deleted = [key.strip() for text in options["delete_config"] for key in text.split(",") if key.strip()]
    for key in deleted:
        if key in added:
            raise click.UsageError(f"{key!r} is both to be set and to be deleted")
    values: dict[str, float | None] = {key: number(key, text) for key, text in added.items()}
    return values | dict.fromkeys(deleted)


def number(key: str, text: str) -> float:
    """The value of a quota.

    Raises:
        click.UsageError: It is none.
    """
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"option --add-config: {key} is a number, found {text!r}") from None


def alter(admin: AdminClient, entity: Entity, values: Mapping[str, float | None]) -> None:
    """Change one entity. What is not set cannot be removed: the tool checks it, brokers do not."""
    removed = [key for key, value in values.items() if value is None]
    if removed:
        present = admin.describe_client_quotas(entity.matches, strict=True).get(entity.one, {})
        unknown = [key for key in removed if key not in present]
        if unknown:
            whose = named(entity.one)
            raise CommandFailed(f"{FAILING} Invalid config(s): {','.join(unknown)} not set for {whose}")
    admin.alter_client_quotas({entity.one: values})
    click.echo(entity.altered)


def describe(admin: AdminClient, entity: Entity) -> None:
    """Print a line per entity. A filter of no types that is not strict matches all."""
    found = admin.describe_client_quotas(entity.matches, strict=bool(entity.types))
    if not found:
        click.echo("no quotas", err=True)
    for names, values in sorted((named(each), values) for each, values in found.items()):
        shown = ", ".join(f"{key}={java_double(value)}" for key, value in sorted(values.items()))
        click.echo(f"Quota configs for {names} are {shown}")


def named(entity: ClientQuotaEntity) -> str:
    """An entity as the tool writes it."""
    return ", ".join(
        f"the default {NOUNS[kind]}" if name is None else f"{NOUNS[kind]} '{name}'"
        for kind, name in entity.names().items()
    )


def java_double(value: float) -> str:
    """A number as Java prints it: ``1000.0``, and from ten millions on ``1.0E7``."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)]
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        plain = format(Decimal(repr(value)), "f")
        return plain if "." in plain else f"{plain}.0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    text = "".join(map(str, digits))
    fraction = text[1:].rstrip("0") or "0"
    return f"{'-' if sign else ''}{text[0]}.{fraction}E{int(exponent) + len(text) - 1}"
