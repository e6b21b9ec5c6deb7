"""Extras that install the sibling distributions, and the pages of the documentation in the wheel.

The extras name the folders of the siblings in a checkout, pins in a release. ``python -m build`` makes the
wheel from the sdist, where the folders are gone, so their presence cannot be the switch:
``ODRADEK_RELEASE=1`` is.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

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


class SiblingExtras(MetadataHookInterface):  # type: ignore[misc]
    """Fills ``optional-dependencies`` from the tables ``siblings`` and ``extras`` of this hook.

    The extra ``all`` has every sibling but those that stand ``apart``; ``dev`` has the extras
    ``test`` and ``oauth``.
    """

    def update(self, metadata: dict[str, Any]) -> None:
        host, version = metadata["name"], metadata["version"]
        extras = {extra: list(requirements) for extra, requirements in self.config["extras"].items()}
        siblings = {
            extra: self.requirement(f"{host}-{extra}", folder, version)
            for extra, folder in self.config["siblings"].items()
        }
        together = [siblings[extra] for extra in siblings if extra not in self.config["apart"]["extras"]]
        extras["dev"] += [*extras["test"], *extras["oauth"], *extras["tls"]]
        extras["all"] = [*together, *extras["demo"], *extras["fast"], *extras["oauth"], *extras["tls"]]
        extras |= {extra: [requirement] for extra, requirement in siblings.items()}
        metadata["optional-dependencies"] = extras

    def requirement(self, name: str, folder: str, version: str) -> str:
        if os.environ.get("ODRADEK_RELEASE"):
            return f"{name}=={version}"
        return f"{name} @ {(Path(self.root) / folder).as_uri()}"
