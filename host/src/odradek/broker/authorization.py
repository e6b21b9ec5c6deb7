"""The permissions of a caller: every handler asks here, and only here.

A handler asks before it looks at a resource, so that a refused caller cannot tell whether it exists. ::

    broker.authorization.require(context, READ, GROUP, request.group_id)
    rights = broker.authorization.rights(context, DESCRIBE, TOPIC)
    for topic in request.topics:
        if not rights.allows(topic.name):
            ...

`Rights` asks for each distinct name once per request, when the handler comes to it. Without an authorizer
everything is allowed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from odradek.broker.authorized_operations import ALL_BITS, bits
from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    Action,
    Authorizer,
    Decision,
    ResourceType,
)
from odradek.plugin.context import RequestContext
from odradek.security.acl import SUPPORTED
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

Denied = Callable[[RequestContext, Action, Decision], object]


def refusal(resource_type: ResourceType) -> ApiError:
    """The error that refuses a request for resources of this type, with Kafka's code and text."""
    name = resource_type.name
    text = f"{name.replace('_', ' ').title()} authorization failed."
    return ApiError(ErrorCode[f"{name}_AUTHORIZATION_FAILED"], text)


class Rights:
    """The resources of one type on which a caller may perform one operation: all, without an authorizer."""

    __slots__ = ()

    def allows(self, name: str) -> bool:
        """Whether the caller may perform the operation on the resource of this name."""
        return True


class NoRights(Rights):
    """No resource at all."""

    __slots__ = ()

    def allows(self, name: str) -> bool:
        return False


EVERYTHING: Final = Rights()
NOTHING: Final = NoRights()


@dataclass(slots=True, eq=False)
class Authorization:
    """The rights of callers as an authorizer decides them; without one, everything is allowed."""

    authorizer: Authorizer | None = None
    denied: Denied = lambda _context, _action, _decision: None
    """Called with each denial that is to be logged."""

    @property
    def is_enabled(self) -> bool:
        """Whether an authorizer is asked."""
        return self.authorizer is not None

    def allows(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logs: bool = True,
    ) -> bool:
        """Whether the caller may perform the operation.

        Args:
            context: The caller.
            operation: The operation.
            resource_type: The type of the resource.
            name: The name of the resource.
            logs: A denial is logged. False if the decision only selects what the caller is shown, or if
                another right would do instead.
        """
        if self.authorizer is None:
            return True
        action = Action(operation, resource_type, name, logs, logs)
        (decision,) = self.authorizer.authorize(context, [action])
        if not decision.is_allowed and logs:
            self.denied(context, action, decision)
        return decision.is_allowed

    def allows_on_cluster(
        self, context: RequestContext, operation: AclOperation, *, logs: bool = True
    ) -> bool:
        """Whether the caller may perform the operation on the cluster."""
        return self.allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME, logs=logs)

    def allows_on_any(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the caller may perform the operation on any resource of this type."""
        if self.authorizer is None:
            return True
        decision = self.authorizer.authorize_by_resource_type(context, operation, resource_type)
        if not decision.is_allowed:
            self.denied(context, Action(operation, resource_type, ""), decision)
        return decision.is_allowed

    def require(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> None:
        """Check that the caller may perform the operation.

        Raises:
            ApiError: That of `refusal`.
        """
        if not self.allows(context, operation, resource_type, name):
            raise refusal(resource_type)

    def require_on_cluster(self, context: RequestContext, operation: AclOperation) -> None:
        """Check that the caller may perform the operation on the cluster.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        self.require(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def rights(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        *,
        or_on_cluster: AclOperation | None = None,
        logs: bool = True,
    ) -> Rights:
        """The resources of a type on which the caller may perform the operation.

        Args:
            context: The caller.
            operation: The operation.
            resource_type: The type of the resources.
            or_on_cluster: The right to this operation on the cluster is enough for all resources.
            logs: As in `allows`.
        """
        if self.authorizer is None or (
            or_on_cluster is not None and self.allows_on_cluster(context, or_on_cluster, logs=False)
        ):
            return EVERYTHING
        return AskedRights(self, context, operation, resource_type, logs)

    def operations(self, context: RequestContext, resource_type: ResourceType, name: str) -> int:
        """The operations that the caller may perform on a resource, as bits."""
        if self.authorizer is None:
            return ALL_BITS[resource_type]
        actions = [
            Action(operation, resource_type, name, log_if_allowed=False, log_if_denied=False)
            for operation in SUPPORTED[resource_type]
        ]
        decisions = self.authorizer.authorize(context, actions)
        return bits(
            action.operation
            for action, decision in zip(actions, decisions, strict=True)
            if decision.is_allowed
        )

    def cluster_operations(self, context: RequestContext) -> int:
        """The operations that the caller may perform on the cluster, as bits; 0 if it may not describe it."""
        if not self.allows_on_cluster(context, AclOperation.DESCRIBE, logs=False):
            return 0
        return self.operations(context, ResourceType.CLUSTER, CLUSTER_NAME)


@dataclass(slots=True, eq=False)
class AskedRights(Rights):
    """The rights that an authorizer has granted so far."""

    authorization: Authorization
    context: RequestContext
    operation: AclOperation
    resource_type: ResourceType
    logs: bool
    known: dict[str, bool] = field(default_factory=dict)

    def allows(self, name: str) -> bool:
        allowed = self.known.get(name)
        if allowed is None:
            allowed = self.known[name] = self.authorization.allows(
                self.context, self.operation, self.resource_type, name, logs=self.logs
            )
        return allowed
