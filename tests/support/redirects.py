"""Texts that lead a careless page to another site, and where a browser would go."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit

HERE = "127.0.0.1:9642"
EVIL = (
    "//evil.example/",
    "//evil.example",
    "///evil.example/",
    "////evil.example/%2e%2e",
    "//user:word@evil.example/",
    "//evil.example:9642/",
    "/\\evil.example/",
    "/\\/evil.example/",
    "\\\\evil.example/",
    "/%2F/evil.example/",
    "/%5Cevil.example/",
    "//%65vil.example/",
    "/.//evil.example/",
    "/..//evil.example/",
    "/\t/evil.example/",
    "/\r/evil.example/",
    "/\n/evil.example/",
    "/%09/evil.example/",
    "/%0d%0aLocation:%20http://evil.example/",
    "/\r\nLocation: http://evil.example/",
    "/%E5%98%8A%E5%98%8DLocation:%20http://evil.example/",
    "http://evil.example/",
    "https:evil.example/",
    "javascript:alert(1)",
    "evil.example/",
    "@evil.example/",
    ".evil.example/",
    "?next=//evil.example/",
    "//evil.example/?next=%2F%2Fevil.example%2F",
    "//login/",
    "//evil.example/login",
    "/login//evil.example",
    "/static//evil.example/",
    "/static/..//evil.example/",
    "/subscriptions/",
    "/clients//evil.example/watch",
    "/clients/%2F%2Fevil.example/watch",
)


def site_of(place: str) -> str:
    """The host where a browser looks for a place that a page at the console names."""
    as_read = re.sub(r"[\t\r\n]", "", place.strip()).replace("\\", "/")
    as_read = re.sub(r"^//+", "//", as_read)
    return urlsplit(urljoin(f"http://{HERE}/login", as_read)).netloc
