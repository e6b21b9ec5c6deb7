"""The README names every page and every path of the API."""

from __future__ import annotations

import re
from pathlib import Path

from starlette.routing import Route

from odradek_console.web.app import PAGES
from odradek_console.web.openapi import PATH

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
API = "/api/v1"
INSTANCE = "{instance}"
OTHERS = {"/events", "/login", "/login/provider", "/login/provider/back", "/clients/{instance}/watch"}
"""A stream, forms of pages, and the way to an OpenID provider and back."""


def paths() -> set[str]:
    """The paths that answer GET, without those of CSV."""
    routes = [each for module in PAGES for each in module.routes if isinstance(each, Route)]
    found = {
        each.path.replace("{instance:path}", INSTANCE).replace(":path}", "}")
        for each in routes
        if "GET" in (each.methods or ())
    }
    return {each for each in found if not each.endswith(".csv")} - OTHERS


def written(heading: str, prefix: str = "") -> set[str]:
    """The paths in the table below a heading."""
    (section,) = re.findall(rf"^### {heading}\n(.*?)^#", README, re.MULTILINE | re.DOTALL)
    cells = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `/")]
    return {prefix + each for cell in cells for each in re.findall(r"`(/[^`]*)`", cell)}


def test_every_page_is_there() -> None:
    assert written("Pages") == {each for each in paths() if not each.startswith(API)} - {"/healthz"}
    assert "`/healthz`" in README


def test_every_path_of_the_api_is_there() -> None:
    assert written("API", API) == {each for each in paths() if each.startswith(API)} - {PATH}
    assert f"`{PATH}`" in README
