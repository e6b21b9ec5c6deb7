"""Signed tokens: the table that Apache Kafka 4.3.1 answered with a JWKS file, and the bounds of this host."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from dataclasses import replace
from functools import partial
from typing import Any

import jwt
import pytest

from odradek.security.oauth.bearer_token import INSUFFICIENT_SCOPE, TokenRefused, TokenValidator
from odradek.security.oauth.key_set import KeySet, RefreshTimes
from odradek.security.oauth.signed_token import signed_token
from odradek.security.oauth.token_claims import MAX_TOKEN_CHARS, ClaimRules
from odradek.testing.clock import MockClock
from odradek.waiting.deferred import offload_inline
from support.tokens import Claims, claims_of, jwks, private_key, public_jwk, signed

CLOCK = MockClock()
NOW_S = CLOCK.now_ms() // 1000
RULES_A = ClaimRules(clock=CLOCK)
RULES_B = replace(RULES_A, audience=("k", "q"), issuer="i")


def validator(rules: ClaimRules = RULES_A, document: bytes | None = None) -> TokenValidator:
    found = jwks() if document is None else document
    keys = KeySet("file:keys", lambda: found, RefreshTimes(), CLOCK, CLOCK.timer, offload_inline)
    keys.refresh()
    return partial(signed_token, keys, rules)


def alice(**more: Any) -> Claims:
    return claims_of("alice", NOW_S, **more)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(alice(), id="A good, no scope"),
        pytest.param(alice(scope="a b"), id="A scope is one item"),
        pytest.param(alice(scope=["a", "b"]), id="A scope is a list"),
        pytest.param(alice(sub=" alice "), id="A sub is trimmed"),
        pytest.param(alice(iat=NOW_S + 100), id="A iat ahead"),
        pytest.param(alice(nbf=NOW_S + 29), id="A nbf ahead by less than the skew"),
        pytest.param(alice(iat=NOW_S - 100, exp=NOW_S - 29), id="A exp past by less than the skew"),
        pytest.param(alice(exp=NOW_S + 60.9), id="A exp is a fraction"),
        pytest.param(alice(exp=NOW_S + 4.9996), id="A exp is rounded to milliseconds"),
        pytest.param(
            alice(iat=NOW_S - 100, exp=NOW_S - 29.999), id="A exp past by a fraction less than the skew"
        ),
        pytest.param(alice(iat=NOW_S + 0.25, exp=NOW_S + 0.75), id="A exp and iat within one second"),
    ],
)
def test_accepted_without_audience_and_issuer(claims: Claims) -> None:
    token = validator()(signed(claims))

    assert token.principal_name == "alice"
    assert token.expires_ms == round(claims["exp"] * 1000)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(alice(scope=""), id="A scope is empty"),
        pytest.param(alice(scope=["a", "a"]), id="A scope is repeated"),
        pytest.param(alice(scope=["a", 1]), id="A scope has a number"),
        pytest.param(alice(sub=None), id="A sub is missing"),
        pytest.param(alice(sub="  "), id="A sub is blank"),
        pytest.param(alice(sub=7), id="A sub is a number"),
        pytest.param(alice(aud="k"), id="A aud though none is expected"),
        pytest.param(alice(aud=7), id="A aud is a number"),
        pytest.param(alice(iat=None), id="A no iat"),
        pytest.param(alice(exp=None), id="A no exp"),
        pytest.param(alice(nbf=NOW_S + 31), id="A nbf ahead by more than the skew"),
        pytest.param(alice(iat=NOW_S - 100, exp=NOW_S - 30), id="A exp past by the skew"),
        pytest.param(alice(iat=NOW_S + 200, exp=NOW_S + 100), id="A exp before iat"),
        pytest.param(alice(nbf=NOW_S + 20, exp=NOW_S + 10), id="A exp before nbf"),
        pytest.param(alice(exp="soon"), id="A exp is a text"),
        pytest.param(alice(exp=True), id="A exp is a boolean"),
        pytest.param(alice(exp=1e300), id="A exp is no date"),
        pytest.param(alice(exp=float("inf")), id="A exp is infinite"),
        pytest.param(alice(exp=float("nan")), id="A exp is not a number"),
        pytest.param(alice(exp=10**400), id="A exp has 400 digits"),
        pytest.param(alice(exp=-(10**400)), id="A exp has 400 digits and a sign"),
        pytest.param(alice(iat=10**400), id="A iat has 400 digits"),
        pytest.param(alice(exp=-1), id="A exp is before 1970"),
        pytest.param(alice(iat=NOW_S - 100, exp=NOW_S - 30.001), id="A exp past by the skew and a fraction"),
    ],
)
def test_refused_without_audience_and_issuer(claims: Claims) -> None:
    with pytest.raises(TokenRefused) as refusal:
        validator()(signed_as_is(claims))

    assert refusal.value.status == "invalid_token"
    assert "ignature" not in str(refusal.value)


def signed_as_is(claims: Claims) -> str:
    """A token with claims that PyJWT would not sign."""
    return jwt.PyJWS().encode(json.dumps(claims).encode(), private_key(), "RS256", {"kid": "k1"})


@pytest.mark.parametrize("audience", ["k", ["z", "q"]])
def test_accepted_with_audience_and_issuer(audience: object) -> None:
    token = validator(RULES_B)(signed(alice(aud=audience, iss="i")))

    assert token.principal_name == "alice"


@pytest.mark.parametrize(
    ("audience", "issuer"), [("z", "i"), (None, "i"), ("k", "x"), ("k", None), ("k", 7), ([], "i")]
)
def test_refused_with_audience_and_issuer(audience: object, issuer: object) -> None:
    with pytest.raises(TokenRefused):
        validator(RULES_B)(signed_as_is(alice(aud=audience, iss=issuer)))


def test_other_names_of_claims() -> None:
    rules = replace(RULES_A, subject_claim="azp", scope_claim="scp", required_scope=("push",))

    token = validator(rules)(signed(alice(azp="bob", scp=["push", "x"])))

    assert token.principal_name == "bob"


def test_a_missing_scope_is_named() -> None:
    rules = replace(RULES_A, required_scope=("K", "L"))

    with pytest.raises(TokenRefused) as refusal:
        validator(rules)(signed(alice(scope="K")))

    assert (refusal.value.status, refusal.value.scope) == (INSUFFICIENT_SCOPE, "[K, L]")


@pytest.mark.parametrize("algorithm", ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"])
def test_algorithms(algorithm: str) -> None:
    document = jwks(public_jwk(algorithm))

    token = validator(document=document)(signed(alice(), algorithm))

    assert token.principal_name == "alice"


def test_a_token_without_kid_if_one_key_fits() -> None:
    document = jwks(public_jwk(), public_jwk("ES256", kid="k2"))

    token = validator(document=document)(signed(alice(), kid=None))

    assert token.principal_name == "alice"


def parts(header: dict[str, Any], claims: Claims, signature: bytes = b"") -> str:
    found = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(urlsafe_b64encode(part).decode().rstrip("=") for part in found)


PUBLIC_PEM = b"the public key, which everybody knows, as a secret of HS256"


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(signed(alice(), kid="k9"), id="unknown kid"),
        pytest.param(signed(alice(), name="other"), id="signature of another key"),
        pytest.param(signed(alice(), "ES256"), id="algorithm of another kind of key"),
        pytest.param(jwt.encode(alice(), PUBLIC_PEM, "HS256", {"kid": "k1"}), id="HS256"),
        pytest.param(parts({"alg": "none", "kid": "k1"}, alice()), id="none"),
        pytest.param(parts({"alg": "None", "kid": "k1"}, alice()), id="None"),
        pytest.param(parts({"alg": ["RS256"], "kid": "k1"}, alice()), id="list of algorithms"),
        pytest.param(parts({"kid": "k1"}, alice()), id="no algorithm"),
        pytest.param(parts({"alg": "RS256", "kid": 7}, alice()), id="kid is a number"),
        pytest.param(parts({"alg": "RS256", "kid": "k1"}, alice()), id="no signature"),
        pytest.param(signed(alice(), crit=["exp"]), id="crit"),
        pytest.param(signed(alice(), "RS256", "other", jwk=public_jwk(name="other")), id="own jwk"),
        pytest.param(signed(alice()) + "x", id="a changed signature"),
        pytest.param("a.b", id="two parts"),
        pytest.param("a.b.c.d", id="four parts"),
        pytest.param("...", id="dots"),
        pytest.param(urlsafe_b64encode(b"[" * 9_000).decode() + ".e30.", id="deep JSON"),
        pytest.param(signed(alice(x="x" * MAX_TOKEN_CHARS)), id="too long"),
    ],
)
def test_signatures_that_are_refused(token: str) -> None:
    with pytest.raises(TokenRefused) as refusal:
        validator()(token)

    assert refusal.value.status == "invalid_token"


def test_deep_claims_are_refused() -> None:
    token = jwt.PyJWS().encode(b"[" * 9_000, private_key(), "RS256", {"kid": "k1"})

    with pytest.raises(TokenRefused, match="not JSON"):
        validator()(token)


def test_two_keys_fit_a_token_without_kid() -> None:
    document = jwks(public_jwk(), public_jwk(name="other", kid="k2"))

    with pytest.raises(TokenRefused, match="2 keys fit"):
        validator(document=document)(signed(alice(), kid=None))


def test_a_key_verifies_only_its_own_algorithm() -> None:
    with pytest.raises(TokenRefused, match="no key fits"):
        validator(document=jwks(public_jwk(alg="RS512")))(signed(alice()))
