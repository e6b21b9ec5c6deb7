"""Tokens with a signature (JWS), verified by PyJWT with the public keys of a JWKS."""

from __future__ import annotations

from typing import Final

from jwt import PyJWS, PyJWTError

from odradek.security.oauth.bearer_token import BearerToken, TokenRefused
from odradek.security.oauth.key_set import KeySet
from odradek.security.oauth.token_claims import ClaimRules, check_length, json_object

NEITHER: Final = ("crit", "b64")
"""Header fields that would change what the signature means."""
JWS: Final = PyJWS()


def signed_token(keys: KeySet, rules: ClaimRules, token: str) -> BearerToken:
    """Verify the signature, then check the claims.

    The keys come from the host's own configuration: the key, and the addresses of keys, that a token names
    (``jwk``, ``jku``, ``x5c``, ``x5u``) are ignored.

    Raises:
        TokenRefused: The token is not accepted.
    """
    check_length(token)
    try:
        header = JWS.get_unverified_header(token)
    except (PyJWTError, ValueError, RecursionError) as error:
        raise TokenRefused(f"not a signed token: {error!s:.200}") from None
    for name in NEITHER:
        if name in header:
            raise TokenRefused(f"the header has {name}")
    algorithm, kid = header.get("alg"), header.get("kid")
    key = keys.find(kid, algorithm if isinstance(algorithm, str) else "")
    try:
        verified = JWS.decode_complete(token, key.public, algorithms=[key.algorithm])
    except (PyJWTError, ValueError) as error:
        raise TokenRefused(f"{error!s:.200}") from None
    return rules.signed(json_object(verified["payload"], "token"))
