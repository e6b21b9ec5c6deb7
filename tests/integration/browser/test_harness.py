"""The browser finds faults of pages, under the security policy that the console has."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from support.browser import DESK, PHONE, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.browser, pytest.mark.timeout(120)]
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
PAGE = (
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Page</title>{head}</head>{body}</html>'
)
HEAD = '<link rel="stylesheet" href="/page.css"><script src="/page.js" defer></script>'
GOOD = '<body><main><h1>Clients</h1><p id="live">loading</p></main></body>'
FILES = {
    "/": ("text/html", PAGE.format(head=HEAD, body=GOOD)),
    "/page.css": ("text/css", "body { color: black; background: white } .wide { width: 500px }"),
    "/page.js": ("text/javascript", "document.getElementById('live').textContent = 'live'"),
    "/broken.js": ("text/javascript", "nothing.there()"),
    "/inline": ("text/html", PAGE.format(head="<script>document.title = 'inline'</script>", body=GOOD)),
    "/broken": ("text/html", PAGE.format(head='<script src="/broken.js"></script>', body=GOOD)),
    "/elsewhere": (
        "text/html",
        PAGE.format(head='<script src="http://example.com/x.js"></script>', body=GOOD),
    ),
    "/wide": ("text/html", PAGE.format(head=HEAD, body=f'<body><p class="wide" id="live"></p>{GOOD[6:]}')),
    "/unlabeled": (
        "text/html",
        PAGE.format(head="", body='<body><main><h1>Clients</h1><img src="/x.png"><input></main></body>'),
    ),
    "/x.png": ("image/png", ""),
    "/favicon.ico": ("image/png", ""),
}


class Site(BaseHTTPRequestHandler):
    """Serves the files."""

    def do_GET(self) -> None:
        kind, text = FILES[self.path]
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Security-Policy", POLICY)
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Site) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("width", "is_dark"), [(PHONE, False), (DESK, True)])
def test_a_good_page_has_no_fault(chromium: Browser, site: str, width: int, is_dark: bool) -> None:
    with visit(chromium, site, width=width, is_dark=is_dark) as window:
        window.open("/")

        assert window.page.inner_text("#live") == "live"
        assert window.check() == []


def test_a_page_without_script(chromium: Browser, site: str) -> None:
    with visit(chromium, site, has_script=False) as window:
        window.open("/")

        assert window.page.inner_text("#live") == "loading"


@pytest.mark.parametrize(
    ("path", "fault"),
    [
        ("/inline", "console: Executing inline script violates"),
        ("/broken", "script: nothing is not defined"),
        ("/elsewhere", "request to http://example.com/x.js"),
        ("/wide", "wider than 320 px: 5"),
        ("/unlabeled", "axe: image-alt at img"),
    ],
)
def test_a_fault_is_found(chromium: Browser, site: str, path: str, fault: str) -> None:
    with visit(chromium, site, width=PHONE) as window:
        window.open(path)

        assert any(each.startswith(fault) for each in window.check()), window.check()
