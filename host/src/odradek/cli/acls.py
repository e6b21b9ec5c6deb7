"""``odradek acls``: the options and the output of kafka-acls.sh, for any broker.

Differs from the tool: an invalid command line gives exit status 2 (the tool: 1), and an error is one line on
stderr. ACLs are sorted. ``--json`` prints one object per ACL.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from odradek.cli.acl_options import Acls, check, entries, patterns
from odradek.cli.connect import cluster_options, connected
from odradek.cli.errors import CommandFailed
from odradek.cli.listing import json_option, show
from odradek.cli.usage import one_action
from odradek.client.admin import AdminClient
from odradek.security.acl import Acl, AclEntry, AclFilter, ResourcePattern

FAILING = "Error while executing ACL command:"
ACTIONS = ("add", "remove", "list_acls")
EVERYTHING = AclFilter()
Command = TypeVar("Command", bound=Callable[..., Any])
EPILOG = """\b
Operations:
  topics             Read, Write, Create, Delete, Alter, Describe,
                     DescribeConfigs, AlterConfigs
  groups             Read, Delete, Describe, DescribeConfigs, AlterConfigs
  the cluster        Create, Alter, Describe, ClusterAction,
                     DescribeConfigs, AlterConfigs, IdempotentWrite
  transactional ids  Write, Describe, TwoPhaseCommit
  delegation tokens  Describe
  users              CreateTokens, DescribeTokens
  and All of each

\b
Examples:
  odradek acls --bootstrap-server localhost:9092 --list
  odradek acls --bootstrap-server localhost:9092 --add \\
      --allow-principal User:alice --producer --topic orders
  odradek acls --bootstrap-server localhost:9092 --remove --topic orders
