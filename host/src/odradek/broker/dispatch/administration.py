"""Administrative requests: which APIs change what operators set, and the record of each request.

Handlers do not know of the audit log. The routing table puts `audited` around the handlers of the APIs in
`SUBJECTS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import wraps
from itertools import islice
from typing import Any, Final

from odradek.broker.answering import Answering
from odradek.broker.audit import Act
from odradek.broker.results import SHOWN, EncodedResults, shortened
from odradek.plugin.authorizer import AclOperation, AclPermission, PatternType
from odradek.plugin.authorizer import ResourceType as AclResource
from odradek.plugin.context import RequestContext
from odradek.waiting.deferred import after
from odradek.wire.api_error import ApiError
from odradek.wire.api_names import api_name
from odradek.wire.config_resource import ResourceType
from odradek.wire.error_code import ErrorCode
from odradek.wire.messages.alter_client_quotas import AlterClientQuotasRequest
from odradek.wire.messages.alter_configs import AlterConfigsRequest
from odradek.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from odradek.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from odradek.wire.messages.alter_share_group_offsets import AlterShareGroupOffsetsRequest
from odradek.wire.messages.alter_user_scram_credentials import AlterUserScramCredentialsRequest
from odradek.wire.messages.create_acls import CreateAclsRequest
from odradek.wire.messages.create_partitions import CreatePartitionsRequest
from odradek.wire.messages.create_topics import CreateTopicsRequest
from odradek.wire.messages.delete_acls import DeleteAclsRequest
from odradek.wire.messages.delete_groups import DeleteGroupsRequest
from odradek.wire.messages.delete_records import DeleteRecordsRequest
from odradek.wire.messages.delete_share_group_offsets import DeleteShareGroupOffsetsRequest
from odradek.wire.messages.delete_topics import DeleteTopicsRequest
from odradek.wire.messages.elect_leaders import ElectLeadersRequest
from odradek.wire.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from odradek.wire.messages.offset_delete import OffsetDeleteRequest
from odradek.wire.messages.update_features import UpdateFeaturesRequest
from odradek.wire.uuid_text import uuid_text

Handler = Callable[[Any, RequestContext, Any], Any]
Subjects = Callable[[Any], Iterable[str]]
"""Describes the things that a request changes, without values that may be secrets."""


def topics(request: Any) -> Iterator[str]:
    return (f"Topic:{topic.name}" for topic in request.topics)


def deleted_topics(request: DeleteTopicsRequest) -> Iterator[str]:
    for topic in request.topics:
        yield f"Topic:{topic.name}" if topic.name is not None else f"TopicId:{uuid_text(topic.topic_id)}"
    for name in request.topic_names:
        yield f"Topic:{name}"


def configs(request: AlterConfigsRequest | IncrementalAlterConfigsRequest) -> Iterator[str]:
    for resource in request.resources:
        keys = ",".join([key.name for key in resource.configs[:SHOWN]])
        yield f"{known(ResourceType, resource.resource_type)}:{resource.resource_name} {keys}"


def share_offsets(request: AlterShareGroupOffsetsRequest | DeleteShareGroupOffsetsRequest) -> Iterator[str]:
    return (f"Group:{request.group_id} Topic:{each.topic_name}" for each in request.topics)


def quotas(request: AlterClientQuotasRequest) -> Iterator[str]:
    for entry in request.entries:
        entity = ",".join(f"{each.entity_type}={each.entity_name or '<default>'}" for each in entry.entity)
        changes = ",".join(
            f"{op.key}={'<none>' if op.remove else op.value}" for op in islice(entry.ops, SHOWN)
        )
        yield f"{entity} {changes}"


def users(request: AlterUserScramCredentialsRequest) -> Iterator[str]:
    for deletion in request.deletions:
        yield f"User:{deletion.name} credential removed"
    for upsertion in request.upsertions:
        yield f"User:{upsertion.name} credential set"


def acls(request: CreateAclsRequest) -> Iterator[str]:
    for each in request.creations:
        yield acl_text(
            each.permission_type, each.principal, each.host, each.operation, each.resource_type,
            each.resource_pattern_type, each.resource_name,
        )  # fmt: skip


def acl_filters(request: DeleteAclsRequest) -> Iterator[str]:
    for each in request.filters:
        yield acl_text(
            each.permission_type, each.principal_filter, each.host_filter, each.operation,
            each.resource_type_filter, each.pattern_type_filter, each.resource_name_filter,
        )  # fmt: skip


def acl_text(
    permission: int,
    principal: str | None,
    host: str | None,
    operation: int,
    resource_type: int,
    pattern_type: int,
    name: str | None,
) -> str:
    """An ACL or a filter of ACLs; a part of a filter that fits everything is ``<any>``."""
    who = f"{'<any>' if principal is None else principal} from {'<any>' if host is None else host}"
    what = f"{known(AclResource, resource_type)}:{known(PatternType, pattern_type)}"
    may = f"{known(AclPermission, permission)} {known(AclOperation, operation)}"
    return f"{may} on {what}:{'<any>' if name is None else name} to {who}"


def known(names: Any, code: int) -> str:
    """The name of a code; the number itself if it has none."""
    with suppress(ValueError):
        return str(names(code).name)
    return str(code)


SUBJECTS: Final[Mapping[type[Any], Subjects]] = {
    CreateTopicsRequest: topics,
    DeleteTopicsRequest: deleted_topics,
    CreatePartitionsRequest: topics,
    DeleteRecordsRequest: topics,
    AlterPartitionReassignmentsRequest: topics,
    AlterConfigsRequest: configs,
    IncrementalAlterConfigsRequest: configs,
    AlterClientQuotasRequest: quotas,
    AlterUserScramCredentialsRequest: users,
    CreateAclsRequest: acls,
    DeleteAclsRequest: acl_filters,
    DeleteGroupsRequest: lambda request: (f"Group:{name}" for name in request.groups_names),
    AlterShareGroupOffsetsRequest: share_offsets,
    DeleteShareGroupOffsetsRequest: share_offsets,
    OffsetDeleteRequest: lambda request: (
        f"Group:{request.group_id} Topic:{each.name}" for each in request.topics
    ),
    AlterReplicaLogDirsRequest: lambda request: (
        f"Topic:{topic.name} to {each.path}" for each in request.dirs for topic in each.topics
    ),
    ElectLeadersRequest: lambda request: (f"Topic:{each.topic}" for each in request.topic_partitions or ()),
    UpdateFeaturesRequest: lambda request: (f"Feature:{each.feature}" for each in request.feature_updates),
}
"""The administrative APIs."""
ADMINISTRATIVE: Final = frozenset(request.API_KEY for request in SUBJECTS)
"""Their keys."""


def act_of(request: Any) -> Act:
    """The record of a request, which has no results yet."""
    shown = [shortened(subject) for subject in islice(SUBJECTS[type(request)](request), SHOWN)]
    arrays = [getattr(request, each) for each in request.__dataclass_fields__]
    count = sum(len(array) for array in arrays if isinstance(array, list))
    return Act(api_name(request.API_KEY), shown, count)


def changes_nothing(request: Any) -> bool:
    """Whether the request only asks for a check."""
    return bool(getattr(request, "validate_only", False))


def note_response(act: Act, response: Any) -> None:
    """Add the results of a complete response."""
    response = getattr(response, "response", response)  # it may be wrapped for the quotas
    values = [getattr(response, each) for each in response.__dataclass_fields__]
    arrays = [value for value in values if isinstance(value, list)]
    for array in arrays:
        if isinstance(array, EncodedResults):
            act.results.add(array.results)
        else:
            for each in array:
                act.results.note(each)
    code = ErrorCode(getattr(response, "error_code", ErrorCode.NONE))
    if code is not ErrorCode.NONE:
        act.results.refused(code, response.error_message, 1)
    elif not any(arrays):
        act.results.note(response)


def audit_refusal(request: Any, context: RequestContext, broker: Answering, error: Exception) -> None:
    """Log the refusal of a request as a whole, if it is an administrative one."""
    if type(request) in SUBJECTS and not changes_nothing(request):
        act = act_of(request)
        known = error if isinstance(error, ApiError) else ApiError(ErrorCode.UNKNOWN_SERVER_ERROR)
        act.results.refused(known.code, known.message, max(act.count, 1))
        broker.audit.acted(context, act)


def audited(handler: Handler) -> Handler:
    """A handler of an administrative API that logs what was changed, also if the client is gone by then."""

    @wraps(handler)
    def begin(request: Any, context: RequestContext, broker: Any) -> Any:
        response = handler(request, context, broker)
        if changes_nothing(request):
            return response
        act = act_of(request)

        def finished(response: Any) -> Any:
            note_response(act, response)
            broker.audit.acted(context, act)
            return response

        return after(response, finished)

    return begin
