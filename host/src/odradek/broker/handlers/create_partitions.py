"""CreatePartitions v0-v3 (KIP-195).

Behavior:
    * Each topic grows or is refused separately; a topic that is named twice is INVALID_REQUEST, and answered
      once.
    * A count that is not larger than the current one is INVALID_PARTITIONS; an assignment that does not fit
      the new partitions, or names another node, is INVALID_REPLICA_ASSIGNMENT.
    * ``validate_only`` gives the same answer and changes nothing.
    * Valid new partitions are charged to the mutation quota (KIP-599), also with ``validate_only``. While the
      quota is exhausted a topic is THROTTLING_QUOTA_EXCEEDED, and is not charged.
    * All new partitions of a topic exist before they are visible, and those of all topics before the answer.
      Another request for the same topic waits until then.
    * A topic that is not begun within TimeoutMs is REQUEST_TIMED_OUT, and does not grow.
Versions:
    * v1: as v0. v2: flexible.
    * v3: before it the mutation quota throttles, but refuses nothing.
Differs from Kafka:
    * A topic has at most 1000 partitions: INVALID_PARTITIONS beyond. Partitions beyond ``partitions.max``
      are POLICY_VIOLATION.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator

from odradek.broker.broker import Broker
from odradek.broker.dispatch.routes import answers
from odradek.broker.dispatch.throttling import Mutated, charge_mutations, mutated, mutation_quota
from odradek.broker.replica_assignment import check_replicas, wrong
from odradek.broker.request_timeout import RequestDeadline
from odradek.broker.topics import Topic, check_partitions
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.quota.controller_mutation_quota import ControllerMutationQuota
from odradek.waiting.steps import Step
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

STRICT_VERSION = 3


def refused(name: str, code: ErrorCode, message: str | None) -> CreatePartitionsTopicResult:
    return CreatePartitionsTopicResult(name=name, error_code=code, error_message=message)


@answers(CreatePartitionsRequest, refuses="topics", charge=charge_mutations, each="results")
def create_partitions(
    request: CreatePartitionsRequest, context: RequestContext, broker: Broker
) -> Generator[CreatePartitionsTopicResult | Step, None, CreatePartitionsResponse | Mutated]:
    """Let all topics grow, partition by partition."""
    deadline = RequestDeadline.after(request.timeout_ms, broker.clock)
    quota = mutation_quota(context, broker, STRICT_VERSION)
    times = Counter(topic.name for topic in request.topics)
    yield None
    wanted = {topic.name: topic for topic in request.topics}
    yield None
    rights = broker.authorization.rights(context, AclOperation.ALTER, ResourceType.TOPIC)
    for name, topic in wanted.items():
        try:
            if times[name] > 1:
                raise ApiError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            if not rights.allows(name):
                raise ApiError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
            yield from grow(topic, request.validate_only, deadline, quota, broker)
        except ApiError as error:
            yield refused(name, error.code, error.message)
        else:
            yield CreatePartitionsTopicResult(name=name)
    return mutated(CreatePartitionsResponse(), quota)


def grow(
    wanted: CreatePartitionsTopic,
    validate_only: bool,
    deadline: RequestDeadline,
    quota: ControllerMutationQuota,
    broker: Broker,
) -> Generator[Step, None, None]:
    """Add partitions to one topic, or only check that they could be added."""
    topic = broker.topics.named(wanted.name)
    if topic is None:
        raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    with topic.extending() as ahead:
        if ahead is not None:
            yield ahead
        deadline.check()
        if broker.topics.named(wanted.name) is not topic:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        check_count(wanted.count, topic)
        if wanted.assignments is not None:
            check_assignments(wanted, len(topic.partitions), broker.settings.node_id)
        broker.topics.partitions_limit.check(wanted.count - len(topic.partitions))
        quota.record(wanted.count - len(topic.partitions))
        if not validate_only:
            yield from broker.topics.growth(topic, wanted.count)


def check_count(count: int, topic: Topic) -> None:
    """Check that a topic can have this many partitions."""
    present = len(topic.partitions)
    if count == present:
        raise ApiError(ErrorCode.INVALID_PARTITIONS, f"Topic already has {present} partition(s).")
    if count < present:
        raise ApiError(
            ErrorCode.INVALID_PARTITIONS,
            f"The topic {topic.name} currently has {present} partition(s); {count} would not be an increase.",
        )
    check_partitions(count)


def check_assignments(wanted: CreatePartitionsTopic, present: int, node_id: int) -> None:
    """Check that each new partition is assigned to this node only."""
    assignments, added = wanted.assignments or [], wanted.count - present
    if len(assignments) != added:
        raise wrong(
            f"Attempted to add {added} additional partition(s), but only {len(assignments)} assignment(s) "
            "were specified."
        )
    for assignment in assignments:
        check_replicas(assignment.broker_ids, node_id)
