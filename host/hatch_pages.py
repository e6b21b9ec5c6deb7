"""The pages of the documentation in the wheel, without links to files that only the repository has."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DOCS = Path("host/docs")
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?!https?://|mailto:|#)(?P<target>[^)\s#]+)[^)\s]*\)")


class ShippedPages(BuildHookInterface):  # type: ignore[misc]
    """Puts ``host/docs`` into the wheel, without links to files of the repository that the wheel lacks."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "standard":  # an editable installation reads the pages of the checkout
            return
        self.folder = Path(tempfile.mkdtemp(prefix="odradek-docs-"))
        copy_pages(Path(self.root) / DOCS, self.folder)
        build_data["force_include"][str(self.folder)] = "odradek/docs"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if version == "standard":
            shutil.rmtree(self.folder)


def copy_pages(source: Path, target: Path) -> None:
    """Copy the documentation; pages lose their links to files outside it."""
    shutil.copytree(source, target, dirs_exist_ok=True)
    for path in target.rglob("*.md"):
        text = path.read_text(encoding="utf-8")
        path.write_text(without_outside_links(text, path.relative_to(target)), encoding="utf-8")


def without_outside_links(text: str, page: Path) -> str:
    """A page whose links to files outside the documentation are replaced by their names.

    Args:
        text: The page.
        page: Its path in ``host/docs``.
    """

    def inside(link: re.Match[str]) -> str:
        path = os.path.normpath(DOCS / page.parent / link["target"])
        if Path(path).is_relative_to(DOCS):
            return link[0]
        name = link["text"].strip("`")
        return (
            f"`{path}` of the repository" if name == path else f"{link['text']} (`{path}` of the repository)"
        )

    return LINK.sub(inside, text)
