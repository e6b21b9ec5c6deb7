"""Every relative link in a Markdown file has a target, headings included."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SKIPPED = {"node_modules", "build", "dist"}
SOURCES = [
    path
    for folder in ("host", "plugins", "contrib", "tests", "examples")
    for path in (ROOT / folder).rglob("*.py")
]
LINK = re.compile(r"\]\((?!https?://|mailto:)(?P<target>[^)\s]+)\)")
FILE = re.compile(r"`(?P<file>(?:\w+/)*\w+\.py)`")
HEADING = re.compile(r"^#{1,6} (?P<title>.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def pages() -> list[Path]:
    """The Markdown files of the repository."""
    return [
        path
        for path in sorted(ROOT.rglob("*.md"))
        if not any(part.startswith(".") or part in SKIPPED for part in path.relative_to(ROOT).parts)
    ]


def prose(path: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", path.read_text(encoding="utf-8"))


def anchors(path: Path) -> set[str]:
    """The anchors that GitHub creates for headings."""
    titles = (found["title"] for found in HEADING.finditer(prose(path)))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(path: Path) -> list[str]:
    """The links of a page without a target."""
    found = []
    for link in LINK.finditer(prose(path)):
        file, _, anchor = link["target"].partition("#")
        target = (path.parent / file).resolve() if file else path
        if not target.exists() or (anchor and anchor not in anchors(target)):
            found.append(link["target"])
    return found


def test_every_link_has_a_target() -> None:
    assert {path: found for path in pages() if (found := broken(path))} == {}


def missing_files(path: Path) -> set[str]:
    """Files of ours that a page names and that do not exist."""
    named = {found["file"] for found in FILE.finditer(prose(path))}
    return {file for file in named if not any(source.match(file) for source in SOURCES)}


def test_files_of_ours_that_are_named_exist() -> None:
    assert {path: missing for path in pages() if (missing := missing_files(path))} == {}


def test_every_page_of_the_docs_can_be_reached_from_the_readme() -> None:
    docs = ROOT / "host/docs"
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        targets = (
            (path.parent / link["target"].partition("#")[0]).resolve() for link in LINK.finditer(prose(path))
        )
        waiting += [target for target in targets if target.suffix == ".md" and target.exists()]

    assert set(docs.rglob("*.md")) <= reached
