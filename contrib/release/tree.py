"""The source of a release: a commit in a folder, with the address of the repository for the index."""

from __future__ import annotations

import re
import subprocess
import tarfile
from io import BytesIO
from pathlib import Path

LINK = re.compile(r"(?P<head>\]\()(?!https?://|mailto:|#)(?P<target>[^)\s]+)(?P<tail>\))")
URLS = """
[project.urls]
Homepage = "{home}"
Documentation = "{home}/blob/{tag}/host/docs/README.md"
Changelog = "{home}/blob/{tag}/CHANGELOG.md"
Issues = "{home}/issues"
"""


def exported(root: Path, commit: str, target: Path) -> Path:
    """Write the files of a commit into a new folder.

    Args:
        root: The repository.
        commit: A name of the commit.
        target: The folder.

    Raises:
        subprocess.CalledProcessError: There is no such commit.
    """
    packed = subprocess.run(["git", "archive", commit], cwd=root, capture_output=True, check=True).stdout
    target.mkdir(parents=True)
    with tarfile.open(fileobj=BytesIO(packed)) as archive:
        archive.extractall(target, filter="data")
    return target


def committed_s(root: Path, commit: str) -> str:
    """The time of a commit in seconds since the epoch: what is built has no other time."""
    command = ["git", "show", "--no-patch", "--format=%ct", commit]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout.strip()


def address(tree: Path, home: str, tag: str) -> None:
    """Tell each distribution of a tree where the repository is, and make the links of its README absolute: an
    index shows the page without the repository.

    Args:
        tree: The files of the release.
        home: The address of the repository.
        tag: The tag of the release.
    """
    for file in [tree / "pyproject.toml", *tree.glob("plugins/*/pyproject.toml")]:
        text = file.read_text(encoding="utf-8")
        before, mark, after = text.partition("\n[project.")
        file.write_text(before + URLS.format(home=home, tag=tag) + mark + after, encoding="utf-8")
        page = file.with_name("README.md")
        folder = page.parent.relative_to(tree)
        page.write_text(absolute(page.read_text(encoding="utf-8"), folder, home, tag), encoding="utf-8")


def absolute(page: str, folder: Path, home: str, tag: str) -> str:
    """A page with absolute links; pictures are linked as they are, not in their page."""

    def written(link: re.Match[str]) -> str:
        target, mark, anchor = link["target"].partition("#")
        parts: list[str] = []
        for part in (folder / target).parts:
            if part == ".." and parts:
                parts.pop()
            elif part != ".":
                parts.append(part)
        kind = "raw" if target.endswith((".png", ".svg")) else "blob"
        return f"{link['head']}{home}/{kind}/{tag}/{'/'.join(parts)}{mark}{anchor}{link['tail']}"

    return LINK.sub(written, page)
