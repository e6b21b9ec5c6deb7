"""The authorizer that a host asks, and a plugin's authorizer that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from odradek.hosting.active_plugin import ActivePlugin, activate
from odradek.hosting.authorizers import FAILED, GuardedAuthorizer, chosen_authorizer
from odradek.hosting.plugin_manager import HostPluginManager
from odradek.plugin.authorizer import AclOperation, Action, Decision, ResourceType
from odradek.plugin.config import ConfigError
from odradek.plugin.context import RequestContext
from odradek.plugin.hookspecs import hookimpl
from odradek.programs.config import parse
from odradek.programs.config_check import authorization_line
from odradek.programs.start_report import authorization
from odradek.security.standard_authorizer import StandardAuthorizer
from odradek.testing import request_context
from odradek.testing.clock import MockClock

ACTIONS = [Action(AclOperation.READ, ResourceType.TOPIC, name) for name in ("a", "b")]
ANY_TOPIC = (AclOperation.WRITE, ResourceType.TOPIC)
CONTEXT = request_context(api_key=1, api_version=12)
CLASS, SUPER_USERS = "authorizer.class.name", "super.users"


class Answering:
    """An authorizer with prepared answers."""

    def __init__(self, answers: Any, answer: Any) -> None:
        self.answers, self.any_answer = answers, answer

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> Any:
        if isinstance(self.answers, Exception):
            raise self.answers
        return self.answers

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Any:
        if isinstance(self.any_answer, Exception):
            raise self.any_answer
        return self.any_answer


def plugin(offer: object) -> list[ActivePlugin]:
    class Plugin:
        @hookimpl
        def odradek_authorizer(self, config: object) -> object:
            return offer

    manager = HostPluginManager()
    manager.add("rules", Plugin(), "odradek-rules", "1.0")
    return activate(manager, {})


def chosen(plugins: Sequence[ActivePlugin] = (), **values: object) -> object:
    return chosen_authorizer(settings(**values), plugins, MockClock())


def settings(**values: object) -> Any:
    keys = {name.replace("_", "."): value for name, value in values.items()}
    return parse(keys, frozenset()).authorizer


def test_there_is_no_authorizer_by_default() -> None:
    assert chosen() is None
    assert authorization_line(settings()) == "no authorizer: clients may do everything"
    assert authorization(settings(), None) == {"authorizer": "none: clients may do everything"}


@pytest.mark.parametrize(
    "name", ["StandardAuthorizer", "org.apache.kafka.metadata.authorizer.StandardAuthorizer"]
)
def test_the_standard_authorizer_has_kafkas_name_too(name: str) -> None:
    made = chosen(authorizer_class_name=name, super_users="User:a; User:b")

    assert isinstance(made, StandardAuthorizer)
    assert made.super_users == {"User:a", "User:b"}


def test_super_users_can_be_a_list() -> None:
    values = settings(authorizer_class_name="StandardAuthorizer", super_users=["User:CN=a,O=b", "User:c"])

    assert values.super_users == ("User:CN=a,O=b", "User:c")
    shown = "authorizer StandardAuthorizer: super users User:CN=a,O=b, User:c"
    assert authorization_line(values) == shown


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        (
            {"authorizer_class_name": "StandardAuthorizer"},
            "super.users: authorizer.class.name is set, but without a super user no client may create ACLs",
        ),
        ({"super_users": "admin"}, "super.users: expected <type>:<name>, such as User:admin, found 'admin'"),
    ],
)
def test_wrong_settings_stop_the_start(values: dict[str, object], problem: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        settings(**values)

    assert problem in str(refusal.value)


def test_an_unknown_authorizer_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="expected StandardAuthorizer or the name of a plugin"):
        chosen(authorizer_class_name="opa")


@pytest.mark.parametrize("name", ["", "StandardAuthorizer"])
def test_an_authorizer_that_is_not_asked_stops_the_start(name: str) -> None:
    plugins = plugin(Answering([], FAILED))

    with pytest.raises(ConfigError, match=r"plugins.rules: the plugin offers an authorizer, but .* 'rules'"):
        chosen(plugins, authorizer_class_name=name, super_users="User:a")


def test_an_object_that_is_no_authorizer_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="odradek_authorizer returned object, expected Authorizer"):
        plugin(object())


def test_the_plugin_that_is_named_decides() -> None:
    decisions = [Decision(True, "rule 1"), Decision(False, "rule 2")]

    made: Any = chosen(plugin(Answering(decisions, decisions[0])), authorizer_class_name="rules")

    assert made.authorize(CONTEXT, ACTIONS) == decisions
    assert made.authorize_by_resource_type(CONTEXT, *ANY_TOPIC) == decisions[0]


@pytest.mark.parametrize(
    ("answers", "told"),
    [
        (RuntimeError("down"), "RuntimeError: down"),
        (None, "authorize returned None, expected 2 decisions"),
        ([Decision(True)], "authorize returned 1 decisions, expected 2"),
        ([True, True], "authorize returned True, expected a Decision"),
        ([Decision(True), None], "authorize returned None, expected a Decision"),
    ],
)
def test_a_plugin_that_fails_allows_nothing(
    answers: Any, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    guarded = GuardedAuthorizer("rules", Answering(answers, answers), [], MockClock())

    decisions = guarded.authorize(CONTEXT, ACTIONS)
    any_topic = guarded.authorize_by_resource_type(CONTEXT, *ANY_TOPIC)

    assert [*decisions, any_topic] == [FAILED] * 3
    assert guarded.stats.failed == 2
    (message,) = [record.getMessage() for record in caplog.records]
    assert told in message
    assert f"({__file__}:" in message


def test_super_users_do_not_need_the_plugin() -> None:
    broken = Answering(RuntimeError("down"), RuntimeError("down"))
    guarded = GuardedAuthorizer("rules", broken, [CONTEXT.connection.principal], MockClock())

    decisions = guarded.authorize(CONTEXT, ACTIONS)
    any_topic = guarded.authorize_by_resource_type(CONTEXT, *ANY_TOPIC)

    assert all(decision.is_allowed for decision in [*decisions, any_topic])
    assert guarded.stats.failed == 0
