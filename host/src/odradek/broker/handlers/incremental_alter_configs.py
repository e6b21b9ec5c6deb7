"""IncrementalAlterConfigs v0-v1 (KIP-339).

Behavior:
    * Each resource is changed completely or not at all; a refused one does not affect the others. All changes
      are stored before the answer, those of fifty resources in one transaction.
    * CLIENT_METRICS: the checks run on the merged result; a resource without keys is removed.
    * TOPIC, and the defaults of topics on BROKER (one node, or all without a name): existing logs use the new
      values from the next append on.
    * BROKER: connection limits, of the host or of one listener, and rates of replication and of moves between
      directories take effect at once. The throttled replicas are keys of TOPIC. Other keys of a broker can
      only be set in its configuration file: INVALID_REQUEST.
    * GROUP: ``consumer.session.timeout.ms``, ``consumer.heartbeat.interval.ms`` and
      ``consumer.assignment.interval.ms`` within the limits of ``group.consumer.min`` and ``max``; members use
      the new values from their next heartbeat on.
    * A change without a difference has no effect: no subscription is re-evaluated.
Versions:
    * v1: flexible.
Differs from Kafka:
    * An operation that does not exist is UNKNOWN_SERVER_ERROR for its resource only.
    * BROKER_LOGGER is refused with a message of this host.
    * GROUP keys of share and streams groups are unknown.
    * A ``match`` of CLIENT_METRICS is an expression of RE2 within ``telemetry.match.max.length``, of at most
      ``telemetry.match.max.steps`` steps (INVALID_CONFIG). Of two elements with the same selector only the
      last one is compiled. Attributes of more than 500 bytes match no pattern. A new subscription beyond
      ``telemetry.subscriptions.max``, patterns beyond ``telemetry.match.max.steps``, metrics beyond
      ``telemetry.metrics.max``, and a new GROUP beyond ``groups.max`` are POLICY_VIOLATION.
    * With ``subscription.estimate = refuse``, a CLIENT_METRICS resource whose series would exceed a budget is
      INVALID_CONFIG, with the figures.
    * BROKER keys that are not settings of this host are refused; Kafka stores them.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from odradek.broker.broker import Broker
from odradek.broker.configs.config_changes import KeyChange, ResourceChange, results
from odradek.broker.dispatch.routes import answers
from odradek.plugin.context import RequestContext
from odradek.waiting.steps import Step
from odradek.wire.messages.incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)


@answers(IncrementalAlterConfigsRequest, refuses="resources", each="responses")
def incremental_alter_configs(
    request: IncrementalAlterConfigsRequest, context: RequestContext, broker: Broker
) -> Generator[AlterConfigsResourceResponse | Step, Any, IncrementalAlterConfigsResponse]:
    """Change single keys."""
    changes = []
    for resource in request.resources:
        changes.append(
            ResourceChange(
                type=resource.resource_type,
                name=resource.resource_name,
                keys=[KeyChange(key.name, key.config_operation, key.value) for key in resource.configs],
            )
        )
        yield None
    yield from results(changes, request.validate_only, context, broker)
    return IncrementalAlterConfigsResponse()
