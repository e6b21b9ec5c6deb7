"""Forms and acts, and their lines in the audit log, by requests without a socket."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from odradek_console.web.users import Role, User
from support.console_site import OPERATOR, VIEWER, acted, logged_in, site

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
