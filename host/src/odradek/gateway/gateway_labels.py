"""The labels that tell which gateway, and which broker of which cluster, a push passed."""

from __future__ import annotations

from dataclasses import dataclass

from odradek.gateway.telemetry_answers import PairConnection
from odradek.metrics.cluster_name import ClusterName
from odradek.plugin.context import RequestContext

GATEWAY = "gateway"
CLUSTER_ID = "cluster_id"
BROKER_NODE_ID = "broker_node_id"
PRINCIPAL = "principal"
PRINCIPAL_SOURCE = "principal_source"


@dataclass(slots=True)
class GatewayLabels:
    """An enricher, like those of plugins."""

    name: str
    """Of the gateway."""
    cluster: ClusterName
    """Of the upstream cluster."""

    def labels(self, _client_instance_id: bytes, context: RequestContext) -> dict[str, str]:
        """The labels of a client on one pair.

        The principal is a claim: the gateway reads it from credentials that only the broker has verified.
        """
        connection = context.connection
        labels = {GATEWAY: self.name, BROKER_NODE_ID: str(connection.node_id)}
        if self.cluster.cluster_id is not None:
            labels[CLUSTER_ID] = self.cluster.cluster_id
        if isinstance(connection, PairConnection):
            labels[PRINCIPAL] = connection.principal
            labels[PRINCIPAL_SOURCE] = connection.principal_source
        return labels
