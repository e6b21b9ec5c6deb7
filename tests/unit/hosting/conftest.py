"""Distributions with a plugin, in a folder on the import path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

SERIAL = count()
"""Modules stay imported, so each has a name of its own."""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Put a distribution with one module and one entry point on the import path; the path of the module."""
    monkeypatch.syspath_prepend(tmp_path)

    def write(name: str, source: str, distribution: str | None = None, attribute: str = "") -> Path:
        title = distribution or f"odradek-{name}"
        module = tmp_path / f"installed_{next(SERIAL)}.py"
        info = tmp_path / f"{title.replace('-', '_')}-9.1.dist-info"
        info.mkdir()
        module.write_text(source)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {title}\nVersion: 9.1\n")
        (info / "entry_points.txt").write_text(f"[odradek]\n{name} = {module.stem}{attribute}\n")
        return module

    return write
