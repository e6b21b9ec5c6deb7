"""Deciding what a caller may do; after org.apache.kafka.server.authorizer.Authorizer (KIP-504).

The codes are those of the ACL APIs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol, runtime_checkable

from odradek.plugin.context import RequestContext

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the only resource of type CLUSTER."""
WILDCARD: Final = "*"
"""A literal pattern of this name fits every resource of its type, an ACL of this host every address."""
WILDCARD_PRINCIPAL: Final = "User:*"
"""An ACL of this principal fits every caller."""


class ResourceType(IntEnum):
    """Codes of ``org.apache.kafka.common.resource.ResourceType``."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """Codes of ``org.apache.kafka.common.resource.PatternType``."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """Codes of ``org.apache.kafka.common.acl.AclOperation``."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class AclPermission(IntEnum):
    """Codes of ``org.apache.kafka.common.acl.AclPermissionType``."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True)
class Action:
    """An operation that a caller wants to perform on one resource."""

    operation: AclOperation
    resource_type: ResourceType
    name: str
    """The literal name of the resource."""
    log_if_allowed: bool = True
    """False if the decision only selects what the caller is shown."""
    log_if_denied: bool = True
    """Likewise; also False if another right would do instead."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The answer of an authorizer."""

    is_allowed: bool
    rule: str = ""
    """The reason, for the audit log: ``SuperUser``, ``DefaultDeny``, or the ACL that decided."""


@runtime_checkable
class Authorizer(Protocol):
    """Decides what callers may do.

    It is called on the host's event loop with every request that needs a right: it must not block.
    """

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> Sequence[Decision]:
        """Decide whether the caller may perform each of the actions; one decision per action, in order."""

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the caller may perform the operation on any resource of this type.

        A producer without a transactional id, for example, needs WRITE on any topic.
        """
