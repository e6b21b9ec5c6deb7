"""The object that handlers ask."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from odradek.broker.authorization import Authorization
from odradek.plugin.authorizer import AclOperation, Action, Authorizer, Decision, ResourceType
from odradek.plugin.context import RequestContext
from odradek.testing import request_context
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
CONTEXT = request_context(api_key=1, api_version=12)


@dataclass
class OnlyNames:
    """Allows everything on resources of these names."""

    names: frozenset[str]
    asked: list[Action] = field(default_factory=list)

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        self.asked.extend(actions)
        return [Decision(action.name in self.names, "OnlyNames") for action in actions]

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        return Decision(is_allowed=bool(self.names), rule="OnlyNames")


@pytest.fixture
def denials() -> list[Action]:
    return []


def asked(*names: str, denials: list[Action] | None = None) -> tuple[OnlyNames, Authorization]:
    authorizer = OnlyNames(frozenset(names))
    authorization = Authorization(authorizer)
    if denials is not None:
        authorization.denied = lambda _context, action, _decision: denials.append(action)
    return authorizer, authorization


def test_without_an_authorizer_everything_is_allowed() -> None:
    authorization = make_broker().authorization

    assert not authorization.is_enabled
    assert authorization.allows(CONTEXT, READ, TOPIC, "t")
    assert authorization.allows_on_any(CONTEXT, READ, TOPIC)
    assert authorization.rights(CONTEXT, READ, TOPIC).allows("t")
    authorization.require(CONTEXT, READ, TOPIC, "t")


def test_each_distinct_name_is_asked_once_when_the_handler_comes_to_it(denials: list[Action]) -> None:
    authorizer, authorization = asked("a", "c", denials=denials)

    rights = authorization.rights(CONTEXT, READ, TOPIC)
    assert authorizer.asked == []
    allowed = [name for name in ("a", "b", "c", "b", "a") if rights.allows(name)]

    assert allowed == ["a", "c", "a"]
    assert [action.name for action in authorizer.asked] == ["a", "b", "c"]
    assert [action.name for action in denials] == ["b"]


@pytest.mark.parametrize(
    ("resource_type", "code"),
    [
        (ResourceType.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        (ResourceType.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (ResourceType.CLUSTER, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (ResourceType.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (ResourceType.DELEGATION_TOKEN, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED),
    ],
    ids=lambda value: value.name,
)
def test_a_missing_right_has_the_code_of_its_resource(resource_type: ResourceType, code: ErrorCode) -> None:
    _, authorization = asked("a")

    with pytest.raises(ApiError) as refused:
        authorization.require(CONTEXT, READ, resource_type, "b")

    assert refused.value.code is code
    assert str(refused.value).endswith(" authorization failed.")


def test_a_denial_is_reported_unless_it_only_selects_what_is_shown(denials: list[Action]) -> None:
    _, authorization = asked("a", denials=denials)

    assert not authorization.allows(CONTEXT, READ, TOPIC, "b")
    assert not authorization.allows(CONTEXT, READ, TOPIC, "c", logs=False)
    assert not authorization.rights(CONTEXT, READ, TOPIC, logs=False).allows("d")
    assert authorization.allows(CONTEXT, READ, TOPIC, "a")

    assert [action.name for action in denials] == ["b"]


def test_any_resource_is_a_question_of_its_own(denials: list[Action]) -> None:
    _, some = asked("a", denials=denials)
    _, none = asked(denials=denials)

    assert some.allows_on_any(CONTEXT, READ, TOPIC)
    assert not none.allows_on_any(CONTEXT, READ, TOPIC)

    assert denials == [Action(READ, TOPIC, "")]


def test_the_authorizer_of_the_host_is_asked() -> None:
    authorizer = OnlyNames(frozenset())
    assert isinstance(authorizer, Authorizer)

    broker = make_broker(authorizer=authorizer)

    assert broker.authorization.is_enabled
    assert not broker.authorization.allows_on_cluster(CONTEXT, AclOperation.ALTER)
    assert authorizer.asked == [Action(AclOperation.ALTER, ResourceType.CLUSTER, "kafka-cluster")]
