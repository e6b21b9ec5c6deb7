"""Descriptions of the groups to whose members the host assigns: consumer, share and streams groups.

Their three APIs differ in what they tell, not in how they are answered. Groups that the client may not
describe come first, as from Kafka.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from odradek.broker.authorization import Rights
from odradek.broker.broker import Broker
from odradek.broker.dispatch.response_elements import Composed, composed
from odradek.group.group_coordinator import GroupCoordinator
from odradek.plugin.authorizer import AclOperation, ResourceType
from odradek.plugin.context import RequestContext
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode

UNSEEN_TOPICS = (
    ErrorCode.TOPIC_AUTHORIZATION_FAILED,
    "The group has described topic(s) that the client is not authorized to describe.",
)


@dataclass(frozen=True, slots=True)
class GroupKind:
    """One of the three kinds."""

    feature: str
    """The feature that must be on."""
    element: type[Any]
    """The element of the response that is one group."""
    describe: Callable[[GroupCoordinator, str], tuple[Any, Sequence[Callable[[], Any]]]]
    """A group without its members, and functions that describe each member."""
    topics_of: Callable[[GroupCoordinator, str], Iterable[Iterable[str]]]
    """The names of the topics that a description of a group tells, member by member; none of a group of
    another kind."""


def visible_groups(
    group_ids: Iterable[str], rights: Rights, refusal: Callable[[str], Any]
) -> Generator[Any, None, list[str]]:
    """The groups that the client may describe, each once; the refusals of the others come first.

    Yields:
        The refusal of a group; None for one that follows, which is a place to pause.
    """
    seen = []
    for group_id in dict.fromkeys(group_ids):
        if rights.allows(group_id):
            seen.append(group_id)
            yield None
        else:
            yield refusal(group_id)
    return seen


def described_groups(
    kind: GroupKind, request: Any, context: RequestContext, broker: Broker
) -> Generator[Any, None, None]:
    """The elements of the answer. A group that is named twice is answered once.

    Raises:
        ApiError: UNSUPPORTED_VERSION: the feature is off.
    """
    broker.features.require(kind.feature)
    rights = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.GROUP)
    topics = broker.authorization.rights(context, AclOperation.DESCRIBE, ResourceType.TOPIC)
    seen = yield from visible_groups(
        request.group_ids,
        rights,
        lambda group_id: refused(kind, group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED, None),
    )
    for group_id in seen:
        told = kind.topics_of(broker.groups, group_id)
        unseen = broker.authorization.is_enabled and (yield from names_unseen(told, topics))
        group = refused(kind, group_id, *UNSEEN_TOPICS) if unseen else described(kind, group_id, broker)
        element = element_of(group)
        if request.include_authorized_operations and not element.error_code:
            element.authorized_operations = broker.authorization.operations(
                context, ResourceType.GROUP, group_id
            )
        yield group


def element_of(group: Any) -> Any:
    """The element of the response that is a group, whether or not its members are made yet."""
    return group.element if isinstance(group, Composed) else group


def refused(kind: GroupKind, group_id: str, code: ErrorCode, message: str | None) -> Any:
    return kind.element(group_id=group_id, error_code=code, error_message=message)


def names_unseen(told: Iterable[Iterable[str]], topics: Rights) -> Generator[None, None, bool]:
    """Whether there is a topic that the client may not see."""
    for names in told:
        if not all(map(topics.allows, names)):
            return True
        yield
    return False


def described(kind: GroupKind, group_id: str, broker: Broker) -> Any:
    """One group, or its error."""
    try:
        if not group_id:
            raise ApiError(ErrorCode.INVALID_GROUP_ID)
        group, members = kind.describe(broker.groups, group_id)
    except ApiError as error:
        return refused(kind, group_id, error.code, error.message)
    return composed(group, "members", members)
