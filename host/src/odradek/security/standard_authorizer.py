"""The decisions of org.apache.kafka.metadata.authorizer.StandardAuthorizer (Kafka 4.3), about stored ACLs.

1. A super user may do everything.
2. The ACLs about a resource are those with its literal name, with a prefix of it, and with the name ``*``.
3. One of them applies if it names the caller and the caller's address, or ``*`` for either.
4. It fits an operation if it is about that operation or about ALL. To be allowed to read, write, delete or
   alter includes to describe, and to alter configurations includes to describe them; a denial includes
   nothing else.
5. A denial that fits wins over every permission. Without any ACL about the resource,
   ``allow.everyone.if.no.acl.found`` decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from odradek.plugin.authorizer import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermission,
    Action,
    Decision,
    PatternType,
    ResourceType,
)
from odradek.plugin.context import RequestContext
from odradek.security.acl import Acl, AclEntry, ResourcePattern
from odradek.security.acl_index import DENY_SHIFT, AclIndex, PatternAcls
from odradek.security.authorizer_settings import SUPER_USER

DECISIONS_KEPT = 10_000
"""Decisions that are remembered until an ACL changes; 5 to 10 MB."""
LONGEST_KEPT = 255
"""Characters of a name in a remembered decision: callers choose what they ask for."""
IMPLYING: Final = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}
"""By operation: the operations whose permission includes it."""
ANY_NAME: Final = "hardcode"
"""The name that Kafka asks about first when any resource will do; see ``Authorizer.authorizeByResourceType``.
Super users, ``*`` and ``allow.everyone.if.no.acl.found`` answer it.
"""
Question = tuple[str, str, AclOperation, ResourceType, str | None]
"""Principal, host, operation, resource type, and name or None for any."""
DEFAULT_ALLOW: Final = Decision(True, "DefaultAllow")
DEFAULT_DENY: Final = Decision(False, "DefaultDeny")


def bits(operations: Iterable[AclOperation]) -> int:
    """The bits that permissions for any of these operations have."""
    return sum(1 << operation for operation in operations)


EXACT: Final = [(operation, AclOperation.ALL) for operation in AclOperation]
INCLUDING: Final = [(*fitting, *IMPLYING.get(fitting[0], ())) for fitting in EXACT]
"""By the code of an operation: the operations of denials, and of permissions, that fit it."""
EXACT_BITS: Final = list(map(bits, EXACT))
INCLUDING_BITS: Final = list(map(bits, INCLUDING))
DENYING_BITS: Final = [each << DENY_SHIFT for each in EXACT_BITS]


class StandardAuthorizer:
    """An authorizer with ACLs in memory.

    Args:
        super_users: Principals that may do everything.
        allow_everyone: Whether everything is allowed on a resource without ACLs.
    """

    def __init__(self, super_users: Iterable[str] = (), allow_everyone: bool = False) -> None:
        self.super_users = frozenset(super_users)
        self.default = DEFAULT_ALLOW if allow_everyone else DEFAULT_DENY
        self.acls = AclIndex()
        self.decisions: dict[Question, Decision] = {}

    def add(self, acls: Iterable[Acl]) -> None:
        self.decisions.clear()
        for acl in acls:
            self.acls.add(acl)

    def remove(self, acls: Iterable[Acl]) -> None:
        self.decisions.clear()
        for acl in acls:
            self.acls.remove(acl)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        """Decide whether the caller may perform each of the actions."""
        connection = context.connection
        principal, host = connection.principal, connection.client_address
        return [
            self.decide(principal, host, action.operation, action.resource_type, action.name)
            for action in actions
        ]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide whether the caller may perform the operation on any resource of this type."""
        connection = context.connection
        principal, host = connection.principal, connection.client_address
        return self.decide(principal, host, operation, resource_type, None)

    def decide(
        self,
        principal: str,
        host: str,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str | None,
    ) -> Decision:
        """The decision about one action, remembered if it was made before.

        Args:
            principal: The caller.
            host: Its address.
            operation: The operation.
            resource_type: The type of the resource.
            name: The name of the resource; None if any will do.
        """
        question = (principal, host, operation, resource_type, name)
        decision = self.decisions.get(question)
        if decision is None:
            decision = self.decide_now(
                principal, host, operation, resource_type, ANY_NAME if name is None else name
            )
            if name is None and not decision.is_allowed:
                decision = self.decide_by_own_acls(principal, host, operation, resource_type)
            self.remember(question, decision)
        return decision

    def remember(self, question: Question, decision: Decision) -> None:
        """Remember a decision within bounds."""
        if len(question[-1] or "") <= LONGEST_KEPT:
            if len(self.decisions) >= DECISIONS_KEPT:
                self.decisions.clear()
            self.decisions[question] = decision

    def decide_now(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> Decision:
        """Decide about one action."""
        if principal in self.super_users:
            return SUPER_USER
        denying, allowing = DENYING_BITS[operation], INCLUDING_BITS[operation]
        acls, permission = None, None
        for acls in self.acls.about(resource_type, name):
            found = acls.of(principal, host)
            if found & denying:
                return because(acls, principal, host, AclPermission.DENY, EXACT[operation])
            if permission is None and found & allowing:
                permission = acls
        if permission is not None:
            return because(permission, principal, host, AclPermission.ALLOW, INCLUDING[operation])
        return self.default if acls is None else DEFAULT_DENY

    def decide_by_own_acls(
        self, principal: str, host: str, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Decide by the caller's own ACLs whether a name exists for which the operation is allowed.

        As in Kafka no operation includes another here, and a denial with a prefix counts only for names that
        begin with it.
        """
        own = [
            (acls, acls.of(principal, host))
            for acls in self.acls.of_caller(principal, host)
            if acls.pattern.resource_type is resource_type
        ]
        denying, allowing = DENYING_BITS[operation], EXACT_BITS[operation]
        denied = {acls.pattern: acls for acls, found in own if found & denying}
        everything = denied.get(ResourcePattern(resource_type, WILDCARD, PatternType.LITERAL))
        if everything is not None:
            return because(everything, principal, host, AclPermission.DENY, EXACT[operation])
        for acls, found in own:
            if found & allowing and not self.is_overruled(acls.pattern, denied):
                return because(acls, principal, host, AclPermission.ALLOW, EXACT[operation])
        return DEFAULT_DENY

    def is_overruled(self, pattern: ResourcePattern, denied: Mapping[ResourcePattern, PatternAcls]) -> bool:
        """Whether denials take away all names of a pattern that the caller is allowed."""
        resource_type, name, pattern_type = pattern
        is_literal = pattern_type is PatternType.LITERAL
        if is_literal and name == WILDCARD:
            return False
        if is_literal and pattern in denied:
            return True
        return any(acls.pattern in denied for acls in self.acls.beginning(resource_type, name))


def because(
    acls: PatternAcls,
    principal: str,
    host: str,
    permission: AclPermission,
    operations: Iterable[AclOperation],
) -> Decision:
    """The decision by an entry that fits the caller and one of the operations."""
    entries = (
        AclEntry(name, address, operation, permission)
        for name in (principal, WILDCARD_PRINCIPAL)
        for address in (host, WILDCARD)
        for operation in operations
    )
    decisive = next(entry for entry in entries if entry in acls.entries)
    return Decision(permission is AclPermission.ALLOW, Acl(acls.pattern, decisive).rule())
