"""The settings of OAUTHBEARER; names and defaults after SaslConfigs.java (KIP-768)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from odradek.settings.kinds import INT, LONG, TEXT, Flag, Items, Whole
from odradek.settings.setting import setting

OAUTHBEARER = "OAUTHBEARER"
JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"
UNSECURED = "sasl.oauthbearer.unsecured.tokens"
EACH: Final[Mapping[str, Any]] = {"by_listener": True, "by_mechanism": True}


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthSettings:
    """Which tokens a listener accepts."""

    # fmt: off
    jwks_url: str | None = setting(
        JWKS_URL, TEXT, None,
        "Where the keys are that verify tokens: a JWKS at an `https://` or `file://` address; `http://` only "
        "on this machine. Needs the extra `odradek[oauth]`.", unset="none",
        page="../howto/authenticate-with-tokens.md", **EACH,
    )
    refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", Whole(LONG, 1_000), 3_600_000,
        "How often the keys are fetched again; an unknown key id fetches them at once.", unit="ms", **EACH,
    )
    retry_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", Whole(LONG, 1), 100,
        "How long the host waits after the keys could not be fetched; the time doubles with each failure.",
        unit="ms", **EACH,
    )
    retry_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", Whole(LONG, 1), 10_000,
        "Longest wait after the keys could not be fetched, and least time between two fetches for the sake "
        "of unknown key ids.", unit="ms", **EACH,
    )
    https_ca: str | None = setting(
        "https.ca.location", TEXT, None,
        "PEM file with the certificate authorities of the JWKS address; the key is librdkafka's.",
        unset="those of the system", **EACH,
    )
    scope_claim: str = setting(
        "sasl.oauthbearer.scope.claim.name", TEXT, "scope", "Claim with the scope of a token.", **EACH,
    )
    subject_claim: str = setting(
        "sasl.oauthbearer.sub.claim.name", TEXT, "sub", "Claim with the name of the principal.", **EACH,
    )
    clock_skew_s: int = setting(
        "sasl.oauthbearer.clock.skew.seconds", Whole(INT), 30,
        "How far the clocks of the host and of the issuer may differ.", unit="s", **EACH,
    )
    expected_audience: tuple[str, ...] = setting(
        "sasl.oauthbearer.expected.audience", Items(), (),
        "Audiences of which a token needs one; without any, a token with an audience is refused.",
        unset="none", **EACH,
    )
    expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer", TEXT, None, "Issuer that a token needs.", unset="any", **EACH,
    )
    expected_scope: tuple[str, ...] = setting(
        "sasl.oauthbearer.expected.scope", Items(), (),
        "Words that the scope of a token needs, all of them. Kafka has no such setting.", unset="none",
        **EACH,
    )
    unsecured: bool = setting(
        UNSECURED, Flag(), False,
        "Accepts tokens without a signature, for development: every client may call itself what it likes. "
        "Only without a JWKS.", **EACH,
    )
    # fmt: on
