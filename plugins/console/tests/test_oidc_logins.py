"""Logins at an OpenID provider over real HTTP, by requests to the console without a socket."""

from __future__ import annotations

import hmac
import json
import logging
import ssl
import time
from base64 import urlsafe_b64encode
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from odradek_console.web.proxies import Proxies
from support.console_site import OPERATOR, VIEWER, Site, acted, logged_in, site
from support.issuer import own_certificate
from support.oidc_site import ANN, OLI, assert_nobody_is_in, at_provider, begun, came_back, oidc_site
from support.openid_provider import CLIENT_ID, OpenIdProvider, new_key, providing

# good logins


@pytest.mark.parametrize(("claims", "role"), [(ANN, "viewer"), (OLI, "operator")])
def test_a_user_logs_in_with_the_role_of_a_group(
    place: Site, provider: OpenIdProvider, claims: dict[str, Any], role: str
) -> None:
    provider.claims, browser = claims, place.new_browser()

    answer = at_provider(browser, provider, "/who?a=1&b=2")

    assert answer.status_code == 200
    assert 'content="0;url=/who?a=1&amp;b=2"' in answer.text
    assert browser.get("/who").json() == [claims["preferred_username"], role, "127.0.0.1"]
    assert acted(browser).status_code == (200 if role == "operator" else 403)
    assert place.access.figures()["begun_logins"] == 0


def test_the_page_for_logging_in_names_the_provider(place: Site, provider: OpenIdProvider) -> None:
    browser = place.new_browser()

    text = browser.get(browser.get("/who?a=%2F").headers["location"]).text

    assert f">Log in with {urlsplit(provider.issuer).netloc}</a>" in text
    assert 'href="/login/provider?next=/who%3Fa%3D%252F"' in text
    assert 'name="token"' in text


def test_without_tokens_there_is_no_form_for_one(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, oidc_label="Example & Sons")
    browser = place.new_browser()

    text = browser.get("/login").text

    assert "Log in with Example &amp; Sons" in text
    assert 'name="token"' not in text
    assert browser.post("/login", {"token": VIEWER}).status_code == 401
    asked = browser.send("GET", "/api/v1/clients")
    assert (asked.status_code, asked.json()["error"].partition(":")[0]) == (401, "log in with a browser")


def test_without_a_provider_its_paths_do_not_exist(tokens: Path) -> None:
    browser = site(tokens=tokens).new_browser()

    assert browser.get("/login/provider").status_code == 404
    assert browser.get("/login/provider/back?code=1&state=2").status_code == 404


def test_a_token_still_works_beside_it(place: Site) -> None:
    assert logged_in(place, OPERATOR).get("/who").json()[:2] == ["oli", "operator"]


def test_the_cookie_of_the_login_is_lax_and_that_of_the_session_strict(
    place: Site, provider: OpenIdProvider
) -> None:
    browser = place.new_browser()

    before = browser.get("/login/provider").headers["set-cookie"]
    after = came_back(browser, provider.authorize(begun(browser))).headers.get_list("set-cookie")

    assert before.startswith("odradek-login-9642=")
    assert before.endswith("; HttpOnly; Path=/; SameSite=lax")
    assert [each.partition("=")[0] for each in after] == ["odradek-9642", "odradek-login-9642"]
    assert "SameSite=strict" in after[0]
    assert "Max-Age=0" in after[1]


def test_with_tls_the_cookies_are_of_this_host_only(place: Site, provider: OpenIdProvider) -> None:
    browser = place.new_browser(url="https://127.0.0.1")

    answer = browser.get("/login/provider")

    assert answer.headers["set-cookie"].startswith("__Host-odradek-login=")
    assert answer.headers["set-cookie"].endswith("; SameSite=lax; Secure")
    (uri,) = parse_qs(urlsplit(answer.headers["location"]).query)["redirect_uri"]
    assert uri == "https://127.0.0.1/login/provider/back"


