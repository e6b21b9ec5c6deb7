"""The runbook: the meaning of each finding, and advice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from odradek.findings.hints import FINDINGS
from odradek_console.web.render import page

SECTION: Final = re.compile(r"^### ([a-z-]+)$", re.MULTILINE)
LINK: Final = re.compile(r"\[([^\]]*)\]\([^)]*\)")
PAGE: Final = "docs/reference/runbook.md"


def written() -> str:
    """The page of the documentation that is installed with the host, or that of a checkout; empty without."""
    package = Path(str(resources.files("odradek")))
    for path in (package / PAGE, package.parents[1] / PAGE):
        if path.is_file():
            return path.read_text(encoding="utf-8")
    return ""


@cache
def advice() -> Mapping[str, tuple[str, ...]]:
    """The paragraphs of each section, without examples."""
    parts = SECTION.split(written())[1:]
    return {name: tuple(paragraphs(text)) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def paragraphs(section: str) -> Iterator[str]:
    """The written text of a section: what follows its question, up to its first example."""
    for block in section.partition("```")[0].split("\n\n"):
        text = " ".join(block.split())
        if text and not text.startswith("**"):
            yield LINK.sub(r"\1", text).replace("`", "")


def runbook(request: Request) -> Response:
    """All findings."""
    return page(request, "runbook.html", findings=FINDINGS, advice=advice())


routes = [Route("/runbook", runbook)]
