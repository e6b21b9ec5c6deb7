"""Logins at an OpenID provider that somebody disturbs, and a provider that fails."""

from __future__ import annotations

import asyncio
import html
import logging
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx2 as httpx
import pytest

from support.console_site import OPERATOR, VIEWER, Site, logged_in
from support.oidc_site import ANN, OLI, assert_nobody_is_in, at_provider, begun, came_back, oidc_site
from support.openid_provider import OpenIdProvider
from support.redirects import EVIL, HERE, site_of

NOT_BEGUN = "this login was not begun in this browser, or too long ago"

# the way back


def test_a_wrong_state_is_refused(place: Site, provider: OpenIdProvider) -> None:
    browser = place.new_browser()
    back = provider.authorize(begun(browser))
    state = parse_qs(urlsplit(back).query)["state"][0]

    answer = came_back(browser, back.replace(state, f"{state[:-1]}é"))

    assert_nobody_is_in(place, browser, answer, NOT_BEGUN)
    assert "/token" not in provider.asked


def test_the_login_of_another_browser_is_refused(place: Site, provider: OpenIdProvider) -> None:
    """Login CSRF: an attacker makes a user's browser end the login that the attacker has begun."""
    attacker, user = place.new_browser(), place.new_browser()
    back = provider.authorize(begun(attacker))

    assert_nobody_is_in(place, user, came_back(user, back), NOT_BEGUN)
    own = provider.authorize(begun(user))
    assert came_back(user, back).status_code == 401
    assert "/token" not in provider.asked
    assert came_back(user, own).status_code == 200


def test_a_way_back_is_good_once(place: Site, provider: OpenIdProvider) -> None:
    browser = place.new_browser()
    cookies = httpx.Cookies()
    back = provider.authorize(begun(browser))
    cookies.update(browser.cookies)
    assert came_back(browser, back).status_code == 200

    again = place.new_browser(cookies=cookies)
    answer = came_back(again, back)

    assert answer.status_code == 401
    assert NOT_BEGUN in answer.text
    assert again.get("/who").status_code == 303
    assert provider.asked.count("/token") == 1


def test_a_code_is_good_once(place: Site, provider: OpenIdProvider) -> None:
    first, second = place.new_browser(), place.new_browser()
    used = provider.authorize(begun(first))
    assert came_back(first, used).status_code == 200
    back = provider.authorize(begun(second))
    code, fresh = (parse_qs(urlsplit(each).query)["code"][0] for each in (used, back))

    answer = came_back(second, back.replace(fresh, code))

    assert answer.status_code == 401
    assert "does not accept the code" in answer.text


def test_a_code_of_another_login_is_refused(place: Site, provider: OpenIdProvider) -> None:
    """PKCE: a stolen code is worth nothing in a login that another browser has begun."""
    victim, thief = place.new_browser(), place.new_browser()
    stolen = parse_qs(urlsplit(provider.authorize(begun(victim))).query)["code"][0]
    own = urlsplit(provider.authorize(begun(thief)))
    state = parse_qs(own.query)["state"][0]

    answer = came_back(thief, f"{own.path}?code={stolen}&state={state}")

    assert_nobody_is_in(place, thief, answer, "does not accept the code")


def test_a_login_that_takes_too_long_is_refused(place: Site, provider: OpenIdProvider) -> None:
    browser = place.new_browser()
    back = provider.authorize(begun(browser))
    place.clock.now_s += 601

    assert_nobody_is_in(place, browser, came_back(browser, back), NOT_BEGUN)


def test_a_refusal_of_the_provider_is_shown_as_text(place: Site, provider: OpenIdProvider) -> None:
    provider.error, browser = "access_denied", place.new_browser()

    answer = at_provider(browser, provider)

    assert_nobody_is_in(place, browser, answer, "lets nobody in: 'access_denied: no <b>way'")
    assert "<b>" not in answer.text


def test_nobody_shows_a_text_of_his_own(place: Site) -> None:
    answer = place.new_browser().get("/login/provider/back?error=x&error_description=Call+0123&state=x")

    assert NOT_BEGUN in answer.text
    assert "0123" not in answer.text