def test_behind_a_proxy_the_provider_leads_back_to_it(provider: OpenIdProvider, secret: Path) -> None:
    proxies = Proxies(networks=(ip_network("192.0.2.1"),))
    place = oidc_site(provider, secret, proxies=proxies, hosts=("console.example",))
    headers = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "console.example"}

    good = place.new_browser(address="192.0.2.1").get("/login/provider", headers)
    other = place.new_browser(address="192.0.2.1").get(
        "/login/provider", headers | {"X-Forwarded-Host": "evil.example"}
    )
    stranger = place.new_browser(address="192.0.2.9").get("/login/provider", headers)

    (uri,) = parse_qs(urlsplit(good.headers["location"]).query)["redirect_uri"]
    assert uri == "https://console.example/login/provider/back"
    assert other.status_code == 421
    (uri,) = parse_qs(urlsplit(stranger.headers["location"]).query)["redirect_uri"]
    assert uri == "http://127.0.0.1:9642/login/provider/back"


@pytest.mark.parametrize("missing", ["preferred_username", "groups"])
def test_claims_that_the_token_does_not_have_come_from_the_user_info(
    place: Site, provider: OpenIdProvider, missing: str
) -> None:
    provider.claims, provider.user_info = {**OLI, missing: None}, {"sub": "id-of-the-user", **OLI}
    browser = place.new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").json()[:2] == ["oli", "operator"]


def test_the_claims_have_the_names_that_settings_say(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(
        provider, secret, oidc_name_claim="email", oidc_groups_claim="https://example.org/roles"
    )
    provider.claims = {"email": "ann@example.org", "https://example.org/roles": "admins"}
    browser = place.new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").json()[:2] == ["ann@example.org", "operator"]


def test_all_users_may_look_if_that_is_said(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, oidc_viewers=("*",))
    provider.claims = {"preferred_username": "eve"}
    browser = place.new_browser()

    provider.user_info = {"sub": "id-of-the-user"}
    at_provider(browser, provider)

    assert browser.get("/who").json()[:2] == ["eve", "viewer"]


def test_the_secret_is_shown_as_the_provider_takes_it(place: Site, provider: OpenIdProvider) -> None:
    provider.method = "client_secret_post"
    provider.metadata = {"token_endpoint_auth_methods_supported": ["private_key_jwt", "client_secret_post"]}
    browser = place.new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").status_code == 200


def test_a_public_client_has_no_secret(provider: OpenIdProvider, secret: Path) -> None:
    provider.method = "none"
    browser = oidc_site(provider, secret, oidc_secret=None).new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").status_code == 200


def test_the_certificate_of_the_provider_is_verified(secret: Path, tmp_path: Path) -> None:
    ca, context = own_certificate(tmp_path)
    with providing(tls=context) as provider:
        provider.claims = dict(ANN)
        trusting, other = (oidc_site(provider, secret, oidc_ca=each).new_browser() for each in (ca, None))

        url = provider.authorize(begun(trusting), ssl.create_default_context(cafile=ca))
        refused = other.get("/login/provider")

        assert came_back(trusting, url).status_code == 200
        assert refused.status_code == 502
        assert "CERTIFICATE_VERIFY_FAILED" in refused.text


def test_further_scopes_are_asked_for(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, oidc_scopes=("groups", "openid"))

    query = parse_qs(urlsplit(begun(place.new_browser())).query)

    assert query["scope"] == ["openid profile groups"]


# keys


def test_a_new_key_is_fetched(place: Site, provider: OpenIdProvider) -> None:
    at_provider(place.new_browser(), provider)
    provider.key = new_key("second")
    browser = place.new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").status_code == 200
    assert provider.asked.count("/jwks") == 2


def test_the_documents_are_fetched_once_an_hour(place: Site, provider: OpenIdProvider) -> None:
    for _ in range(3):
        at_provider(place.new_browser(), provider)
    assert provider.asked.count("/jwks") == 1
    place.clock.now_s += 3_601

    at_provider(place.new_browser(), provider)

    assert provider.asked.count("/jwks") == 2


def test_a_key_that_the_provider_does_not_publish_is_none(place: Site, provider: OpenIdProvider) -> None:
    provider.published, provider.key = [provider.key], new_key("unknown")
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "the ID token is not good")
    assert provider.asked.count("/jwks") == 2


