"""An access control list entry, and the filter of the ACL APIs.

After org.apache.kafka.common.acl.AclBinding, AclBindingFilter and ResourcePatternFilter.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple, TypeVar

from odradek.plugin.authorizer import WILDCARD, AclOperation, AclPermission, PatternType, ResourceType

E = TypeVar("E", bound=IntEnum)
OF_CONFIGS: Final = (AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS)
SUPPORTED: Final = {
    ResourceType.TOPIC: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.CREATE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        *OF_CONFIGS,
    ),
    ResourceType.GROUP: (AclOperation.READ, AclOperation.DELETE, AclOperation.DESCRIBE, *OF_CONFIGS),
    ResourceType.CLUSTER: (
        AclOperation.CREATE,
        AclOperation.ALTER,
        AclOperation.DESCRIBE,
        AclOperation.CLUSTER_ACTION,
        *OF_CONFIGS,
        AclOperation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        AclOperation.WRITE,
        AclOperation.DESCRIBE,
        AclOperation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that resources of a type have, besides ALL; after AclEntry.java."""


def code_of(kind: type[E], code: int) -> E:
    """The value of a code in a message; UNKNOWN for a code of a newer version."""
    try:
        return kind(code)
    except ValueError:
        return kind(0)


class ResourcePattern(NamedTuple):
    """The resources that an ACL is about."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        """The text of Kafka's own messages."""
        kind, pattern = self.resource_type.name, self.pattern_type.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern})"


class AclEntry(NamedTuple):
    """The caller, the operation and the permission of an ACL."""

    principal: str
    """``<type>:<name>``."""
    host: str
    """A client's address, or ``*``."""
    operation: AclOperation
    permission: AclPermission

    def __str__(self) -> str:
        """The text of Kafka's own messages."""
        operation, permission = self.operation.name, self.permission.name
        caller = f"principal={self.principal}, host={self.host}"
        return f"({caller}, operation={operation}, permissionType={permission})"


class Acl(NamedTuple):
    """One ACL."""

    pattern: ResourcePattern
    entry: AclEntry

    def rule(self) -> str:
        """The text by which Kafka's audit log names the ACL that decided."""
        pattern, entry = self.pattern, self.entry
        resource = f"resourceType={pattern.resource_type.name}, resourceName={pattern.name}"
        caller = f"patternType={pattern.pattern_type.name}, principal={entry.principal}, host={entry.host}"
        verdict = f"operation={entry.operation.name}, permissionType={entry.permission.name}"
        return f"MatchingAcl(acl=StandardAcl[{resource}, {caller}, {verdict}])"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Selects ACLs. ANY and None select all; UNKNOWN selects none."""

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    """MATCH selects each pattern that fits the resource `name`; ANY each pattern with that very name."""
    principal: str | None = None
    host: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY

    def selects_pattern(self, pattern: ResourcePattern) -> bool:
        """Whether ACLs with this pattern may be selected."""
        if self.resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if self.name is None:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return self.name == pattern.name
        if pattern.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(pattern.name)
        return pattern.name in (self.name, WILDCARD)

    def selects_entry(self, entry: AclEntry) -> bool:
        """Whether an entry of a selected pattern is selected."""
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission in (AclPermission.ANY, entry.permission)
        )
