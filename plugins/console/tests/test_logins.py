"""Logins with a token, and their sessions, by requests without a socket."""

from __future__ import annotations

import hashlib
from pathlib import Path

import httpx2 as httpx
import pytest

from odradek.plugin import ConfigError
from support.console_site import OPERATOR, VIEWER, logged_in, site

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
    wrong = {"Authorization": f"Bearer {20 * 'x'}"}
    assert browser.send("GET", "/api/v1/clients", headers=wrong).json() == {"error": "the token is wrong"}
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


def test_a_short_token_is_none_even_if_the_file_has_its_digest(tokens: Path) -> None:
    digest = hashlib.sha256(b"test").hexdigest()
    tokens.write_text(f'[[token]]\nname = "ann"\nrole = "operator"\nsha256 = "{digest}"\n')

    answer = site(tokens=tokens).new_browser().post("/login", {"token": "test"})

    assert answer.status_code == 401
    assert "the token is wrong: each has at least 20 characters" in answer.text


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
    first, second = logged_in(place, VIEWER), logged_in(place, VIEWER)
    assert first.get("/who").status_code == 200

    third = logged_in(place, VIEWER)

    assert [each.get("/who").status_code for each in (first, second, third)] == [200, 303, 200]
    assert place.access.figures()["evicted_sessions"] == 1


def test_sessions_that_have_ended_make_room_first(tokens: Path) -> None:
    place = site(tokens=tokens, max_sessions=2, session_idle_s=100)
    logged_in(place, OPERATOR)
    place.clock.now_s += 101
    first = logged_in(place, VIEWER)

    second = logged_in(place, VIEWER)

    assert [each.get("/who").status_code for each in (first, second)] == [200, 200]
    assert place.access.figures()["evicted_sessions"] == 0


def test_the_logins_of_one_user_end_none_of_another(tokens: Path) -> None:
    place = site(tokens=tokens, max_sessions=3)
    other = logged_in(place, OPERATOR)

    many = [logged_in(place, VIEWER) for _ in range(9)]

    assert other.get("/who").status_code == 200
    assert [each.get("/who").status_code for each in many] == 7 * [303] + 2 * [200]


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
