"""The object that handlers ask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import pytest

from odradek.broker.authorization import NAMES_AT_A_TIME, AskedAuthorization, Authorization
from odradek.plugin.authorizer import AclOperation, Action, Authorizer, Decision, ResourceType
from odradek.plugin.context import RequestContext
from odradek.steps import result_of, run_steps
from odradek.wire.api_error import ApiError
from odradek.wire.error_code import ErrorCode
from support.broker import make_broker, make_connection

READ, TOPIC = AclOperation.READ, ResourceType.TOPIC
CONTEXT = RequestContext(make_connection(), 1, 12, 1, "c", 0)


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


def asked(*names: str, denials: list[Action] | None = None) -> tuple[OnlyNames, AskedAuthorization]:
    authorizer = OnlyNames(frozenset(names))
    authorization = AskedAuthorization(authorizer)
    if denials is not None:
        authorization.denied = lambda _context, action, _decision: denials.append(action)
    return authorizer, authorization


def never() -> Iterator[str]:
    raise AssertionError("the names were read")
    yield


def test_without_an_authorizer_everything_is_allowed_and_no_name_is_read() -> None:
    authorization = make_broker().authorization

    assert type(authorization) is Authorization
    assert authorization.allows(CONTEXT, READ, TOPIC, "t")
    assert authorization.allows_on_any(CONTEXT, READ, TOPIC)
    assert not authorization.refused(CONTEXT, READ, TOPIC, never())
    assert not result_of(authorization.refused_in_steps(CONTEXT, READ, TOPIC, never()))
    authorization.require(CONTEXT, READ, TOPIC, "t")


def test_each_distinct_name_is_asked_once_with_its_count() -> None:
    authorizer, authorization = asked("a", "c")

    refused = authorization.refused(CONTEXT, READ, TOPIC, ["a", "b", "c", "b", "b"])

    assert refused == {"b"}
    assert [(action.name, action.reference_count) for action in authorizer.asked] == [
        ("a", 1),
        ("b", 3),
        ("c", 1),
    ]


def test_many_names_are_decided_in_steps() -> None:
    _, authorization = asked(*(str(number) for number in range(0, 2_000, 2)))
    names = [str(number) for number in range(2_000)]

    steps = run_steps(authorization.refused_in_steps(CONTEXT, READ, TOPIC, names))
    refused = result_of(authorization.refused_in_steps(CONTEXT, READ, TOPIC, names))

    assert steps == 2 * 2_000 // NAMES_AT_A_TIME
    assert refused == set(names[1::2])


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
