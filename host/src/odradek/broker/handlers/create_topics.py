"""CreateTopics v2-v7.

Behavior:
    * Each topic is created or refused separately; a topic that is named twice is INVALID_REQUEST.
    * Partitions -1 and replication factor -1 mean the host's defaults; there is one replica, so a factor
      above 1 is INVALID_REPLICATION_FACTOR and an assignment to another node INVALID_REPLICA_ASSIGNMENT.
    * A topic is checked in Kafka's order: the name, whether it exists, the configuration, the numbers.
    * A client that may create a topic but not describe its configuration gets TOPIC_AUTHORIZATION_FAILED in
      place of the details.
    * The last value of a repeated key counts; a null value is INVALID_CONFIG.
    * More than 10 000 partitions in one request are POLICY_VIOLATION for every topic.
    * ``validate_only`` gives the same answer without an id, and creates nothing.
    * The partitions of a valid topic are charged to the mutation quota (KIP-599), also with
      ``validate_only``. While the quota is exhausted a topic is THROTTLING_QUOTA_EXCEEDED, and is not
      charged.
    * All partitions of a topic exist before it is visible, and all topics before the answer. Until then, its
      name is taken for other requests: TOPIC_ALREADY_EXISTS.
    * A topic that is not begun within TimeoutMs is REQUEST_TIMED_OUT, and is not created.
Versions:
    * v5 returns the outcome (partitions, factor, effective configuration), v7 the topic's id.
    * v6: before it the mutation quota throttles, but refuses nothing.
Differs from Kafka:
    * ``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state`` are INVALID_REQUEST, as
      ``__cluster_metadata`` is in Kafka: the host has no such topics, and needs none.
    * A topic has at most 1000 partitions: INVALID_PARTITIONS beyond. A topic beyond ``topics.max`` or
      ``partitions.max`` is POLICY_VIOLATION.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Mapping

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.configs.topic_resource import effective_entries
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import Mutated, charge_mutations, mutated, mutation_quota
from odradek.broker.replica_assignment import check_replicas, wrong
from odradek.broker.request_timeout import RequestDeadline
from odradek.broker.topic_changes import NewTopics
from odradek.broker.topics import MAX_PARTITIONS_OF_REQUEST, check_partitions
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.controller_mutation_quota import ControllerMutationQuota
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicConfigs,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from odradek.wire.types import NIL_UUID

DEFAULT = -1
STRICT_VERSION = 6


def refused(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(name=name, error_code=code, error_message=message)


@answers(CreateTopicsRequest, refuses="topics", charge=charge_mutations, each="topics")
def create_topics(
    request: CreateTopicsRequest, context: RequestContext, broker: Broker
) -> Generator[CreatableTopicResult | None, None, CreateTopicsResponse | Mutated]:
    """Create all topics, partition by partition, then yield the results."""
    deadline = RequestDeadline.after(request.timeout_ms, broker.clock)
    check_total(request, broker)
    quota = mutation_quota(context, broker, STRICT_VERSION)
    yield None  # each pass over all topics takes milliseconds
    times = Counter(topic.name for topic in request.topics)
    yield None
    wanted = {topic.name: topic for topic in request.topics}
    yield None
    creates = broker.authorization.rights(
        context, AclOperation.CREATE, ResourceType.TOPIC, or_on_cluster=AclOperation.CREATE
    )
    results = []
    with NewTopics(broker.topics) as new:
        for name, topic in wanted.items():
            try:
                deadline.check()
                if times[name] > 1:
                    raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
                if not creates.allows(name):
                    raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Authorization failed.")
                result = yield from create(topic, request.validate_only, new, quota, broker)
            except ApiError as error:
                result = refused(name, error.code, error.message)
            results.append(result)
            yield None
        yield from new.store()
    details = broker.authorization.rights(
        context, AclOperation.DESCRIBE_CONFIGS, ResourceType.TOPIC, logs=False
    )
    for result in results:
        if result.name in new.failed:
            problem = new.failed[result.name]
            yield refused(result.name, problem.code, problem.message)
            continue
        if result.error_code == ErrorCode.NONE:
            add_details(result, wanted[result.name], details, broker)
        yield result
    return mutated(CreateTopicsResponse(), quota)


def add_details(
    result: CreatableTopicResult, wanted: CreatableTopic, details: Rights, broker: Broker
) -> None:
    """Add the configuration of a created topic, unless the caller may not describe it."""
    if details.allows(result.name):
        result.configs = effective(properties_of(wanted), broker)
    else:
        result.topic_config_error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        result.num_partitions = result.replication_factor = -1


def check_total(request: CreateTopicsRequest, broker: Broker) -> None:
    """Bound the work of one request."""
    default = broker.settings.num_partitions
    total = sum(
        len(topic.assignments)
        or (default if topic.num_partitions == DEFAULT else max(topic.num_partitions, 0))
        for topic in request.topics
    )
    if total > MAX_PARTITIONS_OF_REQUEST:
        raise ApiError(ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")


def create(
    wanted: CreatableTopic,
    validate_only: bool,
    new: NewTopics,
    quota: ControllerMutationQuota,
    broker: Broker,
) -> Generator[None, None, CreatableTopicResult]:
    """Create one topic, or only check that it could be created. The result lacks the configuration."""
    broker.topics.check_new_name(wanted.name)
    properties = properties_of(wanted)
    broker.topics.config_of(properties)
    partitions = partition_count(wanted, broker)
    check_partitions(partitions)
    broker.topics.check_room(partitions)
    quota.record(partitions)
    topic_id = NIL_UUID
    if not validate_only:
        topic = yield from new.add(wanted.name, partitions, properties)
        topic_id = topic.id
    return CreatableTopicResult(
        name=wanted.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=partitions,
        replication_factor=1,
    )


def properties_of(wanted: CreatableTopic) -> dict[str, str]:
    """The keys that the request sets."""
    values = {config.name: config.value for config in wanted.configs}
    nulls = [key for key, value in values.items() if value is None]
    if nulls:
        raise ApiError(
            ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(nulls)}"
        )
    return {key: value for key, value in values.items() if value is not None}


def effective(properties: Mapping[str, str], broker: Broker) -> list[CreatableTopicConfigs]:
    """All keys with their effective values, as DescribeConfigs shows them."""
    return [
        CreatableTopicConfigs(name=each.key.name, value=each.value, config_source=each.source)
        for each in effective_entries(properties, broker)
    ]


def partition_count(wanted: CreatableTopic, broker: Broker) -> int:
    """How many partitions, from the number or from the assignment."""
    if wanted.assignments:
        for number, what in (
            (wanted.replication_factor, "replication factor"),
            (wanted.num_partitions, "numPartitions"),
        ):
            if number != DEFAULT:
                raise ApiError(
                    ErrorCode.INVALID_REQUEST,
                    f"A manual partition assignment was specified, but {what} was not set to -1.",
                )
        check_assignments(wanted.assignments, broker.settings.node_id)
        return len(wanted.assignments)
    factor = wanted.replication_factor
    if factor < 1 and factor != DEFAULT:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            "Replication factor must be larger than 0, or -1 to use the default value.",
        )
    partitions = broker.settings.num_partitions if wanted.num_partitions == DEFAULT else wanted.num_partitions
    check_partitions(partitions)
    if factor > 1:
        raise ApiError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"Unable to replicate the partition {factor} time(s): The target replication factor of {factor} "
            "cannot be reached because only 1 broker(s) are registered or some brokers have all their log "
            "directories cordoned.",
        )
    return partitions


def check_assignments(assignments: list[CreatableReplicaAssignment], node_id: int) -> None:
    """Check that the partitions are numbered from 0, each on this node only."""
    indexes: set[int] = set()
    for assignment in assignments:
        index = assignment.partition_index
        if index in indexes:
            raise wrong(f"Found multiple manual partition assignments for partition {index}")
        indexes.add(index)
        check_replicas(assignment.broker_ids, node_id)
    if indexes != set(range(len(indexes))):
        raise wrong("partitions should be a consecutive 0-based integer sequence")
