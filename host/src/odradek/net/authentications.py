"""Settings, users, tokens and their keys: shared by the connections of each SASL listener."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from odradek.broker.broker import Broker
from odradek.plugin.config import ConfigError
from odradek.process.file_threads import FileThreads
from odradek.security.attempt_rate import AttemptRate
from odradek.security.oauth.oauth_settings import JWKS_URL, OAUTHBEARER, UNSECURED, OAuthSettings
from odradek.security.principals import BuiltPrincipals
from odradek.security.sasl_session import AuthenticationCounts
from odradek.security.sasl_settings import SaslSettings

if TYPE_CHECKING:
    from odradek.security.oauth.bearer_token import TokenValidator
    from odradek.security.oauth.key_set import KeySet
    from odradek.security.oauth.token_claims import ClaimRules
    from odradek.security.sasl_authentication import SaslAuthentication

log = logging.getLogger(__name__)

NONCE_BYTES = 24
SECRET_BYTES = 32
S = TypeVar("S")


class AuthenticationConfig(Protocol):
    """The part of the host's configuration that is used here."""

    @property
    def sasl(self) -> SaslSettings: ...

    @property
    def oauth(self) -> OAuthSettings: ...

    def of_listener(self, settings: S, listener: str, mechanism: str = "") -> S:
        """Return the settings of one listener, or of one SASL mechanism of it."""


class Authentications:
    """The authentication of each listener of a host.

    Args:
        config: The configuration.
        broker: Has the users.
        passwords: Threads that check passwords, which takes milliseconds.
        principals: Builds the principals of clients; None if the host does.
    """

    def __init__(
        self,
        config: AuthenticationConfig,
        broker: Broker,
        passwords: FileThreads,
        principals: BuiltPrincipals | None = None,
    ) -> None:
        self.config = config
        self.principals = principals
        self.broker = broker
        self.passwords = passwords
        self.clock, self.timer = broker.clock, broker.timer
        self.key_threads = FileThreads(1)
        self.key_sets: dict[OAuthSettings, KeySet] = {}
        """By the settings of their listeners."""

    @cached_property
    def shared(self) -> SaslAuthentication:
        """Shared by all listeners."""
        from odradek.security.sasl_authentication import SaslAuthentication, user_principal

        return SaslAuthentication(
            settings=self.config.sasl,
            credentials=self.broker.credentials,
            clock=self.clock,
            timer=self.timer,
            offload=self.passwords.offload,
            new_nonce=lambda: secrets.token_urlsafe(NONCE_BYTES),
            secret=secrets.token_bytes(SECRET_BYTES),
            report=self.broker.audit.login_refused,
            rate=AttemptRate(self.config.sasl.attempts_per_ip, self.clock),
            principal=user_principal if self.principals is None else self.principals.of_user,
        )

    def of(self, listener: str) -> SaslAuthentication:
        """The authentication of one listener.

        Raises:
            ConfigError: Its settings contradict each other, or it cannot check tokens.
        """
        config = self.config
        settings = config.of_listener(config.sasl, listener)
        mechanisms = settings.enabled_mechanisms
        return replace(
            self.shared,
            settings=settings,
            tokens=self.validator(listener) if OAUTHBEARER in mechanisms else None,
            max_reauth_ms={
                each: config.of_listener(config.sasl, listener, each).max_reauth_ms for each in mechanisms
            },
            counts=AuthenticationCounts(),
        )

    def validator(self, listener: str) -> TokenValidator:
        """Decides which tokens a listener accepts."""
        from odradek.security.oauth.token_claims import ClaimRules

        settings = self.config.of_listener(self.config.oauth, listener, OAUTHBEARER)
        rules = ClaimRules(
            clock=self.clock,
            scope_claim=settings.scope_claim,
            subject_claim=settings.subject_claim,
            skew_s=settings.clock_skew_s,
            audience=settings.expected_audience,
            issuer=settings.expected_issuer,
            required_scope=settings.expected_scope,
        )
        if settings.jwks_url is None:
            return unsecured(settings, rules, listener)
        try:
            from odradek.security.oauth.signed_token import signed_token
        except ImportError as error:
            raise ConfigError(JWKS_URL, "needs the extra odradek[oauth]") from error
        for name, value in (("audience", settings.expected_audience), ("issuer", settings.expected_issuer)):
            if not value:
                log.warning(
                    "sasl.oauthbearer.expected.%s is not set: tokens are not checked for it",
                    name,
                    extra={"listener": listener},
                )
        return partial(signed_token, self.key_set(settings, settings.jwks_url), rules)

    def key_set(self, settings: OAuthSettings, url: str) -> KeySet:
        """The keys of one JWKS; listeners with the same settings share them."""
        from odradek.net.jwks_fetch import BadJwksUrl, jwks_fetcher
        from odradek.security.oauth.key_set import KeySet, RefreshTimes

        if settings not in self.key_sets:
            try:
                fetch: Callable[[], bytes] = jwks_fetcher(url, settings.https_ca)
            except BadJwksUrl as error:
                raise ConfigError(JWKS_URL, str(error)) from None
            times = RefreshTimes(
                refresh_ms=settings.refresh_ms, retry_ms=settings.retry_ms, retry_max_ms=settings.retry_max_ms
            )
            self.key_sets[settings] = KeySet(
                url, fetch, times, self.clock, self.timer, self.key_threads.offload
            )
        return self.key_sets[settings]

    async def start(self) -> None:
        """Fetch the keys, before the first client needs them. An endpoint that is down is tried again.

        Raises:
            ConfigError: A file of keys cannot be read, or has no usable key.
        """
        for keys in self.key_sets.values():
            try:
                outcome = await asyncio.to_thread(keys.load)
            except (OSError, ValueError) as error:
                if keys.url.startswith("file:"):
                    raise ConfigError(JWKS_URL, f"{keys.url}: {error}") from error
                keys.loaded(error)
            else:
                keys.loaded(outcome)

    async def close(self) -> None:
        """Fetch no more keys."""
        for keys in self.key_sets.values():
            keys.stop()
        await self.key_threads.close()


def unsecured(settings: OAuthSettings, rules: ClaimRules, listener: str) -> TokenValidator:
    """Decides about tokens without a signature, if the operator wants them.

    Raises:
        ConfigError: No key says so.
    """
    if not settings.unsecured:
        raise ConfigError(
            JWKS_URL,
            f"expected the address of the keys that sign tokens, because the listener {listener} enables "
            f"{OAUTHBEARER}; for development, {UNSECURED} accepts tokens without a signature",
        )
    from odradek.security.oauth.unsecured_token import unsecured_token

    log.warning(
        "%s: every client of this listener may call itself what it likes",
        UNSECURED,
        extra={"listener": listener},
    )
    return partial(unsecured_token, rules)
