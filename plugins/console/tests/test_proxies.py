"""Users whom a proxy has logged in, by requests without a socket."""

from __future__ import annotations

from ipaddress import ip_network
from pathlib import Path

import httpx2 as httpx
import pytest

from odradek.endpoints import Address
from odradek_console.web.proxies import Proxies
from support.console_site import ANYWHERE, VIEWER, Site, site

PROXIES = Proxies(networks=(ip_network("10.0.0.0/8"),), role_header="X-Forwarded-Groups")
TLS = {"X-Forwarded-Proto": "https"}


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
