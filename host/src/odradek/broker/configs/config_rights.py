"""The resources whose configuration a caller may read or change.

Brokers, their loggers and subscriptions to client metrics belong to the cluster (KIP-714).
"""

from __future__ import annotations

from odradek.broker.authorization import Authorization, refusal
from odradek.plugin.authorizer import CLUSTER_NAME, AclOperation
from odradek.plugin.authorizer import ResourceType as AclResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.config_resource import ResourceType

OF_CLUSTER = frozenset({ResourceType.BROKER, ResourceType.BROKER_LOGGER, ResourceType.CLIENT_METRICS})


class ConfigRights:
    """The rights of one caller to one operation, DESCRIBE_CONFIGS or ALTER_CONFIGS."""

    def __init__(
        self, authorization: Authorization, context: RequestContext, operation: AclOperation
    ) -> None:
        self.rights = {
            kind: authorization.rights(context, operation, kind)
            for kind in (AclResourceType.TOPIC, AclResourceType.GROUP, AclResourceType.CLUSTER)
        }

    def refusal(self, kind: int, name: str) -> ApiError | None:
        """The error of a resource that is out of reach; None if the caller has the right.

        A resource of an unknown type is not a matter of rights.
        """
        if kind == ResourceType.TOPIC:
            acl_type = AclResourceType.TOPIC
        elif kind == ResourceType.GROUP:
            acl_type = AclResourceType.GROUP
        elif kind in OF_CLUSTER:
            acl_type, name = AclResourceType.CLUSTER, CLUSTER_NAME
        else:
            return None
        return None if self.rights[acl_type].allows(name) else refusal(acl_type)
