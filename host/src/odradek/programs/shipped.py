"""Files beside the code: a wheel has them in the package, a checkout in their own folders."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def shipped(name: str, source: str) -> Path:
    """Return where this installation has a folder.

    Args:
        name: The folder in the package; pyproject.toml and ``host/hatch_pages.py`` put it into the wheel.
        source: The folder in a checkout, relative to the root.
    """
    installed = PACKAGE / name
    return installed if installed.exists() else PACKAGE.parents[2] / source


DOCS = shipped("docs", "host/docs")
