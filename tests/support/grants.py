"""An authorizer for tests: callers have the rights that it lists, and those that Kafka derives from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.plugin.authorizer import CLUSTER_NAME, AclOperation, Action, Decision, ResourceType
from odradek.plugin.context import RequestContext

Grant = tuple[AclOperation, ResourceType, str]
IMPLYING = {
    AclOperation.DESCRIBE: (
        AclOperation.READ,
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
    ),
    AclOperation.DESCRIBE_CONFIGS: (AclOperation.ALTER_CONFIGS,),
}


def grant(text: str) -> Grant:
    """The right that a text such as ``READ TOPIC open`` or ``ALTER CLUSTER`` names."""
    operation, kind, *name = text.split()
    return AclOperation[operation], ResourceType[kind], name[0] if name else CLUSTER_NAME


class Grants:
    """Grants the rights of ``texts`` to every caller except ``User:ADMIN``, who has all.

    Attributes:
        asked: The actions of all callers but the admin, in order.
        single: Those of them that were asked alone; the others only select the operations that a caller is
            shown.
    """

    def __init__(self, texts: Iterable[str] = ()) -> None:
        self.granted = {grant(text) for text in texts}
        self.asked: list[Action] = []
        self.single: list[Action] = []

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        if context.connection.principal == "User:ADMIN":
            return [Decision(is_allowed=True, rule="SuperUser")] * len(actions)
        self.asked.extend(actions)
        if len(actions) == 1:
            self.single.extend(actions)
        return [
            Decision(
                any(
                    (operation, action.resource_type, action.name) in self.granted
                    for operation in (action.operation, *IMPLYING.get(action.operation, ()))
                )
            )
            for action in actions
        ]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        if context.connection.principal == "User:ADMIN":
            return Decision(is_allowed=True, rule="SuperUser")
        self.asked.append(Action(operation, resource_type, ""))
        self.single.append(Action(operation, resource_type, ""))
        return Decision(any(granted[:2] == (operation, resource_type) for granted in self.granted))
