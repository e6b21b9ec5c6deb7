"""Tokens without a signature: the rules of Kafka's OAuthBearerUnsecuredValidatorCallbackHandler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from odradek.security.oauth.bearer_token import TokenRefused
from odradek.security.oauth.token_claims import ClaimRules
from odradek.security.oauth.unsecured_token import unsecured_token
from odradek.testing.clock import MockClock
from support.tokens import Claims, claims_of, signed, unsecured

CLOCK = MockClock()
NOW_S = CLOCK.now_ms() // 1000
RULES = ClaimRules(clock=CLOCK, skew_s=10)


def alice(**more: Any) -> Claims:
    return claims_of("alice", NOW_S, **more)


@pytest.mark.parametrize(
    "claims",
    [
        pytest.param(alice(), id="good"),
        pytest.param(alice(iat=None), id="no iat"),
        pytest.param(alice(iat=NOW_S + 10), id="iat ahead by the skew"),
        pytest.param(alice(iat=None, exp=NOW_S - 9), id="exp past by less than the skew"),
        pytest.param(alice(iat=None, exp=NOW_S - 9.999), id="exp past by a fraction less than the skew"),
        pytest.param(alice(iat=NOW_S + 9.5, exp=NOW_S + 9.75), id="exp and iat within one second"),
        pytest.param(alice(iat=NOW_S - 0.6, exp=NOW_S + 4.4), id="five seconds from within a second"),
        pytest.param(alice(iat=-1, exp=NOW_S + 5), id="iat before 1970"),
        pytest.param(alice(aud="x", iss="y"), id="any audience and issuer"),
        pytest.param(alice(scope="a b"), id="scope as text"),
        pytest.param(alice(scope=["b", "a"]), id="scope as list"),
    ],
)
def test_accepted(claims: Claims) -> None:
    token = unsecured_token(RULES, unsecured(claims))

    assert token.principal_name == "alice"
    assert token.expires_ms == round(claims["exp"] * 1000)


@pytest.mark.parametrize(
    "token",
    [
        pytest.param(unsecured(alice(iat=NOW_S + 11)), id="iat ahead by more than the skew"),
        pytest.param(unsecured(alice(iat=None, exp=NOW_S - 10)), id="exp past by the skew"),
        pytest.param(unsecured(alice(iat=NOW_S + 5, exp=NOW_S + 5)), id="exp at iat"),
        pytest.param(unsecured(alice(exp=None)), id="no exp"),
        pytest.param(unsecured(alice(exp="1")), id="exp is a text"),
        pytest.param(unsecured(alice(exp=True)), id="exp is a boolean"),
        pytest.param(unsecured(alice(exp=[NOW_S + 60])), id="exp is a list"),
        pytest.param(unsecured(alice(exp=float("nan"))), id="exp is not a number"),
        pytest.param(unsecured(alice(exp=float("inf"))), id="exp is infinite"),
        pytest.param(unsecured(alice(exp=10**400)), id="exp has 400 digits"),
        pytest.param(unsecured(alice(iat=-(10**400))), id="iat has 400 digits"),
        pytest.param(unsecured(alice(exp=-1)), id="exp is before 1970"),
        pytest.param(unsecured(alice(iat=NOW_S + 10.001)), id="iat ahead by the skew and a fraction"),
        pytest.param(unsecured(alice(iat=NOW_S + 5.5, exp=NOW_S + 5.25)), id="exp a fraction before iat"),
        pytest.param(unsecured(alice(sub=None)), id="no sub"),
        pytest.param(unsecured(alice(sub=1)), id="sub is a number"),
        pytest.param(unsecured(alice(scope=1)), id="scope is a number"),
        pytest.param(signed(alice()), id="signed"),
        pytest.param(signed(alice()).rpartition(".")[0] + ".", id="signature cut off"),
        pytest.param(unsecured(alice(), alg="RS256"), id="algorithm"),
        pytest.param("..", id="empty"),
        pytest.param("a", id="one part"),
        pytest.param("e30.W10.", id="claims are a list"),
    ],
)
def test_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        unsecured_token(RULES, token)


@pytest.mark.parametrize("scope", ["b a c", ["c", "b", "a"]])
def test_the_required_scope_is_there(scope: object) -> None:
    rules = replace(RULES, required_scope=("a", "b"))

    token = unsecured_token(rules, unsecured(alice(scope=scope)))

    assert token.principal_name == "alice"


@pytest.mark.parametrize("scope", [None, "a", ["a", "ab"]])
def test_the_required_scope_is_missing(scope: object) -> None:
    rules = replace(RULES, required_scope=("a", "b"))

    with pytest.raises(TokenRefused) as refusal:
        unsecured_token(rules, unsecured(alice(scope=scope)))

    assert (refusal.value.status, refusal.value.scope) == ("insufficient_scope", "[a, b]")