"""


def many(*names: str, metavar: str, help_text: str) -> Callable[[Command], Command]:
    """An option that may be repeated."""
    return click.option(*names, multiple=True, metavar=metavar, help=f"{help_text}; may be repeated.")


@click.command("acls", epilog=EPILOG)
@cluster_options
@click.option("--list", "list_acls", is_flag=True, help="List the ACLs of some resources, or all.")
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs; without a principal all those of the resources.")
@many("--topic", "topics", metavar="NAME", help_text="Topic, or * for all")
@many("--group", "groups", metavar="ID", help_text="Group, or * for all")
@click.option("--cluster", is_flag=True, help="The cluster.")
@many("--transactional-id", "transactional_ids", metavar="ID", help_text="Transactional id, or * for all")
@many("--delegation-token", "delegation_tokens", metavar="ID", help_text="Delegation token, or * for all")
@many("--user-principal", "user_principals", metavar="P", help_text="User whose tokens these are, User:NAME")
@click.option(
    "--resource-pattern-type",
    type=click.Choice(["literal", "prefixed", "any", "match"], case_sensitive=False),
    default="literal",
    show_default=True,
    help="How the names are meant; any and match only to list and remove: match finds all patterns that fit "
    "a name.",
)
@many("--allow-principal", "allow_principals", metavar="P", help_text="Principal to allow, User:NAME")
@many("--deny-principal", "deny_principals", metavar="P", help_text="Principal to deny, User:NAME")
@many("--allow-host", "allow_hosts", metavar="IP", help_text="Address to allow, any by default")
@many("--deny-host", "deny_hosts", metavar="IP", help_text="Address to deny, any by default")
@many("--operation", "operations", metavar="NAME", help_text="Operation, see below; All by default")
@many("--principal", "principals", metavar="P", help_text="List only ACLs with this principal")
@click.option("--producer", is_flag=True, help="The ACLs of a producer to --topic, by --transactional-id.")
@click.option("--consumer", is_flag=True, help="The ACLs of a consumer of --topic in --group.")
@click.option("--idempotent", is_flag=True, help="With --producer: IdempotentWrite on the cluster.")
@click.option("--force", is_flag=True, help="Do not ask before removing.")
@json_option
def acls(bootstrap_server: str, command_config: Path | None, **options: Any) -> None:
    """List, add and remove ACLs.

    Give exactly one of --list, --add and --remove.
    """
    action = one_action(options, ACTIONS)
    check(options, action)
    if options["as_json"] and action != "list_acls":
        raise click.UsageError(f"option --json can't be used with --{action}")
    with connected(FAILING, bootstrap_server, command_config) as admin:
        if action == "add":
            add(admin, entries(options))
        elif action == "remove":
            remove(admin, entries(options), force=options["force"])
        else:
            list_acls(admin, patterns(options), options["principals"], as_json=options["as_json"])


def list_acls(
    admin: AdminClient, wanted: Sequence[ResourcePattern], principals: Sequence[str], *, as_json: bool
) -> None:
    """Print the ACLs of resources, or all."""
    filters = [filter_of(pattern) for pattern in wanted] or [EVERYTHING]
    found = sorted({acl for each in filters for acl in admin.describe_acls(each)})
    chosen = [acl for acl in found if not principals or acl.entry.principal in principals]
    show(as_json, map(as_object, chosen), lines(found, principals))


def lines(found: Sequence[Acl], principals: Sequence[str]) -> Iterator[str]:
    """The lines of the listing: each resource once, or once for each principal."""
    if not principals:
        yield from resource_lines(found)
    for principal in dict.fromkeys(principals):
        yield f"ACLs for principal `{principal}`"
        yield from resource_lines([acl for acl in found if acl.entry.principal == principal])


def resource_lines(found: Sequence[Acl]) -> Iterator[str]:
    """The ACLs of each resource, with an empty line at the end."""
    by_pattern: Acls = {}
    for pattern, entry in found:
        by_pattern.setdefault(pattern, []).append(entry)
    for pattern, granted in by_pattern.items():
        yield f"Current ACLs for resource `{pattern}`:"
        yield from tabbed(granted)
        yield ""


def tabbed(granted: Iterable[AclEntry]) -> Iterator[str]:
    """Entries as the tool prints them."""
    return (f"\t{entry}" for entry in granted)


def as_object(acl: Acl) -> dict[str, str]:
    """An ACL for scripts."""
    pattern, entry = acl
    return {
        "resourceType": pattern.resource_type.name,
        "resourceName": pattern.name,
        "patternType": pattern.pattern_type.name,
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation.name,
        "permissionType": entry.permission.name,
    }


def add(admin: AdminClient, wanted: Acls) -> None:
    """Add the ACLs that are not there, with one request.

    Raises:
        CommandFailed: The broker refused one.
    """
    new: Acls = {}
    for pattern, granted in wanted.items():
        there = {acl.entry for acl in admin.describe_acls(filter_of(pattern))}
        for entry in granted:
            if entry in there:
                click.echo(f"Acl (pattern={pattern}, entry={entry}) already exists.")
            else:
                new.setdefault(pattern, []).append(entry)
    for pattern, granted in new.items():
        click.echo(f"Adding ACLs for resource `{pattern}`: \n " + "\n".join(tabbed(granted)) + "\n")
    acls_of = [Acl(pattern, entry) for pattern, granted in new.items() for entry in granted]
    if acls_of:
        for error in admin.create_acls(acls_of).values():
            if error is not None:
                raise CommandFailed(f"{FAILING} {error}")


def remove(admin: AdminClient, wanted: Acls, *, force: bool) -> None:
    """Remove ACLs, resource by resource, after asking."""
    for pattern, granted in wanted.items():
        listed = "".join(f"{line}\n" for line in tabbed(granted))
        question = (
            f"Are you sure you want to remove ACLs: \n {listed} from resource filter `{pattern}`? (y/n)"
            if granted
            else f"Are you sure you want to delete all ACLs for resource filter `{pattern}`? (y/n)"
        )
        if force or is_confirmed(question):
            admin.delete_acls([filter_of(pattern, entry) for entry in granted] or [filter_of(pattern)])


def is_confirmed(question: str) -> bool:
    """Ask on standard input."""
    click.echo(question)
    return sys.stdin.readline().strip().lower() == "y"


def filter_of(pattern: ResourcePattern, entry: AclEntry | None = None) -> AclFilter:
    """The filter that selects the ACLs of a pattern, or one of them."""
    resource_type, name, pattern_type = pattern
    if entry is None:
        return AclFilter(resource_type=resource_type, name=name, pattern_type=pattern_type)
    return AclFilter(
        resource_type=resource_type,
        name=name,
        pattern_type=pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission=entry.permission,
    )
