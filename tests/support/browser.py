"""A headless Chromium that looks at pages of a test's own server, and notes what is wrong with them.

While it runs, `asyncio.get_running_loop()` finds Playwright's loop in the thread of the test. There the waits
of the test kit return coroutines, so tests with a browser use `wait`.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar

import pytest

from support.waiting import wait_until

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page

Found = TypeVar("Found")
PROGRAMS: Final = ("chromium", "chromium-browser", "google-chrome")
LAUNCH_MS: Final = 120_000
PATIENCE_MS: Final = 60_000
PAUSE_MS: Final = 50
PICTURES: Final = "ODRADEK_PICTURES"
"""Environment variable: the folder that pictures are written to. Without it there are none."""
NOWHERE: Final = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.*"
"""No name is looked up: a page that asks another machine for something fails here as well."""
PHONE: Final = 320
DESK: Final = 1280
HEIGHTS: Final = {PHONE: 640, DESK: 800}
WIDEST: Final = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room) return "";
  const all = [...document.body.querySelectorAll("*")];
  const wide = all.filter(each => each.getBoundingClientRect().right > room + 1);
  const names = wide.slice(0, 5).map(each => each.tagName + (each.id ? "#" + each.id : "." + each.className));
  return `wider than ${room} px: ${document.documentElement.scrollWidth} px (${names.join(", ")})`;
}"""


@contextmanager
def launched() -> Iterator[Browser]:
    """Start the browser of this machine; skip the test if there is none."""
    playwright = pytest.importorskip(
        "playwright.sync_api", reason="Playwright is not installed: extra `browser`"
    )
    pytest.importorskip("axe_playwright_python", reason="axe-core is not installed: extra `browser`")
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip(f"no browser is installed: none of {', '.join(PROGRAMS)}")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=[NOWHERE], timeout=LAUNCH_MS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass(slots=True)
class Visit:
    """A window with one page of a site, and its faults so far."""

    page: Page
    site: str
    """The URL of the site without a path."""
    faults: list[str] = field(default_factory=list)
    """Errors on the console and in scripts, and requests to other sites."""
    expected: str = ""
    """A part of messages that are no faults, such as ``status of 401``; some of them come late."""

    def listen(self) -> None:
        """Note faults from now on."""
        self.page.on("console", lambda message: self.note_message(message))
        self.page.on("pageerror", lambda error: self.faults.append(f"script: {error}"))
        self.page.on("request", lambda request: self.note_address(request.url))

    def note_message(self, message: ConsoleMessage) -> None:
        is_expected = bool(self.expected) and self.expected in message.text
        if message.type in ("error", "warning") and not is_expected:
            self.faults.append(f"console: {message.text}")

    def note_address(self, url: str) -> None:
        if not url.startswith((f"{self.site}/", "data:")):
            self.faults.append(f"request to {url}")

    def open(self, path: str = "/") -> None:
        """Go to a page of the site, which must exist."""
        response = self.page.goto(self.site + path)
        assert response is not None, path
        assert response.ok, f"{path}: {response.status} {self.page.inner_text('body')[:500]}"

    def look(self, width: int, *, is_dark: bool) -> None:
        """Resize the window, and change the colors that the user prefers."""
        self.page.set_viewport_size({"width": width, "height": HEIGHTS[width]})
        self.page.emulate_media(color_scheme="dark" if is_dark else "light")

    def check(self) -> list[str]:
        """The faults so far, what axe finds on the page, and whether it is wider than the window."""
        return [*self.faults, *filter(None, [self.page.evaluate(WIDEST)]), *self.violations()]

    def violations(self) -> list[str]:
        """The violations that axe-core finds. The driver injects it, so the page keeps its policy."""
        from axe_playwright_python.sync_playwright import Axe

        return [
            f"axe: {found['id']} at {' '.join(map(str, node['target']))}: {node['failureSummary']}"
            for found in Axe().run(self.page).response["violations"]
            for node in found["nodes"]
        ]

    def wait(self, condition: Callable[[], Found], why: str | Callable[[], object]) -> Found:
        """Wait until a condition of the page or of a server holds, while the page lives."""

        def waited() -> Found:
            self.page.wait_for_timeout(PAUSE_MS)  # Playwright handles events only while it waits
            return condition()

        return condition() or wait_until(waited, why, PATIENCE_MS / 1000)

    def focused(self) -> str:
        """The text, the label or the name of the element that has the focus."""
        return str(
            self.page.evaluate(
                "() => { const it = document.activeElement;"
                " return it.innerText || it.ariaLabel || it.name || it.tagName; }"
            )
        ).strip()

    def picture(self, name: str, *, whole: bool = False) -> None:
        """Write what the window shows to the folder of pictures.

        Args:
            name: The name of the file, without its suffix.
            whole: The page to its end, not only the window.
        """
        if folder := os.environ.get(PICTURES):
            path = Path(folder) / f"{name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=path, full_page=whole, animations="disabled")


@contextmanager
def visit(
    browser: Browser, site: str, *, width: int = DESK, is_dark: bool = False, has_script: bool = True
) -> Iterator[Visit]:
    """Open a window of its own: no cookies, nothing kept.

    Args:
        browser: The browser.
        site: The URL of the site without a path.
        width: The width of the window.
        is_dark: The user prefers dark colors.
        has_script: Scripts run.
    """
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHTS[width]},
        color_scheme="dark" if is_dark else "light",
        java_script_enabled=has_script,
        reduced_motion="reduce",
        locale="en-US",
        timezone_id="UTC",
    )
    try:
        context.set_default_timeout(PATIENCE_MS)
        found = Visit(context.new_page(), site.rstrip("/"))
        found.listen()
        yield found
    finally:
        context.close()
