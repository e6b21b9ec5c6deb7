"""The ACLs and filters that the options of ``odradek acls`` name; after AclCommand.java (Kafka 4.3)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any, Final

import click

from odradek.cli.usage import flag, is_given
from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    WILDCARD,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from odradek.security.acl import SUPPORTED, AclEntry, ResourcePattern

RESOURCES: Final = {
    "topics": ResourceType.TOPIC,
    "groups": ResourceType.GROUP,
    "cluster": ResourceType.CLUSTER,
    "transactional_ids": ResourceType.TRANSACTIONAL_ID,
    "delegation_tokens": ResourceType.DELEGATION_TOKEN,
    "user_principals": ResourceType.USER,
}
"""The type of resource of each option."""
PRINCIPALS: Final = ("allow_principals", "deny_principals")
SIDES: Final = (
    ("allow_principals", "allow_hosts", AclPermission.ALLOW),
    ("deny_principals", "deny_hosts", AclPermission.DENY),
)
ROLES: Final = ("producer", "consumer")
NOT_WITH_ROLES: Final = ("operations", "deny_principals", "deny_hosts")
CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
Acls = dict[ResourcePattern, list[AclEntry]]


def operation_named(text: str) -> AclOperation:
    """The operation of a name such as ``DescribeConfigs`` or ``describe_configs``; else UNKNOWN."""
    name = CAPITAL.sub("_", text.strip()).upper()
    return AclOperation.__members__.get(name, AclOperation.UNKNOWN)


def patterns(options: Mapping[str, Any]) -> list[ResourcePattern]:
    """The resources of the command line, each with the pattern type of the command line."""
    pattern_type = PatternType[options["resource_pattern_type"].upper()]
    found: dict[ResourcePattern, None] = {}
    for option, resource_type in RESOURCES.items():
        names = [CLUSTER_NAME] if options[option] is True else options[option] or ()
        kept = PatternType.LITERAL if option == "cluster" else pattern_type
        found |= {ResourcePattern(resource_type, name.strip(), kept): None for name in names}
    return list(found)


def entries_of_options(options: Mapping[str, Any], operations: Iterable[AclOperation]) -> list[AclEntry]:
    """The entries for some operations: each principal with each host of its side."""
    return [
        AclEntry(principal.strip(), host.strip(), operation, permission)
        for principals, hosts, permission in SIDES
        for principal, host, operation in product(
            options[principals], options[hosts] or (WILDCARD,), operations
        )
    ]


def entries(options: Mapping[str, Any]) -> Acls:
    """The entries of the command line by resource; a resource without entries stands for all of its ACLs."""
    named = patterns(options)
    if not any(options[role] for role in ROLES):
        operations = list(dict.fromkeys(map(operation_named, options["operations"] or ("All",))))
        return {pattern: entries_of_options(options, operations) for pattern in named}
    found: Acls = {}
    for role in ROLES:
        if options[role]:
            for pattern in named:
                granted = entries_of_options(options, ROLE_OPERATIONS[role].get(pattern.resource_type, ()))
                if granted:
                    found[pattern] = list(dict.fromkeys([*found.get(pattern, []), *granted]))
    if options["idempotent"]:
        cluster = ResourcePattern(ResourceType.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)
        found[cluster] = entries_of_options(options, [AclOperation.IDEMPOTENT_WRITE])
    return found


ROLE_OPERATIONS: Final[Mapping[str, Mapping[ResourceType, tuple[AclOperation, ...]]]] = {
    "producer": {
        ResourceType.TOPIC: (AclOperation.WRITE, AclOperation.DESCRIBE, AclOperation.CREATE),
        ResourceType.TRANSACTIONAL_ID: (AclOperation.WRITE, AclOperation.DESCRIBE),
    },
    "consumer": {
        ResourceType.TOPIC: (AclOperation.READ, AclOperation.DESCRIBE),
        ResourceType.GROUP: (AclOperation.READ,),
    },
}
"""The operations that a producer or a consumer needs, by type of resource."""


def check(options: Mapping[str, Any], action: str) -> None:
    """Check that the options go together.

    Raises:
        click.UsageError: They do not; mostly in Kafka's words.
    """
    problem = problem_of(options, action)
    if problem is None:
        for pattern, wanted in entries(options).items() if action != "list_acls" else ():
            problem = problem or unsupported(pattern, wanted)
    if problem is not None:
        raise click.UsageError(problem)


def problem_of(options: Mapping[str, Any], action: str) -> str | None:
    """The first problem with the options, or None."""
    listing_only = ("allow_principals", "deny_principals", "allow_hosts", "deny_hosts", "operations", *ROLES)
    refused = [name for name in listing_only if action == "list_acls" and is_given(options[name])]
    role = next((role for role in ROLES if options[role]), None)
    refused_by_role = [name for name in NOT_WITH_ROLES if role and is_given(options[name])]
    found = patterns(options)
    pattern_type = options["resource_pattern_type"].lower()
    checks = (
        (refused, f"option {flag(refused[0])} can't be used with --list" if refused else ""),
        (
            options["principals"] and action != "list_acls",
            "the --principal option is only available if --list is set",
        ),
        (
            refused_by_role,
            f"option {flag(refused_by_role[0])} can't be used with --{role}" if refused_by_role else "",
        ),
        (
            options["idempotent"] and not options["producer"],
            "the --idempotent option is only available if --producer is set",
        ),
        (options["producer"] and not options["topics"], "with --producer you must specify a --topic"),
        (
            (options["consumer"] and not (options["topics"] and options["groups"]))
            or (
                options["consumer"]
                and not options["producer"]
                and (options["cluster"] or options["transactional_ids"])
            ),
            "with --consumer you must specify a --topic and a --group, but no --cluster or "
            "--transactional-id",
        ),
        (
            action == "add" and not any(options[name] for name in PRINCIPALS),
            "you must specify one of --allow-principal, --deny-principal when trying to add ACLs",
        ),
        (
            action != "list_acls" and not found,
            "you must provide at least one resource: --topic, --group, --cluster, --transactional-id, "
            "--delegation-token or --user-principal",
        ),
        (
            action == "add" and pattern_type in ("any", "match"),
            f"a '--resource-pattern-type' value of '{pattern_type.upper()}' is not valid when adding acls",
        ),
        *(
            (
                ":" not in principal,
                f"expected a string in format principalType:principalName but got {principal}",
            )
            for name in (*PRINCIPALS, "principals")
            for principal in options[name]
        ),
    )
    return next((text for is_wrong, text in checks if is_wrong), None)


def unsupported(pattern: ResourcePattern, wanted: Iterable[AclEntry]) -> str | None:
    """The problem with an operation that resources of the type do not have, or None."""
    supported = (AclOperation.ALL, *SUPPORTED[pattern.resource_type])
    if all(entry.operation in supported for entry in wanted):
        return None
    names = ", ".join(operation.name for operation in supported)
    return f"ResourceType {pattern.resource_type.name} only supports operations [{names}]"
