"""Access to pages: logins, roles, forms and bounds, by requests without a socket."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Message, Receive

from odradek.endpoints import Address
from odradek.plugin import ConfigError
from odradek_console.web.access import Access, csrf_token
from odradek_console.web.access_settings import AccessSettings
from odradek_console.web.app import make_app
from odradek_console.web.proxies import Proxies
from odradek_console.web.users import Role, User, require, user_of
from support.console_client import Browser, console_without_cluster

LOOPBACK = Address("127.0.0.1", 9642)
ANYWHERE = Address("0.0.0.0", 9642)
VIEWER = "a-token-for-looking-1"
OPERATOR = "a-token-for-acting-22"
PROXIES = Proxies(networks=(ip_network("10.0.0.0/8"),), role_header="X-Forwarded-Groups")
TLS = {"X-Forwarded-Proto": "https"}


@dataclass
class Clock:
    now_s: float = 1_000.0

    def __call__(self) -> float:
        return self.now_s


@dataclass
class Site:
    """A console with three pages of its own: who asks, a form token, and an act."""

    access: Access
    clock: Clock
    acts: list[dict[str, str]]
    new_browser: Callable[..., Browser]


async def who(request: Request) -> Response:
    user = user_of(request)
    return JSONResponse([user.name, str(user.role), user.address])


async def a_form(request: Request) -> Response:
    return PlainTextResponse(csrf_token(request))


def site(address: Address = LOOPBACK, **settings: Any) -> Site:
    clock, acts = Clock(), list[dict[str, str]]()
    access = Access(AccessSettings(**settings), address, clock)
    app = make_app(console_without_cluster(access))

    async def act(request: Request) -> Response:
        with access.audit.act(require(request, Role.OPERATOR), "thing.alter", request.state.form["thing"]):
            acts.append(dict(request.state.form))
        return PlainTextResponse("done")

    app.router.routes += [Route("/who", who), Route("/form", a_form), Route("/act", act, methods=["POST"])]
    return Site(access, clock, acts, lambda **more: Browser(app=app, **more))


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    file = tmp_path / "tokens.toml"
    digest = hashlib.sha256(OPERATOR.encode()).hexdigest()
    file.write_text(
        f'[[token]]\nname = "ann"\nrole = "viewer"\ntoken = "{VIEWER}"\n'
        f'[[token]]\nname = "oli"\nrole = "operator"\nsha256 = "{digest}"\n'
    )
    return file


def logged_in(place: Site, token: str, **more: Any) -> Browser:
    browser = place.new_browser(**more)
    answer = browser.post("/login", {"token": token})
    assert answer.status_code == 303, answer.text
    return browser


def acted(browser: Browser, csrf: str | None = None, **headers: str) -> httpx.Response:
    """Send the form of the act, with the token that its page has."""
    token = browser.get("/form").text if csrf is None else csrf
    return browser.post("/act", {"thing": "x", "csrf": token}, headers)


# without a login


def test_everybody_on_this_machine_may_look() -> None:
    browser = site().new_browser()

    assert browser.get("/who").json() == ["local", "viewer", "127.0.0.1"]
    assert acted(browser).status_code == 403


def test_everybody_on_this_machine_may_act_if_that_is_said() -> None:
    place = site(local_role=Role.OPERATOR)

    assert acted(place.new_browser()).text == "done"
    assert [act["thing"] for act in place.acts] == ["x"]


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "console.example"])
def test_another_address_needs_a_login(host: str) -> None:
    with pytest.raises(ConfigError, match=r"file of tokens \(--tokens\) or trusted proxies"):
        site(Address(host, 9642))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "::ffff:127.0.0.1"])
def test_a_loopback_address_needs_none(host: str) -> None:
    assert site(Address(host, 9642)).access.tokens is None


def test_a_role_for_everybody_beside_a_login_is_refused(tokens: Path) -> None:
    with pytest.raises(ConfigError, match="--role"):
        site(tokens=tokens, local_role=Role.OPERATOR)


@pytest.mark.parametrize(
    "url", ["http://evil.example", "http://evil.example:9642", "http://127.0.0.1.evil.example"]
)
def test_another_name_that_points_here_is_refused(url: str) -> None:
    place = site()

    assert place.new_browser(url=url).get("/who").status_code == 421
    assert place.access.figures()["refused_hosts"] == 1


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For"])
def test_nobody_is_local_through_a_proxy(header: str) -> None:
    answer = site().new_browser().get("/who", {header: "127.0.0.1"})

    assert answer.status_code == 403
    assert "--trusted-proxy" in answer.text


@pytest.mark.parametrize("url", ["http://localhost:1", "http://127.0.0.1:9642", "http://[::1]:9642"])
def test_names_of_loopback_are_allowed(url: str) -> None:
    assert site().new_browser(url=url).get("/who").status_code == 200


def test_a_name_can_be_allowed(tokens: Path) -> None:
    place = site(ANYWHERE, tokens=tokens, hosts=("console.example",))

    assert place.new_browser(url="https://console.example").get("/login").status_code == 200
    assert place.new_browser(url="https://other.example").get("/login").status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1/static/", "127.0.0.1/static/?", "a b", "user@127.0.0.1", ""])
def test_a_host_that_is_none_opens_nothing(tokens: Path, host: str) -> None:
    browser = site(tokens=tokens).new_browser()

    assert browser.get("/who", {"Host": host}).status_code == 421


# tokens


def test_a_person_logs_in_and_out(tokens: Path) -> None:
    browser = site(tokens=tokens).new_browser()

    asked = browser.get("/who?a=1&b=%2F")
    assert asked.status_code == 303
    assert asked.headers["location"] == "/login?next=%2Fwho%3Fa%3D1%26b%3D%252F"
    assert 'name="next" value="/who?a=1&amp;b=%2F"' in browser.get(asked.headers["location"]).text
    done = browser.post("/login", {"token": VIEWER, "next": "/who?a=1"})
    assert (done.status_code, done.headers["location"]) == (303, "/who?a=1")
    assert browser.get("/who").json() == ["ann", "viewer", "127.0.0.1"]
    out = browser.post("/logout", {"csrf": browser.get("/form").text})
    assert out.status_code == 303
    assert browser.get("/who").status_code == 303


def test_the_cookie_is_for_this_site_only(tokens: Path) -> None:
    place = site(tokens=tokens)

    plain = place.new_browser().post("/login", {"token": VIEWER}).headers["set-cookie"]
    secure = (
        place.new_browser(url="https://127.0.0.1").post("/login", {"token": VIEWER}).headers["set-cookie"]
    )

    assert plain.startswith("odradek-9642=")
    assert "HttpOnly; Path=/; SameSite=strict" in plain
    assert "Secure" not in plain
    assert secure.startswith("__Host-odradek=")
    assert secure.endswith("; Secure")


def test_the_page_after_the_login_is_the_one_that_was_wanted(tokens: Path) -> None:
    browser = site(tokens=tokens).new_browser()

    asked = browser.get("/clients/a%2Fb%3Fc%23d?e=%26")

    assert asked.headers["location"] == "/login?next=%2Fclients%2Fa%252Fb%253Fc%2523d%3Fe%3D%2526"


def test_a_wrong_token_is_refused(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = place.new_browser()

    answer = browser.post("/login", {"token": VIEWER + "x"})

    assert answer.status_code == 401
    assert "the token is wrong" in answer.text
    assert "set-cookie" not in answer.headers
    assert place.access.figures()["refused_logins"] == 1


@pytest.mark.parametrize(
    "after", ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "/a\nb"]
)
def test_a_login_leads_nowhere_else(tokens: Path, after: str) -> None:
    answer = site(tokens=tokens).new_browser().post("/login", {"token": VIEWER, "next": after})

    assert answer.headers["location"] == "/"


def test_a_link_of_another_site_is_asked_again(tokens: Path) -> None:
    browser = site(tokens=tokens).new_browser()

    answer = browser.get('/who?"><b>', {"Sec-Fetch-Site": "cross-site"})

    assert answer.status_code == 200
    assert '<meta http-equiv="refresh" content="0;url=/who?' in answer.text
    assert "<b>" not in answer.text


def test_a_program_sends_the_token_with_each_request(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = place.new_browser()
    bearer = {"Authorization": f"Bearer {OPERATOR}"}

    assert browser.send("GET", "/who", headers=bearer).json()[:2] == ["oli", "operator"]
    assert browser.post("/act", {"thing": "y"}, bearer).text == "done"
    assert browser.post("/act", {"thing": "y"}, {"Authorization": f"Bearer {VIEWER}"}).status_code == 403
    assert browser.send("GET", "/api/v1/clients", headers={"Authorization": "Bearer x"}).json() == {
        "error": "the token is wrong"
    }
    assert len(place.acts) == 1
    assert place.access.figures()["sessions"] == 0


@pytest.mark.parametrize("path", ["/api/v1/clients", "/events", "/who"])
def test_a_program_without_a_token_gets_a_status(tokens: Path, path: str) -> None:
    answer = site(tokens=tokens).new_browser().send("GET", path)

    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "path", ["/static/../who", "/static/%2e%2e/who", "/none", "/login/", "/LOGIN", "//login", "/"]
)
def test_only_the_login_is_public(tokens: Path, path: str) -> None:
    answer = site(tokens=tokens).new_browser().get(path)

    assert (answer.status_code, answer.text) in [(303, ""), (404, "Not Found\n")]


def test_a_changed_file_is_read_again(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = logged_in(place, VIEWER)

    tokens.write_text(tokens.read_text().replace('"viewer"', '"operator"'))
    assert browser.get("/who").json()[1] == "operator"
    tokens.write_text("this is not TOML, so nothing changes")
    assert browser.get("/who").json()[1] == "operator"
    tokens.write_text('[[token]]\nname = "eve"\nrole = "viewer"\ntoken = "another-token-for-eve"\n')
    assert browser.get("/who").status_code == 303
    assert place.access.figures()["sessions"] == 0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", r"1 to 1000 tables \[\[token\]\]"),
        ("[[", "expected TOML"),
        ("token = 3", "1 to 1000 tables"),
        ('[[token]]\nname = "a"\nrole = "viewer"\n', "either token or sha256"),
        ('[[token]]\nname = "a"\nrole = "viewer"\ntoken = "too-short"\n', "at least 20"),
        ('[[token]]\nname = "a"\nrole = "viewer"\nsha256 = "12"\n', "64 hexadecimal digits"),
        ('[[token]]\nname = "a"\nrole = "king"\ntoken = "a-token-for-looking-1"\n', "viewer or operator"),
        ('[[token]]\nname = "local"\nrole = "viewer"\ntoken = "a-token-for-looking-1"\n', "other than local"),
        ('[[token]]\nname = "a\\nb"\nrole = "viewer"\ntoken = "a-token-for-looking-1"\n', "printable name"),
        ('[[token]]\nname = "a"\nroles = "viewer"\ntoken = "a-token-for-looking-1"\n', "the keys name, role"),
        ('[[token]]\nname = "a"\nrole = "viewer"\ntoken = "a-token-for-looking-1"\n' * 2, "token of its own"),
    ],
)
def test_a_file_that_is_wrong_stops_the_start(tokens: Path, text: str, problem: str) -> None:
    tokens.write_text(text)

    with pytest.raises(ConfigError, match=problem) as raised:
        site(tokens=tokens)

    assert VIEWER not in str(raised.value)


@pytest.mark.parametrize(("mode", "warnings"), [(0o600, 0), (0o640, 1), (0o604, 1)])
def test_a_file_of_tokens_that_others_can_read(
    tokens: Path, caplog: pytest.LogCaptureFixture, mode: int, warnings: int
) -> None:
    tokens.chmod(mode)

    site(tokens=tokens)

    assert len(caplog.records) == warnings


def test_digests_may_be_read_by_others(tokens: Path, caplog: pytest.LogCaptureFixture) -> None:
    tokens.write_text(f'[[token]]\nname = "ann"\nrole = "viewer"\nsha256 = "{64 * "a"}"\n')
    tokens.chmod(0o644)

    site(tokens=tokens)

    assert caplog.records == []


# sessions


def test_a_session_ends_when_it_is_idle(tokens: Path) -> None:
    place = site(tokens=tokens, session_idle_s=100)
    browser = logged_in(place, VIEWER)

    place.clock.now_s += 99
    assert browser.get("/who").status_code == 200
    place.clock.now_s += 99
    assert browser.get("/who", {"X-Live": "1"}).status_code == 200
    place.clock.now_s += 2
    assert browser.get("/who").status_code == 303


def test_a_session_ends_by_age(tokens: Path) -> None:
    place = site(tokens=tokens, session_idle_s=100, session_age_s=250)
    browser = logged_in(place, VIEWER)

    for _ in range(3):
        place.clock.now_s += 80
        assert browser.get("/who").status_code == 200
    place.clock.now_s += 11
    assert browser.get("/who").status_code == 303


def test_the_number_of_sessions_is_bounded(tokens: Path) -> None:
    place = site(tokens=tokens, max_sessions=2)
    first, second = logged_in(place, VIEWER), logged_in(place, OPERATOR)
    assert first.get("/who").status_code == 200

    third = logged_in(place, VIEWER)

    assert [each.get("/who").status_code for each in (first, second, third)] == [200, 303, 200]
    assert place.access.figures()["evicted_sessions"] == 1


def test_a_login_makes_a_new_session_and_ends_the_old_one(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = logged_in(place, VIEWER)
    before = browser.cookies["odradek-9642"]

    browser.post("/login", {"token": OPERATOR})

    assert browser.cookies["odradek-9642"] != before
    assert list(place.access.sessions.sessions) == [browser.cookies["odradek-9642"]]


def test_a_session_that_somebody_made_up_is_none(tokens: Path) -> None:
    browser = site(tokens=tokens).new_browser(cookies=httpx.Cookies({"odradek-9642": "made-up"}))

    assert browser.get("/who").status_code == 303


# forms


def test_an_operator_acts(tokens: Path) -> None:
    place = site(tokens=tokens)
    browser = logged_in(place, OPERATOR)

    answer = acted(browser, Origin="http://127.0.0.1:9642", **{"Sec-Fetch-Site": "same-origin"})

    assert answer.text == "done"
    assert place.acts[0]["thing"] == "x"


def test_a_viewer_does_not(tokens: Path) -> None:
    place = site(tokens=tokens)

    answer = acted(logged_in(place, VIEWER))

    assert (answer.status_code, answer.text) == (403, "ann may look, but only an operator may do this\n")
    assert place.access.figures()["refused_roles"] == 1


@pytest.mark.parametrize("csrf", ["", "00", "not hexadecimal", "ab" * 48])
def test_a_form_without_its_token_is_refused(tokens: Path, csrf: str) -> None:
    place = site(tokens=tokens)

    answer = acted(logged_in(place, OPERATOR), csrf)

    assert (answer.status_code, place.acts) == (403, [])
    assert place.access.figures()["refused_forms"] == 1


def test_the_token_of_another_session_is_refused(tokens: Path) -> None:
    place = site(tokens=tokens)
    foreign = logged_in(place, OPERATOR).get("/form").text

    assert acted(logged_in(place, OPERATOR), foreign).status_code == 403


def test_an_old_form_is_refused(tokens: Path) -> None:
    place = site(local_role=Role.OPERATOR, session_age_s=100)
    browser = place.new_browser()
    old = browser.get("/form").text

    place.clock.now_s += 102

    assert acted(browser, old).status_code == 403
    assert acted(browser).status_code == 200


def test_no_two_tokens_are_alike() -> None:
    browser = site().new_browser()

    assert browser.get("/form").text != browser.get("/form").text


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:1234"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "file://127.0.0.1:9642"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "none"},
        {"Origin": "http://127.0.0.1:9642", "X-Forwarded-Host": "x", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://evil.example", "X-Forwarded-Host": "evil.example"},
    ],
)
def test_a_form_of_another_site_is_refused(tokens: Path, headers: dict[str, str]) -> None:
    for place in (site(tokens=tokens), site(local_role=Role.OPERATOR)):
        browser = logged_in(place, OPERATOR) if place.access.tokens is not None else place.new_browser()

        assert acted(browser, None, **headers).status_code == 403
        assert place.acts == []


def test_nobody_is_logged_in_by_another_site(tokens: Path) -> None:
    place = site(tokens=tokens)

    answer = place.new_browser().post("/login", {"token": VIEWER}, {"Origin": "http://evil.example"})

    assert answer.status_code == 403
    assert place.access.figures()["sessions"] == 0


@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "FOO"])
def test_each_method_that_may_change_something_needs_a_form(method: str) -> None:
    browser = site(local_role=Role.OPERATOR).new_browser()

    assert browser.send(method, "/act").status_code == 403


# a proxy that logs users in


def through_proxy(place: Site, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return place.new_browser(address="10.1.2.3", url="http://console:9642").get("/who", named)


def test_a_proxy_names_the_user() -> None:
    place = site(ANYWHERE, proxies=PROXIES)

    answer = through_proxy(
        place,
        X_Forwarded_User="ann",
        X_Forwarded_Groups="dev, operator",
        X_Forwarded_For="6.6.6.6, 192.0.2.7",
    )

    assert answer.json() == ["ann", "operator", "192.0.2.7"]


def test_its_roles_are_viewers_without_a_header_for_them() -> None:
    place = site(ANYWHERE, proxies=Proxies(networks=PROXIES.networks))

    assert through_proxy(place, X_Forwarded_User="ann", X_Forwarded_Groups="operator").json()[1] == "viewer"


@pytest.mark.parametrize("address", ["192.0.2.1", "::1", "127.0.0.1", "unix", "11.0.0.1"])
def test_another_address_cannot_name_a_user(address: str) -> None:
    place = site(ANYWHERE, proxies=PROXIES)
    headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operator", "X-Forwarded-For": "10.1.2.3"}

    answer = place.new_browser(address=address).get("/who", headers)

    assert answer.status_code == 401


def test_an_address_of_version_4_is_known_in_version_6() -> None:
    place = site(Address("::", 9642), proxies=PROXIES)
    headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "viewer"}

    answer = place.new_browser(address="::ffff:10.1.2.3").get("/who", headers)

    assert answer.json() == ["ann", "viewer", "10.1.2.3"]


def test_a_proxy_that_names_nobody_lets_nobody_in() -> None:
    assert through_proxy(site(proxies=PROXIES), X_Forwarded_Groups="operator").status_code == 401


@pytest.mark.parametrize("name", ["", "local", "a" * 300, " ", "a\tb"])
def test_a_name_that_is_none_is_refused(name: str) -> None:
    place = site(ANYWHERE, proxies=PROXIES)

    assert through_proxy(place, X_Forwarded_User=name, X_Forwarded_Groups="operator").status_code == 403


def test_two_names_are_refused() -> None:
    place = site(ANYWHERE, proxies=PROXIES)
    browser = place.new_browser(address="10.1.2.3")
    headers = [("X-Forwarded-User", "ann"), ("X-Forwarded-User", "oli"), ("X-Forwarded-Groups", "operator")]

    assert browser.send("GET", "/who", headers=headers).status_code == 403


@pytest.mark.parametrize("groups", ["", "dev", "Operator", "viewers"])
def test_a_user_without_a_role_is_refused(groups: str) -> None:
    place = site(ANYWHERE, proxies=PROXIES)

    answer = through_proxy(place, X_Forwarded_User="ann", X_Forwarded_Groups=groups)

    assert answer.status_code == 403
    assert "none of the roles" in answer.text


def test_forms_of_users_of_a_proxy_have_tokens_too() -> None:
    place = site(ANYWHERE, proxies=PROXIES)
    ann, eve = ({"X-Forwarded-User": name, "X-Forwarded-Groups": "operator"} for name in ("ann", "eve"))
    browser = place.new_browser(address="10.1.2.3", url="http://console:9642")
    token, foreign = browser.get("/form", ann).text, browser.get("/form", eve).text
    outside = {"Origin": "https://console.example", "X-Forwarded-Host": "console.example"}

    assert browser.post("/act", {"thing": "x"}, ann).status_code == 403
    assert browser.post("/act", {"thing": "x", "csrf": foreign}, ann).status_code == 403
    assert browser.post("/act", {"thing": "x", "csrf": token}, ann | outside).status_code == 200


def test_the_cookie_is_secure_where_the_proxy_has_tls(tokens: Path) -> None:
    place = site(tokens=tokens, proxies=PROXIES)

    trusted = place.new_browser(address="10.1.2.3").post("/login", {"token": VIEWER}, TLS)
    untrusted = place.new_browser(address="192.0.2.1").post("/login", {"token": VIEWER}, TLS)

    assert "Secure" in trusted.headers["set-cookie"]
    assert "Secure" not in untrusted.headers["set-cookie"]


# bounds


def test_wrong_tokens_are_limited_by_address(tokens: Path) -> None:
    place = site(tokens=tokens, logins_per_minute=3)
    guesser, other = place.new_browser(address="192.0.2.1"), place.new_browser(address="192.0.2.2")

    statuses = [guesser.post("/login", {"token": f"guess {n}"}).status_code for n in range(4)]
    limited = guesser.post("/login", {"token": VIEWER})

    assert statuses == [401, 401, 401, 429]
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "20")
    assert guesser.get("/who", {"Authorization": f"Bearer {VIEWER}"}).status_code == 429
    assert other.post("/login", {"token": VIEWER}).status_code == 303
    place.clock.now_s += 20
    assert guesser.post("/login", {"token": VIEWER}).status_code == 303


def test_a_network_of_version_6_counts_as_one_address(tokens: Path) -> None:
    place = site(Address("::", 9642), tokens=tokens, logins_per_minute=2)

    statuses = [
        place.new_browser(address=f"2001:db8::{n}").post("/login", {"token": "guess"}).status_code
        for n in range(3)
    ]

    assert statuses == [401, 401, 429]


def test_right_tokens_are_not_limited(tokens: Path) -> None:
    place = site(tokens=tokens, logins_per_minute=1)

    assert all(logged_in(place, VIEWER) for _ in range(3))


def test_requests_are_limited_by_user(tokens: Path) -> None:
    place = site(tokens=tokens, requests_per_second=1)
    browser, other = logged_in(place, VIEWER), logged_in(place, OPERATOR)

    answers = [browser.get("/who") for _ in range(11)]

    assert [each.status_code for each in answers] == 10 * [200] + [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert other.get("/who").status_code == 200
    place.clock.now_s += 1
    assert browser.get("/who").status_code == 200
    assert place.access.figures()["limited_requests"] == 1


def test_a_body_is_bounded() -> None:
    place = site(local_role=Role.OPERATOR, max_body_bytes=100)

    answer = place.new_browser().post("/act", {"thing": 100 * "x"})

    assert answer.status_code == 413
    assert place.access.figures()["refused_bodies"] == 1


def test_a_stranger_sends_little(tokens: Path) -> None:
    place = site(tokens=tokens)

    answer = place.new_browser().post("/login", {"token": 9_000 * "x"})

    assert answer.status_code == 413


def raw_status(place: Site, headers: dict[str, str], receive: Receive) -> int:
    """The status of an act whose body is what a function says."""
    sent: list[Message] = []
    fields = {"host": "127.0.0.1", "content-type": "application/x-www-form-urlencoded"} | headers
    scope = {
        "type": "http",
        "method": "POST",
        "scheme": "http",
        "path": "/act",
        "query_string": b"",
        "client": ("127.0.0.1", 40_000),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(place.new_browser().app(scope, receive, send))
    return int(sent[0]["status"])


async def never() -> Message:
    raise AssertionError("the body was read")


async def without_end() -> Message:
    return {"type": "http.request", "body": 60 * b"x", "more_body": True}


async def stalled() -> Message:
    await asyncio.Future()
    raise AssertionError


async def cut_off() -> Message:
    return {"type": "http.disconnect"}


@pytest.mark.parametrize(
    ("headers", "receive", "status"),
    [
        ({"content-length": "101"}, never, 413),
        ({"content-length": "x"}, never, 413),
        ({}, without_end, 413),
        ({"content-length": "100"}, without_end, 413),
        ({}, stalled, 408),
        ({}, cut_off, 400),
    ],
)
def test_a_body_that_is_too_large_or_does_not_come(
    headers: dict[str, str], receive: Receive, status: int
) -> None:
    place = site(local_role=Role.OPERATOR, max_body_bytes=100, body_timeout_s=0)

    assert raw_status(place, headers, receive) == status
    assert place.access.figures()["refused_bodies"] == 1


@pytest.mark.parametrize("content", [b"a=%ff", b"a=\xff", b"&".join([b"a=1"] * 1001)])
def test_a_malformed_form_is_refused(content: bytes) -> None:
    browser = site(local_role=Role.OPERATOR).new_browser()
    headers = {"Content-Type": "application/x-www-form-urlencoded"}

    assert browser.send("POST", "/act", content=content, headers=headers).status_code == 400


# the audit log


def audited(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str, str, str]]:
    """User, act, target and outcome of each line."""
    records = [vars(each) for each in caplog.records if each.name == "odradek.audit"]
    return [(each["user"], each["act"], each["target"], each["outcome"]) for each in records]


def test_each_act_has_a_line(tokens: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    place = site(tokens=tokens)

    acted(logged_in(place, OPERATOR))
    acted(logged_in(place, VIEWER))
    place.new_browser().post("/login", {"token": "guess"})

    assert audited(caplog) == [
        ("oli", "login", "console", "allowed"),
        ("oli", "thing.alter", "x", "allowed"),
        ("ann", "login", "console", "allowed"),
        ("ann", "POST", "/act", "denied"),
        ("", "login", "console", "denied"),
    ]
    assert vars(caplog.records[-1])["address"] == "127.0.0.1"


def test_an_act_that_fails_has_a_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    place = site(local_role=Role.OPERATOR)
    user = User("local", Role.OPERATOR, "127.0.0.1")

    with pytest.raises(ZeroDivisionError), place.access.audit.act(user, "thing.alter", "x"):
        raise ZeroDivisionError("by zero")

    assert audited(caplog) == [("local", "thing.alter", "x", "failed")]
    assert vars(caplog.records[-1])["why"] == "ZeroDivisionError: by zero"


def test_refusals_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "odradek.audit")
    place = site()
    user = User("local", Role.OPERATOR, "127.0.0.1")

    for _ in range(100):
        place.access.audit.refused(user, "POST", "/act", "no")
    place.clock.now_s += 60
    place.access.audit.refused(user, "POST", "/act", "no")

    assert len(audited(caplog)) == 61
    assert vars(caplog.records[-1])["why"] == "no (40 more refusals before have no line)"
