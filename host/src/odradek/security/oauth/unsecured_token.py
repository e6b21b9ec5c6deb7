"""Tokens without a signature: anyone can make one, so they are for development only."""

from __future__ import annotations

import binascii
from base64 import urlsafe_b64decode

from odradek.security.oauth.bearer_token import BearerToken, TokenRefused
from odradek.security.oauth.token_claims import ClaimRules, check_length, json_object


def unsecured_token(rules: ClaimRules, token: str) -> BearerToken:
    """Check the claims of ``header.claims.`` with ``"alg":"none"``.

    Raises:
        TokenRefused: The token is not accepted.
    """
    check_length(token)
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise TokenRefused("not an unsecured token: expected header, claims and no signature")
    header, claims = (json_object(decoded(part), "token") for part in parts[:2])
    if header.get("alg") != "none":
        raise TokenRefused("not an unsecured token: its algorithm is not none")
    return rules.unsecured(claims)


def decoded(part: str) -> bytes:
    """Return the bytes of a part of a token, which has no padding."""
    try:
        return urlsafe_b64decode(part + "=" * (-len(part) % 4))
    except (binascii.Error, ValueError):
        raise TokenRefused("the token is not base64") from None
