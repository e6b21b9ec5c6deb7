"""ACLs in few words."""

from __future__ import annotations

from collections.abc import Iterable

from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType, ResourceType
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.wire.messages.create_acls import AclCreation

ADMIN = "User:ANONYMOUS"
"""The super user of `standard_authorizer`: a client of a PLAINTEXT listener."""


def acl(text: str) -> Acl:
    """An ACL from a text.

    Args:
        text: ``ALLOW User:alice READ TOPIC orders``, with or without a host at the end; ``orders*`` is a
            prefix, ``*`` alone the wildcard.
    """
    permission, principal, operation, resource_type, name, *host = text.split()
    is_prefix = name.endswith("*") and name != "*"
    pattern_type = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    return Acl(
        ResourcePattern(ResourceType[resource_type], name[:-1] if is_prefix else name, pattern_type),
        AclEntry(principal, host[0] if host else "*", AclOperation[operation], AclPermission[permission]),
    )


def standard_authorizer(*acls: str, super_users: Iterable[str] = (ADMIN,)) -> StandardAuthorizer:
    """An authorizer with these ACLs, as `acl` reads them."""
    made = StandardAuthorizer(super_users)
    made.add(map(acl, acls))
    return made


def creation(text: str, **changes: object) -> AclCreation:
    """The same ACL in a request, with some fields changed."""
    pattern, entry = acl(text)
    made = AclCreation(
        resource_type=pattern.resource_type,
        resource_name=pattern.name,
        resource_pattern_type=pattern.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission,
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made
