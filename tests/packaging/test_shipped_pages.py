"""The pages in the wheel have no dead link: it has neither the examples nor other parts of the repository."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from support.reference_page import DOCS, ROOT

pytest.importorskip("hatchling")

LINK = re.compile(r"\]\((?!https?://|mailto:|#)(?P<file>[^)\s#]+)[^)\s]*\)")


@pytest.fixture(scope="module")
def hook() -> ModuleType:
    """The module of the build hook, which is not in a package."""
    spec = importlib.util.spec_from_file_location("hatch_pages", ROOT / "host/hatch_pages.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def dead_links(folder: Path) -> list[str]:
    """The links of the pages in a folder that lead out of it or nowhere."""
    return [
        f"{path.relative_to(folder)}: {link['file']}"
        for path in sorted(folder.rglob("*.md"))
        for link in LINK.finditer(path.read_text(encoding="utf-8"))
        if not (target := (path.parent / link["file"]).resolve()).is_relative_to(folder)
        or not target.exists()
    ]


def test_no_link_of_the_shipped_pages_is_dead(hook: ModuleType, tmp_path: Path) -> None:
    hook.copy_pages(DOCS, tmp_path)

    assert dead_links(tmp_path) == []
    assert len(list(tmp_path.rglob("*.md"))) == len(list(DOCS.rglob("*.md")))


@pytest.mark.parametrize(
    ("link", "shipped"),
    [
        ("[b](b.md#c)", "[b](b.md#c)"),
        ("[kip](https://example.org/kip)", "[kip](https://example.org/kip)"),
        ("[above](#above)", "[above](#above)"),
        ("[all](../README.md)", "[all](../README.md)"),
        ("[otlp](../../../plugins/otlp/README.md)", "otlp (`plugins/otlp/README.md` of the repository)"),
        ("[otlp](../../../plugins/otlp/README.md#x)", "otlp (`plugins/otlp/README.md` of the repository)"),
        ("[examples/a.py](../../../examples/a.py)", "`examples/a.py` of the repository"),
        ("[`examples/a.py`](../../../examples/a.py)", "`examples/a.py` of the repository"),
        ("[the floors](../../README.md)", "the floors (`host/README.md` of the repository)"),
    ],
)
def test_a_link_out_of_the_pages_becomes_a_name(hook: ModuleType, link: str, shipped: str) -> None:
    assert hook.without_outside_links(f"See {link}.\n", Path("howto/a.md")) == f"See {shipped}.\n"