def test_another_site_begins_no_login(place: Site, provider: OpenIdProvider) -> None:
    answer = place.new_browser().get("/login/provider", {"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert "set-cookie" not in answer.headers
    assert place.access.figures()["begun_logins"] == 0
    assert provider.asked == []


@pytest.mark.parametrize("target", EVIL)
def test_a_login_at_the_provider_leads_to_the_console(
    place: Site, provider: OpenIdProvider, target: str
) -> None:
    answer = at_provider(place.new_browser(), provider, target)

    (_, _, rest) = answer.text.partition('content="0;url=')
    assert site_of(html.unescape(rest.partition('"')[0])) == HERE


# sessions


def test_a_login_makes_a_new_session_and_ends_the_old_one(place: Site, provider: OpenIdProvider) -> None:
    """Session fixation: no id from before the login is worth anything after it."""
    browser = logged_in(place, VIEWER)
    browser.cookies.set("odradek-login-9642", "chosen-by-somebody", "127.0.0.1")
    before = browser.cookies["odradek-9642"]
    url = begun(browser)
    assert browser.cookies["odradek-login-9642"] != "chosen-by-somebody"
    del browser.cookies["odradek-9642"]  # it is strict: the browser keeps it back

    came_back(browser, provider.authorize(url))

    after = browser.cookies["odradek-9642"]
    assert list(place.access.sessions.sessions) == [after]
    assert after != before


def test_a_session_ends_by_age_and_takes_the_groups_with_it(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, session_idle_s=100, session_age_s=250)
    provider.claims, browser = dict(OLI), place.new_browser()
    at_provider(browser, provider)
    provider.claims["groups"] = []

    for _ in range(3):
        place.clock.now_s += 80
        assert browser.get("/who").json()[:2] == ["oli", "operator"]
    place.clock.now_s += 11
    assert browser.get("/who").status_code == 303
    assert at_provider(browser, provider).status_code == 401


def test_a_user_logs_out(place: Site, provider: OpenIdProvider, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    browser = place.new_browser()
    at_provider(browser, provider)

    out = browser.post("/logout", {"csrf": browser.get("/form").text})

    assert (out.status_code, out.headers["location"]) == (303, "/login")
    assert browser.get("/who").status_code == 303
    lines = [vars(each) for each in caplog.records if each.name == "odradek.audit"]
    assert [(each["user"], each["act"], each["outcome"]) for each in lines] == [
        ("ann", "login", "allowed"),
        ("ann", "logout", "allowed"),
    ]
    assert lines[0]["why"] == f"'id-of-the-user' of {provider.issuer}"


# bounds


def test_the_number_of_begun_logins_is_bounded(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, max_sessions=3)
    user = place.new_browser(address="192.0.2.1")
    back = provider.authorize(begun(user))

    for _ in range(9):
        begun(place.new_browser(address="192.0.2.2"))

    assert place.access.figures()["begun_logins"] == 3
    assert came_back(user, back).status_code == 200


def test_wrong_logins_are_limited_by_address(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, logins_per_minute=3)
    stranger = place.new_browser(address="192.0.2.1")

    statuses = [
        stranger.get(f"/login/provider/back?code=guess&state={number}").status_code for number in range(5)
    ]

    assert statuses == [401, 401, 401, 429, 429]
    user = place.new_browser(address="192.0.2.1")
    assert at_provider(user, provider).status_code == 200


def test_logins_of_one_user_are_limited_like_all_requests(provider: OpenIdProvider, secret: Path) -> None:
    place = oidc_site(provider, secret, requests_per_second=1)

    statuses = [
        at_provider(place.new_browser(address=f"192.0.2.{number}"), provider).status_code
        for number in range(11)
    ]

    assert statuses == 10 * [200] + [429]


# a provider that fails


def assert_it_fails(place: Site, answer: httpx.Response, reason: str) -> None:
    assert answer.status_code == 502
    assert "cannot log you in now" in answer.text
    assert reason in html.unescape(answer.text)
    assert place.access.figures()["failed_logins"] == 1
    assert place.access.figures()["sessions"] == 0
    assert logged_in(place, OPERATOR).get("/who").status_code == 200


def test_a_console_starts_without_its_provider(
    place: Site, provider: OpenIdProvider, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    provider.answers["/.well-known/openid-configuration"] = (503, b"down")
    browser = place.new_browser()

    answer = browser.get("/login/provider")

    assert_it_fails(place, answer, "HTTP 503, expected a JSON object")
    failed = vars(caplog.records[0])
    assert (failed["act"], failed["outcome"]) == ("login", "failed")
    assert "HTTP 503" in failed["why"]
    provider.answers.clear()
    assert at_provider(browser, provider).status_code == 200


def test_a_provider_that_does_not_listen(secret: Path, tokens: Path) -> None:
    gone = OpenIdProvider(issuer="http://127.0.0.1:9")
    place = oidc_site(gone, secret, tokens=tokens)

    assert_it_fails(place, place.new_browser().get("/login/provider"), "127.0.0.1:9: ")


@pytest.mark.parametrize("path", ["/.well-known/openid-configuration", "/jwks"])
def test_a_slow_provider_at_the_beginning(
    provider: OpenIdProvider, secret: Path, tokens: Path, path: str
) -> None:
    place = oidc_site(provider, secret, tokens=tokens, oidc_timeout_s=0.3)
    provider.silent.add(path)

    assert_it_fails(place, place.new_browser().get("/login/provider"), "no answer within")


@pytest.mark.parametrize("path", ["/token", "/userinfo"])
def test_a_slow_provider_at_the_end(provider: OpenIdProvider, secret: Path, tokens: Path, path: str) -> None:
    place = oidc_site(provider, secret, tokens=tokens, oidc_timeout_s=0.5)
    provider.claims["groups"] = None
    browser = place.new_browser()
    url = begun(browser)
    provider.silent.add(path)

    assert_it_fails(place, came_back(browser, provider.authorize(url)), "no answer within")


@pytest.mark.parametrize(
    ("path", "answer", "reason"),
    [
        ("/.well-known/openid-configuration", (200, b" " * (1 << 20) + b"{}"), "more than 1048576 bytes"),
        ("/.well-known/openid-configuration", (200, b"[]"), "expected a JSON object"),
        ("/.well-known/openid-configuration", (302, b""), "HTTP 302"),
        ("/jwks", (200, b'{"keys": []}'), "its keys are not usable"),
        ("/jwks", (200, b'{"keys": [{"kty": "RSA"}]}'), "its keys are not usable"),
        ("/jwks", (200, b'{"keys": [7]}'), "its keys are not usable"),
        ("/token", (200, b"[" * 100_000), "expected a JSON object"),
        ("/token", (200, b" " * (1 << 20) + b"{}"), "more than 1048576 bytes"),
        ("/token", (401, b'{"error": "invalid_client"}'), "HTTP 401, 'invalid_client'"),
        ("/userinfo", (403, b""), "HTTP 403"),
    ],
)
def test_answers_that_are_none(
    place: Site, provider: OpenIdProvider, path: str, answer: tuple[int, bytes], reason: str
) -> None:
    provider.answers[path], provider.claims["groups"] = answer, None
    browser = place.new_browser()

    found = browser.get("/login/provider")
    if found.status_code == 303:
        found = came_back(browser, provider.authorize(found.headers["location"]))

    assert_it_fails(place, found, reason)


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "http://127.0.0.1:1"}, "it calls itself 'http://127.0.0.1:1', not"),
        ({"authorization_endpoint": "http://provider.example/"}, "its authorization_endpoint is no https"),
        ({"token_endpoint": None}, "its token_endpoint is no https"),
        ({"jwks_uri": "file:///etc/passwd"}, "its jwks_uri is no https"),
    ],
)
def test_a_provider_that_describes_itself_wrongly(
    place: Site, provider: OpenIdProvider, metadata: dict[str, str], reason: str
) -> None:
    provider.metadata = metadata

    assert_it_fails(place, place.new_browser().get("/login/provider"), reason)


