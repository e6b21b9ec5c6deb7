"""Tokens with a signature (JWS), verified by PyJWT with the public keys of a JWKS."""

from __future__ import annotations

from typing import Final

from jwt import PyJWS, PyJWTError

from odradek.security.oauth.bearer_token import BearerToken, TokenRefused
from odradek.security.oauth.key_set import KeySet
from odradek.security.oauth.token_claims import ClaimRules, check_length, json_object

NEITHER: Final = ("crit", "b64")
"""Header fields that would change what the signature means."""


class SignedTokenValidator:
    """Accepts tokens that a known key has signed; see `TokenValidator`.

    The keys come from the host's own configuration: the key, and the addresses of keys, that a token names
    (``jwk``, ``jku``, ``x5c``, ``x5u``) are ignored.
    """

    def __init__(self, keys: KeySet, rules: ClaimRules) -> None:
        self.keys = keys
        self.rules = rules
        self.jws = PyJWS()

    def validate(self, token: str) -> BearerToken:
        """Verify the signature, then check the claims."""
        check_length(token)
        try:
            header = self.jws.get_unverified_header(token)
        except (PyJWTError, ValueError, RecursionError) as error:
            raise TokenRefused(f"not a signed token: {error!s:.200}") from None
        for name in NEITHER:
            if name in header:
                raise TokenRefused(f"the header has {name}")
        algorithm, kid = header.get("alg"), header.get("kid")
        key = self.keys.find(kid, algorithm if isinstance(algorithm, str) else "")
        try:
            verified = self.jws.decode_complete(token, key.public, algorithms=[key.algorithm])
        except (PyJWTError, ValueError) as error:
            raise TokenRefused(f"{error!s:.200}") from None
        return self.rules.signed(json_object(verified["payload"], "token"))
