"""``contrib/site``: every page is in the navigation once, links stay links, and dead ones are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from contrib.site.checked import dead_links
from contrib.site.pages import HOME, ORDER, navigation, reached, rewritten, sections, write

from support.reference_page import DOCS, ROOT

PAGES = {Path("README.md"), Path("a/README.md"), Path("a/b.md")}


def test_the_navigation_has_every_page_once() -> None:
    placed = [page for parts in navigation(ROOT).values() for part in parts.values() for page in part]

    assert sorted([HOME, *placed]) == sorted(reached(ROOT))
    assert {path.relative_to(ROOT) for path in DOCS.rglob("*.md")} <= set(placed)


def test_the_parts_are_in_the_order_of_use() -> None:
    titles = list(sections(ROOT))

    assert titles[:4] == [
        "Evaluate",
        "Install, and see the first metric",
        "Find the client in trouble",
        "Production",
    ]
    assert titles.index("Reference") > titles.index("Production")


@pytest.mark.parametrize(
    ("link", "address", "found"),
    [
        ("[b](a/b.md#c)", "", "[b](a/b.md#c)"),
        ("[a](a/README.md)", "", "[a](a/index.md)"),
        ("[x](https://example.org)", "", "[x](https://example.org)"),
        ("[here](#here)", "", "[here](#here)"),
        ("![p](a/p.png)", "", "![p](a/p.png)"),
        ("[the file](a/c.py)", "", "the file (`a/c.py`)"),
        ("[`c.py`](a/c.py)", "", "`a/c.py`"),
        ("[the file](a/c.py)", "https://h/p/blob/v1", "[the file](https://h/p/blob/v1/a/c.py)"),
    ],
)
def test_a_link_leads_to_a_page_a_file_or_names_it(link: str, address: str, found: str) -> None:
    assert rewritten(link, HOME, PAGES, address) == found


def test_a_link_to_the_index_of_the_folder_above() -> None:
    assert rewritten("[a](../README.md)", Path("a/b.md"), PAGES, "") == "[a](../index.md)"


def test_blocks_stay_as_they_are(tmp_path: Path) -> None:
    root, target = tmp_path / "root", tmp_path / "target"
    (root / ORDER).parent.mkdir(parents=True)
    (root / HOME).write_text("[d](host/docs/README.md)\n\n```sh\necho '[a](b.py)'\n```\n", encoding="utf-8")
    (root / ORDER).write_text("# D\n\n## 1. First\n\n[c](../../c.md)\n", encoding="utf-8")
    (root / "c.md").write_text("[up](README.md)\n", encoding="utf-8")

    write(root, target, "")

    index = (target / "index.md").read_text(encoding="utf-8")
    assert "[d](host/docs/index.md)" in index
    assert "echo '[a](b.py)'" in index
    assert "```{toctree}\n:hidden:\n:caption: First\n\n/c\n```" in index
    assert (target / "c.md").read_text(encoding="utf-8") == "[up](index.md)\n"


def test_dead_links_of_a_site_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top">a</h1><a href="#top">1</a><a href="#gone">2</a><img src="gone.png">'
        '<a href="b.html#x">3</a><a href="b.html#y">4</a><a href="https://example.org/">5</a>',
        encoding="utf-8",
    )
    (tmp_path / "b.html").write_text('<p id="x">b</p>', encoding="utf-8")

    assert list(dead_links(tmp_path)) == ["a.html: #gone", "a.html: gone.png", "a.html: b.html#y"]
