"""The Markdown pages of the repository as the source of a site: which they are, and in which order.

The order is that of ``host/docs/README.md``: each of its numbered sections is a part of the navigation.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?://|mailto:|#)(?P<target>[^)\s]+)\)")
FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
SECTION = re.compile(r"^## (?:\d+\. (?P<title>.+)|.+)$", re.MULTILINE)
PICTURES = (".png", ".svg")
HOME, ORDER = Path("README.md"), Path("host/docs/README.md")
REST = "More"


def links(root: Path, page: Path) -> Iterator[tuple[re.Match[str], Path]]:
    """The links of a page into the repository, outside of blocks, with the path that each leads to."""
    for part in FENCE.split((root / page).read_text(encoding="utf-8"))[::2]:
        for link in LINK.finditer(part):
            yield link, linked(page, link)


def linked(page: Path, link: re.Match[str]) -> Path:
    """The path to which a link of a page leads."""
    return Path(os.path.normpath(page.parent / link["target"].partition("#")[0]))


def reached(root: Path) -> list[Path]:
    """The pages that can be reached from README, which comes first."""
    found = [HOME]
    for page in found:
        for _, path in links(root, page):
            if path.suffix == ".md" and path not in found:
                found.append(path)
    return found


def sections(root: Path) -> dict[str, list[Path]]:
    """The parts of the navigation: its title, and the pages that it names first."""
    text = (root / ORDER).read_text(encoding="utf-8")
    headings = list(SECTION.finditer(text))
    ends = [heading.start() for heading in headings[1:]] + [len(text)]
    placed = {HOME, ORDER}
    found: dict[str, list[Path]] = {}
    for heading, end in zip(headings, ends, strict=True):
        for link in LINK.finditer(text, heading.end(), end):
            path = linked(ORDER, link)
            if heading["title"] and path.suffix == ".md" and path not in placed:
                placed.add(path)
                found.setdefault(heading["title"], []).append(path)
    return found


def navigation(root: Path) -> dict[Path, dict[str, list[Path]]]:
    """The lists of pages that stand below a page, by title. Those of README are the parts of the navigation.

    A page that no part names stands below the README of its folder, or at the end.
    """
    parts = sections(root)
    placed = {HOME, ORDER, *(page for part in parts.values() for page in part)}
    found: dict[Path, dict[str, list[Path]]] = {HOME: {"": [ORDER], **parts}}
    for page in sorted(set(reached(root)) - placed):
        folder = page.with_name(HOME.name)
        below, title = (folder, "") if folder in placed - {HOME, ORDER} else (HOME, REST)
        found.setdefault(below, {}).setdefault(title, []).append(page)
    return found


def place(page: Path) -> Path:
    """The place of a page in the site: a README is the index of its folder."""
    return page.with_name("index.md") if page.name == HOME.name else page


def write(root: Path, target: Path, address: str) -> None:
    """Write the source of the site.

    Args:
        root: The repository.
        target: A new folder.
        address: Of the files of the repository, to which links outside of the pages lead; without one they
            are replaced by the names of the files.
    """
    pages = reached(root)
    below = navigation(root)
    for page in pages:
        parts = FENCE.split((root / page).read_text(encoding="utf-8"))
        parts[::2] = [rewritten(part, page, set(pages), address) for part in parts[::2]]
        lists = [listed(page, title, each) for title, each in below.get(page, {}).items()]
        path = target / place(page)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(["".join(parts), *lists]), encoding="utf-8")
        for _, picture in links(root, page):
            if picture.suffix in PICTURES:
                (target / picture).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(root / picture, target / picture)


def rewritten(text: str, page: Path, pages: set[Path], address: str) -> str:
    """A text of a page with links of the site."""

    def written(link: re.Match[str]) -> str:
        path = linked(page, link)
        _, mark, anchor = link["target"].partition("#")
        if path in pages:
            return f"[{link['text']}]({relative(place(path), place(page))}{mark}{anchor})"
        if path.suffix in PICTURES:
            return link[0]
        if address:
            return f"[{link['text']}]({address}/{path})"
        name = link["text"].strip("`")
        return f"`{path}`" if name in (str(path), path.name) else f"{link['text']} (`{path}`)"

    return LINK.sub(written, text)


def relative(path: Path, page: Path) -> str:
    """A path as a link of a page."""
    return Path(os.path.relpath(path, page.parent)).as_posix()


def listed(page: Path, title: str, pages: list[Path]) -> str:
    """A part of the navigation, as Sphinx reads it."""
    options = [":hidden:", *([f":caption: {title}"] if title else [])]
    entries = [f"/{place(each).with_suffix('')}" for each in pages]
    return "\n".join(["```{toctree}", *options, "", *entries, "```", ""])