def test_a_signature_of_another_key_with_a_known_id_is_none(place: Site, provider: OpenIdProvider) -> None:
    provider.published, provider.key = [provider.key], new_key("first", 2)
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "the ID token is not good")


def encoded(part: bytes) -> bytes:
    return urlsafe_b64encode(part).rstrip(b"=")


@pytest.mark.parametrize("algorithm", ["none", "HS256"])
def test_a_token_that_anybody_can_make_is_refused(
    place: Site, provider: OpenIdProvider, algorithm: str
) -> None:
    public = provider.key.as_pem(private=False)

    def forged(claims: dict[str, Any]) -> str:
        parts = [json.dumps(each).encode() for each in ({"alg": algorithm, "kid": "first"}, claims)]
        text = b".".join(map(encoded, parts))
        signature = hmac.digest(public, text, "sha256") if algorithm == "HS256" else b""
        return b".".join((text, encoded(signature))).decode()

    provider.sign, browser = forged, place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "the ID token is not good")


# tokens that are not for this login


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"nonce": "of another login"}, "nonce"),
        ({"nonce": None}, "nonce"),
        ({"aud": "other"}, "aud"),
        ({"aud": "other", "azp": CLIENT_ID}, "aud"),
        ({"aud": [CLIENT_ID, "other"], "azp": "other"}, "azp"),
        ({"aud": None}, "aud"),
        ({"iss": "http://127.0.0.1:1"}, "iss"),
        ({"iss": None}, "iss"),
        ({"exp": 1}, "expired"),
        ({"exp": None}, "exp"),
        ({"exp": "never"}, "exp"),
        ({"iat": 1 << 40}, "future"),
        ({"sub": None}, "sub"),
        ({"at_hash": "AAAA"}, "at_hash"),
    ],
)
def test_a_token_that_is_not_for_this_login_is_refused(
    place: Site, provider: OpenIdProvider, claims: dict[str, Any], reason: str
) -> None:
    provider.claims |= claims
    browser = place.new_browser()

    answer = at_provider(browser, provider)

    assert_nobody_is_in(place, browser, answer, "the ID token is not good")
    assert reason in answer.text


def test_clocks_may_differ_a_little(place: Site, provider: OpenIdProvider) -> None:
    provider.claims |= {"iat": int(time.time()) + 20, "exp": int(time.time()) - 10}
    browser = place.new_browser()

    at_provider(browser, provider)

    assert browser.get("/who").status_code == 200


# users who may do nothing


@pytest.mark.parametrize("groups", [["others"], [], "others", [["admins"]], 7, {"admins": True}])
def test_a_user_in_no_group_is_refused(
    place: Site, provider: OpenIdProvider, groups: object, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    provider.claims["groups"] = groups
    browser = place.new_browser()

    answer = at_provider(browser, provider)

    assert_nobody_is_in(place, browser, answer, "ann is in no group that may look")
    line = vars(caplog.records[-1])
    assert (line["user"], line["act"], line["outcome"]) == ("ann", "login", "denied")
    assert line["why"] == "ann is in no group that may look"


def test_a_missing_claim_of_groups_is_named(place: Site, provider: OpenIdProvider) -> None:
    provider.claims["groups"], provider.user_info = None, {"sub": "id-of-the-user"}
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "sends no claim groups for ann")


@pytest.mark.parametrize("name", ["local", "", "a\nb", 7, "x" * 257])
def test_a_name_that_is_none_is_refused(place: Site, provider: OpenIdProvider, name: object) -> None:
    provider.claims["preferred_username"] = name
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "no name of a user")


def test_the_user_info_of_another_user_is_refused(place: Site, provider: OpenIdProvider) -> None:
    provider.claims["groups"], provider.user_info = None, {"sub": "id-of-oli", **OLI}
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "that of another user")
