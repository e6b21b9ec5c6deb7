"""What a caller may do: every handler asks here, and only here.

A handler asks before it looks at anything else, so that a refused caller cannot tell whether a resource
exists. ::

    broker.authorization.require(context, READ, GROUP, request.group_id)
    refused = yield from broker.authorization.refused_in_steps(
        context, DESCRIBE, TOPIC, (topic.name for topic in request.topics)
    )

Each distinct name is asked once per request. Without an authorizer nothing is refused, and names are not even
read.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Final

from odradek.plugin.authorizer import (
    CLUSTER_NAME,
    AclOperation,
    Action,
    Authorizer,
    Decision,
    ResourceType,
)
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

REFUSALS: Final = {
    ResourceType.TOPIC: (ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."),
    ResourceType.GROUP: (ErrorCode.GROUP_AUTHORIZATION_FAILED, "Group authorization failed."),
    ResourceType.CLUSTER: (ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."),
    ResourceType.TRANSACTIONAL_ID: (
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        "Transactional Id authorization failed.",
    ),
    ResourceType.DELEGATION_TOKEN: (
        ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        "Delegation Token authorization failed.",
    ),
}
"""Kafka's code and text of a refusal, by the type of the resource."""
NONE_REFUSED: Final[AbstractSet[str]] = frozenset()
NAMES_AT_A_TIME = 200
"""Names that are counted, or decided, in one step: a few hundred microseconds."""

Denied = Callable[[RequestContext, Action, Decision], object]


def refusal(resource_type: ResourceType) -> ApiError:
    """The error that refuses a request for resources of this type."""
    return ApiError(*REFUSALS[resource_type])


class Authorization:
    """The rights of callers without an authorizer: everything is allowed."""

    is_enabled = False

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
        return True

    def allows_on_cluster(
        self, context: RequestContext, operation: AclOperation, *, logs: bool = True
    ) -> bool:
        """Whether the caller may perform the operation on the cluster."""
        return self.allows(context, operation, ResourceType.CLUSTER, CLUSTER_NAME, logs=logs)

    def allows_on_any(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        """Whether the caller may perform the operation on any resource of this type."""
        return True

    def require(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType, name: str
    ) -> None:
        """Check that the caller may perform the operation.

        Raises:
            ApiError: The code of `REFUSALS`, with Kafka's text.
        """
        if not self.allows(context, operation, resource_type, name):
            raise refusal(resource_type)

    def require_on_cluster(self, context: RequestContext, operation: AclOperation) -> None:
        """Check that the caller may perform the operation on the cluster.

        Raises:
            ApiError: CLUSTER_AUTHORIZATION_FAILED.
        """
        self.require(context, operation, ResourceType.CLUSTER, CLUSTER_NAME)

    def refused(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        logs: bool = True,
    ) -> AbstractSet[str]:
        """The names of the resources on which the caller may not perform the operation."""
        return NONE_REFUSED

    def refused_in_steps(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        logs: bool = True,
    ) -> Generator[None, None, AbstractSet[str]]:
        """`refused` for requests that may have many names."""
        return NONE_REFUSED
        yield


def log_nothing(_context: RequestContext, _action: Action, _decision: Decision) -> None:
    """Drop a denial."""


@dataclass(slots=True, eq=False)
class AskedAuthorization(Authorization):
    """The rights of callers as an authorizer decides them."""

    authorizer: Authorizer
    denied: Denied = log_nothing
    """Called with each denial that is to be logged."""
    is_enabled = True

    def allows(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str,
        *,
        logs: bool = True,
    ) -> bool:
        return not self.decide(context, [Action(operation, resource_type, name, 1, logs, logs)])

    def allows_on_any(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> bool:
        decision = self.authorizer.authorize_by_resource_type(context, operation, resource_type)
        if not decision.is_allowed:
            self.denied(context, Action(operation, resource_type, ""), decision)
        return decision.is_allowed

    def refused(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        logs: bool = True,
    ) -> AbstractSet[str]:
        steps = self.refused_in_steps(context, operation, resource_type, names, logs=logs)
        while True:
            try:
                next(steps)
            except StopIteration as stop:
                found: AbstractSet[str] = stop.value
                return found

    def refused_in_steps(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        logs: bool = True,
    ) -> Generator[None, None, AbstractSet[str]]:
        counts: dict[str, int] = {}
        for number, name in enumerate(names, 1):
            counts[name] = counts.get(name, 0) + 1
            if not number % NAMES_AT_A_TIME:
                yield
        refused: set[str] = set()
        actions: list[Action] = []
        for name, count in counts.items():
            actions.append(Action(operation, resource_type, name, count, logs, logs))
            if len(actions) == NAMES_AT_A_TIME:
                refused.update(self.decide(context, actions))
                actions = []
                yield
        refused.update(self.decide(context, actions))
        return refused

    def decide(self, context: RequestContext, actions: list[Action]) -> list[str]:
        """Ask the authorizer, report denials, and return the names that were refused."""
        refused = []
        for action, decision in zip(actions, self.authorizer.authorize(context, actions), strict=True):
            if not decision.is_allowed:
                refused.append(action.name)
                if action.log_if_denied:
                    self.denied(context, action, decision)
        return refused
