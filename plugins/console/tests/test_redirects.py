"""No address, parameter or header of a stranger leads a browser to another site."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, unquote_to_bytes

import pytest
from starlette.types import Message

from support.console_site import VIEWER, Site, logged_in, site
from support.redirects import EVIL, HERE, site_of

PLACES = re.compile(r'(?:http-equiv="refresh" content="0;url=|name="next" value=")([^"]*)"')
"""Where a page leads a browser, now or after its form was sent."""


def asked(place: Site, target: str, headers: Mapping[str, str]) -> tuple[int, dict[str, str], str]:
    """Status, headers and text of the answer to a GET, whose target reaches the console as it is."""
    sent: list[Message] = []
    path, _, query = target.partition("?")
    fields = {"host": HERE, "accept": "text/html"} | dict(headers)
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "path": unquote_to_bytes(path).decode("utf-8", "replace"),
        "raw_path": path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "client": ("127.0.0.1", 40_000),
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    asyncio.run(place.new_browser().app(scope, receive, send))
    found = {name.decode(): value.decode("latin-1") for name, value in sent[0]["headers"]}
    return sent[0]["status"], found, b"".join(each.get("body", b"") for each in sent[1:]).decode()


def assert_it_stays(status: int, headers: Mapping[str, str], text: str) -> None:
    places = [html.unescape(each) for each in PLACES.findall(text)]
    if "location" in headers:
        assert not re.search(r"[\r\n]", headers["location"])
        places.append(headers["location"])
    assert status in (200, 303, 307, 400, 403, 404, 405)
    assert [site_of(each) for each in places] == [HERE] * len(places)


@pytest.mark.parametrize("site_of_link", ["none", "same-origin", "cross-site"])
@pytest.mark.parametrize("target", EVIL)
def test_a_stranger_stays_at_the_console(tokens: Path, target: str, site_of_link: str) -> None:
    place = site(tokens=tokens)

    status, headers, text = asked(place, target, {"sec-fetch-site": site_of_link})

    assert_it_stays(status, headers, text)
    if "location" in headers:
        assert_it_stays(*asked(place, headers["location"], {}))


@pytest.mark.parametrize("target", EVIL)
def test_the_login_leads_to_the_console(tokens: Path, target: str) -> None:
    place = site(tokens=tokens)

    assert_it_stays(*asked(place, f"/login?next={quote(target, safe='')}", {}))
    done = place.new_browser().post("/login", {"token": VIEWER, "next": target})

    assert done.status_code == 303
    assert_it_stays(done.status_code, done.headers, "")


@pytest.mark.parametrize("target", EVIL)
def test_who_is_logged_in_stays_too(tokens: Path, target: str) -> None:
    place = site(tokens=tokens)
    cookies = "; ".join(f"{name}={value}" for name, value in logged_in(place, VIEWER).cookies.items())

    assert_it_stays(*asked(place, target, {"cookie": cookies}))


@pytest.mark.parametrize("host", ["evil.example", "evil.example:9642", f"evil.example@{HERE}"])
@pytest.mark.parametrize("target", ["/", "/login", "/login/", "/host/", "/static", "//evil.example/"])
def test_another_name_of_the_console_is_in_no_answer(tokens: Path, target: str, host: str) -> None:
    place = site(tokens=tokens)

    for more in ({}, {"x-forwarded-host": host}, {"forwarded": f"host={host}"}):
        status, headers, text = asked(place, target, {"host": host, "sec-fetch-site": "cross-site", **more})

        assert status == 421 or "evil" not in headers.get("location", "").partition("?")[0]
        assert all(site_of(html.unescape(each)) == HERE for each in PLACES.findall(text))
