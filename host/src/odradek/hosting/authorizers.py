"""The authorizer of a host: its own, or a plugin's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.hosting.active_plugin import ActivePlugin
from odradek.hosting.offers import AUTHORIZER
from odradek.plugin.authorizer import AclOperation, Action, Authorizer, Decision, ResourceType
from odradek.plugin.config import ConfigError
from odradek.plugin.context import RequestContext
from odradek.plugin.guard import Guard
from odradek.security.authorizer_settings import CLASS_KEY, STANDARD, SUPER_USER, AuthorizerSettings
from odradek.waiting.clock import Clock

FAILED = Decision(False, "AuthorizerFailed")


def chosen_authorizer(
    settings: AuthorizerSettings, plugins: Sequence[ActivePlugin], clock: Clock, slow_ms: int = 5
) -> Authorizer | None:
    """The authorizer that the configuration names; None if clients may do everything.

    Raises:
        ConfigError: No plugin of that name offers one, or one is offered that is not named.
    """
    offers = {plugin.name: offer for plugin in plugins for offer in plugin.offered(AUTHORIZER)}
    name = settings.class_name
    unnamed = sorted(offers.keys() - {name})
    if unnamed:
        raise ConfigError(
            f"plugins.{unnamed[0]}",
            f"the plugin offers an authorizer, but {CLASS_KEY} is {name!r}; set it to {unnamed[0]!r}, or set "
            "enabled = false",
        )
    if settings.is_standard:
        from odradek.security.standard_authorizer import StandardAuthorizer

        return StandardAuthorizer(settings.super_users, settings.allow_everyone)
    if name in offers:
        return GuardedAuthorizer(name, offers[name], settings.super_users, clock, slow_ms)
    if name:
        raise ConfigError(
            CLASS_KEY,
            f"expected {STANDARD} or the name of a plugin that offers an authorizer, found {name!r}",
        )
    return None


class GuardedAuthorizer:
    """Passes questions on to a plugin's authorizer; if it fails, the answer is no.

    Super users do not ask it, so that they can repair what it depends on.
    """

    def __init__(
        self, name: str, authorizer: Authorizer, super_users: Sequence[str], clock: Clock, slow_ms: int = 5
    ) -> None:
        self.authorizer = authorizer
        self.super_users = frozenset(super_users)
        self.guard = Guard(name, AUTHORIZER.name, clock, slow_ms)
        self.stats = self.guard.stats

    def authorize(self, context: RequestContext, actions: Sequence[Action]) -> list[Decision]:
        """Ask the plugin about each of the actions."""
        if context.connection.principal in self.super_users:
            return [SUPER_USER] * len(actions)

        def decisions() -> list[Decision]:
            answer = self.authorizer.authorize(context, actions)
            found = list(answer) if isinstance(answer, Iterable) else None
            if found is None or len(found) != len(actions):
                given = repr(answer)[:100] if found is None else f"{len(found)} decisions"
                raise TypeError(f"authorize returned {given}, expected {len(actions)} decisions")
            return [checked(each, "authorize") for each in found]

        return self.guard.answer(self.authorizer.authorize, decisions, [FAILED] * len(actions))

    def authorize_by_resource_type(
        self, context: RequestContext, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        """Ask the plugin about any resource of a type."""
        if context.connection.principal in self.super_users:
            return SUPER_USER
        ask = self.authorizer.authorize_by_resource_type

        def decision() -> Decision:
            return checked(ask(context, operation, resource_type), "authorize_by_resource_type")

        return self.guard.answer(ask, decision, FAILED)


def checked(answer: object, method: str) -> Decision:
    """The answer of a plugin's method, if it is one.

    Raises:
        TypeError: It is not a decision.
    """
    if not isinstance(answer, Decision) or not isinstance(answer.is_allowed, bool):
        raise TypeError(f"{method} returned {answer!r:.100}, expected a Decision")
    return answer
