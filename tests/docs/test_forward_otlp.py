"""Documents that start a host with a destination: a subscription, and the shipped configurations."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.reference_page import ROOT

HOWTO = ROOT / "host/docs/howto/forward-otlp.md"
TOTALS = ROOT / "host/docs/howto/totals-over-otlp.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FORWARDER = re.compile(
    r"^\[plugins\.(otlp|kafka|spark)\]|--set plugins\.(otlp|kafka|spark|census)\.", re.MULTILINE
)
PAGES = (
    HOWTO,
    ROOT / "host/docs/howto/export-to-topic.md",
    ROOT / "host/docs/howto/run-the-pipeline.md",
    ROOT / "host/docs/tutorial/first-plugin.md",
    ROOT / "contrib/otelcol/README.md",
    ROOT / "plugins/kafka/README.md",
    ROOT / "plugins/otlp/README.md",
    ROOT / "plugins/spark/README.md",
)


def blocks(page: Path, language: str = "") -> list[str]:
    found = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [text for each, text in found if language in ("", each)]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_first_block_with_a_forwarder_has_a_subscription(page: Path) -> None:
    """Without one, clients push nothing and nothing arrives."""
    first = next(block for block in blocks(page) if FORWARDER.search(block))

    assert "subscriptions.all" in first


def test_the_collector_of_the_howto_is_the_shipped_one() -> None:
    (shown,) = [yaml.safe_load(block) for block in blocks(HOWTO, "yaml") if "receivers:" in block]
    shipped = yaml.safe_load((ROOT / "contrib/otelcol/otlp.yaml").read_text(encoding="utf-8"))

    def essence(config: dict[str, Any]) -> object:
        metrics = config["service"]["pipelines"]["metrics"]
        resource = config["processors"]["resource"]
        return metrics["processors"], resource, config["processors"]["deltatocumulative"]

    assert essence(shown) == essence(shipped)


@pytest.mark.parametrize(
    ("language", "start", "shipped"),
    [("toml", "# A host that forwards to the OTLP endpoint", "odradek.toml"), ("yaml", "", "otlp.yml")],
)
def test_the_files_for_prometheus_are_the_shipped_ones(language: str, start: str, shipped: str) -> None:
    text = (ROOT / "contrib/prometheus" / shipped).read_text(encoding="utf-8")

    assert text in [block for block in blocks(TOTALS, language) if block.startswith(start)]


def test_the_flags_of_prometheus_are_the_same_everywhere() -> None:
    flags = "otlp.yml --web.enable-otlp-receiver"
    folder = ROOT / "contrib/prometheus"

    texts = {
        path.name: path.read_text(encoding="utf-8")
        for path in (TOTALS, folder / "README.md", folder / "otlp.yml")
    }

    assert [name for name, text in texts.items() if flags not in text] == []
