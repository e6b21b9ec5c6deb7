"""Access without a login, names of the console, and bounds, by requests without a socket."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from starlette.types import Message, Receive

from odradek.endpoints import Address
from odradek.plugin import ConfigError
from odradek_console.web.users import Role
from support.console_site import ANYWHERE, OPERATOR, VIEWER, Site, acted, logged_in, site

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


# bounds


def test_wrong_tokens_are_limited_by_address(tokens: Path) -> None:
    place = site(tokens=tokens, logins_per_minute=3)
    guesser, other = place.new_browser(address="192.0.2.1"), place.new_browser(address="192.0.2.2")

    statuses = [guesser.post("/login", {"token": f"guess {n}"}).status_code for n in range(4)]
    limited = guesser.get("/who", {"Authorization": "Bearer guess"})

    assert statuses == [401, 401, 401, 429]
    assert (limited.status_code, limited.headers["retry-after"]) == (429, "20")
    assert other.post("/login", {"token": "guess"}).status_code == 401
    place.clock.now_s += 20
    assert guesser.post("/login", {"token": "guess"}).status_code == 401


def test_wrong_tokens_do_not_lock_out_the_right_one_of_their_address(tokens: Path) -> None:
    place = site(tokens=tokens)
    guesser, person = place.new_browser(address="192.0.2.1"), place.new_browser(address="192.0.2.1")

    guessed = {guesser.post("/login", {"token": f"guess {n}"}).status_code for n in range(100)}
    guessed |= {guesser.get("/who", {"Authorization": "Bearer guess"}).status_code for _ in range(300)}

    assert guessed == {401, 429}
    assert person.get("/who", {"Authorization": f"Bearer {VIEWER}"}).status_code == 200
    assert person.post("/login", {"token": VIEWER}).status_code == 303
    assert person.get("/who").status_code == 200
    assert place.access.figures()["refused_logins"] == 10


def test_logins_of_one_user_are_limited_like_all_requests(tokens: Path) -> None:
    place = site(tokens=tokens, requests_per_second=1)

    statuses = [place.new_browser().post("/login", {"token": VIEWER}).status_code for _ in range(11)]

    assert statuses == 10 * [303] + [429]
    assert place.new_browser().post("/login", {"token": OPERATOR}).status_code == 303


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

    assert [each.status_code for each in answers] == 9 * [200] + 2 * [429]
    assert answers[-1].headers["retry-after"] == "1"
    assert other.get("/who").status_code == 200
    place.clock.now_s += 1
    assert browser.get("/who").status_code == 200
    assert place.access.figures()["limited_requests"] == 2


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
