"""IncrementalAlterConfigs v0-v1 (KIP-339).

Behavior:
    * Each resource is changed completely or not at all; a refused one does not affect the others. All changes
      are stored before the answer, those of fifty resources in one transaction.
    * CLIENT_METRICS: the checks run on the merged result; a resource without keys is removed.
    * TOPIC, and the defaults of topics on BROKER (one node, or all without a name): existing logs use the new
      values from the next append on.
    * BROKER: connection limits, of the host or of one listener, rates of replication and of moves between
      directories, ``producer.id.expiration.ms``, ``log.cleaner.backoff.ms``,
      ``log.cleaner.dedupe.buffer.size`` and ``group.consumer.assignment.interval.ms`` take effect at once.
      The throttled replicas are keys of TOPIC. Kafka's other keys that change at run time, and unknown ones,
      are stored and have no effect; DescribeConfigs says so. Keys that are read at the start are
      INVALID_REQUEST.
    * GROUP: ``consumer.session.timeout.ms``, ``consumer.heartbeat.interval.ms`` and
      ``consumer.assignment.interval.ms`` within the limits of ``group.consumer.min`` and ``max``; members use
      the new values from their next heartbeat on.
    * A change without a difference has no effect: no subscription is re-evaluated.
Versions:
    * v1: flexible.
Differs from Kafka:
    * An operation that does not exist is UNKNOWN_SERVER_ERROR for its resource only.
    * BROKER_LOGGER is refused with a message of this host. To append an empty text changes nothing: Kafka
      refuses it.
    * GROUP keys of share and streams groups are unknown.
    * A ``match`` of CLIENT_METRICS is an expression of RE2 within ``telemetry.match.max.length``, of at most
      ``telemetry.match.max.steps`` steps (INVALID_CONFIG). Of two elements with the same selector only the
      last one is compiled. Attributes of more than 500 bytes match no pattern. A new subscription beyond
      ``telemetry.subscriptions.max``, patterns beyond ``telemetry.match.max.steps``, metrics beyond
      ``telemetry.metrics.max``, and a new GROUP beyond ``groups.max`` are POLICY_VIOLATION.
    * With ``subscription.estimate = refuse``, a CLIENT_METRICS resource whose series would exceed a budget is
      INVALID_CONFIG, with the figures.
    * BROKER settings that this host reads at its start are refused, also with the prefix of a listener, even
      where Kafka changes them (``listeners``, ``listener.security.protocol.map``,
      ``sasl.enabled.mechanisms``, ``ssl.cipher.suites``, ``ssl.client.auth``, ``ssl.enabled.protocols``) or
      does not know them: a listener that stayed as it was would be less safe than its configuration says.
    * BROKER keys that name Java classes (``metric.reporters``, ``principal.builder.class``,
      ``ssl.engine.factory.class``) and ``cordoned.log.dirs`` are refused: there is nothing to load, and no
      directory is ever cordoned.
    * BROKER ``min.insync.replicas`` may be set on one node, and removed: there is only one replica.
    * BROKER ``log.retention.ms``, ``log.retention.bytes`` and ``log.flush.interval.ms`` have the bounds of
      the topics' keys, as has TOPIC ``retention.bytes``: Kafka takes -5 for -1, and refuses to keep for 0 ms.
    * BROKER numbers of threads may be more than twice, or less than half, of those before: there are none.
    * BROKER: to append to a list without a default, or to ``log.dir``, has an error of its own in Kafka.
    * A BROKER resource has at most 1000 keys, of at most ``name.max.length`` (POLICY_VIOLATION).
    * TOPIC keys of tiered storage and of dead letters, and ``internal.segment.bytes``, are unknown:
      INVALID_CONFIG.
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
