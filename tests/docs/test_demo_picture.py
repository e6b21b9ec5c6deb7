"""The pictures in README: that of the terminal comes from real output, and needs nothing from elsewhere."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from contrib.docs.demo_picture import PICTURE, last_screen, picture

from support.reference_page import DOCS, ROOT

MAX_BYTES = 12_000
CONSOLE_BYTES, CONSOLE_WIDTH = 150_000, 1280


def shown(drawn: str) -> list[str]:
    """The texts of a picture, without the non-breaking spaces of SVG."""
    return [
        html.unescape(text).replace("\xa0", " ").strip() for text in re.findall(r">([^<>\n]+)</text>", drawn)
    ]


def test_only_the_last_screen_is_shown() -> None:
    up = "\x1b[2K\x1b[1A\x1b[2K"
    first, last = "first\r\n1 of 2 s", "\x1b[1mlast\x1b[0m\r\nat the end"
    written = f"host on 127.0.0.1:1\r\n\x1b[?25l{first}{up}{last}\r\n\x1b[?25hdone\r\n"

    screen = last_screen(written)

    assert screen.splitlines() == ["host on 127.0.0.1:1", "\x1b[1mlast\x1b[0m", "at the end", "done"]
    assert [text for text in shown(picture(screen)) if text in ("first", "last", "at the end")] == [
        "last",
        "at the end",
    ]


def test_the_picture_in_readme_is_small_and_its_counts_agree() -> None:
    drawn = PICTURE.read_text(encoding="utf-8")
    text = " ".join(shown(drawn))

    assert f"]({PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(drawn) < MAX_BYTES
    assert not re.findall(r"https?://(?!www\.w3\.org|www\.textualize\.io|127\.0\.0\.1)", drawn)
    produced, consumed, pushed, arrived = re.findall(
        r"(\d+) records produced, (\d+) read .*?(\d+) data points pushed, (\d+) at", text
    )[0]
    assert (produced, pushed) == (consumed, arrived)


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("console-fleet", ROOT / "README.md"),
        ("console-client", DOCS / "howto/use-the-console.md"),
    ],
)
def test_a_picture_of_the_console_is_small_and_described(name: str, page: Path) -> None:
    drawn = (DOCS / f"pictures/{name}.png").read_bytes()

    assert len(drawn) < CONSOLE_BYTES
    assert drawn.startswith(b"\x89PNG")
    assert int.from_bytes(drawn[16:20]) == CONSOLE_WIDTH
    assert re.search(rf"!\[[^]]{{40,}}\]\(\S*pictures/{name}\.png\)", page.read_text(encoding="utf-8"))