def test_a_token_answer_without_an_id_token_is_refused(place: Site, provider: OpenIdProvider) -> None:
    provider.answers["/token"] = (200, b"{}")
    browser = place.new_browser()

    assert_nobody_is_in(place, browser, at_provider(browser, provider), "the ID token is not good")


def test_a_secret_that_is_gone_fails_the_login(place: Site, provider: OpenIdProvider, secret: Path) -> None:
    browser = place.new_browser()
    url = begun(browser)
    secret.unlink()

    assert_it_fails(place, came_back(browser, provider.authorize(url)), "--oidc-client-secret-file: cannot")


def test_the_claims_of_two_users_do_not_mix(place: Site, provider: OpenIdProvider) -> None:
    first, second = place.new_browser(), place.new_browser()
    urls = begun(first), begun(second)

    came_back(first, provider.authorize(urls[0]))
    provider.claims = dict(OLI)
    came_back(second, provider.authorize(urls[1]))

    assert [each.get("/who").json()[0] for each in (first, second)] == [ANN["preferred_username"], "oli"]


def test_pages_do_not_wait_for_a_slow_provider(provider: OpenIdProvider, secret: Path, tokens: Path) -> None:
    place = oidc_site(provider, secret, tokens=tokens, oidc_timeout_s=60.0)
    browser, app = logged_in(place, VIEWER), place.new_browser().app
    provider.silent.add("/.well-known/openid-configuration")

    async def asked(path: str, address: str, cookies: httpx.Cookies | None = None) -> int:
        transport = httpx.ASGITransport(app, client=(address, 40_000))
        async with httpx.AsyncClient(transport=transport, base_url=browser.url, cookies=cookies) as client:
            return (await client.get(path)).status_code

    async def all_asked() -> tuple[list[int], list[int]]:
        logins = [asyncio.create_task(asked("/login/provider", f"192.0.2.{number}")) for number in range(60)]
        while not provider.asked:
            await asyncio.sleep(0.01)
        pages = [await asked(path, "127.0.0.1", browser.cookies) for path in ("/", "/nodes", "/groups")]
        assert not any(each.done() for each in logins)
        provider.ended.set()
        return pages, await asyncio.gather(*logins)

    assert asyncio.run(all_asked()) == ([200, 200, 200], 60 * [303])
