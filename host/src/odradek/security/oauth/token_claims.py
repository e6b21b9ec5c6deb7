"""The rules for the claims of a token, on the clock of the host.

After BrokerJwtValidator.java and jose4j's JwtConsumer for signed tokens, and after
OAuthBearerUnsecuredJws.java for those without a signature. Times with fractions count in milliseconds, as RFC
7519 allows them; jose4j drops the fractions of signed tokens.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from odradek.security.oauth.bearer_token import INSUFFICIENT_SCOPE, BearerToken, TokenRefused
from odradek.waiting.clock import Clock

LATEST_S: Final = 253_402_300_799
"""The end of the year 9999: a later time is no date."""
MAX_TOKEN_CHARS: Final = 16_384

Claims = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimRules:
    """The rules that the claims of a token must satisfy."""

    clock: Clock
    scope_claim: str = "scope"
    subject_claim: str = "sub"
    skew_s: int = 30
    audience: Sequence[str] = ()
    """One of these must be in ``aud``; without any, a token must not have ``aud``."""
    issuer: str | None = None
    """The only issuer; None accepts every one."""
    required_scope: Sequence[str] = ()
    """All of these must be in the scope."""

    def signed(self, claims: Claims) -> BearerToken:
        """Return the token with these claims, if it was signed with a known key.

        Raises:
            TokenRefused: A claim is missing, has the wrong form, or does not allow the token to be used.
        """
        now_ms, skew_ms = self.clock.now_ms(), self.skew_s * 1000
        expires_ms, issued_ms = required_ms(claims, "exp"), required_ms(claims, "iat")
        starts_ms = optional_ms(claims, "nbf")
        if now_ms - skew_ms >= expires_ms:
            raise TokenRefused("the token has expired")
        if expires_ms < issued_ms or (starts_ms is not None and expires_ms < starts_ms):
            raise TokenRefused("the token expires before it was issued, or before it is valid")
        if starts_ms is not None and now_ms + skew_ms < starts_ms:
            raise TokenRefused("the token is not valid yet")
        self.check_audience(claims)
        if self.issuer is not None and claims.get("iss") != self.issuer:
            raise TokenRefused(f"the issuer is {claims.get('iss')!r:.200}, expected {self.issuer!r}")
        scope = claims.get(self.scope_claim)
        scopes = [scope] if isinstance(scope, str) else scope if isinstance(scope, list) else []
        self.check_scope(distinct_words(scopes))
        return BearerToken(self.subject(claims).strip(), rounded(expires_ms))

    def unsecured(self, claims: Claims) -> BearerToken:
        """Return the token with these claims, if it has no signature.

        Raises:
            TokenRefused: As `signed`.
        """
        now_ms, skew_ms = self.clock.now_ms(), self.skew_s * 1000
        expires_ms, issued_ms = required_ms(claims, "exp"), optional_ms(claims, "iat")
        name = self.subject(claims)
        if issued_ms is not None and issued_ms > now_ms + skew_ms:
            raise TokenRefused("the token was issued in the future")
        if now_ms - skew_ms >= expires_ms:
            raise TokenRefused("the token has expired")
        if issued_ms is not None and expires_ms <= issued_ms:
            raise TokenRefused("the token expires before it was issued")
        scope = claims.get(self.scope_claim, [])
        scopes = scope.split() if isinstance(scope, str) else scope
        if not isinstance(scopes, list) or not all(isinstance(each, str) for each in scopes):
            raise TokenRefused(f"{self.scope_claim} is neither a text nor a list of texts")
        self.check_scope(scopes)
        return BearerToken(name, rounded(expires_ms))

    def subject(self, claims: Claims) -> str:
        """Return the claim with the principal."""
        name = claims.get(self.subject_claim)
        if not isinstance(name, str) or not name.strip():
            raise TokenRefused(f"{self.subject_claim} is missing, blank or not a text")
        return name

    def check_audience(self, claims: Claims) -> None:
        """Compare ``aud`` with the expected audiences."""
        found = claims.get("aud")
        audiences = [found] if isinstance(found, str) else found
        if audiences is None:
            if self.audience:
                raise TokenRefused("the token has no audience")
            return
        if not isinstance(audiences, list) or not all(isinstance(each, str) for each in audiences):
            raise TokenRefused("aud is neither a text nor a list of texts")
        if not self.audience:
            raise TokenRefused("the token has an audience, and the host expects none")
        if not set(audiences) & set(self.audience):
            raise TokenRefused("the audience is not an expected one")

    def check_scope(self, scopes: Sequence[str]) -> None:
        """Check that the token has all of the required scope."""
        given = {word for scope in scopes for word in scope.split()}
        if not given.issuperset(self.required_scope):
            wanted = f"[{', '.join(self.required_scope)}]"
            raise TokenRefused(f"the scope must contain {wanted}", INSUFFICIENT_SCOPE, wanted)


def distinct_words(scopes: Sequence[object]) -> list[str]:
    """Return the items of a scope.

    Raises:
        TokenRefused: One is blank or not a text, or two are the same.
    """
    words = [each.strip() for each in scopes if isinstance(each, str)]
    if len(words) < len(scopes) or not all(words) or len(set(words)) < len(words):
        raise TokenRefused("an item of the scope is blank, repeated or not a text")
    return words


def required_ms(claims: Claims, name: str) -> float:
    """Return a claim that is a time, in milliseconds since the epoch."""
    time_ms = optional_ms(claims, name)
    if time_ms is None:
        raise TokenRefused(f"{name} is missing")
    return time_ms


def optional_ms(claims: Claims, name: str) -> float | None:
    """Return a claim that is a time, in milliseconds since the epoch; None if it is missing."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TokenRefused(f"{name} is not a number")
    if not -LATEST_S <= value <= LATEST_S:  # so is NaN
        raise TokenRefused(f"{name} is not a date")
    return 1000 * value


def rounded(time_ms: float) -> int:
    """Return the nearest whole number; of two, the later one, as Java's Math.round."""
    return math.floor(time_ms + 0.5)


def json_object(text: bytes, name: str) -> dict[str, Any]:
    """Read a part of a token.

    Raises:
        TokenRefused: It is not an object in JSON.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise TokenRefused(f"the {name} is not JSON") from None
    if not isinstance(found, dict):
        raise TokenRefused(f"the {name} is not an object in JSON")
    return found


def check_length(token: str) -> None:
    """Refuse a token that is too long to be a real one."""
    if len(token) > MAX_TOKEN_CHARS:
        raise TokenRefused(f"a token of {len(token)} characters, at most {MAX_TOKEN_CHARS} are accepted")
