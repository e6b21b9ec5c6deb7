"""A console whose users log in at an OpenID provider."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import httpx2 as httpx

from odradek_console.web.oidc_settings import OidcSettings
from support.console_client import Browser
from support.console_site import Site, site
from support.openid_provider import CLIENT_ID, OpenIdProvider

ANN = {"preferred_username": "ann", "groups": ["people"]}
OLI = {"preferred_username": "oli", "groups": ["people", "admins"]}


def oidc_site(provider: OpenIdProvider, secret: Path, *, tokens: Path | None = None, **more: Any) -> Site:
    own = {name.removeprefix("oidc_"): more.pop(name) for name in list(more) if name.startswith("oidc_")}
    given = {"secret": secret, "operators": ("admins",), "viewers": ("people",), "timeout_s": 30.0}
    settings = OidcSettings(**{"issuer": provider.issuer, "client_id": CLIENT_ID, **given, **own})
    return site(tokens=tokens, oidc=settings, **more)


def begun(browser: Browser, after: str = "/who") -> str:
    """The address at the provider that a login leads to."""
    answer = browser.get(f"/login/provider?next={quote(after, safe='')}")
    assert answer.status_code == 303, answer.text
    return answer.headers["location"]


def came_back(browser: Browser, url: str) -> httpx.Response:
    """Go where the provider has led a browser."""
    parts = urlsplit(url)
    return browser.get(f"{parts.path}?{parts.query}", {"Sec-Fetch-Site": "cross-site"})


def at_provider(browser: Browser, provider: OpenIdProvider, after: str = "/who") -> httpx.Response:
    """Log in; the answer of the console to the browser that has come back."""
    return came_back(browser, provider.authorize(begun(browser, after)))


def assert_nobody_is_in(place: Site, browser: Browser, answer: httpx.Response, reason: str) -> None:
    assert answer.status_code == 401
    assert reason in html.unescape(answer.text)
    assert browser.get("/who").status_code == 303
    figures = place.access.figures()
    assert (figures["sessions"], figures["logins"], figures["refused_logins"]) == (0, 0, 1)
